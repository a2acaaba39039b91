"""Distributed BA3C measured on one machine: ranks, widths, the all-reduce, and what the straggler rule saves.

A data point is an experience that an update was made of.
"""

import multiprocessing
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ba3c.exchange import AllReduce, open_store_socket
from workbench.algos.rl.ba3c.local_gang import HOST, LocalGang
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.meter import play_for
from workbench.core.budget import Budget
from workbench.core.machine import cores
from workbench.core.pool import deaf, end_without_a_word
from workbench.paper.ba3c.published import FIG_6
from workbench.paper.ba3c.scaling import exponential_kth_of_n, mean_step_s
from workbench.paper.experiment import Rows, trained

STRAGGLERS = 4
_REPEATS = 30  # of an all-reduce that is timed
SLEEPS: dict[str, dict[str, Any]] = {
    "one rank sleeps 0.2 s, the others 0.05 s": {"slow_rank": 3, "slow_s": 0.2},
    "all sleep for exponential times, mean 0.1 s": {"exponential": True, "sleep_s": 0.1},
}


@dataclass(frozen=True)
class Sleeping(BA3C):
    """BA3C whose ranks sleep before each batch: `slow_rank` longer than the others, or all for exponential times."""

    sleep_s: float = 0.05
    slow_rank: int = -1
    slow_s: float = 0.0
    exponential: bool = False

    def rank(self, config: Any, seed: int, rank: int) -> BA3CTrial:
        """Build a rank that sleeps."""
        trial = super().rank(config, seed, rank)
        gather, generator = trial.player.gather, np.random.default_rng([seed, 9, rank])

        def slowly() -> Any:
            time.sleep(self.nap_s(generator, rank))
            return gather()

        trial.player.gather = slowly  # type: ignore[method-assign]
        return trial

    def nap_s(self, generator: np.random.Generator, rank: int) -> float:
        """Draw how long a rank sleeps."""
        if self.exponential:
            return float(generator.exponential(self.sleep_s))
        return self.slow_s if rank == self.slow_rank else self.sleep_s


def rate(factory: BA3C, seconds: float) -> tuple[list[float], list[float]]:
    """Measure data points/s over each of some stretches, after one; and rank 0's seconds for each gradient."""
    trial = factory({}, 0)
    chief: BA3CTrial = trial.chief if isinstance(trial, LocalGang) else trial  # type: ignore[assignment]
    took, contribution = [], chief.player.contribution

    def timed(seconds: float) -> np.ndarray:
        began = time.perf_counter()
        made = contribution(seconds)
        took.append(time.perf_counter() - began)
        return made

    stretch = max(1.0, seconds / 3)
    play_for(trial, stretch)  # processes come up, games begin
    chief.player.contribution = timed  # type: ignore[method-assign]
    rates, spent = [], 0.0
    while spent < seconds:
        metrics = play_for(trial, stretch)
        rates.append(metrics["data_points_per_s"])
        spent += metrics["seconds"]
    trial.close()
    return rates, took


def pong(n_ranks: int, width: int) -> BA3C:
    """The paper's settings for a node, one core a rank."""
    return BA3C(
        "Pong",
        n_ranks=n_ranks,
        network=f"ba3c-{width}",
        evaluate_every=None,
        emulator_threads=1,
        device="cpu",
    )


def ranks(seconds: float, most: int) -> Rows:
    """Measure data points/s on Pong by the number of ranks, up to the cores at hand.

    Returns
    -------
    rows
        Of kind ranks, one a phase: n_ranks, repeat, points_per_s; of kind batch: n_ranks, seconds that rank 0 took for
        a batch and its gradient.
    """
    rows: Rows = []
    n = 1
    while n <= max(2, min(most, cores())):
        points, took = rate(pong(n, 128), seconds)
        rows += [
            {"kind": "ranks", "n_ranks": n, "repeat": i, "points_per_s": round(p, 1)} for i, p in enumerate(points)
        ]
        rows += [{"kind": "batch", "n_ranks": n, "seconds": round(s, 4)} for s in took[-200:]]
        n *= 2
    return rows


@dataclass(frozen=True)
class Widths:
    """Seconds of each measurement."""

    seconds: float


def widths(settings: Widths) -> Rows:
    """Measure data points/s on Pong by the width of the fully connected layer, at one and two ranks.

    Returns
    -------
    rows
        One a phase: width, n_ranks, repeat, points_per_s, parameters, all_reduce_s (median, two processes).
    """
    reduced = reduce_s(list(FIG_6.values()))
    return [
        {"width": width, "n_ranks": n, "repeat": i, "points_per_s": round(points, 1)}
        | {"parameters": parameters, "all_reduce_s": reduced[parameters]}
        for width, parameters in FIG_6.items()
        for n in (1, 2)
        for i, points in enumerate(rate(pong(n, width), settings.seconds)[0])
    ]


def reduce_s(sizes: list[int]) -> dict[int, float]:
    """Median seconds of an all-reduce of so many floats between two processes."""
    sock, port = open_store_socket(HOST)
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=_reduce, args=(1, port, None, sizes), daemon=True)
    with deaf():
        other.start()
    try:
        return _reduce(0, port, sock, sizes)
    finally:
        other.join(30)


def _reduce(rank: int, port: int, sock: Any, sizes: list[int]) -> dict[int, float]:
    if rank:
        end_without_a_word()
    torch.set_num_threads(1)
    group, medians = AllReduce(rank, 2, HOST, (HOST, port), sock, 60.0), {}
    for size in sizes:
        array, took = np.zeros(size, np.float32), []
        for _ in range(_REPEATS + 3):
            began = time.perf_counter()
            group.sum(array, lambda: None)
            took.append(time.perf_counter() - began)
        medians[size] = statistics.median(took[3:])
    group.close()
    return medians


def predicted_straggler() -> Rows:
    """Simulate the straggler rule; a row for every law and number of ranks awaited."""
    rows = []
    for law, how in SLEEPS.items():
        factory = Sleeping("CartPole-v1", n_ranks=STRAGGLERS, n_agents=2, batch=2, evaluate_every=None, **how)
        for k in (STRAGGLERS, STRAGGLERS - 1):
            seconds = mean_step_s(factory.nap_s, STRAGGLERS, k)
            row = {"law": law, "n_ranks": STRAGGLERS, "n_awaited": k, "step_s": round(seconds, 5)}
            if factory.exponential:
                row["independent_draws_s"] = round(factory.sleep_s * exponential_kth_of_n(STRAGGLERS, k), 5)
            rows.append(row)
    return rows


def straggler(updates: int) -> Rows:
    """Seconds an update takes with four sleeping ranks, all awaited and the last dropped; a row for each."""
    rows = []
    for law, how in SLEEPS.items():
        for k in (STRAGGLERS, STRAGGLERS - 1):
            factory = Sleeping(
                "CartPole-v1",
                phase=Budget(updates=updates),
                n_ranks=STRAGGLERS,
                n_awaited=k if k < STRAGGLERS else None,
                n_agents=2,
                batch=2,
                min_games=1,
                evaluate_every=None,
                **how,
            )
            first, second = trained(factory, {}, 0, 2)
            took, made, dropped = (second[of] - first[of] for of in ("seconds", "updates", "dropped"))
            row = {"law": law, "n_ranks": STRAGGLERS, "n_awaited": k, "step_s": round(took / made, 5)}
            rows.append(row | {"updates": int(made), "dropped": dropped})  # a phase goes on until a game has ended
    return rows
