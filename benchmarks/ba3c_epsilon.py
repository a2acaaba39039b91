"""Adam's epsilon in Distributed BA3C (Fig. 5): score against frames, at a small and at a large effective batch.

Prints one JSON object whose ``rows`` hold adam_eps, batch, seed, frames, updates and score, the mean return of the last
100 games, after every phase. One rank, on CartPole by default: n ranks of batch b make the updates of one of batch n
times b, as the tests show, so the effective batch is what is varied. Everything else are the paper's settings; scores
repeat exactly.

Run with ``python benchmarks/ba3c_epsilon.py --seeds 5``.
"""

import argparse
import json
from multiprocessing import get_context
from typing import Any

from workbench.algos.rl.ba3c.settings import BA3C
from workbench.core.budget import Budget


def curve(
    game: str, adam_eps: float, batch: int, learning_rate: float, seed: int, frames: int, phases: int
) -> list[Any]:
    """Train once; a row a phase."""
    settings = BA3C(
        game,
        phase=Budget(frames=frames // phases),
        n_ranks=1,
        n_agents=16,
        batch=batch,
        adam_eps=adam_eps,
        evaluate_every=None,
        device="cpu",
    )
    trial, rows = settings({"learning_rate": learning_rate, "t_max": 5, "init": "orthogonal"}, seed), []
    for _ in range(phases):
        metrics = trial.train_phase(lambda metrics: None)
        at = {"adam_eps": adam_eps, "batch": batch, "seed": seed, "frames": metrics["frames"]}
        rows.append(at | {"updates": metrics["updates"], "score": round(metrics["score"], 2)})
    trial.close()
    return rows


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--eps", nargs="+", type=float, default=[1e-8, 1e-5, 1e-3, 1e-1])
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 512], help="effective")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--phases", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2, help="trials at once")
    given = parser.parse_args()
    jobs = [
        (given.game, eps, batch, given.learning_rate, seed, given.frames, given.phases)
        for seed in range(given.seeds)
        for batch in given.batches
        for eps in given.eps
    ]
    with get_context("spawn").Pool(given.processes) as pool:
        found = pool.starmap(curve, jobs, chunksize=1)
    print(json.dumps({"learning_rate": given.learning_rate, "rows": [row for rows in found for row in rows]}))


if __name__ == "__main__":
    main()
