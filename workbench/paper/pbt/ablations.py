"""PBT's toy problem (arXiv 1711.09846, Fig. 2) with its ablations: the real scheduler and trainable, in virtual time.

Two members start at θ = (0.9, 0.9), one with h = (1, 0), the other with h = (0, 1). Every 4 steps the weaker copies the
better one's θ and changes its own h. What the paper leaves open, and is chosen here:

- *What is copied.* θ alone. If h is copied too, both members soon climb along the same axis, and exploiting alone ends
  where grid search does, against the paper's statement that most of the gain comes from copying.
- *Who copies.* Truncation with a share of one half: of two equals the second is the weaker. If equals were left alone
  (`exploit = "tournament"`), two members that fall out of step could stay mirror images of each other, each ahead
  whenever it is judged, and never copy.
- *How h is changed.* Gaussian noise, cut at 0. The paper's factors 0.8 and 1.2 leave an h of 0 where it is, so that
  exploring alone gains nothing, against the figure. Below 0 a member would run away.
- *How far*: `NOISE`. With much more, exploring alone does as well as exploiting, against the text; `READINGS`
  of the experiment ``pbt-toy`` show where that begins.
- *Step size and length*: `LEARNING_RATE` and `PHASES`, enough for grid search to come to rest at 0.39.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.algos.quadratic import Quadratic
from workbench.algos.search import PBT, ListSearcher
from workbench.analysis import Interval, bootstrap_interval, lineage
from workbench.core.budget import Budget
from workbench.core.domains import Uniform
from workbench.core.errors import unknown
from workbench.core.protocols import Event, Kind
from workbench.core.space import Space
from workbench.knowledge import frames_of
from workbench.simulation import Outcome
from workbench.simulation.trained import simulate_training

STEPS = 4  # between two exploit-and-explores, as published
PHASES = 50  # 200 steps
LEARNING_RATE = 0.02
NOISE = 0.02
STARTS: Sequence[Mapping[str, float]] = ({"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0})
SPACE = Space({"h0": Uniform(0.0, 1.0), "h1": Uniform(0.0, 1.0)})

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "PBT": {},
    "exploit only": {"explore": False},
    "explore only": {"exploit": "none"},
    "grid": {"exploit": "none", "explore": False},
}
"""The four pictures of Fig. 2, best first, as settings of `PBT`."""


@dataclass(frozen=True)
class VariantRun:
    """One run of a variant: what it came to, and its log."""

    variant: str
    outcome: Outcome
    events: list[Event]

    @property
    def final(self) -> float:
        """Q of the better member at the end."""
        ends = {e.trial: float(e.data["score"]) for e in self.events if e.kind is Kind.PHASE_ENDED}
        finished = [e.trial for e in self.events if e.kind is Kind.DECISION and e.data["mode"] == "finished"]
        return max(ends[trial] for trial in finished)

    @property
    def mean(self) -> float:
        """Mean of Q over all phase ends of both members: how early it rose."""
        return float(self.outcome.scores.mean())


def scheduler(variant: str, seed: int, **changes: Any) -> PBT:
    """Build the scheduler of a variant; `changes` are settings of `PBT` that win over those chosen here."""
    if variant not in VARIANTS:
        raise unknown("variant of PBT's toy problem", variant, VARIANTS)
    chosen = {"share": 0.5, "copy_config": False, "noise": NOISE, "space": SPACE}
    settings = {**chosen, **changes, **VARIANTS[variant]}
    return PBT(ListSearcher([dict(h) for h in STARTS]), len(STARTS), PHASES, seed=seed, **settings)


def play(
    variant: str, seed: int = 0, *, learning_rate: float = LEARNING_RATE, spread: float = 0.0, **changes: Any
) -> VariantRun:
    """Run a variant on two virtual nodes.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    seed : int
    learning_rate : float
    spread : float
        Of the phases' durations: above 0 the two members fall out of step (see `TrainedPhases`).
    **changes
        Settings of `PBT` to try instead.
    """
    trainable = Quadratic(phase=Budget(updates=STEPS), learning_rate=learning_rate)
    population: Any = scheduler(variant, seed, **changes)
    return VariantRun(variant, *simulate_training(population, trainable, len(STARTS), seed=seed, spread=spread))


def finals(seeds: Sequence[int], **settings: Any) -> dict[str, np.ndarray]:
    """Give every variant's final Q and mean Q for every seed: variant → array, shape [seeds, 2]."""
    return {v: np.array([[p.final, p.mean] for p in (play(v, s, **settings) for s in seeds)]) for v in VARIANTS}


def intervals(values: np.ndarray) -> dict[str, Interval]:
    """Give the mean final Q and the mean Q over time with their 95 % bootstrap intervals."""
    return {name: bootstrap_interval(values[:, k], "mean") for k, name in enumerate(("final", "over time"))}


def paths(played: Sequence[VariantRun]) -> pd.DataFrame:
    """Give every step of every member.

    Returns
    -------
    DataFrame
        One row a step: variant, member, step (of the member, from 1), theta0, theta1, q.
    """
    rows = []
    for run in played:
        frames = frames_of(run.events)
        members = lineage(frames.trials, frames.phases, frames.decisions)
        member = dict(zip(members["trial"], members["member"], strict=True))
        taken: dict[tuple[int | None, int | None], int] = {}
        for event in run.events:
            if event.kind is Kind.PROGRESS:
                place = (event.trial, event.phase)
                taken[place] = taken.get(place, 0) + 1
                point = event.data["metrics"]
                step = STEPS * (event.phase or 0) + taken[place]
                theta = (point["theta0"], point["theta1"])
                rows.append((run.variant, member[event.trial], step, *theta, point["score"]))
    return pd.DataFrame(rows, columns=["variant", "member", "step", "theta0", "theta1", "q"])
