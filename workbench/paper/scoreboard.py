"""Every published number beside ours, as `docs/reproduction.md` shows it: written by ``workbench scoreboard``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.core.errors import DatabaseError
from workbench.core.places import DATA
from workbench.knowledge import Recording
from workbench.paper.catalogue import COUNTERPARTS, EXPERIMENTS, PUBLISHED, WHY_NOT
from workbench.paper.experiment import RecordedTable
from workbench.paper.hypertrick.atari import OLD_RULE, by_the_old_rule
from workbench.paper.numbers import Ours, Published

Verdict = Literal["agrees", "differs", "not run"]


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard."""

    number: Published
    ours: Ours | None

    @property
    def verdict(self) -> Verdict:
        """``not run`` where there is nothing of ours."""
        return "not run" if self.ours is None else "agrees" if self.ours.agrees else "differs"

    @property
    def why(self) -> str:
        """What was compared how and on what; or why it was not run."""
        if self.ours is None:
            return WHY_NOT.get((self.number.paper, self.number.where), "not recorded yet: workbench reproduce")
        return "; ".join(part for part in (self.ours.scale, self.ours.why) if part)


def scoreboard(root: str | Path = DATA) -> list[Row]:
    """Put what there is of ours beside every published number.

    Parameters
    ----------
    root : path
        The folder of recordings; a recording that is missing leaves its rows at "not run".
    """
    ours: dict[Published, Ours] = {}
    for counterpart in COUNTERPARTS:
        try:
            ours.update(counterpart(Path(root)))
        except DatabaseError:
            continue
    return [Row(number, ours.get(number)) for number in PUBLISHED]


def page(rows: Sequence[Row]) -> str:
    """Write the scoreboard as a page in Markdown."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("agrees", "differs", "not run")}
    lines = [
        "# Reproduction",
        "",
        "Every number of the papers that has a counterpart here, and those that have none. This page is written by",
        "`workbench scoreboard --write docs/reproduction.md`; nothing in it is typed in by hand. *Computed* is a",
        "formula, *simulated* is virtual time, *measured* is a recording in `data/`, *model* is a curve fitted to",
        "measurements. A *derived* published number follows from others in the paper's text. In brackets stand 95 %",
        "intervals. Ours were seldom run on what the paper ran: read the last column before the verdict.",
        "",
        f"{counts['agrees']} agree, {counts['differs']} differ, {counts['not run']} have not been run.",
    ]
    for paper in dict.fromkeys(row.number.paper for row in rows):
        of_paper = [row for row in rows if row.number.paper == paper]
        lines += ["", f"## {paper}", *_compared(of_paper), *_not_run(of_paper)]
    return "\n".join(lines) + "\n"


def recordings(root: str | Path = DATA) -> str:
    """Write a table of what is recorded: what it shows, what it was run on, and the command that does it again."""
    lines = [
        "## Recordings",
        "",
        "`workbench reproduce NAME` runs one again and keeps it in the place of the earlier one. `--scale hours` takes",
        "longer runs and more seeds, `--scale paper` is as published, for a machine like theirs; not all have both.",
        "Scores of GA3C, A3C, BA3C and HTS-RL recorded on 2026-11-21 are by the rule of 0.1.0: means of the last 100",
        "games, which reach back several phases. They stand until they are recorded again.",
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
        ran += f", {n_trials} trial{'s' if n_trials > 1 else ''}{f'; {OLD_RULE}' if by_the_old_rule(spec) else ''}"
        n_phases, n_nodes = frames.phases["ended_s"].notna().sum(), frames.slots["slot"].nunique()
        lines.append(f"| `{folder.name}` | {ran} | {n_phases} | {n_nodes} | {frames.wall_s / 60:.0f} | {day} |")
    return lines


def _compared(rows: Sequence[Row]) -> list[str]:
    lines = [_line(row, row.ours) for row in rows if row.ours is not None]
    head = [
        "",
        "| where | what | published | ours | source | verdict | scale, and why |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*head, *lines] if lines else []


def _line(row: Row, ours: Ours) -> str:
    value = f"{ours.value:.5g}" if abs(ours.value) < 1e5 else f"{ours.value:.0f}"
    if ours.interval is not None:
        value += f" [{ours.interval[0]:.4g}, {ours.interval[1]:.4g}]"
    number = row.number
    published = f"{_printed(number)} {number.unit}".strip()
    return f"| {number.where} | {number.what} | {published} | {value} | {ours.source} | {row.verdict} | {row.why} |"


def _not_run(rows: Sequence[Row]) -> list[str]:
    """One line a place and unit: there are many numbers that nothing stands beside."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.ours is None:
            published = f"{row.number.what}: {_printed(row.number)}"
            groups.setdefault((row.number.where, row.number.unit, row.why), []).append(published)
    lines = [f"| {where} | {unit} | {'; '.join(numbers)} | {why} |" for (where, unit, why), numbers in groups.items()]
    return ["", "Not run:", "", "| where | unit | published | why |", "|---|---|---|---|", *lines] if lines else []


def _printed(number: Published) -> str:
    """Write a published number with all its digits."""
    digits = f"{number.value:.10g}"
    return f"{digits} (derived)" if number.derived else digits
