"""Real time: trials on the workers of a Dask cluster, and the book of attempts that every executor keeps.

The only place that knows of Dask; `attempts.py` and `slots.py` do not.
"""
