"""Score against frames and seconds, by RMSProp's epsilon (``--variants epsilon``), training batch, rate or speed.

Prints one JSON object. For every variant, over the seeds: ``frames`` to a mean return of a phase's games of 200
(null where a seed did not get there), ``final`` scores, and ``curves`` of (frames, seconds, score). CartPole in the
deterministic mode: the frames and scores repeat exactly, the seconds do not, and several trials run at once.

Speed is another matter: agents, predictors and trainers decide how many frames are played in the same time, so threads
run freely, each trial has ``--seconds``, and should have the machine for itself (``--processes 1``).

Run with ``python benchmarks/ga3c_learning.py --seeds 3 --frames 200000``; ``--game Pong`` works as well, in hours.
"""

import argparse
import json
import statistics
from multiprocessing import get_context
from typing import Any

from workbench.algos.rl.envs import find_game
from workbench.algos.rl.ga3c.trial import GA3C

EPSILON: dict[str, dict[str, Any]] = {
    "inside, 1e-5": {"eps_inside_root": True, "rmsprop_eps": 1e-5},
    "inside, 1e-10": {"eps_inside_root": True, "rmsprop_eps": 1e-10},
    "outside, 1e-5": {"eps_inside_root": False, "rmsprop_eps": 1e-5},
    "inside, 0.1": {"eps_inside_root": True, "rmsprop_eps": 0.1},
    "outside, 0.1": {"eps_inside_root": False, "rmsprop_eps": 0.1},
    "inside, 0.1, sums": {"eps_inside_root": True, "rmsprop_eps": 0.1, "reduction": "sum", "max_grad_norm": None},
}
TRAINING_BATCH = {str(n): {"min_training_batch": n} for n in (0, 20, 40, 80, 160)}
LEARNING_RATE = {f"{rate:g}": {"learning_rate": rate} for rate in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
SPEED: dict[str, dict[str, Any]] = {  # the paper's Fig. 5: from one agent on, and adjusted from the slowest but one
    **{f"{n} agent{'s' if n > 1 else ''}": {"n_agents": n, "n_groups": 1} for n in (1, 4, 16, 64)},
    "adjusted, from 4": {"n_agents": 4, "n_groups": 1, "adjust_every_s": 2.0},
}
SETS: dict[str, dict[str, dict[str, Any]]] = {
    "epsilon": EPSILON,
    "training-batch": TRAINING_BATCH,
    "learning-rate": LEARNING_RATE,
    "speed": SPEED,
}


def curve(settings: dict[str, Any], seed: int, phases: int) -> list[tuple[float, float, float]]:
    """Train once; (frames, seconds, score) after every phase."""
    trial = GA3C.from_json(settings)({}, seed)
    points, seconds = [], 0.0
    for _ in range(phases):
        metrics = trial.train_phase(lambda metrics: None)
        seconds += metrics["seconds"]
        points.append((metrics["frames"], round(seconds, 1), round(metrics["score"], 1)))
    trial.close()
    return points


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", choices=SETS, default="epsilon")
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--frames", type=int, default=200_000, help="of each trial")
    parser.add_argument("--seconds", type=float, help="of each trial, instead of frames")
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2, help="trials at once")
    parser.add_argument("--goal", type=float, default=200, help="score whose frames are reported")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON of GA3C settings to override")
    given = parser.parse_args()
    timed = given.seconds is not None
    phase = {"seconds": given.seconds / given.phases} if timed else {"frames": given.frames // given.phases}
    free = timed or find_game(given.game).atari
    base = {"game": given.game, "device": "cpu", "lockstep": not free, "phase": phase} | given.settings
    jobs = {
        (name, seed): (base | variant, seed, given.phases)
        for name, variant in SETS[given.variants].items()
        for seed in range(given.seeds)
    }
    with get_context("spawn").Pool(given.processes) as pool:
        found = dict(zip(jobs, pool.starmap(curve, jobs.values(), chunksize=1), strict=True))
    result = {}
    for name in SETS[given.variants]:
        curves = [found[name, seed] for seed in range(given.seeds)]
        reached = [next((frames for frames, _, score in c if score >= given.goal), None) for c in curves]
        final = [c[-1][2] for c in curves]
        result[name] = {"frames": reached, "final": final, "median": statistics.median(final), "curves": curves}
    print(json.dumps({"game": given.game, "goal": given.goal, "settings": given.settings, "variants": result}))


if __name__ == "__main__":
    main()
