"""Studies on recorded curves, simulated again and again: as recorded, and on other draws of the configurations."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workbench.simulation import Scenario
from workbench.simulation.scenario import Repetition

Curves = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """Repetitions of a simulated study on recorded curves."""

    preset: str = "ga3c-curves"
    repeats: int = 1000  # on the configurations as they were recorded
    draws: int = 200  # of as many of them, with replacement
    each: int = 20  # repetitions of a draw


def repetitions(recorded: Scenario, settings: Draws) -> Iterator[tuple[dict[str, int], Repetition]]:
    """Give each repetition with its draw (0: the configurations as they were recorded) and its repeat."""
    for number in range(settings.repeats):
        yield {"draw": 0, "repeat": number}, recorded.repetition(number)
    for draw in range(settings.draws):
        scenario = recorded.with_curves(redraw=draw)
        for number in range(settings.each):
            yield {"draw": draw + 1, "repeat": number}, scenario.repetition(number)


def whole_curves(repetition: Repetition, n_trials: int) -> Curves:
    """Give the whole curves of HyperTrick's trials, in their order: shape [trials, phases, 2], of seconds and score."""
    searcher = repetition.scenario.searcher_of("hypertrick", repetition.seed)
    configs = [searcher.suggest(trial) or {} for trial in range(n_trials)]
    phases = range(repetition.scenario.source.n_phases)
    return np.array([[repetition.model.phase(0, phase, config, 0) for phase in phases] for config in configs])
