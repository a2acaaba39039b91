"""Ours beside the PBT paper's numbers, simulated: trials train, the clock is virtual."""

from pathlib import Path

from workbench.analysis.bootstrap import bootstrap_interval
from workbench.paper.experiment import RecordedTable
from workbench.paper.numbers import Counterpart, Ours, Pairs, find
from workbench.paper.pbt.cartpole import improvements
from workbench.paper.pbt.published import NUMBERS

WHY_NOT = {
    "Table 1": "Feudal Networks are not among the systems here",
    "Fig. 5(a)": "a larger population than was run",
}
"""Place in the paper → why what stands there was not run, where no recording can bring it."""


def toy_problem(root: Path) -> Pairs:
    """Where PBT and grid search end on the toy problem (Fig. 2)."""
    kept = RecordedTable.open("pbt-toy", root)
    finals = kept.frame[kept.frame["reading"] == "as chosen"].groupby("variant")["final"]
    for variant, what in (("grid", "grid search, about"), ("PBT", "PBT, about")):
        interval = bootstrap_interval(finals.get_group(variant).to_numpy(), "mean")
        number = find(NUMBERS, "Fig. 2", what)
        why = f"mean of {finals.size()[variant]} seeds; agrees to one decimal"
        value, agrees = interval.value, round(interval.value, 1) == number.value
        yield number, Ours(value, "simulated", agrees, why, (interval.low, interval.high), kept.scale)


def population(root: Path) -> Pairs:
    """What PBT gains over random search by the size of the population (Fig. 5(a))."""
    kept = RecordedTable.open("pbt-design", root)
    rows = improvements(kept.frame)
    why = "final score over random search's on CartPole; agrees if its interval holds the published or is on its side"
    for row in rows[rows["group"] == "population"].to_dict("records"):
        what = f"PBT over random search, {row['name']} members"
        for number in (n for n in NUMBERS if n.what == what):
            beyond = row["low"] > 1 if number.value > 1 else row["high"] < 1
            agrees = bool(row["low"] <= number.value <= row["high"] or beyond)
            yield number, Ours(row["value"], "simulated", agrees, why, (row["low"], row["high"]), kept.scale)


COUNTERPARTS: list[Counterpart] = [toy_problem, population]
