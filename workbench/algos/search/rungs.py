"""Rungs: how many trials run how far, for all schedulers that have them, and a rung's decisions in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.core.checks import is_number
from workbench.core.errors import InvalidInput
from workbench.core.rounding import floored
from workbench.core.showing import reason_text


@dataclass(frozen=True)
class Rung:
    """`n_trials` run until they have ended `phases` phases."""

    n_trials: int
    phases: int


def rung_words(reason: Mapping[str, Any]) -> str:
    """Put a rung's decision into words: Successive Halving's, Hyperband's and ASHA's.

    >>> rung_words({"mode": "dropped", "rung": 0, "place": 4, "reported": 9, "kept": 3, "bracket": 2})
    'dropped: place 4 of 9 in rung 0 of bracket 2, where 3 go on'
    """
    mode = str(reason.get("mode") or "")
    if "rung" not in reason:
        return reason_text(reason)
    where = " of ".join(f"{name} {reason[name]}" for name in ("rung", "bracket", "round") if name in reason)
    if mode == "rung":
        words = f"in a rung: not at the end of {where} yet"
    elif "place" in reason:
        words = f"{mode}: place {reason['place']} of {reason['reported']} in {where}"
        words += f", where {reason['kept']} go on" if "kept" in reason and mode != "finished" else ""
    elif "reported" in reason:
        words = f"{mode}: {reason['reported']} at the end of {where} so far"
    else:
        words = f"{mode}: {where}"
    return words + (f"; it repeats trial {reason['repeats']}" if "repeats" in reason else "")


def rung_ends(n_phases: int, eta: float, min_phases: int = 1) -> list[int]:
    """Phases at which rungs end: R, R/eta, R/eta², … down to `min_phases`, rounded down, in rising order."""
    check_eta(eta)
    ends = [float(n_phases)]
    while floored(ends[-1] / eta) >= min_phases:
        ends.append(ends[-1] / eta)
    return [floored(end) for end in reversed(ends)]


def rungs_by_eta(n_trials: int, n_phases: int, eta: float, min_phases: int = 1, fewest: int = 1) -> list[Rung]:
    """n_i = floor(n / eta^i) trials, `fewest` at least, at `rung_ends` (Hyperband, Li et al., 2018, Algorithm 1).

    >>> [(r.n_trials, r.phases) for r in rungs_by_eta(27, 27, 3)]
    [(27, 1), (9, 3), (3, 9), (1, 27)]
    """
    ends = rung_ends(n_phases, eta, min_phases)
    return [Rung(max(fewest, floored(n_trials / eta**i)), end) for i, end in enumerate(ends)]


def rungs_by_rate(n_trials: int, n_phases: int, eviction_rate: float) -> list[Rung]:
    """W_p = W0 (1-r)^p trials, rounded to the nearest and one at least, in every phase p (HyperTrick paper, Eq. 1).

    >>> [r.n_trials for r in rungs_by_rate(16, 4, 0.25)]
    [16, 12, 9, 7]
    """
    expected = [n_trials * (1 - eviction_rate) ** p for p in range(n_phases)]
    return [Rung(max(1, math.floor(n + 0.5)), p + 1) for p, n in enumerate(expected)]


def phases_in_all(rungs: Sequence[Rung], *, restart: bool) -> int:
    """Phases a bracket runs when nothing fails: survivors go on from where they were, or run every rung anew."""
    before = [0, *(rung.phases for rung in rungs[:-1])]
    return sum(rung.n_trials * (rung.phases - (0 if restart else b)) for rung, b in zip(rungs, before, strict=True))


def check_eta(eta: float) -> None:
    """Raise `InvalidInput` unless eta >= 2: below, rungs would fall on the same phase."""
    if not is_number(eta) or not 2 <= eta < math.inf:
        raise InvalidInput(f"rungs need a number eta >= 2, got {eta!r}: 3 is usual")
