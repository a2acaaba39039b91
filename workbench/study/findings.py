"""What a study has found: its numbers and tables, derived from its frames, so of running studies too."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.core.errors import InvalidInput, StudyError
from workbench.core.record import size_of_record
from workbench.core.size import Size
from workbench.knowledge import Frames, KnowledgeBase, Recording
from workbench.knowledge.frames import PHASES

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis import Importance


@dataclass(frozen=True)
class Findings:
    """A study's numbers so far; `Results` says what it is made of."""

    name: str
    spec: Mapping[str, Any]
    frames: Frames

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
            return cls(name, study.spec, study.frames())

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
        return self.frames.size or size_of_record(self.spec)

    @property
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
            configs=f.configs,
            mode=f.aim.mode,
            decisions=f.decisions,
        )
        if size.completion is not None:
            numbers["alpha_expected"], numbers["alpha_minimum"] = size.completion, size.fewest_completion
        return numbers

    @property
    def best_config(self) -> dict[str, Any]:
        """The configuration of the best score; empty before the first."""
        return dict(self.summary["best_config"])

    @property
    def best_score(self) -> float:
        """The best score, on one seed; NaN before the first. `confirmed` tells what it is worth."""
        return float(self.summary["best_score"])

    def importance(self, phase: int | None = None) -> "Importance":
        """Tell which hyperparameters the last scores follow, or one phase's; takes some seconds the first time."""
        from workbench.analysis import importance

        return importance(self.frames.trials, self.frames.phases, self.frames.hyperparameters, phase=phase)

    @property
    def front(self) -> "pd.DataFrame":
        """The score against the second objective, and who is on the front; see `workbench.analysis.front`.

        A metric that no phase has returned is warned of.

        Raises
        ------
        StudyError
            The study has no second objective.
        """
        from workbench.analysis import front

        aim = self.frames.aim
        if aim.second is None:
            raise StudyError(f"study {self.name!r} has no second objective: start one with second=, a metric's name")
        returned = self.frames.phases.columns.difference(PHASES)
        if self.frames.phases["ended_s"].notna().any() and aim.second not in returned:
            known = ", ".join(returned) or "none but their score"
            warnings.warn(f"no phase has returned the metric {aim.second!r}, but {known}: no front", stacklevel=2)
        return front(self.frames.searched, aim.second, aim.mode, aim.second_mode)

    @property
    def judged_by(self) -> str:
        """What joins the scores of a configuration's seeds; the mean, where each has one."""
        return str(self.spec.get("scheduler", {}).get("judged_by", "mean"))

    @property
    def claims(self) -> "pd.DataFrame":
        """The configurations by the scores on which the study chose them; see `workbench.analysis.claims`."""
        from workbench.analysis import claims

        return claims(self.frames.trials, self.frames.aim.mode, self.judged_by)

    @property
    def confirmed(self) -> "pd.DataFrame":
        """What fresh seeds say of the best configurations, the best first; see `workbench.analysis.confirmed`."""
        from workbench.analysis import confirmed

        return confirmed(self.frames.trials, self.frames.aim.mode, self.judged_by)

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
        """What every member of the population ran with in each phase; see `workbench.analysis.schedules`."""
        from workbench.analysis import schedules

        return schedules(self.lineage, self.frames.trials, self.frames.phases, self.frames.hyperparameters)

    def best_schedule(self, trial: int | None = None) -> "pd.DataFrame":
        """Give the hyperparameters, phase by phase, that the best weights were trained with from their first step.

        Parameters
        ----------
        trial : int, optional
            Whose weights; by default those of the member whose latest score is the best.

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
        from workbench.analysis import best_trial, schedule_of, searching

        f, known = self.frames, self.lineage
        chosen = trial
        if trial is None:
            schedules, searched = self.schedules, searching(f.trials)["trial"]  # lucky fresh seeds claim nothing
            chosen = best_trial(schedules[schedules["trial"].isin(searched)], f.aim.mode)
        if chosen is None:
            raise StudyError(f"study {self.name!r} has no schedule yet: no phase has ended")
        if chosen not in set(known["trial"]):
            raise InvalidInput(f"study {self.name!r} has no trial {chosen}: it has {len(known)}, from 0")
        schedule = schedule_of(chosen, known, f.trials, f.phases, f.hyperparameters)
        if schedule.empty:
            raise StudyError(
                f"trial {chosen} of study {self.name!r} has no schedule: no phase of its weights has ended"
            )
        return schedule
