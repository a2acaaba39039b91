"""SMAC's random forest as a searcher (optional: ``pip install rl-workbench[smac]``)."""

import math
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from workbench.core.checks import COUNT, SEED, check
from workbench.core.domains import Choice, Domain, LogUniform, real_ends
from workbench.core.errors import InvalidInput
from workbench.core.extras import how_to_get
from workbench.core.protocols import Config, Report, Scalar
from workbench.core.showing import settings_html
from workbench.core.space import Space

_TRIES = 100  # to meet a constraint, before a configuration is drawn at random
_LEAVES = 10_000  # of a tree: more than configurations, of which one phase's scores are learned


@dataclass
class SMACSearcher:
    """Asks SMAC for every configuration, telling it all that was reported so far (Lindauer et al., JMLR 23, 2022).

    Its parts are those of its `HyperparameterOptimizationFacade`: a Sobol design first, then the expected improvement
    under a random forest, and now and then a random draw. Its intensifier is left out, for how long a trial runs and
    with how many seeds is the scheduler's affair: SMAC's budget is the phase, and its forest learns from the latest
    phase that `n_random` configurations have reported. A failure counts as the worst score so far.

    Candidates are drawn, not sought by SMAC's local search, which starts from a Python set of strings: another process,
    such as one that resumes the study, would be given other configurations.

    Parameters
    ----------
    space : Space
        What depends on a `Choice` is known to SMAC to do so; other dependences, steps and the constraint are not.
    n_random : int
        Configurations of the Sobol design, those of earlier studies counted; and reports of a phase to learn from it.
    candidates : int
        Configurations drawn for each suggestion, of which the most promising is taken.
    seed : int
    """

    space: Space
    n_random: int = 10
    candidates: int = 2000
    seed: int = 0
    _configs: dict[int, Config] = field(init=False, default_factory=dict, repr=False, compare=False)
    _scores: dict[tuple[int, int], float] = field(init=False, default_factory=dict, repr=False, compare=False)
    _smac: "_SMAC | None" = field(init=False, default=None, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.space = Space.of(self.space)
        check(self, COUNT, "n_random", "candidates")
        if find_spec("smac") is None:
            raise InvalidInput(f"the searcher 'smac' needs SMAC: {how_to_get('smac')}")

    def suggest(self, trial: int) -> Config | None:
        """Ask SMAC; draw at random where it has none left, or none that meets the constraint."""
        if self._smac is None:  # told until now of earlier studies' trials
            self._smac = _SMAC(self.space, max(0, self.n_random - len(self._configs)), self)
            for number, config in self._configs.items():
                self._smac.adopt(number, config)
            for (number, phase), score in self._scores.items():
                self._smac.tell(number, phase, score)
        asked = self._smac.ask(trial)
        config = asked or self.space.sample(np.random.default_rng([self.seed, len(self._configs)]))
        if asked is None:
            self._smac.adopt(trial, config)
        self._configs[trial] = config
        return config

    def adopt(self, trial: int, config: Config) -> None:
        """Hear of a trial that runs, or ran, a configuration of somebody else's."""
        self._configs[trial] = config
        if self._smac is not None:
            self._smac.adopt(trial, config)

    def observe(self, report: Report) -> None:
        """Tell SMAC the score; of a failure, the worst so far."""
        score = min(self._scores.values(), default=math.nan) if report.failed else report.score
        if math.isfinite(score):
            self._scores[report.trial, report.phase] = score
            if self._smac is not None:
                self._smac.tell(report.trial, report.phase, score)


class _SMAC:
    """SMAC with its run history and its forest, over a space as its library ConfigSpace writes it."""

    def __init__(self, space: Space, n_design: int, settings: SMACSearcher) -> None:
        smac, selector = import_module("smac"), import_module("smac.main.config_selector").ConfigSelector
        self._space, self._written = space, _written(space, settings.seed)
        self._known: dict[int, Any] = {}  # configurations by trial
        kinds = smac.HyperparameterOptimizationFacade
        with TemporaryDirectory() as folder:  # for what it would be resumed from: the study's log does that here
            scenario = smac.Scenario(self._written, output_directory=Path(folder), n_trials=10**9, seed=settings.seed)
            select = selector(scenario, retrain_after=1, min_trials=settings.n_random)
            facade = kinds(
                scenario,
                model=_forest(self._written, settings.seed),
                acquisition_maximizer=_candidates(self._written, settings.candidates, settings.seed),
                initial_design=kinds.get_initial_design(scenario, n_configs=n_design, max_ratio=1),
                config_selector=select,
                logging_level=False,
                overwrite=True,
            )
        self._history, self._suggested = facade.runhistory, iter(select)

    def ask(self, trial: int) -> Config | None:
        """Give the next configuration that is new and meets the constraint; ``None`` if there is none."""
        exhausted = import_module("smac.main.exceptions").ConfigurationSpaceExhaustedException
        for _ in range(_TRIES):
            try:
                with import_module("joblib").parallel_config("sequential"):  # threads would wait for each other
                    known = next(self._suggested, None)
            except exhausted:
                return None
            if known is None:
                return None
            config = self._read(known)
            if self._space.allows(config):
                self._known[trial] = known
                return config
        return None

    def adopt(self, trial: int, config: Config) -> None:
        """Write down a configuration of somebody else's."""
        values: dict[str, Any] = {}
        for name, domain in self._space.items():
            if name in config and isinstance(domain, Choice):
                values[name] = str(domain.values.index(config[name]))
            elif name in config:
                values[name] = float(config[name])
            elif name in self._written.unconditional_hyperparameters:  # it does not apply, which SMAC does not know
                values[name] = self._written[name].default_value
        self._known[trial] = import_module("ConfigSpace").Configuration(self._written, values=values)

    def tell(self, trial: int, phase: int, score: float) -> None:
        """Add a score; costs are minimised."""
        self._history.add(self._known[trial], cost=-score, seed=0, budget=phase + 1, force_update=True)

    def _read(self, known: Any) -> Config:
        def value(name: str, domain: Domain) -> Scalar:
            if isinstance(domain, Choice):
                return domain.values[int(known[name])]
            return domain.perturb(float(known[name]), 1.0)  # rounded to its step

        return self._space.once(value)


def _written(space: Space, seed: int) -> Any:
    """Write a space in ConfigSpace's words. A choice is among the numbers of its values, which may be of any type."""
    library = import_module("ConfigSpace")
    written = library.ConfigurationSpace(seed=seed)
    for name, domain in space.items():
        if isinstance(domain, Choice):
            written.add(library.Categorical(name, [str(n) for n in range(len(domain.values))]))
        else:
            written.add(library.Float(name, real_ends(domain), log=isinstance(domain, LogUniform)))
    exact = _exact(space)
    for name, parents in space.only_if.items():
        if name not in exact:
            continue
        conditions = []
        for parent, values in parents.items():
            numbers = [str(space[parent].values.index(value)) for value in values]  # type: ignore[attr-defined]
            conditions.append(library.InCondition(written[name], written[parent], numbers))
        written.add(conditions[0] if len(conditions) == 1 else library.AndConjunction(*conditions))
    return written


def _exact(space: Space) -> set[str]:
    """Name what applies under conditions that can be written: on choices, which themselves apply under such.

    The rest SMAC has in every configuration: half a condition would want a value where it does not apply.
    """
    exact: set[str] = set()
    for name in space:  # after what it depends on
        if all(parent in exact and isinstance(space[parent], Choice) for parent in space.only_if.get(name, {})):
            exact.add(name)
    return exact


def _forest(written: Any, seed: int) -> Any:
    """Make the facade's forest, with room for fewer leaves: by itself it takes memory for a million of them a tree."""
    kind = import_module("smac.model.random_forest.random_forest").RandomForest
    same = {"log_y": True, "n_trees": 10, "bootstrapping": True, "ratio_features": 1.0}
    return kind(written, **same, min_samples_split=2, min_samples_leaf=1, max_leaf_nodes=_LEAVES, seed=seed)


def _candidates(written: Any, n: int, seed: int) -> Any:
    """Draw configurations and sort them by what SMAC expects of them."""
    search = import_module("smac.acquisition.maximizer").RandomSearch(written, challengers=n, seed=seed)
    search._maximize = partial(search._maximize, _sorted=True)  # as its local search has it
    return search
