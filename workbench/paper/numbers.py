"""A number of a paper, and ours beside it.

Each paper's package has a list of the first in ``published.py``, nothing in which was measured by this project, and
functions that give both in ``counterparts.py``. Where the text of a paper lost a formula, a number is marked as derived
from others that stand in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Source = Literal["computed", "simulated", "measured", "model"]


@dataclass(frozen=True, slots=True)
class Published:
    """One number of a paper.

    Attributes
    ----------
    paper, where, what : str
    value : float
    unit : str
    derived : bool
        Worked out from other numbers of the text, not printed there.
    """

    paper: str
    where: str
    what: str
    value: float
    unit: str = ""
    derived: bool = False


@dataclass(frozen=True)
class Ours:
    """A number of ours beside a published one.

    Attributes
    ----------
    value : float
        In the published number's unit.
    source : {"computed", "simulated", "measured", "model"}
    agrees : bool
    why : str
        What was compared how, or why it differs.
    interval : (float, float), optional
        95 %, where there are repetitions.
    scale : str
        What it was run on, and for how long; empty for what has no scale.
    """

    value: float
    source: Source
    agrees: bool
    why: str = ""
    interval: tuple[float, float] | None = None
    scale: str = ""


Pairs = Iterator[tuple[Published, Ours]]
Counterpart = Callable[[Path], Pairs]
"""``(folder of recordings) -> pairs``; raises `DatabaseError` if it needs a recording that is not there."""


def numbers_of(
    paper: str, where: str, unit: str, numbers: dict[str, float], *, derived: bool = False
) -> list[Published]:
    """Name the numbers of one place in a paper."""
    return [Published(paper, where, what, value, unit, derived) for what, value in numbers.items()]


def find(numbers: Sequence[Published], where: str, what: str) -> Published:
    """Look a number up.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    for number in numbers:
        if (number.where, number.what) == (where, what):
            return number
    raise KeyError((where, what))


def exact(number: Published, value: float, source: Source = "computed", why: str = "") -> tuple[Published, Ours]:
    """Compare to the digits that were printed."""
    digits = len(f"{number.value:g}".partition(".")[2])
    return number, Ours(value, source, round(value, digits) == round(number.value, digits), why)


def within_factor_2(number: Published, value: float) -> bool:
    """Tell whether a rate is half to twice the published one."""
    return 0.5 <= value / number.value <= 2
