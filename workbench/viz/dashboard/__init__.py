"""Widgets that look at a study's log while it grows. The only place that knows Jupyter's widgets."""

from workbench.viz.dashboard.dashboard import Dashboard

__all__ = ["Dashboard"]
