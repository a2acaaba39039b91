"""How GA3C's speed depends on agents, threads, batch and network, beside A3C; and automatic adjustment from 1/1/1.

Prints one JSON object; rates are experiences trained on a second (``trained``) and predictions a second (``pps``):

- ``agents``, ``threads``, ``batches``: one setting varied at a time
- ``networks``: GA3C and A3C in turn on each network of Table 2; ``ratio`` is GA3C's pps over A3C's
- ``adjustment``: the best of a sweep of static mixes (groups/predictors/trainers), the mix that automatic adjustment
  keeps when it starts from 1/1/1, and ``ratio``: the second's rate over the first's, measured in turn afterwards

Run with ``python benchmarks/ga3c_scaling.py --seconds 4 --parts networks adjustment``.
"""

import argparse
import json
import os
import statistics
from itertools import product
from typing import Any

from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C, GA3CTrial
from workbench.algos.rl.model import CONVOLUTIONAL
from workbench.algos.rl.settings import Settings
from workbench.algos.rl.trial import play_for

PRECISIONS = ("float32", "bfloat16")  # the second pays where the processor has units for it, and batches are large
GA3C_SETTINGS = [{"n_groups": 1, "n_trainers": 2, "precision": precision} for precision in PRECISIONS]
A3C_SETTINGS = [{"n_agents": 2, "precision": precision} for precision in PRECISIONS]  # an agent a core
GROUP = 16  # agents in a group, where groups are counted


def rates(kind: type[Settings], seconds: float, **settings: Any) -> dict[str, float]:
    """Warm up for a quarter of the time, then measure."""
    trial: Any = kind.from_json({"game": "Pong", "device": "cpu"} | settings)({"t_max": 5}, 0)  # type: ignore[operator]
    play_for(trial, seconds / 4)
    metrics = play_for(trial, seconds)
    trial.close()
    trained = metrics["tps"] * metrics.get("train_batch_mean", 0.0)
    return {
        "pps": round(metrics["pps"], 1),
        "trained": round(trained, 1),
        "tps": round(metrics["tps"], 2),
        "predict_batch": round(metrics.get("predict_batch_mean", 0.0), 1),
        "train_batch": round(metrics.get("train_batch_mean", 0.0), 1),
        "prediction_queue": round(metrics.get("prediction_queue", 0.0), 2),
        "training_queue": round(metrics.get("training_queue", 0.0), 2),
        "policy_lag": round(metrics.get("policy_lag_mean", 0.0), 1),
    }


def networks(seconds: float, repeats: int) -> dict[str, Any]:
    """GA3C and A3C in turn on each network, each with the fastest of a few settings."""
    found = {}
    for network in CONVOLUTIONAL:
        ga3c, a3c = (
            max(settings, key=lambda given: rates(kind, seconds, network=network, **given)["pps"])
            for kind, settings in ((GA3C, GA3C_SETTINGS), (A3C, A3C_SETTINGS))
        )
        pairs = [
            (rates(GA3C, seconds, network=network, **ga3c)["pps"], rates(A3C, seconds, network=network, **a3c)["pps"])
            for _ in range(repeats)
        ]
        ratios = sorted(a / b for a, b in pairs)
        found[network] = {
            "ga3c_pps": statistics.median(a for a, _ in pairs),
            "a3c_pps": statistics.median(b for _, b in pairs),
            "ratio": round(statistics.median(ratios), 2),
            "ratio_low": round(ratios[0], 2),
            "ratio_high": round(ratios[-1], 2),
            "repeats": repeats,
            "ga3c_settings": json.dumps(ga3c),
            "a3c_settings": json.dumps(a3c),
        }
    return found


def static(mix: tuple[int, int, int], seconds: float) -> float:
    """Experiences trained on a second by a mix that does not change."""
    groups, predictors, trainers = mix
    return rates(GA3C, seconds, n_groups=groups, n_agents=GROUP * groups, n_predictors=predictors, n_trainers=trainers)[
        "trained"
    ]


def adjusted(every_s: float, seconds: float) -> tuple[tuple[int, int, int], list[list[float]]]:
    """Let the mix adjust itself from 1/1/1; the mix it kept, and (agents, predictors, trainers, tps) as it went."""
    settings = {
        "n_groups": 1,
        "n_agents": GROUP,
        "adjust_every_s": every_s,
        "min_games": 1,
        "phase": {"seconds": seconds},
    }
    trial = GA3C.from_json({"game": "Pong", "device": "cpu"} | settings)({"t_max": 5}, 0)
    assert isinstance(trial, GA3CTrial)
    path: list[list[float]] = []
    trial.train_phase(
        lambda m: path.append([m["n_agents"], m["n_predictors"], m["n_trainers"], round(m.get("tps", 0.0), 1)])
    )
    kept = tuple(trial._adjuster.kept)
    trial.close()
    return kept, path


def adjustment(seconds: float, repeats: int, every_s: float, adjust_s: float) -> dict[str, Any]:
    """Sweep static mixes, then adjust, then compare the best of each in turn."""
    sweep = {mix: static(mix, seconds) for mix in product((1, 2, 3), (1, 2), (1, 2, 3))}
    best = max(sweep, key=lambda mix: sweep[mix])
    kept, path = adjusted(every_s, adjust_s)
    pairs = [(static(kept, seconds), static(best, seconds)) for _ in range(repeats)]
    return {
        "sweep": {"/".join(map(str, mix)): rate for mix, rate in sweep.items()},
        "best": best,
        "kept": kept,
        "start_trained": sweep[1, 1, 1],
        "kept_trained": statistics.median(a for a, _ in pairs),
        "best_trained": statistics.median(b for _, b in pairs),
        "ratio": round(statistics.median(a / b for a, b in pairs), 3),
        "path": path[:: max(1, len(path) // 40)],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=3, help="of each comparison")
    parser.add_argument("--adjust-every", type=float, default=2, help="seconds between changes")
    parser.add_argument("--adjust-seconds", type=float, default=90)
    names = ("agents", "threads", "batches", "networks", "adjustment")
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    s = given.seconds
    parts = {
        "agents": lambda: {n: rates(GA3C, s, n_agents=n, n_groups=min(2, n)) for n in (1, 4, 16, 32, 64)},
        "threads": lambda: {
            f"{g}/{p}/{t}": rates(GA3C, s, n_groups=g, n_predictors=p, n_trainers=t)
            for g, p, t in ((1, 1, 1), (2, 1, 1), (4, 1, 1), (2, 2, 1), (1, 1, 2), (2, 1, 2), (2, 2, 2))
        },
        "batches": lambda: {n: rates(GA3C, s, min_training_batch=n) for n in (0, 20, 40, 80, 160)},
        "networks": lambda: networks(s, given.repeats),
        "adjustment": lambda: adjustment(s, given.repeats, given.adjust_every, given.adjust_seconds),
    }
    result: dict[str, Any] = {name: parts[name]() for name in given.parts}
    print(json.dumps(result | {"seconds": s, "load_1m": round(os.getloadavg()[0], 1)}, indent=2))


if __name__ == "__main__":
    main()
