"""Every published number and claim beside ours, as ``workbench scoreboard`` writes `docs/reproduction.md`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from workbench.core.errors import DatabaseError, InvalidInput, unknown
from workbench.core.places import DATA
from workbench.core.showing import so_many
from workbench.knowledge import Recording
from workbench.paper.catalogue import COUNTERPARTS, EXPERIMENTS, PUBLISHED
from workbench.paper.experiment import RecordedTable
from workbench.paper.numbers import Ours, Published, Verdict

ABOUT = """\
# Reproduction

The papers' numbers and what they claim, and what was found here beside each. This page is written by
`workbench scoreboard --write docs/reproduction.md`; nothing in it is typed in by hand.
"""
VERDICTS = """\
## Verdicts

- *exact*: a formula, equal to the printed digits. *By construction*: fitted until it agreed, what else would stop the
  run, or derived by that formula where the paper's text lost the number; it says nothing.
- *agrees*, *differs*: the 95 % interval (in brackets, over the repetitions told) lies wholly on one side of the
  criterion, which stands in the row; *undecided*: it lies across. One comparison in twenty errs by chance. Where
  there are no repetitions, *chance* is how often the criterion would be met with nothing there; above one in twenty
  nothing is decided, nor by a miss that one run may well have though the claim is true. "Similar", "nearly" and "as
  fast" are taken for 10 %: what is claimed to be better differs where less is left of it.
- *not comparable*: measured, but on something else: other machines, games or lengths. *Not run*: nothing of ours.

*Computed* is a formula, *simulated* is virtual time, *measured* is a recording, made by the command in the row at the
scale behind it. **Those of scale minutes are small**: mostly CartPole, few seeds, ours on two cores. A *derived*
number follows from others in the paper's text. Intervals over seeds are Student's and Welch's, of gains in per cent
Fieller's: wider than the bootstraps of few seeds on other pages.
"""


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard."""

    number: Published
    ours: Ours | None

    @property
    def verdict(self) -> Verdict:
        """``not run`` where there is nothing of ours."""
        return "not run" if self.ours is None else self.ours.verdict

    @property
    def why(self) -> str:
        """What was compared how; or why it was not run."""
        return self.ours.why if self.ours else self.number.why_not or "not recorded: `workbench reproduce`"


def scoreboard(root: str | Path = DATA, paper: str | None = None) -> list[Row]:
    """Put what there is of ours beside every published number and claim: a row each, of a claim one a recording.

    Parameters
    ----------
    root : path
        The folder of recordings; a recording that is missing leaves its rows at "not run".
    paper : {"HyperTrick", "GA3C", "BA3C", "PBT", "HTS-RL"}, optional
        Of one paper alone.

    Raises
    ------
    InvalidInput
        No such paper.
    """
    if paper is not None and paper not in COUNTERPARTS:
        raise unknown("paper", paper, COUNTERPARTS)
    ours: dict[Published, list[Ours]] = {}
    for counterpart in (each for name, its in COUNTERPARTS.items() if paper in (None, name) for each in its):
        try:
            pairs = list(counterpart(Path(root)))
        except DatabaseError:
            continue
        for published, measured in pairs:
            ours.setdefault(published, []).append(measured)
    asked = [published for published in PUBLISHED if paper in (None, published.paper)]
    return [Row(published, measured) for published in asked for measured in ours.get(published, [None])]


def page(rows: Sequence[Row]) -> str:
    """Write the scoreboard in Markdown: counts, what differs, then all by paper."""
    claims_first = sorted((row for row in rows if row.verdict == "differs"), key=lambda row: not is_claim(row))
    lines = [VERDICTS, *_counts(rows), "", "## What differs", "", *_table(claims_first, papers=True)]
    for paper in dict.fromkeys(row.number.paper for row in rows):
        of_paper = [row for row in rows if row.number.paper == paper]
        lines += ["", f"## {paper}"]
        for title, kind in (("Claims", True), ("Numbers", False)):
            of_kind = [row for row in of_paper if is_claim(row) == kind and row.ours]
            lines += ["", f"### {title}", "", *_table(of_kind)] if of_kind else []
        lines += _not_run(of_paper)
    return "\n".join(lines) + "\n"


def page_of_own(root: Path) -> str:
    """Write the scoreboard of a reader's recordings; where a folder holds none, it raises `InvalidInput`."""
    if not any(file for kind in ("table", "events") for file in root.glob(f"*/{kind}.parquet")):
        raise InvalidInput(
            f"{root} holds no recordings, each in a folder of its own: name one that reproduce --out has kept them in"
        )
    return f"# The papers' numbers and claims, beside the recordings in {root}\n\n{page(scoreboard(root))}"


def is_claim(row: Row) -> bool:
    """Tell a claim in words from a number."""
    return row.number.value is None


def _counts(rows: Sequence[Row]) -> list[str]:
    """Count numbers and claims by verdict; a claim with several recordings counts once for each."""
    lines = ["| verdict | numbers | claims |", "|---|---|---|"]
    for verdict in get_args(Verdict):
        of_verdict = [is_claim(row) for row in rows if row.verdict == verdict]
        lines.append(f"| {verdict} | {len(of_verdict) - sum(of_verdict)} | {sum(of_verdict)} |")
    return lines


def recordings(root: str | Path = DATA) -> str:
    """Write a table of what is recorded: what it shows, what it was run on, and the command that does it again."""
    lines = [
        "## Recordings",
        "",
        "`workbench reproduce NAME` runs one again and keeps it in the place of the earlier one. `--scale hours` takes",
        "longer runs and more seeds, `--scale paper` is as published, for a machine like theirs; not all have both.",
        "`--out FOLDER` keeps it there, and `workbench scoreboard --recordings FOLDER` puts that beside the papers.",
        "Scores of GA3C, A3C, BA3C and HTS-RL recorded on 2026-11-21 are by the rule of 0.1.0: means of the last 100",
        "games, which reach back several phases. These stand until they are recorded again.",
        "",
        "| name | shows | run | seconds |",
        "|---|---|---|---|",
    ]
    for name, experiment in EXPERIMENTS.items():
        try:
            kept = RecordedTable.open(name, root)
        except DatabaseError:
            lines.append(f"| `{name}` | {experiment.shows} | not recorded yet | |")
        else:
            lines.append(f"| `{name}` | {kept.about['shows']} | {kept.scale} | {kept.about['seconds']:.0f} |")
    return "\n".join([*lines, *_recorded_studies(Path(root))]) + "\n"


def _recorded_studies(root: Path) -> list[str]:
    """One line a study that was recorded whole, from its log."""
    lines = [
        "",
        "Whole studies, measured; `workbench run --preset NAME --record FOLDER` runs one again, and notebooks read the",
        "folder with `Results.of_recording`.",
        "",
        "| name | what ran | phases | nodes | minutes | day |",
        "|---|---|---|---|---|---|",
    ]
    for folder in sorted(path.parent for path in root.glob("*/events.parquet")):
        recording = Recording.open(folder)
        spec, frames, day = recording.spec, recording.frames(), recording.provenance["started"][:10]
        agent, n_trials = spec["trainable"], len(frames.trials)
        ran = f"{spec['scheduler']['kind']} over {agent['kind']} on {agent.get('game', 'no game')}"
        ran += f", {so_many(n_trials, 'trial')}"
        n_phases, n_nodes = frames.phases["ended_s"].notna().sum(), frames.slots["slot"].nunique()
        lines.append(f"| `{folder.name}` | {ran} | {n_phases} | {n_nodes} | {frames.wall_s / 60:.0f} | {day} |")
    return lines


def _table(rows: Sequence[Row], *, papers: bool = False) -> list[str]:
    """One line a row; the papers' names only if asked for, and what is published only where there are numbers."""
    published = not all(map(is_claim, rows))
    lines = [_line(row, row.ours, papers, published) for row in rows if row.ours]
    columns = ["paper"] * papers + ["where", "what"] + ["published"] * published + ["ours", "verdict", "why", "made by"]
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *lines] if lines else ["Nothing."]


def _line(row: Row, ours: Ours, papers: bool, published: bool) -> str:
    number = row.number
    cells = [_printed(number, number.unit)] * published + [_found(ours), row.verdict, row.why, str(ours.origin)]
    return f"| {' | '.join([number.paper] * papers + [number.where, number.what, *cells])} |"


def _found(ours: Ours) -> str:
    value = _digits(ours.value, 4)
    if ours.interval is not None:
        ends = [_digits(end, 3) if math.isfinite(end) else "no limit" for end in ours.interval]
        value += f" [{', '.join(ends)}]"
    value = f"{value} {ours.unit}".strip()
    return value if ours.chance is None else f"{value}, chance {100 * ours.chance:.2g} %"


def _digits(value: float, digits: int = 5) -> str:
    """Write a number without a power of ten, and -0 as 0; a whole one with all its digits."""
    if not math.isfinite(value):
        return "none"
    if value == round(value):
        return f"{value + 0.0:.0f}"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if abs(rounded) >= 10**digits else f"{rounded:.{digits}g}"


def _not_run(rows: Sequence[Row]) -> list[str]:
    """One line a place and unit: there are many numbers that nothing stands beside."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.ours is None:
            published = row.number.what if is_claim(row) else f"{row.number.what}: {_printed(row.number)}"
            groups.setdefault((row.number.where, row.number.unit, row.why), []).append(published)
    lines = [f"| {where} | {unit} | {'; '.join(numbers)} | {why} |" for (where, unit, why), numbers in groups.items()]
    head = ["", "### Not run", "", "| where | unit | published | why |", "|---|---|---|---|"]
    return [*head, *lines] if lines else []


def _printed(number: Published, unit: str = "") -> str:
    """Write a published number with all its digits; a claim has none."""
    if number.value is None:
        return ""
    digits = f"{number.value:.10g}" + (f" ± {number.spread:g}" if number.spread is not None else "")
    return f"{digits} {unit}".strip() + (" (derived)" if number.derived else "")
