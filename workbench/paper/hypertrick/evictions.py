"""Whom HyperTrick lets go on (Sec. 5.2.2): fast trials and slow ones, steady ones and those whose scores fall."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workbench.analysis.variants import worst_falls
from workbench.paper.experiment import Rows
from workbench.simulation import Scenario, preset

Curves = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """Repetitions of a simulated study on recorded curves."""

    preset: str = "ga3c-curves"
    repeats: int = 1000  # on the configurations as they were recorded
    draws: int = 200  # of as many of them, with replacement
    each: int = 20  # repetitions of a draw


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
    return [at | _shares(scenario, at["repeat"]) for at, scenario in repetitions(preset(settings.preset), settings)]


def repetitions(recorded: Scenario, settings: Draws) -> Iterator[tuple[dict[str, int], Scenario]]:
    """Give draw (0: the configurations as they were recorded) and repeat of each repetition, and what it simulates."""
    for number in range(settings.repeats):
        yield {"draw": 0, "repeat": number}, recorded
    for draw in range(settings.draws):
        scenario = recorded.with_curves(redraw=draw)
        for number in range(settings.each):
            yield {"draw": draw + 1, "repeat": number}, scenario


def _shares(scenario: Scenario, number: int) -> dict[str, float]:
    outcome = scenario.repetition(number).run("hypertrick")
    ran = outcome.phases_run() / scenario.source.n_phases
    curves = whole_curves(scenario, number, outcome.trials)
    return {kind: round(float(ran[of].mean()), 6) for kind, of in kinds(curves).items()}


def whole_curves(scenario: Scenario, number: int, n_trials: int) -> Curves:
    """Give the whole curves of a repetition's trials, in order: shape [trials, phases, 2], of seconds and score."""
    repetition = scenario.repetition(number)
    searcher = scenario.searcher_of("hypertrick", repetition.seed)
    configs = [searcher.suggest(trial) or {} for trial in range(n_trials)]
    phases = range(scenario.source.n_phases)
    return np.array([[repetition.model.phase(0, phase, config, 0) for phase in phases] for config in configs])


def kinds(curves: Curves) -> dict[str, npt.NDArray[np.bool_]]:
    """Sort trials by their whole curves, shape [trials, phases, 2] of seconds and score; a trial may be of several."""
    seconds, scores = curves[..., 0].mean(1), curves[..., 1]
    falls = worst_falls(scores, as_share=True)
    fast, low = seconds < np.median(seconds), scores.mean(1) < np.median(scores.mean(1))
    unstable = falls > np.quantile(falls, 0.75)
    return {"fast_low": fast & low, "slow_low": ~fast & low, "unstable": unstable, "steady": ~unstable}
