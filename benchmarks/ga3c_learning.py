"""Score against frames and seconds: RMSProp's epsilon inside or outside the root, small or as large as the authors'.

Prints one JSON object. For every variant, over the seeds: ``frames`` to a mean return of the last 100 games of 200
(null where a seed did not get there), ``final`` scores, and ``curves`` of (frames, seconds, score). CartPole in the
deterministic mode: the frames and scores repeat exactly, the seconds do not.

Run with ``python benchmarks/ga3c_learning.py --seeds 3 --frames 200000``; ``--game Pong`` works as well, in hours.
"""

import argparse
import json
import statistics
from typing import Any

from workbench.algos.rl.ga3c import GA3C

VARIANTS: dict[str, dict[str, Any]] = {
    "inside, 1e-5": {"eps_inside_root": True, "rmsprop_eps": 1e-5},
    "inside, 1e-10": {"eps_inside_root": True, "rmsprop_eps": 1e-10},
    "outside, 1e-5": {"eps_inside_root": False, "rmsprop_eps": 1e-5},
    "inside, 0.1": {"eps_inside_root": True, "rmsprop_eps": 0.1},
    "outside, 0.1": {"eps_inside_root": False, "rmsprop_eps": 0.1},
    "inside, 0.1, sums": {"eps_inside_root": True, "rmsprop_eps": 0.1, "reduction": "sum", "max_grad_norm": None},
}


def curve(settings: dict[str, Any], seed: int, frames: int, phases: int) -> list[tuple[float, float, float]]:
    """Train once; (frames, seconds, score) after every phase."""
    trial = GA3C.from_json(settings | {"phase": {"frames": frames // phases}})({}, seed)
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
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--goal", type=float, default=200, help="score whose frames are reported")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON of GA3C settings to override")
    given = parser.parse_args()
    base = {"game": given.game, "device": "cpu", "lockstep": given.game == "CartPole-v1"} | given.settings
    result = {}
    for name, variant in VARIANTS.items():
        curves = [curve(base | variant, seed, given.frames, given.phases) for seed in range(given.seeds)]
        reached = [next((frames for frames, _, score in c if score >= given.goal), None) for c in curves]
        final = [c[-1][2] for c in curves]
        result[name] = {"frames": reached, "final": final, "median": statistics.median(final), "curves": curves}
    print(json.dumps({"game": given.game, "goal": given.goal, "settings": given.settings, "variants": result}))


if __name__ == "__main__":
    main()
