"""A study as an experiment of MLflow's: a run a trial."""

import re
from collections.abc import Sequence
from typing import Any

from workbench.core.errors import InvalidInput
from workbench.core.ledger import TrialState
from workbench.core.protocols import Event
from workbench.study.export.exporter import (
    Exporter,
    needed,
    numbers_of,
    own_database,
    refuse_anothers,
    shown,
    step_of,
    storage_url,
)

_MARK, _WHOSE = "rl-workbench.study", "rl-workbench.identity"
_MOST = 500  # metrics, parameters or tags in one request


class MLflowExport(Exporter):
    """Keep an experiment named as the study, in a database or on a server; runs of an earlier export are deleted.

    Metrics at the ends of phases have the phase as their step, the score among them; those inside phases stand under
    ``live/`` with the seconds of the study's clock. What MLflow takes in no name becomes ``_``.

    Parameters
    ----------
    place : str
        A file for SQLite, made if missing, or the URI of a tracking server. Open it with ``mlflow ui
        --backend-store-uri sqlite:///…``.
    """

    def __init__(self, place: str) -> None:
        super().__init__(storage_url(place))

    def _clear(self) -> None:
        mlflow = needed("mlflow", "MLflow")
        own_database(self.place, "experiments")
        self._entities = mlflow.entities
        self._runs: dict[int, str] = {}
        client = self._client = mlflow.MlflowClient(tracking_uri=self.place)
        there = client.get_experiment_by_name(self.name)
        if there is None:
            self._experiment = client.create_experiment(self.name, tags={_MARK: self.name})
        elif _MARK in there.tags and there.lifecycle_stage == "active":
            refuse_anothers(self.place, self.name, there.tags.get(_WHOSE), self.identity)
            self._experiment = there.experiment_id
        else:
            raise InvalidInput(
                f"{shown(self.place)} holds an experiment {self.name!r} of somebody else's, or a deleted one: "
                "choose another place"
            )
        if self.identity:
            client.set_experiment_tag(self._experiment, _WHOSE, self.identity)
        while earlier := client.search_runs([self._experiment], max_results=1000):
            for run in earlier:
                client.delete_run(run.info.run_id)

    def _trial(self, number: int, points: Sequence[Event]) -> None:
        trial = self.ledger.trials[number]
        if number not in self._runs:
            tags = {_MARK: self.name, "trial": str(number), "seed": str(trial.seed), "parent": str(trial.parent)}
            run = self._client.create_run(
                self._experiment, round(1000 * self.unix(trial.started_s)), tags, f"trial {number}"
            )
            self._runs[number] = run.info.run_id
            params = [self._entities.Param(name_there(name), str(value)) for name, value in trial.config.items()]
            self._client.log_batch(self._runs[number], params=params)
        run_id, metrics = self._runs[number], [metric for event in points for metric in self._metrics(event)]
        for begin in range(0, len(metrics), _MOST):
            self._client.log_batch(run_id, metrics=metrics[begin : begin + _MOST])
        if trial.state.over:
            self._client.set_tag(run_id, "state", trial.standing)
            status = "FAILED" if trial.state is TrialState.FAILED else "FINISHED"
            self._client.set_terminated(run_id, status, round(1000 * self.unix(trial.ended_s or 0.0)))

    def _metrics(self, event: Event) -> list[Any]:
        at, step = round(1000 * self.unix(event.at)), step_of(event)
        return [self._entities.Metric(name_there(name), value, at, step) for name, value in numbers_of(event).items()]


def name_there(name: str) -> str:
    """Give the name of a metric or a parameter as MLflow takes it.

    >>> name_there("top-5 (%)"), name_there("live/acc@1")
    ('top-5 ___', 'live/acc_1')
    """
    return re.sub(r"[^/\w.\- :]", "_", name)
