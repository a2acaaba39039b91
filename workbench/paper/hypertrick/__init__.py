"""HyperTrick (Heinrich & Frosio, arXiv 1902.02725): its studies and its toy problem."""
