"""How long a phase of GA3C Pong takes for several t_max: the hyperparameter-dependent cost that simulations use.

A small t_max means many small training batches, so phases of equal length in frames differ in wall time. The values of
t_max alternate, so that a busy neighbour slows all of them alike. Writes data/ga3c_cost_by_t_max.csv (one row a
measurement: round, t_max, wall_s, frames_per_s) and its sidecar, and prints the shortest of each as JSON.
"""

import argparse
import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd

from workbench import GA3C, Budget

T_MAX = [2, 4, 8, 16, 32, 100]
DATA = Path(__file__).parents[1] / "data"


def measure(t_max: int, frames: int, seed: int) -> dict[str, float]:
    """Run a short phase to warm up, then the one that is measured."""
    warm = GA3C("Pong", phase=Budget(frames=max(frames // 4, 1)), min_games=1)({"t_max": t_max}, seed)
    before = warm.train_phase(lambda metrics: None)["frames"]
    warm.settings = replace(warm.settings, phase=Budget(frames=frames))
    began = time.perf_counter()
    metrics = warm.train_phase(lambda metrics: None)
    seconds = time.perf_counter() - began
    warm.close()
    played = metrics["frames"] - before
    return {"wall_s": round(seconds * frames / played, 3), "frames_per_s": round(played / seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=16_000, help="emulator frames of the measured phase")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the CSV and its sidecar into data/")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [
        {"round": n, "t_max": t_max, **measure(t_max, arguments.frames, n)}
        for n in range(arguments.rounds)
        for t_max in T_MAX
    ]
    frame = pd.DataFrame(rows)
    if arguments.write:
        frame.to_csv(DATA / "ga3c_cost_by_t_max.csv", index=False)
        told = {
            "status": "MEASURED",
            "of": f"wall seconds of {arguments.frames} emulator frames of GA3C Pong (32 agents), by t_max",
            "found_by": "python benchmarks/ga3c_cost_by_t_max.py "
            f"--frames {arguments.frames} --rounds {arguments.rounds} --write",
            "machine": f"{os.cpu_count()} cores, {platform.machine()}; load average before: {load:.1f}",
            "note": "on a shared machine, where neighbours only ever add: the ratios of the shortest are used",
        }
        (DATA / "ga3c_cost_by_t_max.json").write_text(json.dumps(told, indent=2) + "\n")
    by = frame.groupby("t_max")
    print(json.dumps({"wall_s": by["wall_s"].min().to_dict(), "frames_per_s": by["frames_per_s"].max().to_dict()}))


if __name__ == "__main__":
    main()
