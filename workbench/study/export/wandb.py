"""A study as runs of Weights & Biases, written without its server: a run a trial."""

import re
from collections.abc import Sequence
from typing import Any

from workbench.core.ledger import TrialState
from workbench.core.protocols import Event, Kind
from workbench.study.export.exporter import Exporter, needed, numbers_of, own_folder


class WandbExport(Exporter):
    """Keep a folder of offline runs, which ``wandb sync FOLDER/wandb/offline-run-*`` sends; nothing is sent before.

    The runs are of a project and a group named as the study; what no project's name may hold becomes ``_``. Metrics at
    the ends of phases are drawn by phase, those inside phases stand under ``live/`` by the seconds of the study's
    clock.

    Parameters
    ----------
    place : str
        The folder; one that is not empty must be an earlier export of the study.
    """

    def _clear(self) -> None:
        self._wandb = needed("wandb", "Weights & Biases")
        own_folder(self.place, self.name, self.identity, "wandb")
        self._runs: dict[int, Any] = {}
        self._over: set[int] = set()

    def _trial(self, number: int, points: Sequence[Event]) -> None:
        trial = self.ledger.trials[number]
        anew = number in self._runs or points or not trial.state.over
        if number in self._over and not anew:
            return  # a remark, say: another run of this name would stand for the first
        run = self._runs.get(number) or self._begin(number)
        for event in points:
            ended = event.kind is Kind.PHASE_ENDED
            axis: dict[str, float] = {"phase": event.phase or 0} if ended else {"seconds": event.at}
            run.log(numbers_of(event) | axis)
        if trial.state.over:
            run.summary.update({"state": trial.standing, "best_score": trial.best_score})
            run.finish(exit_code=int(trial.state is TrialState.FAILED))
            del self._runs[number]
            self._over.add(number)

    def _begin(self, number: int) -> Any:
        trial = self.ledger.trials[number]
        quiet = {"silent": True, "console": "off", "disable_git": True, "disable_code": True, "x_disable_stats": True}
        run = self._wandb.init(
            project=project_there(self.name),
            group=self.name,
            name=f"trial {number}",
            id=f"{self.created_unix:.0f}-{number:05d}",
            dir=self.place,
            config={**trial.config, "seed": trial.seed, "parent": trial.parent, "trial": number},
            settings=self._wandb.Settings(mode="offline", **quiet),
            reinit="create_new",
        )
        run.define_metric("*", step_metric="phase")
        run.define_metric("live/*", step_metric="seconds")
        self._runs[number] = run
        return run

    def close(self) -> None:
        """End the runs of trials that are not over."""
        for run in self._runs.values():
            run.finish()
        self._runs.clear()


def project_there(name: str) -> str:
    """Give a study's name as Weights & Biases takes it for a project.

    >>> project_there("ppo #3: lr?")
    'ppo _3_ lr_'
    """
    return re.sub(r"[#?%:/\\]", "_", name)
