"""Trials of the user's own: a generator function that yields a score once a phase, or a class."""
