"""How long a study still takes, as an interval."""

import math

import numpy as np
import numpy.typing as npt

FEWEST_PHASES = 3  # ended; from fewer no spread can be told
_NORMAL_95 = 1.96

Floats = npt.NDArray[np.float64]


def time_left(ended_s: Floats, open_s: Floats, phases_left: float, n_slots: int) -> tuple[float, float] | None:
    """Estimate the seconds until a study ends, from what its phases took so far.

    The work that is left is divided by the slots. Its mean a phase is known to within its standard error, and the last
    phases cannot be shared among the slots: list scheduling takes at most (1 - 1/slots) of a phase longer (Graham 1966,
    "Bounds for certain multiprocessing anomalies").

    Parameters
    ----------
    ended_s : array, shape [n]
        Seconds that each phase took which has ended.
    open_s : array, shape [m]
        Seconds that each phase under way has run so far.
    phases_left : float
        Phases still expected to end, those under way among them.
    n_slots : int
        Slots that are alive.

    Returns
    -------
    tuple of float or None
        Low and high end of about 95 %, s; ``None`` before `FEWEST_PHASES` phases have ended, and without a slot.
    """
    if len(ended_s) < FEWEST_PHASES or n_slots < 1:
        return None
    mean = float(np.mean(ended_s))
    error = min(1.0, _NORMAL_95 * float(np.std(ended_s, ddof=1)) / math.sqrt(len(ended_s)) / max(mean, 1e-9))
    left = max(phases_left, float(len(open_s)))
    work = left * mean - float(np.minimum(open_s, mean).sum())
    tail = (1 - 1 / n_slots) * mean if left else 0.0
    return work * (1 - error) / n_slots, work * (1 + error) / n_slots + tail
