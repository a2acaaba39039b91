"""What a study's trials will be configured with, looked at before a study begins: no trial of it could otherwise."""

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from workbench.algos.function.factory import trying
from workbench.algos.search.searchers import GridSearcher, ListSearcher
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Scheduler
from workbench.core.space import Space, rule_in, searcher_in, some_of, space_of

_TRIED_FOR_S = 1.0


def check_hyperparameters(scheduler: Scheduler, trainable: Any) -> None:
    """Refuse hyperparameters that the trainable has not, or will not take, as far as some configurations tell.

    A trainable that has `check`, of names, and `with_config` or `trying` is asked, as those of this package have: see
    `trying`. Its `shapes_weights` names the hyperparameters with which weights have other shapes.

    Raises
    ------
    InvalidInput
        With the name, or with a configuration that could not begin; or of the constraint, which holds for none. Or
        weights would go on under hyperparameters that shape them.
    """
    if not (names := _names_in(scheduler)):
        return
    from workbench.knowledge.frames import RESERVED

    if reserved := sorted(set(names) & RESERVED):
        raise InvalidInput(f"hyperparameters cannot be called {', '.join(reserved)}: the tables use these names")
    if (check := getattr(trainable, "check", None)) is not None:
        check(names)
    _refuse_other_shapes(scheduler, names, trainable)
    with trying(trainable) as configure:
        if configure is not None or getattr(space_of(scheduler), "constraint", None) is not None:
            _try(configure, _some_configs(scheduler))


def warn_of_phases(scheduler: Scheduler, trainable: Any) -> None:
    """Warn of what a trainable with `doubts` says of so many phases, with its own settings or some configuration's."""
    if (doubts := getattr(trainable, "doubts", None)) is not None:
        said = (doubts(config, scheduler.n_phases) for config in chain([{}], _some_configs(scheduler)))
        if words := next(filter(None, said), ""):
            warnings.warn(words, stacklevel=4)


def _refuse_other_shapes(scheduler: Scheduler, names: list[str], trainable: Any) -> None:
    rule = rule_in(scheduler)
    shaping = [name for name in names if name in getattr(trainable, "shapes_weights", ())]
    if not (shaping and getattr(rule, "moves_weights", False)):
        return
    configs = list(_some_configs(scheduler))
    if shaping := [name for name in shaping if len({repr(config.get(name)) for config in configs}) != 1]:
        raise InvalidInput(
            f"{type(rule).__name__} has weights go on under other hyperparameters, and with another {shaping[0]} they "
            f"have other shapes: leave {' and '.join(shaping)} out of the space, and set one for all trials"
        )


def _try(configure: Callable[[Config], object] | None, configs: Iterator[Config]) -> None:
    began = time.monotonic()
    for config in configs:  # which asks the constraint
        try:
            if configure is not None:
                configure(config)
        except InvalidInput as err:
            raise InvalidInput(
                f"a trial of {dict(config)} could not begin ({err}): leave such values out of the space, "
                "or forbid them by its constraint"
            ) from None
        if time.monotonic() - began > _TRIED_FOR_S:  # a constraint that builds a network, say
            return


def _names_in(scheduler: Scheduler) -> list[str]:
    """Name the hyperparameters of a space, or of listed configurations; none where nobody can tell beforehand."""
    if (space := space_of(scheduler)) is not None:
        return list(space)
    searcher = searcher_in(scheduler)
    configs = searcher.configs if isinstance(searcher, ListSearcher) else ()
    return list(dict.fromkeys(name for config in configs for name in config if isinstance(name, str)))


def _some_configs(scheduler: Scheduler) -> Iterator[Config]:
    """Give the configurations that will be tried, or some that may be; none where nobody can tell beforehand."""
    searcher, space = searcher_in(scheduler), space_of(scheduler)
    if isinstance(searcher, (GridSearcher, ListSearcher)):
        yield from searcher.configs
    elif isinstance(space, Space):
        yield from some_of(space)
