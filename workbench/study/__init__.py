"""A study: described, started or launched, followed, resumed, summed up.

What lies below knows trials, logs and clusters; here they become one thing with a name.
"""
