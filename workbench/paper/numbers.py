"""A number or a claim of a paper, and ours beside it.

Each paper's package has a list of the first in ``published.py``, nothing in which was measured by this project, and
functions that give both in ``counterparts.py``. How a verdict comes about stands in `workbench.paper.verdicts`, and
nowhere else. Where the text of a paper lost a formula, a number is marked as derived from others that stand in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Source = Literal["computed", "simulated", "measured", "model"]
Verdict = Literal["exact", "by construction", "agrees", "differs", "undecided", "not comparable", "not run"]


@dataclass(frozen=True, slots=True)
class Published:
    """One number of a paper, or one claim in words.

    Attributes
    ----------
    paper, where, what : str
    value : float, optional
        ``None`` for a claim.
    unit : str
    derived : bool
        Worked out from other numbers of the text, not printed there.
    spread : float, optional
        What the paper prints behind its ±.
    why_not : str
        Why nothing of ours can stand beside it; empty where a recording would bring it.
    """

    paper: str
    where: str
    what: str
    value: float | None = None
    unit: str = ""
    derived: bool = False
    spread: float | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a number of ours comes from.

    Attributes
    ----------
    source : {"computed", "simulated", "measured", "model"}
    recipe : str
        The command that makes the recording, or the function that gives the number.
    scale : str
        Of the recording; empty for what has none.
    """

    source: Source
    recipe: str
    scale: str = ""

    def __str__(self) -> str:
        return f"`{self.recipe}` ({', '.join(filter(None, (self.source, self.scale)))})"


@dataclass(frozen=True)
class Ours:
    """What we found beside a number or a claim; made by the rules of `workbench.paper.verdicts` alone.

    Attributes
    ----------
    value : float
    origin : Origin
    verdict : str
    why : str
        What was compared with what, how the verdict is decided; or why it cannot be.
    unit : str
    interval : (float, float), optional
        95 %, over repetitions.
    chance : float, optional
        How often the criterion would be met if there were nothing to be found.

    Raises
    ------
    ValueError
        "agrees" with neither an interval nor the criterion's false-positive rate.
    """

    value: float
    origin: Origin
    verdict: Verdict
    why: str = ""
    unit: str = ""
    interval: tuple[float, float] | None = None
    chance: float | None = None

    def __post_init__(self) -> None:
        if self.verdict == "agrees" and self.interval is None and self.chance is None:
            raise ValueError(f"{self.why!r} agrees with neither an interval nor a false-positive rate: give one")


Pair = tuple[Published, Ours]
Pairs = Iterator[Pair]
Counterpart = Callable[[Path], Pairs]
"""``(folder of recordings) -> pairs``; raises `DatabaseError` if it needs a recording that is not there.

A claim may have several: a pair for each recording that bears on it.
"""


def numbers_of(
    paper: str,
    where: str,
    unit: str,
    numbers: Mapping[str, float | tuple[float, float]],
    *,
    derived: bool = False,
    why_not: str = "",
) -> list[Published]:
    """Name the numbers of one place in a paper; a number with its ± is a pair."""
    split = {what: value if isinstance(value, tuple) else (value, None) for what, value in numbers.items()}
    return [Published(paper, where, what, v, unit, derived, spread, why_not) for what, (v, spread) in split.items()]


def claims_of(paper: str, where: str, *claims: str, why_not: str = "") -> list[Published]:
    """Name the claims of one place in a paper."""
    return [Published(paper, where, claim, why_not=why_not) for claim in claims]


def find(numbers: Sequence[Published], where: str, what: str) -> Published:
    """Look a number or a claim up.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    for number in numbers:
        if (number.where, number.what) == (where, what):
            return number
    raise KeyError((where, what))
