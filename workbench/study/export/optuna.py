"""A study as one of Optuna's, in any storage that Optuna takes: for its dashboard, its plots, its importance."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.core.checks import is_finite, is_number
from workbench.core.domains import Choice, Domain, LogUniform
from workbench.core.errors import InvalidInput
from workbench.core.ledger import TrialState
from workbench.core.protocols import Config, Event, Scalar
from workbench.core.record import size_of_record, space_of_record
from workbench.core.showing import so_many
from workbench.study.export.exporter import (
    Exporter,
    needed,
    own_database,
    refuse_anothers,
    shown,
    storage_url,
)

_MARK, _NUMBER = "rl-workbench", "trial"  # attributes of a study, and of each of its trials


class OptunaExport(Exporter):
    """Keep an Optuna study of the same name: a trial a trial, a score a phase as intermediate values.

    A trial that ran all its phases is COMPLETE with its last score, one that was stopped PRUNED, one that failed FAIL.
    A fresh seed of one that was stopped is PRUNED too; the attribute ``confirms`` tells fresh seeds.
    Optuna's finished trials never change: what a person lets such a trial run further is in the next export.
    With a second objective the study has two directions, and no intermediate values. A study to which Optuna has added
    trials of its own is not replaced.

    Parameters
    ----------
    place : str
        A file for SQLite, made if missing, or the URL of a storage.
    """

    def __init__(self, place: str) -> None:
        super().__init__(storage_url(place))

    def _clear(self) -> None:
        optuna = self._optuna = needed("optuna", "Optuna")
        own_database(self.place, "version_info")
        self._storage = optuna.storages.get_storage(self.place)
        self._numbers: dict[int, int] = {}  # trial → Optuna's
        self._told: dict[int, int] = {}  # trial → phases told
        self._over: set[int] = set()
        self._study: Any = None
        existing = {s.study_name: s for s in self._storage.get_all_studies()}.get(self.name)
        if existing is not None:
            if _MARK not in existing.user_attrs:
                raise InvalidInput(
                    f"{shown(self.place)} holds a study {self.name!r} of somebody else's: choose another place"
                )
            refuse_anothers(self.place, self.name, existing.user_attrs[_MARK], self.identity)
            there = self._storage.get_all_trials(existing._study_id, deepcopy=False)
            if added := sum(_NUMBER not in trial.user_attrs for trial in there):
                raise InvalidInput(
                    f"{shown(self.place)} has {so_many(added, 'trial')} of study {self.name!r} that no export wrote "
                    "and a new one would delete: choose another place"
                )
            optuna.delete_study(study_name=self.name, storage=self._storage)

    def _made(self) -> Any:
        """Make the study once its first trial is known, and with it what the study is after."""
        aim, verbosity = self.ledger.aim, self._optuna.logging.get_verbosity()
        modes = [aim.mode] if aim.second is None else [aim.mode, aim.second_mode]
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        study = self._optuna.create_study(
            storage=self._storage, study_name=self.name, directions=[f"{mode}imize" for mode in modes]
        )
        self._optuna.logging.set_verbosity(verbosity)
        study.set_user_attr(_MARK, self.identity or True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna calls the names of objectives experimental
            study.set_metric_names(["score"] if aim.second is None else ["score", aim.second])
        self._space: Mapping[str, Domain] = space_of_record(self.spec) or {}
        self._n_phases = size_of_record(self.spec, self.ledger.size).n_phases or 0
        return study

    def _trial(self, number: int, points: Sequence[Event]) -> None:  # inside phases it knows of none
        if self._study is None:
            self._study = self._made()
        if number in self._over:
            return
        if number not in self._numbers:
            self._numbers[number] = self._begun(number)
        there, scores = self._numbers[number], self.scores.get(number, {})
        if self.ledger.aim.second is None:
            for phase in [p for p in scores if p >= self._told.get(number, 0)]:
                self._storage.set_trial_intermediate_value(there, phase, scores[phase])
                self._told[number] = phase + 1
        trial = self.ledger.trials[number]
        if not trial.state.over:
            return
        states = self._optuna.trial.TrialState
        values = self._values(number)
        whole = trial.standing == "finished" and not (trial.confirms and trial.phases < self._n_phases)
        state = states.COMPLETE if whole and values else states.PRUNED
        state = states.FAIL if trial.state is TrialState.FAILED else state
        self._storage.set_trial_state_values(there, state=state, values=None if state is states.FAIL else values)
        self._over.add(number)

    def _begun(self, number: int) -> int:
        trial, optuna = self.ledger.trials[number], self._optuna
        domains = {name: _distribution(optuna, self._space.get(name), value) for name, value in trial.config.items()}
        about = {_NUMBER: number, "seed": trial.seed, "parent": trial.parent, "confirms": trial.confirms}
        made = optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            params={name: value for name, value in trial.config.items() if domains[name] is not None},
            distributions={name: domain for name, domain in domains.items() if domain is not None},
            user_attrs={**about, **_kept(trial.config)},
        )
        return int(self._storage.create_new_trial(self._study._study_id, template_trial=made))

    def _values(self, number: int) -> list[float] | None:
        score, aim = self.ledger.trials[number].last_score, self.ledger.aim
        if score is None or aim.second is None:
            return None if score is None else [score]
        second = float(self.last[number].get(aim.second, math.nan))
        return None if math.isnan(second) else [score, second]  # Optuna would keep a NaN, and not read it again


def _kept(config: Config) -> Config:
    """Give a configuration as attributes: what is no finite number for Optuna is told in words."""
    return {name: str(value) if is_number(value) and not is_finite(value) else value for name, value in config.items()}


def _distribution(optuna: Any, domain: Domain | None, value: Scalar) -> Any:
    """Optuna's counterpart of a domain; of a finite number without one a range of its own, else none."""
    kinds = optuna.distributions
    if domain is None or not domain.contains(value):
        return kinds.FloatDistribution(float(value), float(value)) if is_finite(value) else None
    if isinstance(domain, Choice):
        return kinds.CategoricalDistribution(domain.values)
    low, high, log = domain.grid(2)[0], domain.grid(2)[-1], isinstance(domain, LogUniform)
    step = getattr(domain, "step", None)
    if isinstance(low, int) and isinstance(high, int) and step is not None and (not log or step == 1):
        return kinds.IntDistribution(low, high, log=log, step=int(step))
    return kinds.FloatDistribution(float(low), float(high), log=log)
