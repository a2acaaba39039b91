"""Populations in virtual time: GA3C's trained, what a population's log comes to, and PBT's gains over random search."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.analysis import best_trial, bootstrap_interval, lineage, schedules
from workbench.core.budget import Budget
from workbench.core.domains import LogUniform
from workbench.core.protocols import Config, Event, Kind, Scheduler
from workbench.core.space import Space
from workbench.knowledge import frames_of
from workbench.paper.pbt.published import TABLE_1, pbt_gain
from workbench.paper.verdicts import paired_percent
from workbench.simulation.trained import simulate_training

SPACE = Space(
    {
        "learning_rate": LogUniform(1e-5, 1e-2),
        "entropy_beta": LogUniform(1e-4, 1e-1),
        "t_max": LogUniform(2, 100, step=1),
    }
)
MEASURES = ("final", "mean", "over_time")
_ESTIMATES = ["group", "name", "value", "low", "high", "source"]  # as `figures.estimates` takes them


def play(
    scheduler: Scheduler,
    population: int,
    frames: int,
    seed: int,
    game: str = "CartPole-v1",
    n_agents: int = 8,
    precision: str = "float32",
) -> list[Event]:
    """Train a population on as many virtual nodes as it has members; return the log.

    Parameters
    ----------
    scheduler : Scheduler
    population : int
    frames : int
        Of one phase of one member.
    seed : int
        Of the study: trials' seeds are derived from it.
    game : str
        What GA3C plays, in its deterministic mode.
    n_agents : int
        Of one member.
    precision : {"float32", "bfloat16"}
        Of its network.
    """
    settings: dict[str, Any] = {"n_agents": n_agents, "precision": precision, "lockstep": True, "device": "cpu"}
    agent = GA3C(game=game, phase=Budget(frames=frames), **settings)
    return simulate_training(scheduler, agent, population, seed=seed)[1]


def summed_up(events: Sequence[Event], members: int | None = None) -> dict[str, Any]:
    """Take the measures from a population's log, or from that of its first members alone.

    Returns
    -------
    dict
        ``final``, the best score among the members at the end (of GA3C the mean return of the games of a last
        phase); ``mean``, that of all members at the end; ``over_time``, the mean over the phases of the best score
        so far; ``first_phase``, every member's first score; ``phases`` run; ``copies`` made of others' weights;
        ``founders``, the first trials that the weights at the end descend from.
    """
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    if members is not None:
        known = known[known["member"] < members]
    table = schedules(known, frames.trials, frames.phases, [])
    scores = table.pivot(index="member", columns="phase", values="score").to_numpy(float)  # [members, phases]
    return {
        "final": float(np.nanmax(scores[:, -1])),
        "mean": float(np.nanmean(scores[:, -1])),
        "over_time": float(np.maximum.accumulate(np.nanmax(scores, axis=0)).mean()),
        "first_phase": scores[:, 0].tolist(),
        "phases": int(np.isfinite(scores).sum()),
        "copies": int(known["copied"].sum()),
        "founders": int(known.groupby("member")["founder"].last().nunique()),
    }


def last_config(events: Sequence[Event]) -> Config:
    """Give the hyperparameters that the best member ended with."""
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    best = best_trial(schedules(known, frames.trials, frames.phases, []))
    (config,) = (event.data["config"] for event in events if event.kind is Kind.RUN and event.trial == best)
    return dict(config)


def against_random(runs: pd.DataFrame) -> pd.DataFrame:
    """Compare PBT with random search over repetitions that began alike.

    Parameters
    ----------
    runs : DataFrame
        The recording ``pbt-cartpole`` or ``pbt-ms-pacman``: one row a repetition and scheduler.

    Returns
    -------
    DataFrame
        One row a measure: measure, n, then pbt, random and difference (PBT's less random search's, paired), each a mean
        with ``_low`` and ``_high`` of its 95 % bootstrap interval; better_in, repetitions in which PBT's was higher.
    """
    rows = []
    for measure in MEASURES:
        both = runs.pivot(index="repeat", columns="scheduler", values=measure)
        gain = both["pbt"] - both["random"]
        row: dict[str, Any] = {"measure": measure, "n": len(both)}
        for name, values in (("pbt", both["pbt"]), ("random", both["random"]), ("difference", gain)):
            row |= _mean(name, values)
        rows.append(row | {"better_in": int((gain > 0).sum())})
    return pd.DataFrame(rows)


def against_random_estimates(runs: pd.DataFrame) -> pd.DataFrame:
    """Give the scores of `against_random` as `figures.estimates` takes them: group, name, value, low, high, source."""
    rows = [
        (row["measure"], name, *(row[f"{name}{end}"] for end in ("", "_low", "_high")), "simulated")
        for row in against_random(runs).to_dict("records")
        for name in ("pbt", "random")
    ]
    return pd.DataFrame(rows, columns=_ESTIMATES)


def design_space(runs: pd.DataFrame, measure: str = "final") -> pd.DataFrame:
    """Sum up what each choice of Fig. 5 gains over random search.

    Parameters
    ----------
    runs : DataFrame
        The recording ``pbt-design``: one row a choice and repetition.
    measure : {"final", "mean", "over_time"}
        A column that has another beside it with ``random_`` before its name.

    Returns
    -------
    DataFrame
        One row a choice: design, value, population, n, then score and gain (over random search of as many members,
        paired), each a mean with ``_low`` and ``_high`` of its 95 % bootstrap interval.
    """
    rows = []
    for (design, value), part in runs.groupby(["design", "value"], sort=False):
        row = {"design": design, "value": value, "population": int(part["population"].iloc[0]), "n": len(part)}
        gain = part[measure] - part[f"random_{measure}"]
        rows.append(row | _mean("score", part[measure]) | _mean("gain", gain))
    return pd.DataFrame(rows)


def improvements(rows: pd.DataFrame, measure: str = "final") -> pd.DataFrame:
    """Give every choice's mean score over random search's, for `figures.estimates`.

    Parameters
    ----------
    rows : DataFrame
        The recording ``pbt-design``: design, value, and the column `measure` beside ``random_`` and its name.
    measure : {"final", "mean", "over_time"}

    Returns
    -------
    DataFrame
        group (the design), name, value, low, high (Fieller's 95 %, the repetitions being paired), source.
    """
    estimates = [
        (
            design,
            value,
            *(1 + gain / 100 for gain in paired_percent(part[measure], part[f"random_{measure}"])),
            "simulated",
        )
        for (design, value), part in rows.groupby(["design", "value"], sort=False)
    ]
    return pd.DataFrame(estimates, columns=_ESTIMATES)


def published_improvements() -> pd.DataFrame:
    """Give Fig. 5(a) as it follows from the paper's Table 1: FuN on four Atari games, by size of the population."""
    sizes = next(iter(TABLE_1.values()))
    rows = [("population", f"{size}, FuN on Atari", pbt_gain(size), math.nan, math.nan, "published") for size in sizes]
    return pd.DataFrame(rows, columns=_ESTIMATES)


def _mean(name: str, values: pd.Series) -> dict[str, float]:
    return bootstrap_interval(values.to_numpy(float), "mean").columns(name)
