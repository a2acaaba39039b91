"""What the workbench costs a trial of Stable-Baselines3: SB3's own PPO on CartPole, in phases, against plain `learn`.

Both train as many frames as plain `learn` plays in ten seconds, from the same seed, in processes of their own that take
turns: first plain, then the workbench's, then plain. The workbench's side is a phase as a worker runs it: `train_phase`
with a `progress` that does what a worker's does, and the checkpoint at its end.

    python benchmarks/sb3_overhead.py --rounds 7 --json build/sb3_overhead.json

Processor seconds are what is compared, since other work on the machine changes them little; wall seconds stand beside.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PHASE_S = 10.0


def plain(frames: int) -> dict[str, float]:
    """Learn by one call of SB3's `learn`, as anyone would."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    model.learn(2048)  # what runs for the first time is no part of either
    return timed(lambda: model.learn(frames, reset_num_timesteps=False))


def workbench(frames: int) -> dict[str, float]:
    """Learn as many in a phase of the workbench, and save the checkpoint."""
    from workbench.algos.rl.sb3.settings import SB3
    from workbench.cluster.measured import numbers
    from workbench.core.budget import Budget

    trial = SB3("PPO", "CartPole-v1", Budget(frames=2048), min_games=1, device="cpu")({}, 0)
    trial.train_phase(numbers)
    trial._end.phase = Budget(frames=frames)
    with tempfile.TemporaryDirectory() as folder:

        def phase() -> None:
            trial.train_phase(numbers)
            trial.save(Path(folder))

        return timed(phase)


def timed(work) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def in_a_process(side: str, frames: int) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--side", side, "--frames", str(frames)], stdout=subprocess.PIPE)
    done.check_returncode()
    return json.loads(done.stdout)


def compare(rounds: int, frames: int) -> dict:
    sides: dict[str, list[dict[str, float]]] = {"plain": [], "workbench": []}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            sides[side].append(in_a_process(side, frames))
            print(f"round {number + 1} of {rounds}, {side}: {sides[side][-1]}", file=sys.stderr)
    found: dict = {"frames": frames, "rounds": rounds, "machine": platform.platform(), "sides": sides}
    for unit in ("cpu_s", "wall_s"):
        medians = {side: statistics.median(run[unit] for run in runs) for side, runs in sides.items()}
        ratios = [w[unit] / p[unit] for p, w in zip(sides["plain"], sides["workbench"], strict=True)]
        found[unit] = {
            **medians,
            "overhead_of_medians": medians["workbench"] / medians["plain"] - 1,
            "overhead_median_of_pairs": statistics.median(ratios) - 1,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, help="of a phase; by default as many as plain learn plays in 10 s")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--side", choices=["plain", "workbench"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps({"plain": plain, "workbench": workbench}[given.side](given.frames)))
        return
    frames = given.frames or max(2048, int(8192 * PHASE_S / in_a_process("plain", 8192)["cpu_s"]) // 2048 * 2048)
    found = compare(given.rounds, frames)
    print(json.dumps({key: found[key] for key in ("frames", "rounds", "cpu_s", "wall_s")}, indent=2))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
