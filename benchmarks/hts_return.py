"""Return against frames and wall time: A2C and PPO, each as HTS-RL and as its synchronous baseline.

Prints one JSON object whose ``rows`` hold system, method, concurrent, seed, phase, frames, seconds and score, the mean
return of the games that ended in the phase, after every phase. Environments sleep, exponentially by default, so that
waiting is what differs, as with an emulator whose steps take unequal time; CartPole, 16 of them, or an Atari game with
settings of its own. The seeds, the frames and the settings are the same for both of a method.

Run with ``python benchmarks/hts_return.py --seeds 3``: three or four minutes a seed on an idle machine.
"""

import argparse
import json
import os
from multiprocessing import get_context
from typing import Any

from workbench.algos.rl.hts.trial import HTS

METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a2c": ({"method": "a2c", "sync_interval": 5}, {"learning_rate": 3e-3, "t_max": 5}),
    "ppo": (
        {"method": "ppo", "sync_interval": 64},
        {"learning_rate": 1e-3, "n_epochs": 10, "n_minibatches": 8, "gamma": 0.98, "gae_lambda": 0.9},
    ),
}
ATARI: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # barriers as in the paper's code, the rest usual settings
    "a2c": ({"method": "a2c", "sync_interval": 16}, {"learning_rate": 7e-4, "t_max": 5}),
    "ppo": (
        {"method": "ppo", "sync_interval": 128},
        {"learning_rate": 2.5e-4, "n_epochs": 4, "n_minibatches": 4, "gamma": 0.99, "gae_lambda": 0.95},
    ),
}


def curve(base: dict[str, Any], method: str, concurrent: bool, seed: int, phases: int) -> list[dict[str, Any]]:
    """Train once; a row a phase."""
    settings, config = (METHODS if base["game"] == "CartPole-v1" else ATARI)[method]
    trial = HTS.from_json(base | settings | {"concurrent": concurrent})({"init": "orthogonal", **config}, seed)
    system = f"HTS-RL ({method.upper()})" if concurrent else method.upper()
    rows, seconds = [], 0.0
    for phase in range(1, phases + 1):
        metrics = trial.train_phase(lambda metrics: None)
        seconds += metrics["seconds"]
        at = {"system": system, "method": method, "concurrent": concurrent, "seed": seed, "phase": phase}
        at |= {"frames": metrics["frames"], "seconds": round(seconds, 3), "score": round(metrics["score"], 2)}
        rows.append(at | {"policy_lag_mean": metrics["policy_lag_mean"]})
    trial.close()
    return rows


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--law", default="gamma:1", help="of step times: law:cv; gamma:1 is exponential")
    parser.add_argument("--mean-ms", type=float, default=10, help="of a step; 0: no sleep")
    parser.add_argument("--frames", type=int, default=32_000, help="of each run")
    parser.add_argument("--phases", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="runs at once")
    given = parser.parse_args()
    law, cv = given.law.split(":")
    base = {
        "game": given.game,
        "device": "cpu",
        "n_agents": 16,
        "phase": {"frames": given.frames // given.phases},
        "step_time_law": law,
        "step_time_mean_s": given.mean_ms / 1e3,
        "step_time_cv": float(cv),
    }
    jobs = [
        (base, method, concurrent, seed, given.phases)
        for seed in range(given.first_seed, given.first_seed + given.seeds)
        for method in given.methods
        for concurrent in (True, False)
    ]
    with get_context("spawn").Pool(given.processes) as pool:
        rows = [row for rows in pool.starmap(curve, jobs, chunksize=1) for row in rows]
    print(json.dumps({"settings": base, "load_1m": round(os.getloadavg()[0], 1), "rows": rows}))


if __name__ == "__main__":
    main()
