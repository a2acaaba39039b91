"""The vocabulary that all parts speak, and the one loop.

Nothing here knows of a cluster, a database or a figure.
"""
