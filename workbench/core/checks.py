"""What settings must be: each check names whose they are, what came, and what is allowed."""

import math
from collections.abc import Callable, Collection
from numbers import Integral
from typing import Any, NamedTuple

from workbench.core.errors import InvalidInput, unknown


def check_size(owner: object, **counts: int) -> None:
    """Raise `InvalidInput` unless every count is a whole number of 1 or more."""
    for name, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidInput(f"{type(owner).__name__} needs a whole number {name} >= 1, got {n!r}")


def check_share(owner: object, **shares: float) -> None:
    """Raise `InvalidInput` unless every share lies between 0 and 1, ends included."""
    for name, x in shares.items():
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x <= 1:
            raise InvalidInput(f"{type(owner).__name__} needs a share 0 <= {name} <= 1, got {x!r}")


def check_one_of(owner: object, name: str, got: object, allowed: tuple[str, ...]) -> None:
    """Raise `InvalidInput` unless a setting is one of the words allowed."""
    if got not in allowed:
        raise InvalidInput(f"{type(owner).__name__}: {name} is one of {', '.join(allowed)}, got {got!r}")


def check_not_negative(owner: object, **values: float) -> None:
    """Raise `InvalidInput` unless every value is a finite number of 0 or more."""
    for name, x in values.items():
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x < math.inf:
            raise InvalidInput(f"{type(owner).__name__} needs {name} >= 0, and finite, got {x!r}")


class Rule(NamedTuple):
    """What a setting may be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def or_none(self) -> "Rule":
        """Allow None as well."""
        return Rule(f"{self.words}, or None", lambda value: value is None or self.fits(value))


def whole(least: int) -> Rule:
    """Allow whole numbers, from the least on."""

    def fits(value: object) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least

    return Rule(f"a whole number from {least}", fits)


POSITIVE = Rule("a number above 0", lambda value: 0 < value < float("inf"))
FROM_ZERO = Rule("a number from 0", lambda value: 0 <= value < float("inf"))
SHARE = Rule("in (0, 1]", lambda value: 0 < value <= 1)
DECAY = Rule("in [0, 1)", lambda value: 0 <= value < 1)


def check(owner: object, rule: Rule, *names: str) -> None:
    """Refuse a setting that does not fit, or that cannot even be compared."""
    for name in names:
        value = getattr(owner, name)
        try:
            good = bool(rule.fits(value))
        except TypeError:
            good = False
        if not good:
            raise InvalidInput(f"{type(owner).__name__} needs {name} {rule.words}, got {value!r}")


def check_named(owner: object, name: str, allowed: Collection[str]) -> None:
    """Refuse a setting that is none of the names allowed."""
    if (got := getattr(owner, name)) not in allowed:
        raise unknown(name, str(got), allowed)
