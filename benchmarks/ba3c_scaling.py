"""How Distributed BA3C scales, what its straggler rule saves, and how stable it is beside its asynchronous variant.

Prints one JSON object; a data point is an experience that an update was made of. What is under ``model`` was not run.

- ``ranks``: data points/s on Pong by number of ranks, up to the cores at hand, and rank 0's seconds a batch
- ``widths``: data points/s by the width of the fully connected layer, at one and two ranks, and the measured seconds of
  an all-reduce of that many parameters between two processes
- ``model``: compute, exchange and stragglers fitted to the two above and carried to 64 nodes, beside the paper's linear
  line: with the link measured here (loopback) and with links of 1 and 10 Gbit/s, as a ring, as the paper's four servers
  and as the one server here
- ``straggler``: seconds an update takes with sleeping ranks, measured and predicted, all awaited and the last dropped
- ``stability``: CartPole on one budget of data points, synchronous and asynchronous, several seeds: last score, worst
  fall from the best so far, and how many ended below half of their best

Run with ``python benchmarks/ba3c_scaling.py --seconds 20 --seeds 5``.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ba3c import BA3C, BA3CTrial
from workbench.algos.rl.envs import available_cores
from workbench.algos.rl.exchange import AllReduce, open_store_socket
from workbench.algos.rl.local_gang import HOST, LocalGang
from workbench.analysis import bootstrap_interval
from workbench.core.budget import Budget
from workbench.paper.ba3c import PARAMETERS, ScalingModel, exponential_kth_of_n, fitted_link, mean_step_s

GBIT = 1e9 / 8  # bytes/s


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


def rate(factory: BA3C, seconds: float) -> tuple[float, list[float]]:
    """Measure data points/s over one phase, after a short one; and rank 0's seconds for each batch and gradient."""
    trial = factory({}, 0)
    chief: BA3CTrial = trial.chief if isinstance(trial, LocalGang) else trial  # type: ignore[assignment]
    took, contribution = [], chief._contribution

    def timed() -> np.ndarray:
        began = time.perf_counter()
        made = contribution()
        took.append(time.perf_counter() - began)
        return made

    trial.train_phase(quiet)  # processes come up, games begin
    chief._contribution = timed  # type: ignore[method-assign]
    rates, spent = [], 0.0
    while spent < seconds:
        metrics = trial.train_phase(quiet)
        rates.append(metrics["tps"] * metrics["train_batch_mean"])
        spent += metrics["seconds"]
    trial.close()
    return statistics.median(rates), took


def pong(n_ranks: int, width: int, seconds: float) -> BA3C:
    """The paper's settings for a node, one core a rank."""
    return BA3C(
        "Pong",
        phase=Budget(seconds=max(1.0, seconds / 3)),
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
        found[n] = {"points_per_s": round(points, 1), "batch_s": [round(s, 4) for s in took[-200:]]}
        n *= 2
    return found


def widths(seconds: float) -> dict[str, Any]:
    """Data points/s and the all-reduce by the width of the fully connected layer."""
    reduced = reduce_s(list(PARAMETERS.values()))
    return {
        width: {
            "parameters": parameters,
            "points_per_s": {n: round(rate(pong(n, width, seconds), seconds)[0], 1) for n in (1, 2)},
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


def model(measured_ranks: dict[str, Any], measured_widths: dict[str, Any]) -> dict[str, Any]:
    """Carry the measurements to 64 nodes."""
    sizes = [4 * row["parameters"] for row in measured_widths.values()]
    link = fitted_link(sizes, [row["all_reduce_s"] for row in measured_widths.values()])
    links = {"loopback, measured": link, "1 Gbit/s, 50 us": (5e-5, GBIT), "10 Gbit/s, 50 us": (5e-5, 10 * GBIT)}
    compute_s = measured_ranks[1]["batch_s"]
    found: dict[str, Any] = {"fitted_latency_s": link[0], "fitted_bytes_per_s": link[1]}
    for name, (latency_s, bytes_per_s) in links.items():
        scaled = ScalingModel(compute_s, 32, PARAMETERS[128], latency_s, bytes_per_s)
        found[name] = {
            n: {
                "linear": round(scaled.linear(n)),
                "ring_all_awaited": round(scaled.points_per_s(n)),
                "4_servers_all_awaited": round(scaled.points_per_s(n, way="servers")),
                "4_servers_90_percent_awaited": round(scaled.points_per_s(n, max(1, round(0.9 * n)), "servers")),
                "1_server_90_percent_awaited": round(scaled.points_per_s(n, max(1, round(0.9 * n)), "servers", 1)),
            }
            for n in (1, 2, 4, 8, 16, 32, 64)
        }
    return found


def straggler(updates: int) -> dict[str, Any]:
    """Seconds an update takes with four sleeping ranks, all awaited and the last dropped."""
    common = {"phase": Budget(updates=updates), "n_ranks": 4, "n_agents": 2, "batch": 2, "evaluate_every": None}
    found = {}
    for name, how in {
        "one rank sleeps 0.2 s, the others 0.05 s": {"slow_rank": 3, "slow_s": 0.2},
        "all sleep for exponential times, mean 0.1 s": {"exponential": True, "sleep_s": 0.1},
    }.items():
        row: dict[str, Any] = {}
        for k in (4, 3):
            factory = Sleeping("CartPole-v1", n_awaited=k if k < 4 else None, **common, **how)
            trial = factory({}, 0)
            trial.train_phase(quiet)
            metrics = trial.train_phase(quiet)
            trial.close()
            predicted = mean_step_s(factory.nap_s, 4, k)
            row[f"{k} of 4"] = {"measured_s": round(1 / metrics["tps"], 4), "predicted_s": round(predicted, 4)}
            if factory.exponential:
                row[f"{k} of 4"]["independent_draws_s"] = round(0.1 * exponential_kth_of_n(4, k), 4)
        for what in ("measured_s", "predicted_s"):
            row[what.replace("_s", "_speedup")] = round(row["4 of 4"][what] / row["3 of 4"][what], 2)
        found[name] = row
    return found


def stability(seeds: int, frames: int, n_ranks: int, learning_rate: float) -> dict[str, Any]:
    """CartPole on one budget, synchronous and asynchronous, the same seeds."""
    found = {}
    for name, synchronous in (("synchronous", True), ("asynchronous", False)):
        curves = []
        for seed in range(seeds):
            factory = BA3C(
                "CartPole-v1",
                phase=Budget(frames=max(1, frames // 20)),
                n_ranks=n_ranks,
                n_agents=8,
                synchronous=synchronous,
                evaluate_every=None,
            )
            trial = factory({"learning_rate": learning_rate, "t_max": 10, "init": "orthogonal"}, seed)
            curves.append([trial.train_phase(quiet)["score"] for _ in range(20)])
            trial.close()
        table = np.array(curves)
        falls = (np.maximum.accumulate(table, axis=1) - table).max(axis=1)
        found[name] = {
            "last_score": bootstrap_interval(table[:, -1], "mean")._asdict(),
            "worst_fall": bootstrap_interval(falls, "mean")._asdict(),
            "ended_below_half_of_best": int((table[:, -1] < table.max(axis=1) / 2).sum()),
            "curves": np.round(table, 1).tolist(),
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12, help="of each measurement")
    parser.add_argument("--most-ranks", type=int, default=16)
    parser.add_argument("--updates", type=int, default=200, help="of each straggler measurement")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=200_000, help="of each stability run")
    parser.add_argument("--stability-ranks", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="of the stability runs")
    names = ("ranks", "widths", "model", "straggler", "stability")
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    result: dict[str, Any] = {"cores": available_cores(), "load_1m": round(os.getloadavg()[0], 1)}
    if {"ranks", "model"} & set(given.parts):
        result["ranks"] = ranks(given.seconds, given.most_ranks)
    if {"widths", "model"} & set(given.parts):
        result["widths"] = widths(given.seconds)
    if "model" in given.parts:
        result["model"] = model(result["ranks"], result["widths"])
    if "straggler" in given.parts:
        result["straggler"] = straggler(given.updates)
    if "stability" in given.parts:
        result["stability"] = stability(given.seeds, given.frames, given.stability_ranks, given.learning_rate)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
