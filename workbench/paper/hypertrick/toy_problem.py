"""The HyperTrick paper's toy problem (arXiv 1902.02725, Figs 2, 3, 8, 9), on a reconstructed table.

The paper's table of durations and scores was a picture and is lost. `data/toy_problem.csv` was searched for, by
`data/toy_problem.py`, until all that the text tells of it held. Many tables fit; the numbers are not the paper's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.algos.search import FullRuns, HyperTrick, ListSearcher, SuccessiveHalving
from workbench.core.errors import unknown
from workbench.core.places import located
from workbench.core.protocols import Event, Scheduler
from workbench.simulation import Outcome, simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.curve_table import CurveTable, TableCurves, read_table

if TYPE_CHECKING:
    import plotly.graph_objects as go

NODES = 6
EVICTION_RATE = 0.25
FIGURES: Mapping[str, str] = {
    "hypertrick": "HyperTrick (Fig. 2)",
    "sh-dynamic": "Successive Halving, dynamic allocation (Fig. 3)",
    "sh-static": "Successive Halving, static allocation (Fig. 8)",
    "grid": "Grid search (Fig. 9)",
}


@dataclass(frozen=True)
class ToyRun:
    """One schedule of the toy problem: its outcome and its log."""

    outcome: Outcome
    events: list[Event]


def table() -> CurveTable:
    """Read the reconstructed table."""
    return read_table(located("toy_problem.csv"))


def schedulers(toy: CurveTable) -> dict[str, Scheduler]:
    """Build the four schedulers of Figs 2, 3, 8 and 9."""
    configs, phases = toy.configs, toy.n_phases
    n = len(configs)
    searcher = ListSearcher(configs)
    return {
        "hypertrick": HyperTrick(searcher, n, phases, EVICTION_RATE),
        "sh-dynamic": SuccessiveHalving(searcher, n, phases, eviction_rate=EVICTION_RATE),
        "sh-static": SuccessiveHalving(
            searcher, n, phases, eviction_rate=EVICTION_RATE, allocation="static", n_nodes=NODES
        ),
        "grid": FullRuns(searcher, n, phases),
    }


def play(scheduler: Scheduler, toy: CurveTable) -> ToyRun:
    """Simulate one schedule on six nodes."""
    events: list[Event] = []
    outcome = simulate(scheduler, TableCurves(toy), VirtualCluster(NODES), events=events)
    return ToyRun(outcome, events)


def figure(name: str) -> "go.Figure":
    """Draw one of the paper's Figs 2, 3, 8 and 9 from the simulated log: which node runs which trial when.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    """
    from workbench.knowledge.frames import frames_of
    from workbench.viz.figures import node_occupancy

    if name not in FIGURES:
        raise unknown("schedule of the toy problem", name, FIGURES)
    toy = table()
    frames = frames_of(play(schedulers(toy)[name], toy).events)
    drawn = node_occupancy(frames.spans, frames.slots, frames.wall_s)
    drawn.update_xaxes(title="time units")
    return drawn.update_layout(title=f"{FIGURES[name]}, simulated on a reconstructed table")
