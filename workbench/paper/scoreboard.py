"""Every published number beside ours, as `docs/reproduction.md` shows it: written by ``workbench scoreboard``.

Ours are computed here from formulas, simulated here, or read from the recordings in ``data/``; none is typed in.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.core.errors import DatabaseError
from workbench.paper.experiments import Kept
from workbench.paper.published import ALL, GA3C_TABLE_2, Published, published
from workbench.scenario import DATA

Source = Literal["computed", "simulated", "measured", "model"]
Verdict = Literal["agrees", "differs", "not run"]


@dataclass(frozen=True)
class Ours:
    """A number of ours beside a published one.

    Attributes
    ----------
    value : float
        In the published number's unit.
    source : {"computed", "simulated", "measured", "model"}
    agrees : bool
    why : str
        What was compared how, or why it differs.
    interval : (float, float), optional
        95 %, where there are repetitions.
    scale : str
        What it was run on, and for how long; empty for what has no scale.
    """

    value: float
    source: Source
    agrees: bool
    why: str = ""
    interval: tuple[float, float] | None = None
    scale: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard."""

    number: Published
    ours: Ours | None

    @property
    def verdict(self) -> Verdict:
        """``not run`` where there is nothing of ours."""
        return "not run" if self.ours is None else "agrees" if self.ours.agrees else "differs"


Pairs = Iterator[tuple[Published, Ours]]


def scoreboard(root: str | Path = DATA) -> list[Row]:
    """Put what there is of ours beside every published number.

    Parameters
    ----------
    root : path
        The folder of recordings; a recording that is missing leaves its rows at "not run".
    """
    found: dict[Published, Ours] = {}
    for counterpart in _COUNTERPARTS:
        try:
            found.update(counterpart(Path(root)))
        except DatabaseError:
            continue
    return [Row(number, found.get(number)) for number in ALL]


def page(rows: Sequence[Row]) -> str:
    """Write the scoreboard as a page in Markdown."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("agrees", "differs", "not run")}
    lines = [
        "# Reproduction",
        "",
        "Every number of the papers that has a counterpart here, and those that have none yet. This page is written",
        "by `workbench scoreboard --write docs/reproduction.md`; nothing in it is typed in by hand. *Computed* is a",
        "formula, *simulated* is virtual time, *measured* is a recording in `data/`, *model* is a curve fitted to",
        "measurements. A derived published number follows from others in the paper's text.",
        "",
        f"{counts['agrees']} agree, {counts['differs']} differ, {counts['not run']} have not been run.",
    ]
    for paper in dict.fromkeys(row.number.paper for row in rows):
        lines += ["", f"## {paper}", "", "| where | what | published | ours | source | verdict | scale, and why |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [_line(row) for row in rows if row.number.paper == paper]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    number, ours = row.number, row.ours
    told = f"{number.value:g}{' (derived)' if number.derived else ''} {number.unit}".strip()
    if ours is None:
        return f"| {number.where} | {number.what} | {told} | | | not run | |"
    value = f"{ours.value:.5g}"
    if ours.interval is not None:
        value += f" [{ours.interval[0]:.4g}, {ours.interval[1]:.4g}]"
    why = "; ".join(part for part in (ours.scale, ours.why) if part)
    return f"| {number.where} | {number.what} | {told} | {value} | {ours.source} | {row.verdict} | {why} |"


def _exact(number: Published, value: float, source: Source = "computed", why: str = "") -> tuple[Published, Ours]:
    """Compare to the digits that were printed."""
    digits = len(f"{number.value:g}".partition(".")[2])
    return number, Ours(value, source, round(value, digits) == round(number.value, digits), why)


def _hypertrick_formulas(root: Path) -> Pairs:
    from workbench.algos.search.hyperband import bracket_table, completion_rate
    from workbench.algos.search.hypertrick import (
        eviction_rate_for,
        expected_completion_rate,
        minimum_completion_rate,
    )

    for n_phases in (10, 5):
        expected = published("HyperTrick", "Table 1", f"E[alpha], Np = {n_phases}")
        least = published("HyperTrick", "Table 1", f"min alpha, Np = {n_phases}")
        yield _exact(expected, 100 * expected_completion_rate(0.25, n_phases), why="Eq. 9")
        yield _exact(least, 100 * minimum_completion_rate(0.25, n_phases), why="Eq. 8")
    brackets = bracket_table(27, 3)
    configs = sum(bracket[0].n_trials for bracket in brackets)
    yield _exact(published("HyperTrick", "Sec. 5.2.4", "Hyperband, R = 27, eta = 3"), configs)
    for s, bracket in zip((3, 2, 1, 0), brackets, strict=True):
        yield _exact(published("HyperTrick", "Table 2", f"alpha, s = {s}"), 100 * completion_rate([bracket]))
    together = completion_rate(brackets)
    yield _exact(published("HyperTrick", "Table 2", "alpha"), 100 * together)
    rate = published("HyperTrick", "Sec. 5.2.4", "r of equal expected alpha, Np = 27")
    yield _exact(rate, 100 * eviction_rate_for(together, 27), why="Eq. 9 solved for r")


def _toy_problem(root: Path) -> Pairs:
    from workbench.paper import toy

    table = toy.table()
    names = {
        "hypertrick": "HyperTrick",
        "sh-dynamic": "Successive Halving, dynamic",
        "sh-static": "Successive Halving, static",
        "grid": "Grid Search",
    }
    for name, scheduler in toy.schedulers(table).items():
        number = published("HyperTrick", "Figs 2, 3, 8, 9", f"makespan, {names[name]}")
        makespan = toy.play(scheduler, table).outcome.makespan
        yield _exact(
            number, makespan, "simulated", "on a table reconstructed to fit: shows that the numbers can be met"
        )


def _hyperband_in_virtual_time(root: Path) -> Pairs:
    kept = Kept.open("hyperband-against-hypertrick", root)
    spans = dict(zip(kept.frame["scheduler"], kept.frame["makespan"].astype(float), strict=True))
    ratio = spans["hypertrick"] / spans["hyperband"]
    why = "ratio of median makespans on synthetic curves, all games alike; agrees if HyperTrick is faster"
    for number in ALL:
        if number.paper == "HyperTrick" and number.what.startswith("wall time, HyperTrick over Hyperband"):
            # what the paper claims is that it takes less time: the size of the gain depends on the game
            yield number, Ours(ratio, "simulated", ratio < 1, why, scale=kept.scale)


def _atari_studies(root: Path) -> Pairs:
    from workbench.paper import atari

    for number, value, agrees, why, scale in atari.numbers(root):
        yield number, Ours(value, "measured", agrees, why, scale=scale)


def _ga3c_networks(root: Path) -> Pairs:
    kept = Kept.open("ga3c-networks", root)
    rows = {row["network"]: row for row in kept.frame.to_dict("records")}
    for network, (a3c, ga3c) in GA3C_TABLE_2.items():
        ours = {name: float(rows[network][name]) for name in ("ga3c_pps", "a3c_pps", "ratio")}
        for system, told, value in (("GA3C", ga3c, ours["ga3c_pps"]), ("A3C", a3c, ours["a3c_pps"])):
            why = "no GPU here, and other processors" if system == "GA3C" else "other processors"
            agrees = 0.5 <= value / told <= 2
            number = published("GA3C", "Table 2", f"{system}, {network}")
            yield number, Ours(value, "measured", agrees, f"{why}; agrees if within a factor of 2", scale=kept.scale)
        number = published("GA3C", "Table 2", f"GA3C over A3C, {network}")
        why = "on a CPU a batch saves calls and passes over the weights, no more; agrees if within a factor of 2"
        agrees = 0.5 <= ours["ratio"] / number.value <= 2
        yield number, Ours(ours["ratio"], "measured", agrees, why, scale=kept.scale)


def _pong_agent(root: Path) -> Pairs:
    file = root / "pong-agent-slower" / "evaluation.json"
    if not file.is_file():
        return
    found = json.loads(file.read_text(encoding="utf-8"))
    number = published("GA3C", "Table 3", "after one day, pong")
    why = f"mean of {found['n_episodes']} games, actions drawn; agrees if at least as high"
    scale = "40 million frames in two sittings on 2 cores"
    yield number, Ours(found["mean"], "measured", found["mean"] >= number.value, why, scale=scale)


_COUNTERPARTS: list[Callable[[Path], Pairs]] = [
    _hypertrick_formulas,
    _toy_problem,
    _hyperband_in_virtual_time,
    _atari_studies,  # what is measured goes before what is simulated
    _ga3c_networks,
    _pong_agent,
]
