"""GA3C and A3C on Pong where there is a GPU: Table 2's networks, batches and threads, and several trials on one device.

A trial says what it did a second, ``nvidia-smi`` how busy the device was meanwhile. Without a GPU the same runs on the
processor, and has no utilisation: so it is tried before there is one. One trial after another plays in one process, on
the emulators of the one before: to make 256 takes the better part of a minute.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from threading import BrokenBarrierError
from typing import Any

import torch

from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.meter import play_for
from workbench.core.machine import cores
from workbench.core.pool import process_pool
from workbench.paper.experiment import Rows
from workbench.paper.ga3c.published import TABLE_2

_ASK = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "200"]
_A_GROUP = 64  # agents: fewer steps of the interpreter, whose lock all groups share, than with smaller ones
_THREADS = 16  # of its emulators: as many as there are cores, or more, so that no core waits for a group


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
        How many trials share the device, and the agents.
    """

    seconds: float
    device: str = "auto"
    agents: tuple[int, ...] = (128, 256)
    batches: tuple[int, ...] = (160, 640)
    threads: tuple[int, ...] = (1, 2)
    trials: tuple[int, ...] = (1, 2, 4)


def on_device(settings: OnDevice) -> Rows:
    """Sweep the small network; then measure all of Table 2 with the fastest setting, and several trials at once.

    Returns
    -------
    rows
        One a measurement: part (sweep, table or packing), system, network, agents (of a trial), least_batch, threads,
        trials (at once), pps (predictions a second, of all trials), pps_low and pps_high (of one trial), tps,
        utilisation (% of the GPU's time, mean; NaN without one), memory_mib (of the GPU, most), device (its name). A3C
        runs on the processor, as in the paper. The recommended number of trials a GPU is that of the packing's row with
        the most pps.
    """
    with _players(1) as players:
        sweep = [
            players.measure(settings, "sweep", GA3C, "small", agents=agents, least_batch=batch, threads=n)
            for agents, batch, n in product(settings.agents, settings.batches, settings.threads)
        ]
        best = max(sweep, key=lambda row: row["pps"])
        fastest = {name: best[name] for name in ("least_batch", "threads")}
        table = [players.measure(settings, "table", GA3C, name, agents=best["agents"], **fastest) for name in TABLE_2]
        table += [players.measure(settings, "table", A3C, name, agents=cores()) for name in TABLE_2]
        packing = [_packed(settings, players, best["agents"], fastest)] if 1 in settings.trials else []
    for n in settings.trials:
        if n > 1:
            with _players(n) as players:
                packing.append(_packed(settings, players, max(1, best["agents"] // n), fastest))
    return [*sweep, *table, *packing]


def _packed(settings: OnDevice, players: "_Players", agents: int, fastest: dict[str, Any]) -> dict[str, Any]:
    return players.measure(settings, "packing", GA3C, "small", agents=agents, **fastest)


class _Players:
    """Processes that play a trial each, side by side."""

    def __init__(self, pool: Any, all_up: Any, trials: int) -> None:
        self._pool, self._all_up, self._trials = pool, all_up, trials

    def measure(
        self,
        settings: OnDevice,
        part: str,
        kind: type[GA3C] | type[A3C],
        network: str,
        agents: int,
        least_batch: int = 0,
        threads: int = 1,
    ) -> dict[str, Any]:
        """Give a row of `on_device`."""
        given: dict[str, Any] = {"game": "Pong", "network": network, "n_agents": agents}
        given["device"] = settings.device if kind is GA3C else "cpu"
        if kind is GA3C:
            groups = -(-agents // _A_GROUP)
            given |= {"n_groups": groups, "min_training_batch": least_batch, "emulator_threads": groups * _THREADS}
            given |= {"n_predictors": threads, "n_trainers": threads}
        results, busy, memory = self.play(kind, given, settings.seconds)
        rates = [one["pps"] for one in results]
        return {
            "part": part,
            "system": kind.__name__,
            "network": network,
            "agents": agents,
            "least_batch": least_batch,
            "threads": threads,
            "trials": self._trials,
            "pps": round(sum(rates), 1),
            "pps_low": round(min(rates), 1),
            "pps_high": round(max(rates), 1),
            "tps": round(sum(one["tps"] for one in results), 2),
            "utilisation": round(busy, 1),
            "memory_mib": round(memory, 1),
            "device": results[0]["device"],
        }

    def play(
        self, kind: type[GA3C] | type[A3C], given: dict[str, Any], seconds: float
    ) -> tuple[list[dict[str, Any]], float, float]:
        """Play trials side by side, all measuring at once; and read the GPU meanwhile."""
        futures = [self._pool.submit(_play, kind, given, seed, seconds) for seed in range(self._trials)]
        try:
            self._all_up.wait()
        except BrokenBarrierError:
            errors = [future.exception() for future in futures]  # of the others that they waited for it in vain
            raise next(err for err in errors if err and not isinstance(err, BrokenBarrierError)) from None
        readings = _read(seconds)
        results = [future.result() for future in futures]
        busy, memory = zip(*readings, strict=True) if readings else ((float("nan"),), (float("nan"),))
        return results, statistics.fmean(busy), max(memory)


@contextmanager
def _players(trials: int) -> Iterator[_Players]:
    """Have processes for so many trials at once."""
    all_up = get_context("spawn").Barrier(trials + 1)
    with process_pool(trials, "spawn", _share, (all_up,)) as pool:
        yield _Players(pool, all_up, trials)


def _share(barrier: Any) -> None:
    global _all_up
    _all_up = barrier


_all_up: Any = None  # in a process that plays


def _play(kind: type[GA3C] | type[A3C], given: dict[str, Any], seed: int, seconds: float) -> dict[str, Any]:
    try:
        trial = kind(**given)({"t_max": 5}, seed)
        play_for(trial, seconds / 4)
    except BaseException:
        _all_up.abort()
        raise
    _all_up.wait()
    rates = play_for(trial, seconds)
    device = trial.learner.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    trial.close()
    return {"pps": rates["pps"], "tps": rates["tps"], "device": name}


def _read(seconds: float) -> Sequence[tuple[float, float]]:
    """Utilisation in % and memory in MiB, five times a second, of the first GPU; nothing where there is none."""
    if shutil.which(_ASK[0]) is None:
        return []
    asked = subprocess.Popen(_ASK, stdout=subprocess.PIPE, text=True)
    time.sleep(seconds)
    asked.terminate()
    lines = [line.split(",") for line in asked.communicate()[0].splitlines()]
    return [(float(busy), float(memory)) for busy, memory in lines[:-1]]
