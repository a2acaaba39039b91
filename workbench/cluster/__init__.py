"""Real time: trials on the workers of a Dask cluster.

The only place that knows of Dask.
"""
