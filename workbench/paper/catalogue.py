"""The experiments, one entry each."""

from typing import Any

from workbench.paper.experiments import Experiment, Rows


def _named(key: str, column: str) -> Any:
    """Rows of ``{key: {name: {measure: value}}}``, the name in `column`."""
    return lambda found: [{column: name} | measures for name, measures in found[key].items()]


def _sweeps(found: dict[str, Any]) -> Rows:
    return [
        {"setting": part, "value": name} | measures
        for part in ("agents", "threads", "batches")
        for name, measures in found[part].items()
    ]


def _adjustment(found: dict[str, Any]) -> Rows:
    """One row a step of the path, one a static mix of the sweep, and the two that were compared at last."""
    part = found["adjustment"]
    rows: Rows = [
        {"kind": "path", "n_agents": agents, "n_predictors": predictors, "n_trainers": trainers, "tps": tps}
        for agents, predictors, trainers, tps in part["path"]
    ]
    rows += [{"kind": "static", "mix": mix, "trained": rate} for mix, rate in part["sweep"].items()]
    for kind in ("kept", "best"):
        rows.append({"kind": kind, "mix": "/".join(map(str, part[kind])), "trained": part[f"{kind}_trained"]})
    return rows


def _curves(found: dict[str, Any]) -> Rows:
    return [
        {"game": found["game"], "variant": name, "seed": seed, "frames": frames, "seconds": seconds, "score": score}
        for name, variant in found["variants"].items()
        for seed, curve in enumerate(variant["curves"])
        for frames, seconds, score in curve
    ]


def _schedulers(found: dict[str, Any]) -> Rows:
    """One row a scheduler: medians over the repetitions, and their 95 % intervals; last the paired differences."""
    return [
        {"scheduler": name, "repeats": found["repeats"]}
        | {measure: value["median"] for measure, value in measures.items()}
        | {f"{measure}_{end}": value[end] for measure, value in measures.items() for end in ("low", "high")}
        for name, measures in {**found["schedulers"], **found["differences"]}.items()
    ]


_CURVES = "benchmarks/ga3c_curves.py --configs 46 --units 27"
_SIMULATE = "-m workbench simulate --json --preset"
_SCALING = "benchmarks/ga3c_scaling.py"
_LEARNING = "benchmarks/ga3c_learning.py"

EXPERIMENTS: dict[str, Experiment] = {
    "hyperband-against-hypertrick": Experiment(
        shows="HyperTrick, Fig. 6 and Table 3: Hyperband against HyperTrick, 46 configurations on 46 nodes",
        source="simulated",
        commands={
            "minutes": f"{_SIMULATE} paper-46 --repeats 1000",
            "hours": f"{_SIMULATE} paper-46 --repeats 10000",
        },
        rows=_schedulers,
    ),
    "ga3c-curves": Experiment(
        shows="HyperTrick, Figs 4 to 7: full learning curves of GA3C, 46 configurations, nothing stopped early",
        source="measured",
        commands={
            "minutes": f"{_CURVES} --seeds 3 --unit-frames 4000",
            "hours": f"{_CURVES} --seeds 20 --unit-frames 20000",
            "paper": f"{_CURVES} --seeds 3 --game Pong --unit-frames 2000000",
        },
        rows=lambda found: list(found["curves"]),
    ),
    "curves-hyperband-against-hypertrick": Experiment(
        shows="HyperTrick, Fig. 6 and Table 3, on recorded GA3C curves: Hyperband against HyperTrick on 46 nodes",
        source="simulated",
        commands={
            "minutes": f"{_SIMULATE} ga3c-curves --repeats 1000",
            "hours": f"{_SIMULATE} ga3c-curves --repeats 10000",
        },
        rows=_schedulers,
    ),
    "ga3c-networks": Experiment(
        shows="GA3C, Table 2: predictions a second of GA3C and A3C by network",
        source="measured",
        commands={
            "minutes": f"{_SCALING} --parts networks --seconds 4 --repeats 1",
            "hours": f"{_SCALING} --parts networks --seconds 60 --repeats 9",
            "paper": f"{_SCALING} --parts networks --seconds 600 --repeats 3",
        },
        rows=_named("networks", "network"),
    ),
    "ga3c-sweeps": Experiment(
        shows="GA3C, Figs 3 and 4: speed, queues and batches by agents, predictors, trainers and training batch",
        source="measured",
        commands={
            "minutes": f"{_SCALING} --parts agents threads batches --seconds 3",
            "hours": f"{_SCALING} --parts agents threads batches --seconds 120",
            "paper": f"{_SCALING} --parts agents threads batches --seconds 600",
        },
        rows=_sweeps,
    ),
    "ga3c-adjustment": Experiment(
        shows="GA3C, Fig. 2: automatic adjustment from one group, one predictor, one trainer",
        source="measured",
        commands={
            "minutes": f"{_SCALING} --parts adjustment --seconds 3 --adjust-every 1.5 --adjust-seconds 75",
            "hours": f"{_SCALING} --parts adjustment --seconds 30 --adjust-every 20 --adjust-seconds 1800",
            "paper": f"{_SCALING} --parts adjustment --seconds 60 --adjust-every 60 --adjust-seconds 7200",
        },
        rows=_adjustment,
    ),
    "ga3c-epsilon": Experiment(
        shows="GA3C, Eq. 3: where RMSProp's epsilon stands, and how large it is",
        source="measured",
        commands={
            "minutes": f"{_LEARNING} --variants epsilon --seeds 5 --frames 150000",
            "hours": f"{_LEARNING} --variants epsilon --seeds 20 --frames 300000",
            "paper": f"{_LEARNING} --variants epsilon --seeds 3 --game Pong --frames 40000000",
        },
        rows=_curves,
    ),
    "ga3c-training-batch": Experiment(
        shows="GA3C, Fig. 7: score by the least training batch",
        source="measured",
        commands={
            "minutes": f"{_LEARNING} --variants training-batch --seeds 3 --frames 100000",
            "hours": f"{_LEARNING} --variants training-batch --seeds 20 --frames 300000",
            "paper": f"{_LEARNING} --variants training-batch --seeds 3 --game Pong --frames 40000000",
        },
        rows=_curves,
    ),
    "ga3c-learning-rate": Experiment(
        shows="GA3C, Fig. 6: learning curves by learning rate and seed",
        source="measured",
        commands={
            "minutes": f"{_LEARNING} --variants learning-rate --seeds 3 --frames 100000",
            "hours": f"{_LEARNING} --variants learning-rate --seeds 20 --frames 300000",
            "paper": f"{_LEARNING} --variants learning-rate --seeds 3 --game Pong --frames 40000000",
        },
        rows=_curves,
    ),
}
