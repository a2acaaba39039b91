"""How Distributed BA3C scales, what its straggler rule saves, and how stable it is beside its asynchronous variant.

Prints one JSON object; a data point is an experience that an update was made of. Nothing under ``model`` was run on so
many nodes; it measures nothing itself.

- ``ranks``: data points/s on Pong by number of ranks, up to the cores at hand, and rank 0's seconds a batch
- ``widths``: data points/s by the width of the fully connected layer, at one and two ranks, and the measured seconds of
  an all-reduce of that many parameters between two processes
- ``straggler``: seconds an update takes with sleeping ranks, measured, all awaited and the last dropped
- ``stability``: CartPole, or another game, on one budget of data points, synchronous and asynchronous, the curves of
  several seeds, which `workbench.paper.ba3c.scaling.stability` sums up
- ``model``: compute, exchange and stragglers fitted to the recordings ``ba3c-scaling`` and ``ba3c-width`` and carried
  to 64 nodes, beside the paper's linear line: with the link measured here (loopback) and with links of 1 and 10 Gbit/s,
  as a ring, as the paper's four servers and as the one server here; and the straggler rule simulated for sleeping ranks

Run with ``python benchmarks/ba3c_scaling.py --seconds 20 --seeds 5``.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ba3c.exchange import AllReduce, open_store_socket
from workbench.algos.rl.ba3c.local_gang import HOST, LocalGang
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.algos.rl.ba3c.settings import BA3C
from workbench.algos.rl.envs import available_cores
from workbench.algos.rl.trial import play_for
from workbench.core.budget import Budget
from workbench.paper.ba3c.scaling import (
    FLOAT_BYTES,
    PAPER_BATCH,
    PARAMETERS,
    ScalingModel,
    exponential_kth_of_n,
    fitted_link,
    mean_step_s,
)
from workbench.paper.experiments import Kept

GBIT = 1e9 / 8  # bytes/s
STRAGGLERS = 4
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
        gather, generator = trial._gather, np.random.default_rng([seed, 9, rank])

        def slowly() -> Any:
            time.sleep(self.nap_s(generator, rank))
            return gather()

        trial._gather = slowly  # type: ignore[method-assign]
        return trial

    def nap_s(self, generator: np.random.Generator, rank: int) -> float:
        """Draw how long a rank sleeps."""
        if self.exponential:
            return float(generator.exponential(self.sleep_s))
        return self.slow_s if rank == self.slow_rank else self.sleep_s


def quiet(metrics: Any) -> None:
    """Report to nobody."""


def rate(factory: BA3C, seconds: float) -> tuple[list[float], list[float]]:
    """Measure data points/s over each of some stretches, after one; and rank 0's seconds for each gradient."""
    trial = factory({}, 0)
    chief: BA3CTrial = trial.chief if isinstance(trial, LocalGang) else trial  # type: ignore[assignment]
    took, contribution = [], chief._contribution

    def timed() -> np.ndarray:
        began = time.perf_counter()
        made = contribution()
        took.append(time.perf_counter() - began)
        return made

    stretch = max(1.0, seconds / 3)
    play_for(trial, stretch)  # processes come up, games begin
    chief._contribution = timed  # type: ignore[method-assign]
    rates, spent = [], 0.0
    while spent < seconds:
        metrics = play_for(trial, stretch)
        rates.append(metrics["tps"] * metrics["train_batch_mean"])
        spent += metrics["seconds"]
    trial.close()
    return rates, took


def pong(n_ranks: int, width: int, seconds: float) -> BA3C:
    """The paper's settings for a node, one core a rank."""
    return BA3C(
        "Pong",
        n_ranks=n_ranks,
        network=f"ba3c-{width}",
        evaluate_every=None,
        emulator_threads=1,
        device="cpu",
    )


def ranks(seconds: float, most: int) -> dict[str, Any]:
    """Data points/s by number of ranks."""
    found, n = {}, 1
    while n <= max(2, min(most, available_cores())):
        points, took = rate(pong(n, 128, seconds), seconds)
        found[n] = {"points_per_s": [round(p, 1) for p in points], "batch_s": [round(s, 4) for s in took[-200:]]}
        n *= 2
    return found


def widths(seconds: float) -> dict[str, Any]:
    """Data points/s and the all-reduce by the width of the fully connected layer."""
    reduced = reduce_s(list(PARAMETERS.values()))
    return {
        width: {
            "parameters": parameters,
            "points_per_s": {
                n: [round(points, 1) for points in rate(pong(n, width, seconds), seconds)[0]] for n in (1, 2)
            },
            "all_reduce_s": reduced[parameters],
        }
        for width, parameters in PARAMETERS.items()
    }


def reduce_s(sizes: list[int], repeats: int = 30) -> dict[int, float]:
    """Median seconds of an all-reduce of so many floats between two processes."""
    sock, port = open_store_socket(HOST)
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=_reduce, args=(1, port, None, sizes, repeats), daemon=True)
    other.start()
    try:
        return _reduce(0, port, sock, sizes, repeats)
    finally:
        other.join(30)


def _reduce(rank: int, port: int, sock: Any, sizes: list[int], repeats: int) -> dict[int, float]:
    torch.set_num_threads(1)
    group, found = AllReduce(rank, 2, HOST, (HOST, port), sock, torch.device("cpu"), 60.0), {}
    for size in sizes:
        array, took = np.zeros(size, np.float32), []
        for _ in range(repeats + 3):
            began = time.perf_counter()
            group.sum(array, lambda: None)
            took.append(time.perf_counter() - began)
        found[size] = statistics.median(took[3:])
    group.close()
    return found


def model() -> dict[str, Any]:
    """Carry what was recorded to 64 nodes, and simulate the straggler rule for the ranks that slept."""
    measured, by_width = Kept.open("ba3c-scaling").frame, Kept.open("ba3c-width").frame
    compute_s = measured.loc[(measured["kind"] == "batch") & (measured["n_ranks"] == 1), "seconds"].tolist()
    reduced = by_width.groupby("parameters")["all_reduce_s"].first()
    link = fitted_link([FLOAT_BYTES * size for size in reduced.index], reduced.tolist())
    links = {"loopback, measured": link, "1 Gbit/s, 50 us": (5e-5, GBIT), "10 Gbit/s, 50 us": (5e-5, 10 * GBIT)}
    rows = []
    for name, (latency_s, bytes_per_s) in links.items():
        scaled = ScalingModel(compute_s, PAPER_BATCH, PARAMETERS[128], latency_s, bytes_per_s)
        for n in (1, 2, 4, 8, 16, 32, 64):
            k = max(1, round(0.9 * n))
            for way, points in {
                "linear": scaled.linear(n),
                "ring, all awaited": scaled.points_per_s(n),
                "4 servers, all awaited": scaled.points_per_s(n, way="servers"),
                "4 servers, 90 % awaited": scaled.points_per_s(n, k, "servers"),
                "1 server, 90 % awaited": scaled.points_per_s(n, k, "servers", 1),
            }.items():
                at = {"link": name, "latency_s": latency_s, "bytes_per_s": bytes_per_s}
                rows.append(at | {"n_nodes": n, "way": way, "points_per_s": round(points, 1)})
    return {"scaling": rows, "straggler": predicted()}


def predicted() -> list[dict[str, Any]]:
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


def straggler(updates: int) -> list[dict[str, Any]]:
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
            trial = factory({}, 0)
            first = trial.train_phase(quiet)
            second = trial.train_phase(quiet)
            trial.close()
            made = int(second["updates"] - first["updates"])  # a phase goes on until a game has ended
            row = {"law": law, "n_ranks": STRAGGLERS, "n_awaited": k, "step_s": round(second["seconds"] / made, 5)}
            rows.append(row | {"updates": made, "dropped": second["dropped"] - first["dropped"]})
    return rows


def stability(game: str, seeds: range, frames: int, n_ranks: int, learning_rate: float) -> list[dict[str, Any]]:
    """One budget, synchronous and asynchronous, the same seeds; a row a phase."""
    return [
        {"variant": name} | row
        for seed in seeds
        for name, synchronous in (("synchronous", True), ("asynchronous", False))
        for row in curve(game, synchronous, seed, frames, n_ranks, learning_rate)
    ]


def curve(
    game: str, synchronous: bool, seed: int, frames: int, n_ranks: int, learning_rate: float, phases: int = 20
) -> list[dict[str, Any]]:
    """Train once; a row a phase."""
    factory = BA3C(
        game,
        phase=Budget(frames=max(1, frames // phases)),
        n_ranks=n_ranks,
        n_agents=8,
        synchronous=synchronous,
        evaluate_every=None,
    )
    trial, rows, seconds = factory({"learning_rate": learning_rate, "t_max": 10, "init": "orthogonal"}, seed), [], 0.0
    for phase in range(1, phases + 1):
        metrics = trial.train_phase(quiet)
        seconds += metrics["seconds"]
        told = {name: metrics[name] for name in ("frames", "updates", "policy_lag_mean")}
        at = {"seed": seed, "phase": phase, "seconds": round(seconds, 2), "learning_rate": learning_rate}
        rows.append(at | told | {"score": round(metrics["score"], 2), "value_loss": round(metrics["value_loss"], 4)})
    trial.close()
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12, help="of each measurement")
    parser.add_argument("--most-ranks", type=int, default=16)
    parser.add_argument("--updates", type=int, default=200, help="of each straggler measurement")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--game", default="CartPole-v1", help="of the stability runs")
    parser.add_argument("--frames", type=int, default=200_000, help="of each stability run")
    parser.add_argument("--stability-ranks", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="of the stability runs")
    names = ("ranks", "widths", "straggler", "stability", "model")
    parser.add_argument("--parts", nargs="+", choices=names, default=names[:-1])
    given = parser.parse_args()
    result: dict[str, Any] = {"cores": available_cores(), "load_1m": round(os.getloadavg()[0], 1)}
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    parts: dict[str, Callable[[], Any]] = {
        "ranks": lambda: ranks(given.seconds, given.most_ranks),
        "widths": lambda: widths(given.seconds),
        "straggler": lambda: straggler(given.updates),
        "stability": lambda: stability(given.game, seeds, given.frames, given.stability_ranks, given.learning_rate),
        "model": model,
    }
    result |= {name: parts[name]() for name in given.parts}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
