"""Population Based Training (Jaderberg et al., arXiv 1711.09846): its toy problem and its comparisons."""
