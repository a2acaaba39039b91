"""The GAN of digits under PBT: the paper's Sec. 4.3 with its losses, rules and baselines, on images of 8 × 8 pixels.

As there: 45 members begin with nine pairs of learning rates, each five times over with weights of their own; the loss
is WGAN-GP's with five steps of the critic for one of the generator; exploit copies weights and both rates by truncation
or by binary tournaments, explore halves or doubles each rate. What is tuned by hand begins alike and has its rates fall
as in the paper's Appendix A.3: not for half of the training, then to a hundredth of what they were, exponentially, or
linearly to 0. Rates that never fall stand beside.

Unlike there training is short, 400 updates for a million, and what judges a generator is the digits score. The rates
are ten times the paper's for that: in a trial of each alone the best constant ones lay among them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.algos.digits.gan import DigitsGAN
from workbench.algos.replay import Replay, ReplayTrial
from workbench.algos.search import PBT, FullRuns, ListSearcher
from workbench.analysis import best_trial, bootstrap_interval, lineage, schedule_of, schedules
from workbench.core.budget import Budget
from workbench.core.domains import LogUniform
from workbench.core.protocols import Config, Event
from workbench.core.space import Space
from workbench.knowledge import frames_of
from workbench.paper.experiment import Rows, each
from workbench.paper.pbt.measures import MEASURES, summed_up
from workbench.simulation.trained import simulate_training

RATES = (1e-3, 2e-3, 5e-3)
BOTH = ("generator_learning_rate", "discriminator_learning_rate")
SPACE = Space(dict.fromkeys(BOTH, LogUniform(1e-6, 1e-1)))  # wide: the paper bounds nothing
EXPLOITS = ("truncation", "tournament")
FALLS: Mapping[str, Callable[[float], float]] = {
    "constant": lambda x: 1.0,
    "linear": lambda x: 1 - x,
    "exponential": lambda x: 0.01**x,
}
"""Strategy by hand → share of the first rates, by the share of the second half that has passed."""


@dataclass(frozen=True)
class GANs:
    """Repetitions of all strategies, with the seeds `first_seed` and on.

    Attributes
    ----------
    members : int
        Of every population.
    updates : int
        Of the generator, in one phase of one member.
    """

    repeats: int
    first_seed: int = 0
    members: int = 45
    phases: int = 20
    updates: int = 20
    processes: int = 2


@dataclass(frozen=True)
class Annealed:
    """GANs whose learning rates are the configuration's times a factor a phase."""

    gan: DigitsGAN
    factors: tuple[float, ...]

    def __call__(self, config: Config, seed: int) -> ReplayTrial:
        """Build a trial of both learning rates and its seed."""
        rates = [{name: float(config[name]) * factor for name in BOTH} for factor in self.factors]
        return Replay(rates, self.gan)({}, seed)


def starts(members: int) -> list[Config]:
    """Give every member's first learning rates: all pairs of `RATES`, over and over."""
    pairs = [dict(zip(BOTH, (generator, critic), strict=True)) for generator in RATES for critic in RATES]
    return [pairs[k % len(pairs)] for k in range(members)]


def factors(strategy: str, phases: int) -> tuple[float, ...]:
    """Give a strategy's factor in every phase: 1 in the first half, then that of the phase's middle."""
    half = phases // 2
    passed = [(phase - half + 0.5) / (phases - half) for phase in range(half, phases)]
    return (1.0,) * half + tuple(FALLS[strategy](x) for x in passed)


def gans(settings: GANs) -> Rows:
    """Train populations of GANs by PBT and by hand, which begin alike; real training, virtual time.

    Returns
    -------
    rows
        One a repetition and strategy: strategy (of `EXPLOITS` or `FALLS`), population, phases, repeat, paired (it and
        constant rates had the same scores after the first phase), `MEASURES` of digits scores (1 to 10), copies,
        founders (how many first trials the members at the end descend from), generator_ratio and discriminator_ratio
        (the best member's last learning rate over the first that its weights were trained with).
    """
    seeds = range(settings.first_seed, settings.first_seed + settings.repeats)
    jobs = [(settings, strategy, seed) for seed in seeds for strategy in (*EXPLOITS, *FALLS)]
    rows = each(_strategy, jobs, settings.processes)
    begun = {row["repeat"]: row["first_phase"] for row in rows if row["strategy"] == "constant"}
    return [row | {"paired": row.pop("first_phase") == begun[row["repeat"]]} for row in rows]


def _strategy(settings: GANs, strategy: str, seed: int) -> dict[str, Any]:
    members, phases = settings.members, settings.phases
    searcher = ListSearcher(starts(members))
    gan = DigitsGAN(Budget(updates=settings.updates), loss="wgan-gp", critic_steps=5)
    if strategy in EXPLOITS:
        population: Any = PBT(searcher, members, phases, exploit=strategy, factors=(0.5, 2.0), space=SPACE, seed=seed)
        events, fall = simulate_training(population, gan, members, seed=seed)[1], 1.0
    else:
        annealed = Annealed(gan, factors(strategy, phases))
        runs = FullRuns(searcher, members, phases)
        events, fall = simulate_training(runs, annealed, members, seed=seed)[1], annealed.factors[-1]
    measures = summed_up(events)
    return (
        {"strategy": strategy, "population": members, "phases": phases, "repeat": seed}
        | {name: measures[name] for name in (*MEASURES, "copies", "founders", "first_phase")}
        | {name.replace("learning_rate", "ratio"): fall * of for name, of in ratios(events).items()}
    )


def ratios(events: Sequence[Event]) -> dict[str, float]:
    """Give the best member's last learning rates over the first ones that its weights were trained with."""
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    best = best_trial(schedules(known, frames.trials, frames.phases, []))
    assert best is not None
    schedule = schedule_of(best, known, frames.trials, frames.phases, BOTH)
    return {name: float(schedule[name].iloc[-1] / schedule[name].iloc[0]) for name in BOTH}


def best_by_hand(runs: pd.DataFrame) -> str:
    """Name the strategy of `FALLS` with the highest mean final score: chosen in hindsight, in its favour."""
    finals = runs.groupby("strategy")["final"].mean()
    return max(FALLS, key=lambda strategy: float(finals[strategy]))


def by_strategy(runs: pd.DataFrame) -> pd.DataFrame:
    """Sum up what each strategy came to.

    Parameters
    ----------
    runs : DataFrame
        The recording ``pbt-digits-gan``: one row a repetition and strategy.

    Returns
    -------
    DataFrame
        One row a strategy: strategy, n, then final, mean, gain (of the final score over that of `best_by_hand`, paired)
        and founders, each a mean with ``_low`` and ``_high`` of its 95 % bootstrap interval; generator and
        discriminator, geometric means of the ratios.
    """
    finals = runs.pivot(index="repeat", columns="strategy", values="final")
    by_hand, rows = finals[best_by_hand(runs)], []
    for strategy, part in runs.groupby("strategy", sort=False):
        taken = part.set_index("repeat").assign(gain=finals[strategy] - by_hand)
        row: dict[str, Any] = {"strategy": strategy, "n": len(part)}
        for name in ("final", "mean", "gain", "founders"):
            row |= bootstrap_interval(taken[name].to_numpy(float), "mean").columns(name)
        of = {name: float(np.exp(np.log(part[f"{name}_ratio"]).mean())) for name in ("generator", "discriminator")}
        rows.append(row | of)
    return pd.DataFrame(rows)


def scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Give best and mean score at the end as `figures.estimates` takes them: group, name, value, low, high, source."""
    rows = [
        (measure, row["strategy"], *(row[f"{measure}{end}"] for end in ("", "_low", "_high")), "simulated")
        for measure in ("final", "mean")
        for row in by_strategy(runs).to_dict("records")
    ]
    return pd.DataFrame(rows, columns=["group", "name", "value", "low", "high", "source"])
