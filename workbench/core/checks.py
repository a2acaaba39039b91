"""What settings must be: each check names whose they are, what came, and what is allowed."""

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from workbench.core.errors import InvalidInput, unknown


class Rule(NamedTuple):
    """What a setting may be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def or_none(self) -> "Rule":
        """Allow None as well."""
        return Rule(f"{self.words}, or None", lambda value: value is None or self.fits(value))


def whole(least: int, most: int | None = None) -> Rule:
    """Allow whole numbers, from the least on, to the most."""

    def fits(value: object) -> bool:
        return (
            isinstance(value, Integral)
            and is_number(value)
            and least <= int(value) <= (math.inf if most is None else most)
        )

    return Rule(f"a whole number from {least}" + ("" if most is None else f" to {most}"), fits)


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a real number, NumPy's too; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[float]:
    """Tell whether a value is a number, finite and no larger than a float can be."""
    return is_number(value) and abs(value) <= sys.float_info.max


TRUTH = Rule("true or false", lambda value: isinstance(value, (bool, np.bool_)))
TABLE = Rule("a table of hyperparameters", lambda value: isinstance(value, Mapping))
WORD = Rule("a word", lambda value: isinstance(value, str))
COUNT = whole(1, 1_000_000)  # so many can be planned for
SEED = whole(0)  # without one, a study could not be resumed
FINITE = Rule("a number", is_finite)
POSITIVE = Rule("a number above 0", lambda value: is_number(value) and 0 < value < math.inf)
FROM_ZERO = Rule("a number from 0", lambda value: is_number(value) and 0 <= value < math.inf)
PART = Rule("in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)
SHARE = Rule("in (0, 1]", lambda value: is_number(value) and 0 < value <= 1)
DECAY = Rule("in [0, 1)", lambda value: is_number(value) and 0 <= value < 1)


def check(owner: object, rule: Rule, *names: str) -> None:
    """Refuse a setting that does not fit."""
    for name in names:
        check_value(owner, rule, name, getattr(owner, name))


def check_value(owner: object, rule: Rule, name: str, value: object) -> None:
    """Refuse a value that a setting holds, or that cannot even be compared, if it does not fit."""
    try:
        good = bool(rule.fits(value))
    except TypeError:
        good = False
    if not good:
        raise InvalidInput(f"{type(owner).__name__} needs {name} {rule.words}, got {value!r}")


def make_plain(owner: object) -> None:
    """Put plain numbers in the place of NumPy's among a dataclass's settings: not every library takes those."""
    for setting in fields(owner):  # type: ignore[arg-type]
        value = getattr(owner, setting.name)
        if isinstance(value, np.generic):
            object.__setattr__(owner, setting.name, value.item())


def check_each(owner: object, rule: Rule, *names: str) -> None:
    """Make each of these settings a tuple; refuse what is no list, and one that holds what does not fit."""
    for name in names:
        given = getattr(owner, name)
        if hasattr(given, "to_dict"):  # a frame gives its columns
            what = f"{type(owner).__name__} needs {name} to be a list"
            raise InvalidInput(f"{what}, got a {type(given).__name__}: pass df.to_dict('records')")
        if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
            raise InvalidInput(f"{type(owner).__name__} needs {name} to be a list, each {rule.words}, got {given!r}")
        setattr(owner, name, tuple(given))
        for value in getattr(owner, name):
            check_value(owner, rule, name, value)


def plain_seed(seed: object) -> int:
    """Give a seed as a plain number, which JSON and every library take; refuse what is none."""
    if not SEED.fits(seed):
        raise InvalidInput(f"a seed is {SEED.words}, got {seed!r}")
    return int(seed)  # type: ignore[call-overload, no-any-return]


def check_named(owner: object, name: str, allowed: Collection[str]) -> None:
    """Refuse a setting that is none of the names allowed."""
    if (got := getattr(owner, name)) not in allowed:
        raise unknown(name, str(got), allowed)
