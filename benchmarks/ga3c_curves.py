"""Full learning curves of GA3C: configurations of the HyperTrick paper's space, each run to the end, several seeds.

Prints one JSON object whose ``curves`` are rows of config_id, learning_rate, gamma, t_max, seed, step (units run),
score and wall_s: a table that `workbench simulate --table` replays under any scheduler on any number of nodes. Nothing
is stopped early. CartPole runs in the deterministic mode, so its scores repeat exactly; seconds do not: several trials
run at once, one a process.

A run that diverges keeps the score of its last whole unit; ``diverged`` lists config_id and seed of such runs.

Run with ``python benchmarks/ga3c_curves.py --configs 46 --seeds 3 --units 27 --unit-frames 3000``.
"""

import argparse
import json
from multiprocessing import get_context
from typing import Any

from workbench import GA3C, Budget, Choice, LogUniform, RandomSearcher, Space

SPACE = Space(  # the HyperTrick paper's, Sec. 5.1; its set of gamma is lost in the text, this one is ours
    {
        "learning_rate": LogUniform(1e-5, 1e-2),
        "gamma": Choice([0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]),
        "t_max": LogUniform(2, 100, step=1),
    }
)


def curve(
    game: str, number: int, config: dict[str, Any], seed: int, units: int, unit_frames: int
) -> tuple[list[dict[str, Any]], bool]:
    """Run one configuration with one seed to the end; a row a unit, and whether it diverged."""
    settings = GA3C(game, Budget(frames=unit_frames), device="cpu", lockstep=not _atari(game))
    trial = settings(config, seed)
    rows: list[dict[str, Any]] = []
    seconds, last, score, diverged = 0.0, 0.0, float("nan"), False
    for unit in range(1, units + 1):
        if not diverged:
            try:
                metrics = trial.train_phase(lambda metrics: None)
                score, last = metrics["score"], metrics["seconds"]
            except FloatingPointError:
                if not rows:
                    raise
                diverged = True
        seconds += last
        at = {"config_id": number, **config, "seed": seed, "step": unit}
        rows.append(at | {"score": round(score, 3), "wall_s": round(seconds, 4)})
    trial.close()
    return rows, diverged


def _atari(game: str) -> bool:
    """Tell an Atari game from a Gymnasium id."""
    return not game.endswith(("-v0", "-v1"))


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--configs", type=int, default=46)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", type=int, default=27)
    parser.add_argument("--unit-frames", type=int, default=3000)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    searcher = RandomSearcher(SPACE, seed=0)
    configs = [dict(searcher.suggest(n) or {}) for n in range(given.configs)]
    jobs = [
        (given.game, number, config, seed, given.units, given.unit_frames)
        for seed in range(given.seeds)
        for number, config in enumerate(configs)
    ]
    with get_context("spawn").Pool(given.processes) as pool:
        curves = pool.starmap(curve, jobs, chunksize=1)
    diverged = [(job[1], job[3]) for job, (_, lost) in zip(jobs, curves, strict=True) if lost]
    told = {"game": given.game, "unit_frames": given.unit_frames, "diverged": diverged}
    print(json.dumps(told | {"curves": [row for rows, _ in curves for row in rows]}))


if __name__ == "__main__":
    main()
