"""A study as TensorBoard's event files: a run a trial, with its hyperparameters for the HParams tab."""

import math
from collections.abc import Sequence
from typing import Any

from workbench.core.checks import is_finite
from workbench.core.protocols import Event
from workbench.study.export.exporter import RUN_FOLDERS, Exporter, needed, numbers_of, own_folder, step_of

_TAKEN = (bool, float, str)  # as values of hyperparameters, and whole numbers as far as a float can be as large


class TensorBoardExport(Exporter):
    """Keep a folder for ``tensorboard --logdir``: ``trial-00007`` and so on.

    Metrics at the ends of phases are scalars by phase, the score among them; those inside phases stand under ``live/``
    by the seconds of the study's clock.

    Parameters
    ----------
    place : str
        The folder; one that is not empty must be an earlier export of the study.
    """

    def _clear(self) -> None:
        needed("tensorboard", "TensorBoard")
        from torch.utils.tensorboard import SummaryWriter

        own_folder(self.place, self.name, self.identity, RUN_FOLDERS)
        self._make, self._writers, self._told = SummaryWriter, dict[int, Any](), dict[int, float]()

    def _writer(self, trial: int) -> Any:
        if trial not in self._writers:
            self._writers[trial] = self._make(f"{self.place}/trial-{trial:05d}")
        return self._writers[trial]

    def _trial(self, number: int, points: Sequence[Event]) -> None:
        for event in points:
            writer, step = self._writer(number), step_of(event)
            for name, value in numbers_of(event).items():
                writer.add_scalar(name, value, step, walltime=self.unix(event.at))
        trial = self.ledger.trials[number]
        score = trial.best_score
        if trial.state.over and score is not None and math.isfinite(score) and self._told.get(number) != score:
            self._told[number] = score
            taken = {name: isinstance(v, _TAKEN) or is_finite(v) for name, v in trial.config.items()}
            config = {name: v if taken[name] else str(v) for name, v in trial.config.items()}
            self._writer(number).add_hparams(config, {"hparam/best_score": score}, run_name=".")
        if trial.state.over:
            self._close(number)

    def close(self) -> None:
        """Close the files."""
        for number in list(self._writers):
            self._close(number)

    def _close(self, number: int) -> None:
        if (writer := self._writers.pop(number, None)) is not None:
            writer.flush()  # tells what its thread could not write, as closing does not
            writer.close()
