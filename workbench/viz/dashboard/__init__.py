"""The live dashboard: widgets that look at a study's log while it grows.

The only place that knows of Jupyter's widgets, and of what runs in a page.
"""

from workbench.viz.dashboard.comparison import Comparison
from workbench.viz.dashboard.dashboard import Dashboard
from workbench.viz.dashboard.home import Home, home

__all__ = ["Comparison", "Dashboard", "Home", "home"]
