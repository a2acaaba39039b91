"""What it costs GA3C that Dask's workers give freed memory back at once, and whether `keep_freed_memory` undoes it.

Prints one JSON object: predictions a second and page faults a second of one GA3C trial in a process started as any
(``plain``), with the environment that Dask gives its workers (``dask``), and with that environment and
`workbench.cluster.memory.keep_freed_memory` (``kept``), in turn; medians over the repeats, and each value.

Run with ``python benchmarks/freed_memory.py --repeats 3``: a minute and a half on an idle machine.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

from dask import config

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.meter import play_for
from workbench.cluster.memory import keep_freed_memory

WAYS = ("plain", "dask", "kept")


def measure(way: str, seconds: float, game: str) -> dict[str, float]:
    """Train for a while in this process, after as long to warm up."""
    if way == "kept":
        keep_freed_memory()
    trial = GA3C(game, n_agents=16, n_groups=1, device="cpu")({"t_max": 20}, 0)
    play_for(trial, seconds)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    metrics = play_for(trial, seconds)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    trial.close()
    return {"pps": round(metrics["pps"], 1), "faults_per_s": round(faults / metrics["seconds"], 1)}


def in_a_process(way: str, given: argparse.Namespace) -> dict[str, float]:
    """Measure in a process of its own, whose environment is Dask's or not."""
    environ = {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
    if way != "plain":
        environ |= {name: str(value) for name, value in config.get("distributed.nanny.pre-spawn-environ").items()}
    command = [sys.executable, __file__, "--way", way, "--seconds", str(given.seconds), "--game", given.game]
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement, and of its warming up")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--way", choices=WAYS, help="measure this one, in this process")
    given = parser.parse_args()
    if given.way is not None:
        print(json.dumps(measure(given.way, given.seconds, given.game)))
        return
    runs = [{way: in_a_process(way, given) for way in WAYS} for _ in range(given.repeats)]
    found = {
        way: {
            name: {
                "median": statistics.median(run[way][name] for run in runs),
                "each": [run[way][name] for run in runs],
            }
            for name in ("pps", "faults_per_s")
        }
        for way in WAYS
    }
    print(json.dumps({"game": given.game, "load_1m": round(os.getloadavg()[0], 1), **found}, indent=1))


if __name__ == "__main__":
    main()
