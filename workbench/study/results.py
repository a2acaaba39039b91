"""What came of a study, shown: in words, in figures, as a report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.core.describe import explain_of, why
from workbench.core.showing import four_digits
from workbench.study.findings import Findings
from workbench.study.rows import summary_rows

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Results(Findings):
    """A study's outcome so far.

    Parameters
    ----------
    name : str
    spec : Mapping
        As recorded in the log: scheduler, trainable, seed.
    frames : Frames
    """

    def figures(self) -> "dict[str, go.Figure]":
        """Draw occupancy, survival, learning curves, scores by phase and hyperparameter, importance and more.

        Where trials went on from others' weights, also the population, its hyperparameters over time, its members'
        lives and the descent of their weights.
        """
        from workbench.study.drawn import drawn_of

        return drawn_of(self)

    def write_schedule(self, path: str | Path, trial: int | None = None) -> Path:
        """Write `best_schedule` to a JSON file, with what was trained, for `workbench.Replay` to replay."""
        table = self.best_schedule(trial)
        phases = [
            {"trial": row["trial"], "phase": row["phase"], "score": row["score"]}
            | {"config": dict(self.frames.configs[row["trial"]])}
            for row in table.to_dict("records")
        ]
        schedule = {
            "study": self.name,
            "seed": self.spec["seed"],
            "trainable": self.spec["trainable"],
            "phases": phases,
        }
        Path(path).write_text(json.dumps(schedule, indent=1) + "\n")
        return Path(path)

    def write_report(self, path: str | Path, *, whole: bool = False) -> Path:
        """Write an HTML page with the summary, the figures, the trials, the decision log and the settings.

        What draws the figures is kept beside it, once for all reports of a folder; with `whole` it is inside, 5 MB.
        """
        from workbench.study.drawn import CAPTIONS
        from workbench.viz.figures import write_report

        f = self.frames
        captions = {CAPTIONS[name]: figure for name, figure in self.figures().items()}
        explain = explain_of(self.spec["scheduler"])
        told = f.decisions[["mode", "reason"]].itertuples(index=False)
        reasons = [why({"mode": mode, **reason}, explain) for mode, reason in told]
        decisions = f.decisions.assign(reason=reasons)
        tables = {"Trials": self._trials_table(), "Decisions": decisions}
        if not (confirmed := self.confirmed).empty:
            tables = {"Claimed and confirmed": confirmed, **tables}
        if f.aim.second is not None:
            tables["Front"] = self.front.rename(columns={"second": f.aim.second})
        return write_report(
            path,
            f"Study {self.name}",
            summary_rows(self),
            captions,
            tables,
            note=_what_ran(self.spec),
            settings=self.spec,
            whole=whole,
        )

    def _trials_table(self) -> "pd.DataFrame":
        """Give the trials as a reader wants them: scores and configuration first, without columns that say nothing."""
        f = self.frames
        first = ["trial", "state", "phases", "last_score", "best_score", *f.hyperparameters]
        tags = f.tags.dropna(subset=["trial"]).groupby("trial")["tag"].agg(" ".join)
        table = f.trials[[*first, *(name for name in f.trials if name not in first)]].dropna(axis="columns", how="all")
        idle = [name for name in ("confirms",) if not f.trials[name].any()]
        idle += ["candidate"] if (f.trials["candidate"] == f.trials["trial"]).all() else []
        columns = {"tags": table["trial"].map(tags).fillna("")} if len(tags) else {}
        return table.drop(columns=idle, errors="ignore").assign(**columns)

    def __str__(self) -> str:
        rows = summary_rows(self)
        width = max(len(label) for label in rows)
        return "\n".join([f"study {self.name}", *(f"  {label:<{width}}  {value}" for label, value in rows.items())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for label, value in summary_rows(self).items()
        )
        return f"<table><caption>study {escape(self.name)}</caption>{cells}</table>"


def _what_ran(spec: Mapping[str, Any]) -> str:
    scheduler, trainable = dict(spec["scheduler"]), dict(spec["trainable"])
    settings = ", ".join(f"{k} = {four_digits(v)}" for k, v in trainable.items() if k != "kind" and v is not None)
    rule = ", ".join(f"{k} = {four_digits(v)}" for k, v in scheduler.items() if k not in ("kind", "searcher"))
    trained = f"{trainable['kind']} ({settings})" if settings else trainable["kind"]
    return f"{scheduler['kind']} ({rule}) over {trained}; seed {spec['seed']}"
