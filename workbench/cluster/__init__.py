"""Real time: trials on the workers of a Dask cluster, with retries after crashes and stalls.

The only place that knows of Dask.
"""
