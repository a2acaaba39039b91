"""How fast virtual time passes: one large study, a thousand small comparisons, and the growth of the cost with size.

`seconds_10k_trials`: HyperTrick, 10 000 trials of up to 10 phases on 300 nodes, one core. `seconds_1000_comparisons`:
preset paper-46 (Hyperband against HyperTrick, 46 configurations on 46 nodes) 1000 times on two processes.
`microseconds_an_event`: CPU time of a study by its number of trials, making its curves left out; the events are those
its log would have. `microseconds_an_event_logged`: with that log, as studies have it that are kept or in which
something can crash, at 10³ trials.
`--against FOLDER` holds another checkout against this one: fresh processes of both in turn, processor time, medians,
and the ratio's median, lowest and highest.
`growth_exponent`: slope of log(CPU seconds) against log(events) from 10³ to 10⁵ trials; 1 is a constant cost an event,
`growth_exponent_log` what a cost growing as log(n) would give.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from workbench import Choice, HyperTrick, LogUniform, RandomSearcher, Space
from workbench.core.protocols import Event
from workbench.simulation import compare, preset, simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.models import SyntheticCurves

SPACE = Space({"learning_rate": LogUniform(1e-5, 1e-2), "gamma": Choice([0.9, 0.99, 0.999])})


def cpu_s() -> float:
    """Processor seconds of this process and its finished children: what a busy machine does not change."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def study(n_trials: int) -> float:
    """Simulate one study; return the wall seconds."""
    began = time.perf_counter()
    scheduler = HyperTrick(RandomSearcher(SPACE), n_trials, 10)
    simulate(scheduler, SyntheticCurves(SPACE, 10), VirtualCluster(300))
    return time.perf_counter() - began


def cost(n_trials: int, seed: int = 0, events: list[Event] | None = None) -> tuple[float, int]:
    """Run one study; return its CPU seconds and its events. Making the curves is left out."""
    model = SyntheticCurves(SPACE, 10)
    searcher = RandomSearcher(SPACE)
    for trial in range(n_trials):
        model.phase(trial, 0, searcher.suggest(trial), 0)
    began = time.process_time()
    scheduler = HyperTrick(RandomSearcher(SPACE), n_trials, 10)
    outcome = simulate(scheduler, model, VirtualCluster(300), seed=seed, events=events)
    return time.process_time() - began, outcome.events


def sample() -> dict[str, float]:
    """Measure the processor time of an event, without and with the log, in µs, and of a comparison, in ms."""
    told = {}
    for name, events in (("event", None), ("event_logged", [])):
        seconds, n = cost(1000, events=events)
        told[name] = 1e6 * seconds / n
    began = time.process_time()
    compare(preset("paper-46"), 10)
    return {**told, "comparison": 1e3 * (time.process_time() - began) / 10}


def against(folder: str, repeats: int) -> dict[str, dict[str, float | list[float]]]:
    """Hold another checkout against this one, in turn."""
    sides: dict[str, list[dict[str, float]]] = {folder: [], str(Path(__file__).parents[1]): []}
    for n in range(repeats):
        for path in list(sides)[:: 1 if n % 2 else -1]:
            command = [sys.executable, __file__, "--sample"]
            said = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, check=True)
            sides[path].append(json.loads(said.stdout))
    before, after = sides.values()
    found: dict[str, dict[str, float | list[float]]] = {}
    for name in before[0]:
        ratios = sorted(new[name] / old[name] for old, new in zip(before, after, strict=True))
        found[name] = {
            "before": round(median(old[name] for old in before), 2),
            "after": round(median(new[name] for new in after), 2),
            "ratio": [round(r, 3) for r in (median(ratios), ratios[0], ratios[-1])],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000, help="paired repetitions of paper-46")
    parser.add_argument("--against", metavar="FOLDER", help="another checkout, to be held against this one; no more")
    parser.add_argument("--sample", action="store_true", help="one of the two, once; no more")
    arguments = parser.parse_args()
    if arguments.sample or arguments.against:
        print(json.dumps(sample() if arguments.sample else against(arguments.against, 9)))
        return
    used = [cpu_s()]
    seconds_10k = study(10_000)
    used.append(cpu_s())
    began = time.perf_counter()
    compare(preset("paper-46"), arguments.repeats, processes=2)
    seconds_comparisons = time.perf_counter() - began
    used.append(cpu_s())
    sizes = [1_000, 10_000, 100_000]
    costs = [min(cost(n, seed) for seed in range(5 if n < 100_000 else 1)) for n in sizes]
    logged_s, n_logged = min(cost(sizes[0], seed, []) for seed in range(5))
    (small, few), (large, many) = costs[0], costs[-1]
    grown = math.log(many / few)
    print(
        json.dumps(
            {
                "seconds_10k_trials": round(seconds_10k, 2),
                f"seconds_{arguments.repeats}_comparisons": round(seconds_comparisons, 1),
                "cpu_seconds": {"10k_trials": round(used[1] - used[0], 2), "comparisons": round(used[2] - used[1], 1)},
                "growth_exponent": round(math.log(large / small) / grown, 3),
                "growth_exponent_log": round(1 + math.log(math.log(many) / math.log(few)) / grown, 3),
                "microseconds_an_event": {
                    str(n): round(1e6 * s / e, 2) for n, (s, e) in zip(sizes, costs, strict=True)
                },
                "microseconds_an_event_logged": round(1e6 * logged_s / n_logged, 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
