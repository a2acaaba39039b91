"""Checks of settings, for every part of the package."""

import math

import pytest

from workbench.core.checks import check_not_negative, check_one_of, check_share, check_size
from workbench.core.errors import InvalidInput


class Thing:
    pass


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "3", None])
def test_a_count_is_a_whole_number_from_1(bad) -> None:
    check_size(Thing(), n=1)
    with pytest.raises(InvalidInput, match=f"Thing needs a whole number n >= 1, got {bad!r}"):
        check_size(Thing(), other=2, n=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, True, "0.5"])
def test_a_share_lies_between_0_and_1(bad) -> None:
    check_share(Thing(), low=0, high=1.0)
    with pytest.raises(InvalidInput, match=f"Thing needs a share 0 <= x <= 1, got {bad!r}"):
        check_share(Thing(), x=bad)


@pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan, False, "1"])
def test_what_may_not_be_negative_is_finite_too(bad) -> None:
    check_not_negative(Thing(), x=0, y=2.5)
    with pytest.raises(InvalidInput, match=f"Thing needs x >= 0, and finite, got {bad!r}"):
        check_not_negative(Thing(), x=bad)


def test_a_word_is_one_of_those_allowed() -> None:
    check_one_of(Thing(), "kind", "a", ("a", "b"))
    with pytest.raises(InvalidInput, match="Thing: kind is one of a, b, got 'c'"):
        check_one_of(Thing(), "kind", "c", ("a", "b"))
