"""Distributed BA3C: ranks that average gradients."""
