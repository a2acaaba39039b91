"""Sources of configurations: random, grid, and a given list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.core.checks import SEED, TABLE, check, check_each
from workbench.core.domains import Domain
from workbench.core.errors import InvalidInput
from workbench.core.failures import short
from workbench.core.protocols import Config, Report, Searcher
from workbench.core.showing import settings_html
from workbench.core.space import Space

Searched = Searcher | Mapping[str, Domain]
"""What schedulers take configurations from: a searcher; or a space, a plain dict of dimensions too, to draw from."""


def searcher_of(scheduler: object, given: Searched, seed: int = 0) -> Searcher:
    """Give a scheduler's searcher: the one given, or a `RandomSearcher` of the space given."""
    if isinstance(given, Mapping):
        return RandomSearcher(Space.of(given), seed)
    if not callable(getattr(given, "suggest", None)) or isinstance(given, type):
        name = getattr(scheduler, "__name__", type(scheduler).__name__)
        raise InvalidInput(
            f"{name} draws configurations from a Space, a dict of dimensions such as "
            f'{{"lr": LogUniform(1e-4, 1e-1)}}, or a searcher; got {short(given)}'
        )
    if not callable(getattr(given, "observe", None)):
        raise InvalidInput(f"{type(given).__name__} lacks observe(report): a searcher that learns of no report passes")
    return given


@dataclass
class RandomSearcher:
    """Draws every configuration independently from the space.

    Parameters
    ----------
    space : Space
    seed : int
        Of the generator; the n-th configuration is the same for the same seed, whatever happens meanwhile.
    """

    space: Space
    seed: int = 0
    _rng: np.random.Generator = field(init=False, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.space = Space.of(self.space)
        self._rng = np.random.default_rng(self.seed)

    def suggest(self, trial: int) -> Config | None:
        """Draw the next configuration."""
        return self.space.sample(self._rng)

    def observe(self, report: Report) -> None:
        """Learn nothing."""


class _Listed:
    """Gives configurations that are known beforehand, one after the other."""

    configs: Sequence[Config]

    def __len__(self) -> int:
        return len(self.configs)

    def suggest(self, trial: int) -> Config | None:
        """Give configuration number `trial`; ``None`` after the last."""
        return self.configs[trial] if trial < len(self.configs) else None

    def observe(self, report: Report) -> None:
        """Learn nothing."""


@dataclass
class GridSearcher(_Listed):
    """Goes through the product of `per_axis` values a hyperparameter, in order.

    Parameters
    ----------
    space : Space
    per_axis : int
        Values a continuous hyperparameter takes; a choice takes at most this many of its own.
    """

    space: Space
    per_axis: int
    configs: list[Config] = field(init=False, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.space = Space.of(self.space)
        self.configs = [*self.space.grid(self.per_axis)]


@dataclass
class ListSearcher(_Listed):
    """Gives the configurations it was given, so that several schedulers can be compared on the same ones."""

    configs: Sequence[Config]

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check_each(self, TABLE, "configs")
        if not self.configs:
            raise InvalidInput("ListSearcher needs one or more configurations, got none")
