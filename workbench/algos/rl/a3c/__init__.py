"""A3C: threads that share weights."""
