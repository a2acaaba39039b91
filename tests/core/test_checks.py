"""Checks of settings, for every part of the package."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.core.checks import (
    COUNT,
    DECAY,
    FROM_ZERO,
    PART,
    POSITIVE,
    SHARE,
    TRUTH,
    check,
    check_named,
    check_value,
    plain_seed,
    whole,
)
from workbench.core.errors import InvalidInput


class Thing(SimpleNamespace):
    pass


NEVER = [math.nan, True, "3", None, [1]]


@pytest.mark.parametrize(
    ("rule", "good", "bad", "words"),
    [
        (COUNT, [1, np.int64(7), 1_000_000], [0, 1.0, 1_000_001, 10**30], "a whole number from 1 to 1000000"),
        (whole(0), [0, 10**30], [-1, 0.0], "a whole number from 0"),
        (POSITIVE, [1e-300, 3], [0, -1.0, math.inf], "a number above 0"),
        (FROM_ZERO, [0, 2.5], [-0.1, math.inf], "a number from 0"),
        (PART, [0, 0.5, 1.0], [-0.1, 1.1], "in [0, 1]"),
        (SHARE, [0.5, 1], [0, 1.1], "in (0, 1]"),
        (DECAY, [0, 0.5], [1, -0.1], "in [0, 1)"),
    ],
)
def test_what_a_setting_may_be(rule, good, bad, words) -> None:
    for value in good:
        check(Thing(fine=1, n=value), rule, "n")
    for value in [*bad, *NEVER]:
        with pytest.raises(InvalidInput) as refused:
            check(Thing(fine=1, n=value), rule, "n")
        assert str(refused.value) == f"Thing needs n {words}, got {value!r}"


def test_a_switch_is_true_or_false_and_no_word_or_number() -> None:
    for value in (True, False, np.bool_(True)):
        check_value(Thing(), TRUTH, "n", value)
    for value in (1, 0, "false", None):
        with pytest.raises(InvalidInput, match=f"Thing needs n true or false, got {value!r}"):
            check_value(Thing(), TRUTH, "n", value)


def test_a_seed_comes_back_plain() -> None:
    assert type(plain_seed(np.uint32(7))) is int
    for value in (-1, 1.0, None, True):
        with pytest.raises(InvalidInput, match=f"a seed is a whole number from 0, got {value!r}"):
            plain_seed(value)


def test_a_setting_may_be_left_out_where_that_is_allowed() -> None:
    check(Thing(n=None), COUNT.or_none(), "n")
    with pytest.raises(InvalidInput, match="a whole number from 1 to 1000000, or None, got 0"):
        check_value(Thing(), COUNT.or_none(), "n", 0)


def test_a_word_is_one_of_those_allowed() -> None:
    check_named(Thing(kind="a"), "kind", ("a", "b"))
    with pytest.raises(InvalidInput, match="unknown kind 'c'; known: a, b"):
        check_named(Thing(kind="c"), "kind", ("a", "b"))
