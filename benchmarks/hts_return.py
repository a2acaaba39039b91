"""Return against frames and wall time: A2C and PPO, each as HTS-RL and as its synchronous baseline.

Prints one JSON object whose ``rows`` hold system, method, concurrent, seed, phase, frames, seconds and score, the mean
return of the last 100 games, after every phase. Environments sleep, exponentially by default, so that waiting is what
differs, as with an emulator whose steps take unequal time; CartPole, 16 of them. Systems take turns; the seeds, the
frames and the settings are the same for both of a method.

Run with ``python benchmarks/hts_return.py --seeds 3``: three minutes a seed on an idle machine.
"""

import argparse
import json
import os
from typing import Any

from workbench.algos.rl.hts import HTS

METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a2c": ({"method": "a2c", "sync_interval": 16}, {"learning_rate": 3e-3, "t_max": 16, "gamma": 0.98}),
    "ppo": (
        {"method": "ppo", "sync_interval": 64},
        {"learning_rate": 1e-3, "n_epochs": 10, "n_minibatches": 8, "gamma": 0.98, "gae_lambda": 0.9},
    ),
}


def curve(settings: dict[str, Any], config: dict[str, Any], seed: int, phases: int) -> list[dict[str, float]]:
    """Train once; a row a phase."""
    trial = HTS.from_json(settings)(config, seed)
    rows, seconds = [], 0.0
    for phase in range(1, phases + 1):
        metrics = trial.train_phase(lambda metrics: None)
        seconds += metrics["seconds"]
        at = {"phase": phase, "frames": metrics["frames"], "seconds": round(seconds, 3)}
        rows.append(at | {"score": round(metrics["score"], 2), "policy_lag_mean": metrics["policy_lag_mean"]})
    trial.close()
    return rows


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--law", default="gamma:1", help="of step times: law:cv; gamma:1 is exponential")
    parser.add_argument("--mean-ms", type=float, default=5, help="of a step")
    parser.add_argument("--frames", type=int, default=48_000, help="of each run")
    parser.add_argument("--phases", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    law, cv = given.law.split(":")
    base = {
        "game": "CartPole-v1",
        "device": "cpu",
        "n_agents": 16,
        "phase": {"frames": given.frames // given.phases},
        "step_time_law": law,
        "step_time_mean_s": given.mean_ms / 1e3,
        "step_time_cv": float(cv),
    }
    rows = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for method in given.methods:
            settings, config = METHODS[method]
            for concurrent in (True, False):
                system = f"HTS-RL ({method.upper()})" if concurrent else method.upper()
                named = {"system": system, "method": method, "concurrent": concurrent, "seed": seed}
                made = base | settings | {"concurrent": concurrent}
                rows += [named | row for row in curve(made, {"init": "orthogonal", **config}, seed, given.phases)]
    print(json.dumps({"settings": base, "load_1m": round(os.getloadavg()[0], 1), "rows": rows}))


if __name__ == "__main__":
    main()
