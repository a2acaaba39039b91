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


def _hts_speedup(found: dict[str, Any]) -> Rows:
    """One row a law and seed, both systems in it."""
    shown = {name: found["settings"][name] for name in ("n_agents", "sync_interval")} | {"mean_ms": found["mean_ms"]}
    rows: Rows = []
    for name, law in found["laws"].items():
        runs = {(run["seed"], run["system"]): run for run in law["runs"]}
        for seed in sorted({seed for seed, _ in runs}):
            row = {"law": name.split(":")[0], "cv": float(name.split(":")[1]), "seed": seed, **shown}
            for system in ("hts", "synchronous"):
                row |= {f"{system}_{k}": v for k, v in runs[seed, system].items() if k not in ("seed", "system")}
            rows.append(row | {"speedup": row["synchronous_step_ms"] / row["hts_step_ms"]})
    return rows


def _ba3c_scaling(found: dict[str, Any]) -> Rows:
    """Rows of kind ranks (a phase each), batch (rank 0's seconds for one and its gradient) and straggler."""
    rows: Rows = []
    for n, row in found.get("ranks", {}).items():
        rows += [
            {"kind": "ranks", "n_ranks": int(n), "repeat": i, "points_per_s": points}
            for i, points in enumerate(row["points_per_s"])
        ]
        rows += [{"kind": "batch", "n_ranks": int(n), "seconds": seconds} for seconds in row["batch_s"]]
    return rows + [{"kind": "straggler"} | row for row in found.get("straggler", [])]


def _ba3c_width(found: dict[str, Any]) -> Rows:
    return [
        {"width": int(width), "n_ranks": int(n), "repeat": i, "points_per_s": points}
        | {name: row[name] for name in ("parameters", "all_reduce_s")}
        for width, row in found["widths"].items()
        for n, rates in row["points_per_s"].items()
        for i, points in enumerate(rates)
    ]


def _pbt_toy(found: dict[str, Any]) -> Rows:
    return [
        {"reading": reading, "variant": variant, "seed": seed, "final": final, "over_time": over_time}
        for reading, measured in found["readings"].items()
        for variant, row in measured["variants"].items()
        for seed, (final, over_time) in enumerate(row["seeds"])
    ]


def _pbt_cartpole(found: dict[str, Any]) -> Rows:
    """One row a repetition and scheduler; ``paired``: both had the same scores after the first phase."""
    return [
        {
            "repeat": run[name]["repeat"],
            "scheduler": name,
            "paired": run["pbt"]["first_phase"] == run["random"]["first_phase"],
        }
        | {measure: run[name][measure] for measure in ("final", "mean", "over_time", "phases", "planned", "copies")}
        for run in found["runs"]
        for name in ("pbt", "random")
    ]


def _digits(found: dict[str, Any]) -> Rows:
    """One row a phase of a trial; and what the digits score gives to images that nobody trained for."""
    rows: Rows = [
        {
            "trainable": kind,
            "learning_rate": next(iter(row["config"].values())),
            "seed": seed,
            "phase": phase,
            "score": score,
        }
        for kind in ("classifier", "gan")
        for row in found[kind]
        for seed, scores in enumerate(row["scores"])
        for phase, score in enumerate(scores)
    ]
    return rows + [
        {"trainable": name.replace("_", " "), "score": score} for name, score in found["digits_score"].items()
    ]


def _listed(found: dict[str, Any]) -> Rows:
    return list(found["rows"])


_CURVES = "benchmarks/ga3c_curves.py --configs 46 --units 27"
_SIMULATE = "-m workbench simulate --json --preset"
_SCALING = "benchmarks/ga3c_scaling.py"
_LEARNING = "benchmarks/ga3c_learning.py"
_ON_ATARI = f"{_LEARNING} --variants speed --processes 1 --phases 15 --game MsPacman --goal 500 --settings " + (
    """'{"init": "orthogonal", "eps_inside_root": false, "precision": "bfloat16"}'"""
)

_AGAINST = "benchmarks/ga3c_against_sb3.py"
_AGAINST_ON_ATARI = f"{_AGAINST} --game MsPacman --frames 1200000"

_SPEEDUP = "benchmarks/hts_speedup.py --mean-ms 40 --epochs 150 --updates 12 --processes 2 --laws"
_LAWS = "gamma:0.1 gamma:1 gamma:3"
_RETURN = "benchmarks/hts_return.py --processes 2"
_BA3C = "benchmarks/ba3c_scaling.py --parts"
_BREAKOUT = "--game Breakout --frames 400000000"
_MS_PACMAN = "--game MsPacman --agents 32 --phases 25 --frames 40000000"  # 2.5e8 steps of 4 frames, ready every 1e7
_DESIGN = "benchmarks/pbt_design.py --processes 2"
_POPULATION = "benchmarks/pbt_cartpole.py --population"
_TEN = f"{_POPULATION} 10 --phases 10 --processes 2"

EXPERIMENTS: dict[str, Experiment] = {
    "hyperband-against-hypertrick": Experiment(
        shows="HyperTrick, Fig. 6 and Table 3: Hyperband against HyperTrick, 46 configurations on 46 nodes",
        source="simulated",
        commands={
            "minutes": f"{_SIMULATE} paper-46 --repeats 1000",
            "hours": f"{_SIMULATE} paper-46 --repeats 10000",
            "paper": f"{_SIMULATE} paper-46 --repeats 10000",
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
            "paper": f"{_SIMULATE} ga3c-curves --repeats 10000",
        },
        rows=_schedulers,
    ),
    "ga3c-networks": Experiment(
        shows="GA3C, Table 2: predictions a second of GA3C and A3C by network",
        source="measured",
        commands={
            "minutes": f"{_SCALING} --parts networks --seconds 3 --repeats 5",
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
    "ga3c-speed": Experiment(
        shows="GA3C, Fig. 5: score against wall time by the number of agents, fixed and adjusted",
        source="measured",
        commands={
            "minutes": f"{_LEARNING} --variants speed --seeds 3 --seconds 30 --processes 1",
            "hours": f"{_LEARNING} --variants speed --seeds 20 --seconds 60 --processes 1",
            "paper": f"{_LEARNING} --variants speed --seeds 1 --seconds 10800 --processes 1 --game Pong",
        },
        rows=_curves,
    ),
    "ga3c-speed-atari": Experiment(
        shows="GA3C, Fig. 5, on Ms. Pac-Man: score against wall time by the number of agents, fixed and adjusted",
        source="measured",
        commands={
            "minutes": f"{_ON_ATARI} --seeds 2 --seconds 150",
            "hours": f"{_ON_ATARI} --seeds 5 --seconds 1800",
            "paper": f"{_ON_ATARI} --seeds 1 --seconds 10800",
        },
        rows=_curves,
    ),
    "ga3c-against-sb3": Experiment(
        shows="GA3C's default beside Stable-Baselines3's A2C: score against frames on CartPole",
        source="measured",
        commands={
            "minutes": f"{_AGAINST} --seeds 3",
            "hours": f"{_AGAINST} --seeds 20",
            "paper": f"{_AGAINST} --seeds 20",
        },
        rows=_listed,
    ),
    "ga3c-against-sb3-atari": Experiment(
        shows="GA3C's default beside Stable-Baselines3's A2C: score against frames on Ms. Pac-Man",
        source="measured",
        commands={
            "minutes": (
                *(f"{_AGAINST_ON_ATARI} --seeds 1 --first-seed {seed} --systems default a2c" for seed in range(3)),
                f"{_AGAINST_ON_ATARI} --seeds 2 --systems before",
            ),
            "hours": f"{_AGAINST_ON_ATARI} --seeds 10",
            "paper": f"{_AGAINST} --game MsPacman --frames 40000000 --seeds 3",
        },
        rows=_listed,
    ),
    "hts-speedup": Experiment(
        shows="HTS-RL, Fig. 4 (left): speed-up over the baseline by the variance of step times, and the returns",
        source="measured",
        commands={
            "minutes": (
                f"{_SPEEDUP} gamma:0.1 gamma:1 --seeds 4",
                f"{_SPEEDUP} gamma:3 --seeds 3 --processes 3",
            ),
            "hours": f"{_SPEEDUP} {_LAWS} --updates 30 --seeds 20",
            "paper": f"{_SPEEDUP} {_LAWS} --updates 1000 --sync-interval 512 --seeds 5",
        },
        rows=_hts_speedup,
    ),
    "hts-return": Experiment(
        shows="HTS-RL, Fig. 5: return against wall time of A2C, PPO and HTS-RL, exponential step times",
        source="measured",
        commands={
            "minutes": f"{_RETURN} --seeds 3",
            "hours": f"{_RETURN} --seeds 10 --frames 200000 --phases 40",
            "paper": f"{_RETURN} --seeds 5 --game Pong --mean-ms 0 --frames 40000000 --phases 100",
        },
        rows=_listed,
    ),
    "ba3c-scaling": Experiment(
        shows="BA3C, Fig. 8 and Sec. 2.3: data points/s by ranks; seconds an update takes, the last awaited or not",
        source="measured",
        commands={
            "minutes": f"{_BA3C} ranks straggler --seconds 24 --updates 150",
            "hours": f"{_BA3C} ranks straggler --seconds 300 --updates 2000",
            "paper": f"{_BA3C} ranks straggler --most-ranks 64 --seconds 600 --updates 2000",
        },
        rows=_ba3c_scaling,
    ),
    "ba3c-scaling-model": Experiment(
        shows="BA3C, Fig. 8: data points/s carried to 64 nodes beside the linear line; the straggler rule simulated",
        source="model",
        commands=dict.fromkeys(("minutes", "hours", "paper"), f"{_BA3C} model"),
        rows=lambda found: [{"kind": kind} | row for kind, rows in found["model"].items() for row in rows],
    ),
    "ba3c-width": Experiment(
        shows="BA3C, Fig. 6: data points/s by the width of the fully connected layer, and its all-reduce",
        source="measured",
        commands={
            "minutes": f"{_BA3C} widths --seconds 12",
            "hours": f"{_BA3C} widths --seconds 300",
            "paper": f"{_BA3C} widths --seconds 600",
        },
        rows=_ba3c_width,
    ),
    "ba3c-stability": Experiment(
        shows="BA3C, Fig. 3: synchronous against asynchronous training on one budget, several seeds",
        source="measured",
        commands={
            "minutes": tuple(f"{_BA3C} stability --frames 150000 --seeds 1 --first-seed {seed}" for seed in range(5)),
            "hours": f"{_BA3C} stability --seeds 20 --frames 1000000",
            "paper": f"{_BA3C} stability {_BREAKOUT} --stability-ranks 64 --learning-rate 1e-3 --seeds 3",
        },
        rows=lambda found: list(found["stability"]),
    ),
    "ba3c-epsilon": Experiment(
        shows="BA3C, Fig. 5: score by Adam's epsilon, at effective batches of 32 and 512",
        source="measured",
        commands={
            "minutes": "benchmarks/ba3c_epsilon.py --seeds 5",
            "hours": "benchmarks/ba3c_epsilon.py --seeds 20 --frames 1000000",
            "paper": f"benchmarks/ba3c_epsilon.py {_BREAKOUT} --eps 1e-8 1e-3 --batches 32 512 2048 --seeds 3",
        },
        rows=_listed,
    ),
    "pbt-toy": Experiment(
        shows="PBT, Fig. 2: the toy problem and its ablations",
        source="simulated",
        commands={
            "minutes": "benchmarks/pbt_toy.py --seeds 100",
            "hours": "benchmarks/pbt_toy.py --seeds 100 --rules",
            "paper": "benchmarks/pbt_toy.py --seeds 100",
        },
        rows=_pbt_toy,
    ),
    "pbt-design": Experiment(
        shows="PBT, Fig. 5: population, exploit, what is copied, adaptivity: GA3C on CartPole against random search",
        source="simulated",
        commands={
            "minutes": tuple(f"{_DESIGN} --repeats 2 --seed {seed}" for seed in (0, 2, 4)),
            "hours": f"{_DESIGN} --repeats 30 --frames 5000",
            "paper": f"{_DESIGN} --repeats 1 {_MS_PACMAN} --sizes 10 20 40 80 --plain 40",
        },
        rows=_listed,
    ),
    "pbt-cartpole": Experiment(
        shows="PBT against random search with the same node time: GA3C on CartPole, paired seeds",
        source="simulated",
        commands={
            "minutes": tuple(f"{_TEN} --frames 5000 --repeats 5 --seed {seed}" for seed in (0, 5)),
            "hours": f"{_TEN} --frames 20000 --repeats 30",
            "paper": f"{_POPULATION} 80 --repeats 1 {_MS_PACMAN}",
        },
        rows=_pbt_cartpole,
    ),
    "digits": Experiment(
        shows="PBT, Sec. 4.3, at small scale: a classifier and a GAN of digits by learning rate",
        source="measured",
        commands={
            "minutes": "benchmarks/digits.py --seeds 3",
            "hours": "benchmarks/digits.py --seeds 30",
        },
        rows=_digits,
    ),
}
