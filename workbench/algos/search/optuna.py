"""Optuna's samplers as searchers (optional: ``pip install rl-workbench[optuna]``)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from workbench.core.checks import COUNT, SEED, check, check_named
from workbench.core.domains import Choice, Domain, LogUniform, real_ends
from workbench.core.errors import InvalidInput
from workbench.core.extras import how_to_get
from workbench.core.protocols import Config, Report, Scalar
from workbench.core.showing import settings_html
from workbench.core.space import Space

SAMPLERS = ("tpe", "gp", "random")
_TRIES = 100  # to meet a constraint, before a configuration is drawn at random


@dataclass
class OptunaSearcher:
    """Asks one of Optuna's samplers for every configuration, showing it all that was reported so far.

    Whether a trial goes on is the scheduler's affair, so Optuna never hears that one is over. ``tpe`` sees a trial as
    pruned at its latest phase, with its scores up to there: it ranks trials by how far they came, then by score.
    ``gp`` knows no unfinished trials, so it sees the latest score as the final one: later phases score higher, and it
    mistakes a trial that got far for a good one. Nor does it know conditions: it gives every hyperparameter a value,
    is shown it, and so learns where a hyperparameter changes nothing; one that a configuration of somebody else's lacks
    is shown in the middle of its domain. What has not reported yet is shown as running; what failed before it had, as
    failed, of which no sampler learns.

    The history is shown anew for each suggestion, whose cost grows with the trials so far.

    Parameters
    ----------
    space : Space
    sampler : str
        ``tpe``, ``gp`` (needs SciPy and torch) or ``random``.
    n_random : int
        Configurations the sampler draws at random before it uses what it has seen.
    seed : int
    """

    space: Space
    sampler: str = "tpe"
    n_random: int = 10
    seed: int = 0
    _configs: dict[int, Config] = field(init=False, default_factory=dict, repr=False, compare=False)
    _scores: dict[int, dict[int, float]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _failed: set[int] = field(init=False, default_factory=set, repr=False, compare=False)
    _sampler: Any = field(init=False, default=None, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.space = Space.of(self.space)
        check(self, COUNT, "n_random")
        check_named(self, "sampler", SAMPLERS)
        _optuna()

    def suggest(self, trial: int) -> Config | None:
        """Ask the sampler."""
        optuna = _optuna()
        loud = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            if self._sampler is None:
                self._sampler = self._made(optuna)
            study = optuna.create_study(direction="maximize", sampler=self._sampler)
            distributions = {name: _distribution(optuna, domain) for name, domain in self.space.items()}
            study.add_trials([self._shown(optuna, number, distributions) for number in self._configs])
            with _one_thread() if self.sampler == "gp" else nullcontext():
                asked = (self._asked(study) for _ in range(_TRIES))
                values = next((values for values in asked if self.space.allows(self.space.applying(values))), None)
        finally:
            optuna.logging.set_verbosity(loud)
        if values is None:
            values = self.space.sample(np.random.default_rng([self.seed, len(self._configs)]))
        self.adopt(trial, values)
        return self.space.applying(values)

    def _asked(self, study: Any) -> Config:
        """Ask for one value after the other: whether the next hyperparameter applies is known only then.

        ``gp`` is asked for all: what some trials lack it leaves to chance.
        """
        trial = study.ask()

        def suggested(name: str, domain: Domain) -> Scalar:
            if isinstance(domain, Choice):
                value: Scalar = trial.suggest_categorical(name, domain.values)
                return value
            low, high = real_ends(domain)
            drawn = trial.suggest_float(name, low, high, log=isinstance(domain, LogUniform))
            return domain.perturb(drawn, 1.0)  # rounded to its step

        if self.sampler == "gp":
            return {name: suggested(name, domain) for name, domain in self.space.items()}
        return self.space.once(suggested)

    def adopt(self, trial: int, config: Config) -> None:
        """Hear of a trial that runs, or ran, a configuration of somebody else's."""
        if self.sampler == "gp":
            config = {name: config[name] if name in config else _middle(domain) for name, domain in self.space.items()}
        self._configs[trial] = config

    def observe(self, report: Report) -> None:
        """Keep the score for the next suggestion."""
        if report.failed:
            self._failed.add(report.trial)
        elif math.isfinite(report.score):
            self._scores.setdefault(report.trial, {})[report.phase] = report.score

    def _made(self, optuna: Any) -> Any:
        if self.sampler == "random":
            return optuna.samplers.RandomSampler(seed=self.seed)
        if self.sampler == "gp":
            return optuna.samplers.GPSampler(seed=self.seed, n_startup_trials=self.n_random)
        return optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=self.n_random)

    def _shown(self, optuna: Any, number: int, distributions: dict[str, Any]) -> Any:
        """A trial as Optuna sees it now."""
        states, scores = optuna.trial.TrialState, self._scores.get(number, {})
        state, value = states.RUNNING, None
        if scores and self.sampler == "gp":
            state, value = states.COMPLETE, scores[max(scores)]
        elif scores:
            state = states.PRUNED
        elif number in self._failed:
            state = states.FAIL
        return optuna.trial.create_trial(
            state=state,
            value=value,
            params=dict(self._configs[number]),
            distributions={name: distributions[name] for name in self._configs[number]},
            intermediate_values=scores,
        )


def _distribution(optuna: Any, domain: Domain) -> Any:
    """Steps are left to `_asked`: Optuna has none on a logarithmic scale."""
    if isinstance(domain, Choice):
        return optuna.distributions.CategoricalDistribution(domain.values)
    return optuna.distributions.FloatDistribution(*real_ends(domain), log=isinstance(domain, LogUniform))


def _middle(domain: Domain) -> Scalar:
    values = domain.grid(3)
    return values[len(values) // 2]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: on matrices as small as these its threads spend their time waiting for each other."""
    torch = import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _optuna() -> Any:
    try:
        return import_module("optuna")
    except ImportError:
        raise InvalidInput(f"the searcher 'optuna' needs Optuna: {how_to_get('optuna')}") from None
