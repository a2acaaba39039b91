"""A searcher that is told beforehand what is known: configurations to try first, trials of earlier studies."""

import copy
import sys
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from workbench.algos.search.searchers import Searched, searcher_of
from workbench.core.answers import observed, suggested
from workbench.core.checks import FROM_ZERO, TABLE, Rule, check_each, is_number
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Report
from workbench.core.showing import settings_html
from workbench.core.space import Space

_PAST = Rule(
    'a table of "config", a table of hyperparameters, and "scores", a list of numbers; '
    'if it has "seconds", a number from 0 for each score',
    lambda value: (
        isinstance(value, Mapping)
        and isinstance(value.get("config"), Mapping)
        and isinstance(scores := value.get("scores"), Collection)
        and not isinstance(scores, str)
        and all(map(is_number, scores))
        and isinstance(seconds := value.get("seconds", [0] * len(scores)), Collection)
        and len(seconds) == len(scores)
        and all(map(FROM_ZERO.fits, seconds))
    ),
)


@dataclass
class InformedSearcher:
    """Give some configurations first, then those of another searcher, which may learn from earlier trials too.

    A searcher learns from what it did not suggest if it has a method ``adopt(trial, config)``: `OptunaSearcher`,
    `SMACSearcher`, `EvolutionSearcher` and `CostAwareSearcher` have. To them, trials known beforehand have
    numbers below 0, those tried first among them.

    Parameters
    ----------
    searcher : Searcher, Space or dict
        Of any kind; it is copied. Configurations of a space are drawn at random.
    first : sequence of Config
        Tried first, in this order. A searcher that gives one of them too, such as a grid of which it is a point, has it
        run again.
    past : sequence of Mapping
        Trials of earlier studies for a searcher that learns: ``config``, and ``scores`` phase by phase from the first,
        higher being better: negated where the study minimises. And ``seconds``, how long each of these phases took, if
        that is known, for `CostAwareSearcher`. See `workbench.warm_start`.
    """

    searcher: Searched
    first: Sequence[Config] = ()
    past: Sequence[Mapping[str, Any]] = ()

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = copy.deepcopy(searcher_of(self, self.searcher))
        check_each(self, TABLE, "first")
        check_each(self, _PAST, "past")
        space: Space | None = getattr(self.searcher, "space", None)
        if space is not None:
            _check_points(space, "first", self.first)
            _check_points(space, "past", [one["config"] for one in self.past])
        if self.past and not self._learns:
            raise InvalidInput(
                f"{type(self.searcher).__name__} learns nothing from earlier trials: "
                "take optuna, smac, evolution or cost-aware, or leave past out"
            )
        for number, trial in enumerate(self.past, start=1 + len(self.first)):
            self._inner.adopt(-number, trial["config"])
            phases = zip(trial["scores"], trial.get("seconds", repeat(0)), strict=False)
            for phase, (score, seconds) in enumerate(phases):
                self._inner.observe(Report(-number, phase, float(score), seconds=float(seconds)))

    @property
    def space(self) -> Space:
        """The searcher's, if it has one; `AttributeError` if not."""
        space: Space = self._inner.space
        return space

    @property
    def _inner(self) -> Any:
        """The searcher, which a space given in its place has become."""
        return self.searcher

    @property
    def _learns(self) -> bool:
        return hasattr(self.searcher, "adopt")

    def __len__(self) -> int:
        more = len(self.searcher) if isinstance(self.searcher, Sized) else sys.maxsize
        return min(len(self.first) + more, sys.maxsize)

    def suggest(self, trial: int) -> Config | None:
        """Give what is to be tried first, and then ask the searcher."""
        number = trial - len(self.first)
        if number >= 0:
            return suggested(self._inner, number)
        if self._learns:
            self._inner.adopt(number, self.first[trial])
        return dict(self.first[trial])

    def observe(self, report: Report) -> None:
        """Hand on what the searcher can place."""
        number = report.trial - len(self.first)
        if number >= 0 or self._learns:
            observed(self._inner, replace(report, trial=number))


def _check_points(space: Space, name: str, configs: Sequence[Config]) -> None:
    """Say which of many configurations is no point of the space, and why."""
    for number, config in enumerate(configs):
        try:
            space.validate(config)
        except InvalidInput as err:
            raise InvalidInput(f"{name}[{number}] of InformedSearcher: {err}") from err
