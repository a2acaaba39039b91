"""What came of a study: numbers and tables derived from its frames, so of running studies too; figures, a report."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.core import record
from workbench.core.describe import explain_of, why
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.ledger import Ledger
from workbench.core.places import beside, whole_file
from workbench.core.protocols import Event
from workbench.core.record import size_of_record
from workbench.core.showing import config_text
from workbench.core.size import Size
from workbench.knowledge import Frames, KnowledgeBase, Recording
from workbench.study.rows import front_of, planned, summary_html, summary_rows, summary_text, why_no_front

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.analysis import Importance


@dataclass(frozen=True)
class Results:
    """A study's outcome so far.

    Parameters
    ----------
    name : str
    spec : Mapping
        As recorded in the log: scheduler, trainable, seed.
    frames : Frames
    db : path, optional
        The knowledge base that it is in.
    identity : str
        What tells it from another study of its name, if it has one.
    """

    name: str
    spec: Mapping[str, Any]
    frames: Frames
    db: Path | None = None
    identity: str = ""

    @classmethod
    def open(cls, db: str | Path, name: str) -> Self:
        """Read a study from a knowledge base, running or over.

        Raises
        ------
        DatabaseError, StudyError
            There is no such file, or no such study in it.
        """
        with KnowledgeBase(db) as kb:
            study = kb[name]
            return cls(name, study.spec, study.frames(), kb.path.absolute(), study.identity)

    @classmethod
    def of_recording(cls, folder: str | Path) -> Self:
        """Read a study that was recorded to a folder.

        Raises
        ------
        DatabaseError
            There is no recording in it, or a damaged one.
        """
        recording = Recording.open(folder)
        return cls(recording.name, recording.spec, recording.frames())

    @property
    def size(self) -> Size:
        """How large the study was meant to be, as its scheduler told."""
        return size_of_record(self.spec, self.frames.size)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `workbench.analysis.summarise`; also minimum and expected α, if the scheduler knows them."""
        from workbench.analysis import summarise

        f, size = self.frames, self.size
        numbers = summarise(
            f.trials,
            f.phases,
            f.spans,
            f.slots,
            wall_s=f.wall_s,
            n_configs=size.n_configs,
            n_phases=size.n_phases,
            mode=f.aim.mode,
            decisions=f.decisions,
        )
        if size.completion is not None:
            numbers["alpha_expected"], numbers["alpha_minimum"] = size.completion, size.fewest_completion
        return numbers

    @cached_property
    def best(self) -> dict[str, Any]:
        """Which configuration to take, a row of `confirmed` or of `claims`; empty before the first score.

        That is the best by fresh seeds, once what is claimed to be best has some; else the one that has reached the
        study's target; else the scheduler's leader; where it names none, the best of those that ran the furthest,
        phases beyond the study's own not counted, by the last scores of all their seeds. The luckiest phase, in
        `summary`, may be of another.
        """
        from workbench.analysis.confirmed import deciding

        claimed = self.claims
        fresh = deciding(claimed, self.confirmed)
        return next(iter((claimed if fresh.empty else fresh).to_dict("records")), {})  # type: ignore[arg-type]

    @property
    def best_config(self) -> dict[str, Any]:
        """The configuration to take, see `best`; empty before the first score."""
        return dict(self.frames.configs[self.best["trial"]]) if self.best else {}

    @property
    def best_score(self) -> float:
        """What its scores come to, those of fresh seeds where there are any; NaN before the first."""
        return float(self.best.get("confirmed", self.best.get("claimed", float("nan"))))

    @property
    def best_checkpoint(self) -> str | None:
        """Where the weights of the configuration to take are now, see `AttachedStudy`; ``None`` of a recording."""
        return None if self.db is None else best_checkpoint(self.db, self.name)

    def importance(self, phase: int | None = None) -> "Importance":
        """Tell which hyperparameters the last scores follow, or one phase's; takes some seconds the first time."""
        from workbench.analysis import importance

        return importance(self.frames.trials, self.frames.phases, self.frames.hyperparameters, phase=phase)

    @property
    def front(self) -> "pd.DataFrame":
        """The score against the second objective, and who is on the front; see `workbench.analysis.front`.

        Of several seeds a row is a configuration's, joined as the study judged it; phases that a person added to the
        study's own are not counted, as in `best`.
        A metric that no phase has returned is warned of.

        Raises
        ------
        StudyError
            The study has no second objective.
        """
        if self.frames.aim.second is None:
            raise StudyError(f"study {self.name!r} has no second objective: start one with second=, a metric's name")
        if none := why_no_front(self.frames):
            warnings.warn(f"study {self.name!r} has no front: {none}", stacklevel=2)
        return front_of(self)

    @property
    def judged_by(self) -> str:
        """What joins the scores of a configuration's seeds; the mean, where each has one."""
        return str(self.spec.get("scheduler", {}).get("judged_by", "mean"))

    @property
    def claims(self) -> "pd.DataFrame":
        """The configurations by the scores on which the study chose them; see `workbench.analysis.claims`."""
        from workbench.analysis import claims, leader_of

        aim, best = self.frames.aim, self.summary
        leader = best["best_trial"] if aim.reached(best["best_score"]) else leader_of(self.frames.decisions)
        return claims(planned(self), aim.mode, self.judged_by, leader)

    @property
    def confirmed(self) -> "pd.DataFrame":
        """What fresh seeds say of the best configurations, the best first; see `workbench.analysis.confirmed`."""
        from workbench.analysis import confirmed

        return confirmed(planned(self), self.frames.phases, self.frames.aim.mode, self.judged_by)

    @property
    def has_lineage(self) -> bool:
        """Whether any trial began with another's weights."""
        return bool(self.frames.trials["parent_phase"].notna().any())

    @property
    def lineage(self) -> "pd.DataFrame":
        """Who ran what with whose weights; see `workbench.analysis.lineage`."""
        from workbench.analysis import lineage

        return lineage(self.frames.trials, self.frames.phases, self.frames.decisions)

    @property
    def schedules(self) -> "pd.DataFrame":
        """What every member of the population ran with in each phase; see `workbench.analysis.schedules`.

        Trials that confirm others are no members: lucky fresh seeds claim nothing.
        """
        from workbench.analysis import schedules, searching

        f = self.frames
        table = schedules(self.lineage, f.trials, f.phases, f.hyperparameters)
        return table[table["trial"].isin(searching(f.trials)["trial"])].reset_index(drop=True)

    def best_schedule(self, trial: int | None = None) -> "pd.DataFrame":
        """Give the hyperparameters, phase by phase, that the best weights were trained with from their first step.

        Parameters
        ----------
        trial : int, optional
            Whose weights; by default, where weights were handed on, those of the member whose latest score is the
            best, and where none were those of the configuration to take, see `best`.

        Returns
        -------
        DataFrame
            One row a phase: step, trial, phase, score, then a column a hyperparameter.

        Raises
        ------
        StudyError
            No phase has ended yet, or none of this trial's weights.
        InvalidInput
            There is no such trial.
        """
        from workbench.analysis import best_trial, schedule_of

        f, known = self.frames, self.lineage
        chosen = trial
        if trial is None:
            chosen = best_trial(self.schedules, f.aim.mode) if self.has_lineage else self.best.get("trial")
        if chosen is None:
            raise StudyError(f"study {self.name!r} has no schedule: none of its phases has ended")
        if chosen not in set(known["trial"]):
            raise InvalidInput(f"study {self.name!r} has no trial {chosen}: it has {len(known)}, from 0")
        schedule = schedule_of(chosen, known, f.trials, f.phases, f.hyperparameters)
        if schedule.empty:
            raise StudyError(
                f"trial {chosen} of study {self.name!r} has no schedule: no phase of its weights has ended"
            )
        return schedule

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
        with whole_file(Path(path)) as part:
            part.write_text(json.dumps(schedule, indent=1) + "\n")
        return Path(path)

    def write_report(self, path: str | Path | None = None, *, whole: bool = False) -> Path:
        """Write an HTML page with the summary, the figures, the trials, the decision log and the settings.

        It goes beside the knowledge base, called as the study is, unless a path is named. What draws the figures is
        kept beside it, once for all reports of a folder; with `whole` it is inside, 5 MB.

        Raises
        ------
        InvalidInput
            It cannot be written there, another study's report is there, or no path is named for that of a recording.
        """
        from workbench.study.drawn import CAPTIONS
        from workbench.viz.figures import write_report

        if path is None:
            if self.db is None:
                raise InvalidInput(f"{self.name!r} is in no knowledge base: name a file for its report")
            path = beside(self.db, f"{self.name}.html")
        f = self.frames
        captions = {CAPTIONS[name]: figure for name, figure in self.figures().items()}
        explain = explain_of(self.spec["scheduler"])
        told = f.decisions[["mode", "reason"]].itertuples(index=False)
        reasons = [why({"mode": mode, **reason}, explain) for mode, reason in told]
        decisions = f.decisions.assign(reason=reasons)
        tables = {"Trials": _trials_table(f), "Decisions": decisions}
        if not (confirmed := self.confirmed).empty:
            tables = {"Claimed and confirmed": confirmed, **tables}
        if f.aim.second is not None:
            tables["Front"] = front_of(self).rename(columns={"second": f.aim.second})
        return write_report(
            path,
            f"Study {self.name}",
            summary_rows(self),
            captions,
            tables,
            note=_what_ran(self.spec),
            settings=self.spec,
            whole=whole,
            identity=self.identity,
        )

    __repr__ = __str__ = summary_text
    _repr_html_ = summary_html


def _trials_table(f: Frames) -> "pd.DataFrame":
    """Give the trials as a reader wants them: scores and configuration first, without columns that say nothing."""
    first = ["trial", "state", "phases", "last_score", "best_score", *f.hyperparameters]
    tags = f.tags.dropna(subset=["trial"]).groupby("trial")["tag"].agg(" ".join)
    table = f.trials[[*first, *(name for name in f.trials if name not in first)]].dropna(axis="columns", how="all")
    idle = [name for name in ("confirms",) if not f.trials[name].any()]
    idle += ["candidate"] if (f.trials["candidate"] == f.trials["trial"]).all() else []
    columns = {"tags": table["trial"].map(tags).fillna("")} if len(tags) else {}
    return table.drop(columns=idle, errors="ignore").assign(**columns)


def best_checkpoint(db: str | Path, name: str) -> str | None:
    """Give the path or URL of `best_of` a study; ``None`` where it has none, or is simulated.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """
    from workbench.study.saved import store_of

    with KnowledgeBase(db) as kb:
        study = kb[name]
        store = store_of(db, study)
        best = store and best_of(study.spec, study.events())
    return f"{store.root}/{best}" if store and best else None


def best_of(spec: Mapping[str, Any], events: Sequence[Event]) -> str | None:
    """Name the checkpoint of the configuration to take, see `AttachedStudy.best_checkpoint`."""
    from workbench.analysis import searching
    from workbench.knowledge import frames_of

    found = Results("", spec, frames_of(events))
    trials = searching(found.frames.trials)
    seeds = trials.loc[trials["candidate"] == found.best.get("candidate"), "trial"]
    return record.best_checkpoint(events, Ledger(events), seeds)


def _what_ran(spec: Mapping[str, Any]) -> str:
    scheduler, trainable = dict(spec["scheduler"]), dict(spec["trainable"])
    settings = config_text({k: v for k, v in trainable.items() if k != "kind" and v is not None})
    rule = config_text({k: v for k, v in scheduler.items() if k not in ("kind", "searcher")})
    trained = f"{trainable['kind']} ({settings})" if settings else trainable["kind"]
    return f"{scheduler['kind']} ({rule}) over {trained}; seed {spec['seed']}"
