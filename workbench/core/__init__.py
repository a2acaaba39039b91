"""The vocabulary that all parts speak, and the one loop that drives a study.

Spaces, budgets, protocols, registry and errors; nothing here knows of a cluster, a database or a figure.
"""
