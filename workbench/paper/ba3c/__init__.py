"""Distributed BA3C (Adamski et al., arXiv 1801.02852): how it scales."""
