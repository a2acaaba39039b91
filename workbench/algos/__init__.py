"""What is tuned, and what tunes: trainables, and the metaoptimizers in `search`."""
