"""How GA3C's speed on Pong depends on agents, threads, batch and network, beside A3C; and automatic adjustment.

Rates are predictions a second (``pps``), updates a second (``tps``) and experiences trained on a second (``trained``).
"""

import json
import statistics
from dataclasses import dataclass
from itertools import product
from typing import Any

from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.meter import play_for
from workbench.core.budget import Budget
from workbench.paper.experiment import Rows
from workbench.paper.ga3c.published import TABLE_2

PRECISIONS = ("float32", "bfloat16")  # the second pays where the processor has units for it, and batches are large
GA3C_SETTINGS = [{"n_groups": 1, "n_trainers": 2, "precision": precision} for precision in PRECISIONS]
A3C_SETTINGS = [{"n_agents": 2, "precision": precision} for precision in PRECISIONS]  # an agent a core
GROUP = 16  # agents in a group, where groups are counted
Mix = tuple[int, int, int]  # groups, predictors, trainers


@dataclass(frozen=True)
class Networks:
    """Seconds of each measurement, and how often the two systems take turns on a network."""

    seconds: float
    repeats: int


@dataclass(frozen=True)
class Sweeps:
    """Seconds of each measurement."""

    seconds: float


@dataclass(frozen=True)
class Adjustment:
    """Seconds of each measurement, between two changes, and of the walk; turns of the two mixes compared at last."""

    seconds: float
    every_s: float
    walk_s: float
    repeats: int = 3


def networks(settings: Networks) -> Rows:
    """Measure GA3C and A3C in turn on each network of Table 2, each with the fastest of a few settings.

    Returns
    -------
    rows
        One a network: network, ga3c_pps and a3c_pps (medians), ratio (median, of GA3C's to A3C's in a turn) with its
        least and most (``ratio_low``, ``ratio_high``), repeats, ga3c_settings and a3c_settings (JSON).
    """
    rows: Rows = []
    for network in TABLE_2:
        ga3c, a3c = (
            max(choices, key=lambda choice: _rates(kind, settings.seconds, network=network, **choice)["pps"])
            for kind, choices in ((GA3C, GA3C_SETTINGS), (A3C, A3C_SETTINGS))
        )
        pairs = [
            tuple(
                _rates(kind, settings.seconds, network=network, **choice)["pps"]
                for kind, choice in ((GA3C, ga3c), (A3C, a3c))
            )
            for _ in range(settings.repeats)
        ]
        ratios = sorted(a / b for a, b in pairs)
        rows.append(
            {
                "network": network,
                "ga3c_pps": statistics.median(a for a, _ in pairs),
                "a3c_pps": statistics.median(b for _, b in pairs),
                "ratio": round(statistics.median(ratios), 2),
                "ratio_low": round(ratios[0], 2),
                "ratio_high": round(ratios[-1], 2),
                "repeats": settings.repeats,
                "ga3c_settings": json.dumps(ga3c),
                "a3c_settings": json.dumps(a3c),
            }
        )
    return rows


def sweeps(settings: Sweeps) -> Rows:
    """Vary one setting at a time (Figs 3 and 4): agents, threads (groups/predictors/trainers), least training batch.

    Returns
    -------
    rows
        One a value: setting, value, pps, trained, tps, predict_batch, train_batch (means), prediction_queue,
        training_queue (mean lengths), policy_lag (updates, mean).
    """
    mixes = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (2, 2, 1), (1, 1, 2), (2, 1, 2), (2, 2, 2))
    sweep: dict[str, dict[str, dict[str, int]]] = {
        "agents": {str(n): {"n_agents": n} for n in (1, 4, 16, 32, 64)},
        "threads": {_written(mix): _threads(mix) for mix in mixes},
        "batches": {str(n): {"min_training_batch": n} for n in (0, 20, 40, 80, 160)},
    }
    return [
        {"setting": setting, "value": value} | _rates(GA3C, settings.seconds, **changed)
        for setting, values in sweep.items()
        for value, changed in values.items()
    ]


def adjustment(settings: Adjustment) -> Rows:
    """Sweep static mixes, let the mix adjust itself from 1/1/1 (Fig. 2), then compare the best of each in turn.

    Returns
    -------
    rows
        Of kind path: n_agents, n_predictors, n_trainers and tps as it went; static: mix (groups/predictors/trainers)
        and trained; kept and best: the two that were compared at last, and the median of trained.
    """
    sweep = {mix: _static(mix, settings.seconds) for mix in product((1, 2, 3), (1, 2), (1, 2, 3))}
    best = max(sweep, key=lambda mix: sweep[mix])
    kept, path = _adjusted(settings.every_s, settings.walk_s)
    pairs = [(_static(kept, settings.seconds), _static(best, settings.seconds)) for _ in range(settings.repeats)]
    rows: Rows = [{"kind": "path"} | point for point in path[:: max(1, len(path) // 40)]]
    rows += [{"kind": "static", "mix": _written(mix), "trained": rate} for mix, rate in sweep.items()]
    rows.append({"kind": "kept", "mix": _written(kept), "trained": statistics.median(a for a, _ in pairs)})
    rows.append({"kind": "best", "mix": _written(best), "trained": statistics.median(b for _, b in pairs)})
    return rows


def _rates(kind: type[GA3C] | type[A3C], seconds: float, **settings: Any) -> dict[str, float]:
    """Warm up for a quarter of the time, then measure."""
    trial = kind("Pong", device="cpu", **settings)({"t_max": 5}, 0)
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


def _threads(mix: Mix) -> dict[str, int]:
    return dict(zip(("n_groups", "n_predictors", "n_trainers"), mix, strict=True))


def _written(mix: Mix) -> str:
    return "/".join(map(str, mix))


def _static(mix: Mix, seconds: float) -> float:
    """Experiences trained on a second by a mix that does not change."""
    return _rates(GA3C, seconds, n_agents=GROUP * mix[0], **_threads(mix))["trained"]


def _adjusted(every_s: float, seconds: float) -> tuple[Mix, Rows]:
    """Let the mix adjust itself from 1/1/1; give the mix it kept, and how it went."""
    settings = GA3C(
        "Pong", Budget(seconds=seconds), min_games=1, device="cpu", n_groups=1, n_agents=GROUP, adjust_every_s=every_s
    )
    trial = settings({"t_max": 5}, 0)
    assert trial._adjustment is not None
    path: Rows = []
    shown = ("n_agents", "n_predictors", "n_trainers")
    trial.train_phase(lambda m: path.append({k: m[k] for k in shown} | {"tps": round(m.get("tps", 0.0), 1)}))
    groups, predictors, trainers = trial._adjustment.adjuster.kept
    trial.close()
    return (groups, predictors, trainers), path
