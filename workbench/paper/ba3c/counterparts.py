"""Ours beside the Distributed BA3C paper's numbers: our networks' parameters, and a model of many nodes."""

from pathlib import Path

from workbench.algos.rl.envs import find_game
from workbench.algos.rl.model import make_model
from workbench.paper.ba3c.published import FIG_6, HOURS_BY_NODES, NUMBERS
from workbench.paper.ba3c.scaling import scaling_points, speedup_points
from workbench.paper.experiment import RecordedTable
from workbench.paper.numbers import Counterpart, Ours, Pairs, exact, find, within_factor_2

WHY_NOT = {
    "Sec. 3.1": "64 nodes of 12 cores; preset breakout-ba3c-paper",
    "Table 3": "64 nodes of 12 cores; the other systems' are quoted there from their papers",
}
"""Place in the paper → why what stands there was not run, where no recording can bring it."""


def parameters(root: Path) -> Pairs:
    """Parameters by the width of the fully connected layer (Fig. 6)."""
    game = find_game("Pong", rgb=True)  # of six actions
    for width in FIG_6:
        count = sum(weights.numel() for weights in make_model(game, f"ba3c-{width}").parameters())
        number = find(NUMBERS, "Fig. 6", f"fully connected width {width}")
        yield exact(number, count, why="our network's, six actions")


def speedup(root: Path) -> Pairs:
    """The speed-up on 64 nodes (Fig. 8), by the model that was fitted to few."""
    link, way, most = "10 Gbit/s, 50 us", "4 servers, 90 % awaited", max(HOURS_BY_NODES)
    kept = RecordedTable.open("ba3c-scaling-model", root)
    points = speedup_points(scaling_points(RecordedTable.open("ba3c-scaling", root).frame, kept.frame, link))
    row = points[(points["series"] == way) & (points["x"] == most)].iloc[0]
    number = find(NUMBERS, "Fig. 8", f"speed-up on {most} nodes, Breakout to 300 points")
    why = f"data points/s over one node's, {way}, {link}; not the time to a score; agrees if within a factor of 2"
    value = float(row["value"])
    yield number, Ours(value, "model", within_factor_2(number, value), why, scale=kept.scale)


COUNTERPARTS: list[Counterpart] = [parameters, speedup]
