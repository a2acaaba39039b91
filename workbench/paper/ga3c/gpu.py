"""GA3C and A3C on Pong where there is a GPU: Table 2's networks, batches and threads, and several trials on one device.

A trial says what it did a second, ``nvidia-smi`` how busy the device was meanwhile. Without a GPU the same runs on the
processor, and has no utilisation: so it is tried before there is one.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from threading import BrokenBarrierError
from typing import Any

from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.meter import play_for
from workbench.core.machine import cores
from workbench.core.pool import process_pool
from workbench.paper.experiment import Rows
from workbench.paper.ga3c.published import TABLE_2

_ASK = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "200"]
_A_GROUP = 32  # agents


@dataclass(frozen=True)
class OnDevice:
    """What is measured.

    Attributes
    ----------
    seconds : float
        Of each measurement, after a quarter of it to warm up.
    device : str
        As `Settings.device`.
    agents, batches, threads : tuple of int
        Agents, least training batches and trainers of the sweep; as many predictors as trainers.
    trials : tuple of int
        How many trials share the device.
    """

    seconds: float
    device: str = "auto"
    agents: tuple[int, ...] = (32, 64, 128, 256)
    batches: tuple[int, ...] = (0, 160, 640)
    threads: tuple[int, ...] = (1, 2)
    trials: tuple[int, ...] = (1, 2, 4)


def on_device(settings: OnDevice) -> Rows:
    """Sweep the small network; then measure all of Table 2 with the fastest setting, and several trials at once.

    Returns
    -------
    rows
        One a measurement: part (sweep, table or packing), system, network, agents, least_batch, threads, trials (at
        once), pps (predictions a second, of all trials), pps_low and pps_high (of one trial), tps, utilisation (% of
        the GPU's time, mean; NaN without one), memory_mib (of the GPU, most), device. A3C runs on the processor, as in
        the paper. The recommended number of trials a GPU is that of the packing's row with the most pps.
    """
    sweep = [
        _measure(settings, "sweep", GA3C, "small", agents=agents, least_batch=batch, threads=n)
        for agents, batch, n in product(settings.agents, settings.batches, settings.threads)
    ]
    best = max(sweep, key=lambda row: row["pps"])
    fastest = {name: best[name] for name in ("agents", "least_batch", "threads")}
    table = [_measure(settings, "table", GA3C, network, **fastest) for network in TABLE_2]
    table += [_measure(settings, "table", A3C, network, agents=cores()) for network in TABLE_2]
    packing = [_measure(settings, "packing", GA3C, "small", trials=n, **fastest) for n in settings.trials]
    return [*sweep, *table, *packing]


def _measure(
    settings: OnDevice,
    part: str,
    kind: type[GA3C] | type[A3C],
    network: str,
    agents: int,
    least_batch: int = 0,
    threads: int = 1,
    trials: int = 1,
) -> dict[str, Any]:
    given: dict[str, Any] = {"game": "Pong", "network": network, "n_agents": agents}
    given["device"] = settings.device if kind is GA3C else "cpu"
    if kind is GA3C:
        given |= {"n_groups": max(1, agents // _A_GROUP), "min_training_batch": least_batch}
        given |= {"n_predictors": threads, "n_trainers": threads, "emulator_threads": max(1, cores() // trials)}
    results, busy, memory = _played(kind, given, settings.seconds, trials)
    rates = [one["pps"] for one in results]
    return {
        "part": part,
        "system": kind.__name__,
        "network": network,
        "agents": agents,
        "least_batch": least_batch,
        "threads": threads,
        "trials": trials,
        "pps": round(sum(rates), 1),
        "pps_low": round(min(rates), 1),
        "pps_high": round(max(rates), 1),
        "tps": round(sum(one["tps"] for one in results), 2),
        "utilisation": round(busy, 1),
        "memory_mib": round(memory, 1),
        "device": results[0]["device"],
    }


def _played(
    kind: type[GA3C] | type[A3C], given: dict[str, Any], seconds: float, trials: int
) -> tuple[list[dict[str, Any]], float, float]:
    """Play trials side by side, each in a process of its own, all measuring at once; and read the GPU meanwhile."""
    all_up = get_context("spawn").Barrier(trials + 1)
    with process_pool(trials, "spawn", _share, (all_up,)) as pool:
        futures = [pool.submit(_play, kind, given, seed, seconds) for seed in range(trials)]
        try:
            all_up.wait()
        except BrokenBarrierError:
            errors = [future.exception() for future in futures]  # of the others that they waited for it in vain
            raise next(err for err in errors if err and not isinstance(err, BrokenBarrierError)) from None
        readings = _read(seconds)
        results = [future.result() for future in futures]
    busy, memory = zip(*readings, strict=True) if readings else ((float("nan"),), (float("nan"),))
    return results, statistics.fmean(busy), max(memory)


def _share(barrier: Any) -> None:
    global _all_up
    _all_up = barrier


_all_up: Any = None  # in a process that plays


def _play(kind: type[GA3C] | type[A3C], given: dict[str, Any], seed: int, seconds: float) -> dict[str, Any]:
    try:
        trial = kind.from_json(given)({"t_max": 5}, seed)
        play_for(trial, seconds / 4)
    except BaseException:
        _all_up.abort()
        raise
    _all_up.wait()
    rates = play_for(trial, seconds)
    device = str(trial.learner.device)
    trial.close()
    return {"pps": rates["pps"], "tps": rates["tps"], "device": device}


def _read(seconds: float) -> Sequence[tuple[float, float]]:
    """Utilisation in % and memory in MiB, five times a second, of the first GPU; nothing where there is none."""
    if shutil.which(_ASK[0]) is None:
        return []
    asked = subprocess.Popen(_ASK, stdout=subprocess.PIPE, text=True)
    time.sleep(seconds)
    asked.terminate()
    lines = [line.split(",") for line in asked.communicate()[0].splitlines()]
    return [(float(busy), float(memory)) for busy, memory in lines[:-1]]
