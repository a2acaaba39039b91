"""Which kind of axis a hyperparameter's values ask for."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.core.checks import is_number

_APART = 20  # times: t_max, searched from 2 to 100 on a log scale in the paper, must come out so
_FEW = 10
_MOST_DECADES = 9  # that have a mark each


class Scale(NamedTuple):
    """An axis for one hyperparameter.

    Attributes
    ----------
    kind : str
        "log" (all positive, the largest over 20 times the smallest), "linear", or "category" (words, switches,
        numbers with an infinite one among them, and a handful of numbers set so unevenly that a linear axis would
        pile them up, as discounts near 1).
    order : list
        The categories in order; empty for the other kinds.
    """

    kind: str
    order: list[Any]


def scale_of(values: pd.Series) -> Scale:
    """Choose the axis for the values tried; without values it is linear."""
    known = values.dropna()
    if known.empty:
        return Scale("linear", [])
    if not known.map(is_number).all():
        return Scale("category", sorted({_word(value) for value in known}))
    numbers = np.unique(known.to_numpy(float))
    if not np.isfinite(numbers).all():
        return Scale("category", [_word(number) for number in numbers])
    if numbers[0] > 0 and numbers[-1] > _APART * numbers[0]:
        return Scale("log", [])
    if 2 < len(numbers) <= _FEW and len(known) > len(numbers):
        gaps = np.diff(numbers)
        if gaps.max() / gaps.min() > len(numbers):
            return Scale("category", [_word(number) for number in numbers])
    return Scale("linear", [])


def positions(values: pd.Series, scale: Scale) -> pd.Series:
    """Put values on the axis: numbers as they are, categories as their place in the order, counted from 0."""
    if scale.kind != "category":
        return values.astype(float)
    place = {word: k for k, word in enumerate(scale.order)}
    return values.map(lambda value: place.get(_word(value), np.nan)).astype(float)


def shares(values: pd.Series, scale: Scale) -> pd.Series:
    """Map values to 0…1 between the smallest and the largest, in the scale's sense; NaN stays, one value is 0.5."""
    placed = positions(values, scale)
    placed = np.log10(placed) if scale.kind == "log" else placed
    width = placed.max() - placed.min()
    return (placed - placed.min()) / width if width > 0 else placed * 0 + 0.5


def ticks(values: pd.Series, scale: Scale) -> tuple[list[float], list[str]]:
    """Choose marks for a colour bar: their `shares` (0…1) and their labels."""
    if scale.kind == "category":
        return [float(share) for share in np.linspace(0, 1, len(scale.order))], list(scale.order)
    known = values.dropna().astype(float)
    if known.empty or known.min() == known.max():
        return ([] if known.empty else [0.5]), [f"{value:.3g}" for value in known[:1]]
    low, high = known.min(), known.max()
    if scale.kind == "log":
        marks = _log_marks(low, high)
        return list((np.log10(marks) - np.log10(low)) / _decades(low, high)), [f"{mark:g}" for mark in marks]
    step = 10 ** np.floor(np.log10(high - low))
    step = step / 2 if (high - low) / step < 3 else step
    marks = [k * step for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
    digits = 2 + int(np.log10(max(abs(low), abs(high)) / step))  # any fewer, and two marks may read alike
    return [(mark - low) / (high - low) for mark in marks], [f"{mark:.{max(4, digits)}g}" for mark in marks]


def _log_marks(low: float, high: float) -> list[float]:
    """Choose marks by decades, of many only some; of fewer than two and a bit also between them, as the page does."""
    factors = (1, 2, 5) if high / 200 < low else (1,)
    every = int(np.ceil(_decades(low, high) / _MOST_DECADES))
    first, last = (int(np.floor(np.log10(end))) for end in (low, high))
    marks = [float(f"{factor}e{k}") for k in range(first, last + 1) if k % every == 0 for factor in factors]
    return [mark for mark in marks if low <= mark <= high]


def _decades(low: float, high: float) -> float:
    """Count the decades between two ends, also where their ratio is no number any more."""
    return float(np.log10(high) - np.log10(low))


def _word(value: object) -> str:
    """Write a category; two numbers never read alike."""
    if not is_number(value):
        return str(value)
    return f"{value:g}" if float(f"{value:g}") == value else f"{value:.15g}"
