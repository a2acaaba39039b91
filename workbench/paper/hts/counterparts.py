"""Ours beside the HTS-RL paper's numbers, measured."""

from pathlib import Path

from workbench.paper.experiment import RecordedTable
from workbench.paper.hts.published import NUMBERS
from workbench.paper.hts.speedup import speedups
from workbench.paper.numbers import Counterpart, Ours, Pairs, find


def speedup(root: Path) -> Pairs:
    """The speed-up at the least and at the most variance of step times (Fig. 4, left)."""
    kept = RecordedTable.open("hts-speedup", root)
    gamma = speedups(kept.frame[kept.frame["law"] == "gamma"]).sort_values("cv").to_dict("records")
    for row, what in ((gamma[0], "low step-time variance, about"), (gamma[-1], "high step-time variance, above")):
        number = find(NUMBERS, "Fig. 4 (left)", f"speed-up at {what}")
        value, interval = row["speedup"], (row["low"], row["high"])
        about = what.endswith("about")
        agrees = abs(value / number.value - 1) <= 0.2 if about else value > number.value
        how = "within a fifth" if about else "above"
        why = f"sleeping CartPole, gamma times of deviation / mean {row['cv']:g}; "
        why += f"{row['expected_with_learning']:.3g} expected from the law and the time of an update, "
        why += f"which is a setting here; agrees if {how}"
        yield number, Ours(value, "measured", agrees, why, interval, kept.scale)


COUNTERPARTS: list[Counterpart] = [speedup]
