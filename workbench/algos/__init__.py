"""What is tuned, and what tunes: trainables, and the metaoptimizers in `search`.

Each system is a package of its own, and none knows another.
"""
