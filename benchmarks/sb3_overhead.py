"""What the workbench costs a trial of Stable-Baselines3: SB3's own PPO on CartPole, in phases, against plain `learn`.

Two learners of the same seed take turns in one process: each plays as many frames as plain `learn` does in ten seconds,
the one by `learn`, the other in a phase as a worker runs it: `train_phase` with a `progress` that does what a worker's
does, and the checkpoint at its end. Who begins changes from round to round.

    python benchmarks/sb3_overhead.py --rounds 7 --json build/sb3_overhead.json

Processor seconds are what is compared, since other work on the machine changes them little; wall seconds stand beside.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from stable_baselines3 import PPO

from workbench.algos.rl.sb3.factory import SB3
from workbench.core.budget import Budget
from workbench.core.measured import numbers

WARM = 2048  # frames before anything is measured: what runs for the first time is no part of either
SPEED = 8192  # frames that tell how many a phase is to have


def timed(work: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def learners(seconds: float, frames: int | None) -> tuple[dict[str, Callable[[], object]], int]:
    """Make both, warmed up, and say how many frames each plays in a turn."""
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    model.learn(WARM)
    if frames is None:
        speed = SPEED / timed(lambda: model.learn(SPEED, reset_num_timesteps=False))["cpu_s"]
        frames = max(WARM, int(seconds * speed) // WARM * WARM)
    trial = SB3("PPO", "CartPole-v1", Budget(frames=frames), min_games=1, device="cpu")({}, 0)
    trial.train_phase(numbers)
    folder = tempfile.TemporaryDirectory()

    def phase() -> None:
        trial.train_phase(numbers)
        trial.save(Path(folder.name))

    return {"plain": lambda: model.learn(frames, reset_num_timesteps=False), "workbench": phase}, frames


def compare(rounds: int, seconds: float, frames: int | None) -> dict:
    sides, frames = learners(seconds, frames)
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            runs[side].append(timed(sides[side]))
            print(f"round {number + 1} of {rounds}, {side}: {runs[side][-1]}", file=sys.stderr, flush=True)
    found: dict = {"frames": frames, "rounds": rounds, "machine": platform.platform(), "runs": runs}
    for unit in ("cpu_s", "wall_s"):
        medians = {side: statistics.median(run[unit] for run in runs[side]) for side in runs}
        ratios = [w[unit] / p[unit] for p, w in zip(runs["plain"], runs["workbench"], strict=True)]
        found[unit] = {
            **medians,
            "overhead_of_medians": medians["workbench"] / medians["plain"] - 1,
            "overhead_median_of_pairs": statistics.median(ratios) - 1,
            "overhead_range_of_pairs": [min(ratios) - 1, max(ratios) - 1],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="processor seconds that plain learn takes for a phase"
    )
    parser.add_argument("--frames", type=int, help="of a phase, instead of --seconds")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = compare(given.rounds, given.seconds, given.frames)
    print(json.dumps({key: found[key] for key in ("frames", "rounds", "cpu_s", "wall_s")}, indent=2))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
