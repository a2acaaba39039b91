"""What HyperTrick comes to where the best configuration is scheduled early, and where late (Sec. 3.2)."""

from dataclasses import dataclass, replace

from workbench.paper.experiment import Rows
from workbench.paper.hypertrick.replays import Draws, repetitions, whole_curves
from workbench.simulation import preset
from workbench.simulation.scenario import Repetition


@dataclass(frozen=True)
class Arrivals(Draws):
    """Those of a HyperTrick study, each in an order of its own."""

    preset: str = "ga3c-curves-atari"
    each: int = 50
    nodes: int = 8  # fewer than trials, for else none is scheduled later than others


def arrivals(settings: Arrivals) -> Rows:
    """Simulate a study many times over; tell when the best configuration came, and what the study came to.

    Returns
    -------
    rows
        One a repetition: draw (0: the configurations as they were recorded), repeat, came (which share of the trials
        was scheduled before the one with the best score of all whole curves, 0 to 1; of several the first) and
        best_score, the study's.
    """
    recorded = preset(settings.preset)
    recorded = replace(recorded, cluster=replace(recorded.cluster, nodes=settings.nodes))
    return [at | _came(repetition) for at, repetition in repetitions(recorded, settings)]


def _came(repetition: Repetition) -> dict[str, float]:
    outcome = repetition.run("hypertrick")
    best = whole_curves(repetition, outcome.trials)[..., 1].max(1)
    return {"came": round(int(best.argmax()) / len(best), 6), "best_score": round(outcome.best_score, 3)}
