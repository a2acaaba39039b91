"""Whom HyperTrick lets go on (Sec. 5.2.2): fast trials and slow ones, steady ones and those whose scores fall."""

import numpy as np
import numpy.typing as npt

from workbench.analysis.variants import worst_falls
from workbench.paper.experiment import Rows
from workbench.paper.hypertrick.replays import Curves, Draws, repetitions, whole_curves
from workbench.simulation import preset
from workbench.simulation.scenario import Repetition


def evictions(settings: Draws) -> Rows:
    """Simulate a study many times over; tell how much of their phases kinds of trials ran.

    Speed, score and falls are those of whole curves, which the study does not see: the mean seconds of a phase, the
    mean score, and how far a score falls below the best before it, as a share of that.

    Returns
    -------
    rows
        One a repetition: draw (0: the configurations as they were recorded), repeat, and mean shares of the phases run
        (0 to 1) of trials whose score is below the median, the faster half (fast_low) and the slower (slow_low) of all;
        of the quarter with the largest fall (unstable) and of the others (steady).
    """
    return [at | _shares(repetition) for at, repetition in repetitions(preset(settings.preset), settings)]


def _shares(repetition: Repetition) -> dict[str, float]:
    outcome = repetition.run("hypertrick")
    ran = outcome.phases_run() / repetition.scenario.source.n_phases
    found = kinds(whole_curves(repetition, outcome.trials))
    return {kind: round(float(ran[of].mean()), 6) for kind, of in found.items()}


def kinds(curves: Curves) -> dict[str, npt.NDArray[np.bool_]]:
    """Sort trials by their whole curves, shape [trials, phases, 2] of seconds and score; a trial may be of several."""
    seconds, scores = curves[..., 0].mean(1), curves[..., 1]
    falls = worst_falls(scores, as_share=True)
    fast, low = seconds < np.median(seconds), scores.mean(1) < np.median(scores.mean(1))
    unstable = falls > np.quantile(falls, 0.75)
    return {"fast_low": fast & low, "slow_low": ~fast & low, "unstable": unstable, "steady": ~unstable}
