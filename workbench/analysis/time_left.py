"""How long a study still takes, as an interval."""

import math

import numpy as np
import numpy.typing as npt

FEWEST_PHASES = 3  # ended; from fewer no spread can be told
_LATEST = 4096  # ended phases: more tell hardly more, and a dashboard asks twice a second
_NORMAL_95 = 1.96
_UNKNOWN = 0.05  # of all phases, those that take longer than any that has ended: with more, who knows how long

Floats = npt.NDArray[np.float64]


def time_left(
    ended_s: Floats, open_s: Floats, phases_left: tuple[float, float], n_slots: int, at_most_s: float = math.inf
) -> tuple[float, float] | None:
    """Estimate the seconds until a study ends, from what its phases took so far.

    The work that is left is divided by the slots. What a phase takes is told by those that ended and by how far those
    under way have come (Kaplan and Meier 1958, "Nonparametric estimation from incomplete observations"): the first to
    end are the short ones. The sum of those to come is as uncertain as they are unlike. And the last phases cannot be
    shared among the slots: list scheduling takes at most (1 - 1/slots) of the longest phase more (Graham 1966, "Bounds
    for certain multiprocessing anomalies").

    Parameters
    ----------
    ended_s : array, shape [n]
        Seconds that each phase took which has ended, in their order; the latest few thousand tell.
    open_s : array, shape [m]
        Seconds that each phase under way has run so far.
    phases_left : tuple of float
        Phases still expected to end, those under way among them: the fewest and the most.
    n_slots : int
        Slots that are alive.
    at_most_s : float
        Seconds until the study's time is up.

    Returns
    -------
    tuple of float or None
        Low and high end of about 95 %, s. Of less where a few phases take much longer than most: of 200 phases of
        exponential lengths on 16 slots, two times in three; of fewer, rarer. The high end is `at_most_s` while more
        than one phase in twenty is on its way to take longer than any that has ended, as before the slots have ended
        their first phases: what is known by then is who is fast. ``None`` before `FEWEST_PHASES` phases have ended,
        and without a slot.
    """
    if len(ended_s) < FEWEST_PHASES or n_slots < 1:
        return None
    ended_s = ended_s[-_LATEST:]
    seconds, share = _durations(ended_s, open_s)
    mean = float(share @ seconds)
    deviation = math.sqrt(float(share @ (seconds - mean) ** 2) * len(ended_s) / (len(ended_s) - 1))
    left = np.maximum(phases_left, len(open_s))
    work = (left - len(open_s)) * mean + float(_rests(open_s, seconds, share).sum())
    error = _NORMAL_95 * deviation * np.sqrt(left + left**2 / len(ended_s))  # of the sum, and of the mean
    tail = (1 - 1 / n_slots) * float(seconds[-1]) if left[1] else 0.0
    low, high = float(work[0] - error[0]), float(work[1] + error[1])
    is_open = len(open_s) > 0 and open_s.max() >= ended_s.max()
    most = math.inf if is_open and share[-1] > _UNKNOWN else high / n_slots + tail
    return min(max(0.0, low) / n_slots, at_most_s), min(most, at_most_s)


def _durations(ended_s: Floats, open_s: Floats) -> tuple[Floats, Floats]:
    """Estimate how phases are spread: seconds in ascending order, and the share of phases that takes as long [n + m].

    What the longest, if it is under way, leaves open is taken to end now.
    """
    seconds = np.concatenate([ended_s, open_s])
    order = np.argsort(seconds, kind="stable")  # of equals, what has ended comes first
    longer = np.cumprod(np.where(order < len(ended_s), 1 - 1 / np.arange(len(seconds), 0, -1), 1.0))
    longer[-1] = 0.0
    return seconds[order], -np.diff(longer, prepend=1.0)


def _rests(open_s: Floats, seconds: Floats, share: Floats) -> Floats:
    """Give the mean seconds that each phase under way still takes: those of the phases that took longer [m]."""
    longer = np.searchsorted(seconds, open_s, side="right")
    among, total = (np.append(np.cumsum(of[::-1])[::-1], 0.0)[longer] for of in (share, share * seconds))
    rests: Floats = np.where(among > 1e-12, total / np.maximum(among, 1e-12) - open_s, 0.0)
    return rests
