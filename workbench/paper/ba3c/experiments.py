"""What is run for the Distributed BA3C paper's figures."""

from dataclasses import dataclass
from typing import Any

from workbench.algos.rl.ba3c.trial import BA3C
from workbench.core.budget import Budget
from workbench.paper.ba3c.hosts import Links, links
from workbench.paper.ba3c.measured import Widths, predicted_straggler, ranks, straggler, widths
from workbench.paper.ba3c.published import FIG_6
from workbench.paper.ba3c.scaling import FLOAT_BYTES, PAPER_BATCH, ScalingModel, fitted_link
from workbench.paper.experiment import Experiment, RecordedTable, Rows, rows_of_each, trained

GBIT = 1e9 / 8  # bytes/s


@dataclass(frozen=True)
class Ranks:
    """Seconds of each measurement of ranks, the most of them, and updates of each of the straggler rule."""

    seconds: float
    updates: int
    most: int = 16


def scaling(settings: Ranks) -> Rows:
    """Measure data points/s by ranks, and seconds an update takes where ranks sleep (kind straggler)."""
    rows = straggler(settings.updates)
    return ranks(settings.seconds, settings.most) + [{"kind": "straggler"} | row for row in rows]


@dataclass(frozen=True)
class Carried:
    """Numbers of nodes to which the model is carried."""

    n_nodes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)


def scaling_model(settings: Carried) -> Rows:
    """Carry what was recorded to many nodes, and simulate the straggler rule for the ranks that slept.

    Compute, exchange and stragglers are fitted to the recordings ``ba3c-scaling`` and ``ba3c-width``: nothing here was
    run on so many nodes. Links are the one measured (loopback) and two assumed.

    Returns
    -------
    rows
        Of kind scaling: link, latency_s, bytes_per_s, n_nodes, way (the paper's linear line, a ring, the paper's four
        servers, the one server here), points_per_s; of kind straggler, as `predicted_straggler` gives them.
    """
    measured, by_width = RecordedTable.open("ba3c-scaling").frame, RecordedTable.open("ba3c-width").frame
    compute_s = measured.loc[(measured["kind"] == "batch") & (measured["n_ranks"] == 1), "seconds"].tolist()
    reduced = by_width.groupby("parameters")["all_reduce_s"].first()
    link = fitted_link([FLOAT_BYTES * size for size in reduced.index], reduced.tolist())
    links = {"loopback, measured": link, "1 Gbit/s, 50 us": (5e-5, GBIT), "10 Gbit/s, 50 us": (5e-5, 10 * GBIT)}
    rows: Rows = []
    for name, (latency_s, bytes_per_s) in links.items():
        model = ScalingModel(compute_s, PAPER_BATCH, FIG_6[128], latency_s, bytes_per_s)
        for n in settings.n_nodes:
            k = max(1, round(0.9 * n))
            for way, points in {
                "linear": model.linear(n),
                "ring, all awaited": model.points_per_s(n),
                "4 servers, all awaited": model.points_per_s(n, way="servers"),
                "4 servers, 90 % awaited": model.points_per_s(n, k, "servers"),
                "1 server, 90 % awaited": model.points_per_s(n, k, "servers", 1),
            }.items():
                at = {"kind": "scaling", "link": name, "latency_s": latency_s, "bytes_per_s": bytes_per_s}
                rows.append(at | {"n_nodes": n, "way": way, "points_per_s": round(points, 1)})
    return rows + [{"kind": "straggler"} | row for row in predicted_straggler()]


# The asynchronous variant differs from the synchronous one by more than the age of its gradients. Two controls take
# that apart: one rank makes as many updates of as small batches, and its gradients wait for nobody; rounds as long as
# a batch leave no experiences over for the next one, so that nothing is old but by the other ranks' updates.
STABILITY: dict[str, dict[str, Any]] = {
    "synchronous": {},
    "asynchronous": {"synchronous": False},
    "one rank, as small batches": {"n_ranks": 1},
    "asynchronous, nothing left over": {"synchronous": False, "t_max": 4},
}


@dataclass(frozen=True)
class Stability:
    """One budget of `frames`, the seeds `first_seed` and on, `n_ranks` ranks of 8 agents and batches of 32."""

    seeds: int
    frames: int
    first_seed: int = 0
    game: str = "CartPole-v1"
    n_ranks: int = 4
    learning_rate: float = 1e-3
    phases: int = 20


def stability(settings: Stability) -> Rows:
    """Train every variant of `STABILITY` on one budget with the same seeds.

    Returns
    -------
    rows
        One a variant, seed and phase: variant, seed, phase, seconds, learning_rate, frames, updates, policy_lag_mean
        (updates), score (mean return of the phase's games), value_loss. `ba3c.stability.stability` sums them up.
    """
    rows: Rows = []
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        for variant, changes in STABILITY.items():
            factory = BA3C(
                settings.game,
                phase=Budget(frames=max(1, settings.frames // settings.phases)),
                n_agents=8,
                batch=32,
                evaluate_every=None,
                **{"n_ranks": settings.n_ranks, "t_max": 10} | changes,
            )
            config: dict[str, Any] = {"learning_rate": settings.learning_rate, "init": "orthogonal"}
            for phase, metrics in enumerate(trained(factory, config, seed, settings.phases), 1):
                at = {"variant": variant, "seed": seed, "phase": phase, "seconds": round(metrics["seconds"], 2)}
                at |= {"learning_rate": settings.learning_rate}
                at |= {name: metrics[name] for name in ("frames", "updates", "policy_lag_mean")}
                scored = {"score": round(metrics["score"], 2), "value_loss": round(metrics["value_loss"], 4)}
                rows.append(at | scored)
    return rows


@dataclass(frozen=True)
class Epsilons:
    """Trials of `frames` for every value of Adam's epsilon, effective batch and seed."""

    seeds: int
    frames: int = 200_000
    eps: tuple[float, ...] = (1e-8, 1e-5, 1e-3, 1e-1)
    batches: tuple[int, ...] = (32, 512)
    game: str = "CartPole-v1"
    learning_rate: float = 1e-3
    phases: int = 20
    processes: int = 2


def epsilon(settings: Epsilons) -> Rows:
    """Train with every epsilon at small and large effective batches.

    One rank: n ranks of batch b make the updates of one of batch n times b, as the tests show, so the effective batch
    is what is varied. Everything else are the paper's settings; scores repeat exactly.

    Returns
    -------
    rows
        One a trial and phase: adam_eps, batch, seed, frames, updates, score (mean return of the phase's games).
    """
    seeds = range(settings.seeds)
    jobs = [(settings, e, batch, seed) for seed in seeds for batch in settings.batches for e in settings.eps]
    return rows_of_each(_epsilon_curve, jobs, settings.processes)


def _epsilon_curve(settings: Epsilons, adam_eps: float, batch: int, seed: int) -> Rows:
    changes = {"learning_rate": settings.learning_rate, "adam_eps": adam_eps, "batch": batch}
    at = {"adam_eps": adam_eps, "batch": batch, "seed": seed}
    return [at | point for point in _one_rank(settings, changes, seed)]


# What Sec. 2.4 tried for a large effective batch: the linear scaling rule, 16 times the learning rate for 16 times the
# single node's 32, half way there, and Adam's usual decays in the place of 0.8 and 0.75.
ADAM: dict[str, dict[str, Any]] = {
    "as published": {},
    "learning rate times 4": {"learning_rate": 4e-3},
    "learning rate times 16": {"learning_rate": 1.6e-2},
    "betas 0.9 and 0.999": {"beta1": 0.9, "beta2": 0.999},
}


@dataclass(frozen=True)
class Adams:
    """Trials of `frames` for every variant of `ADAM` and seed, at one effective batch."""

    seeds: int
    frames: int = 600_000
    batch: int = 512
    game: str = "CartPole-v1"
    learning_rate: float = 1e-3
    phases: int = 20
    processes: int = 2


def adam(settings: Adams) -> Rows:
    """Train with larger learning rates and with other betas at a large effective batch, of one rank as `epsilon` does.

    Returns
    -------
    rows
        One a trial and phase: variant, batch, seed, phase, frames, updates, score (mean return of the phase's games).
    """
    jobs = [(settings, variant, seed) for seed in range(settings.seeds) for variant in ADAM]
    return rows_of_each(_adam_curve, jobs, settings.processes)


def _adam_curve(settings: Adams, variant: str, seed: int) -> Rows:
    changes = {"learning_rate": settings.learning_rate, "batch": settings.batch} | ADAM[variant]
    at = {"variant": variant, "batch": settings.batch, "seed": seed}
    return [at | {"phase": phase} | point for phase, point in enumerate(_one_rank(settings, changes, seed), 1)]


def _one_rank(settings: Epsilons | Adams, changes: dict[str, Any], seed: int) -> Rows:
    """Train one rank, whose batch is the effective one; give frames, updates and score after every phase."""
    phase = Budget(frames=settings.frames // settings.phases)
    factory = BA3C(settings.game, phase=phase, n_ranks=1, n_agents=16, evaluate_every=None, device="cpu")
    config: dict[str, Any] = {"t_max": 5, "init": "orthogonal"} | changes
    return [
        {"frames": metrics["frames"], "updates": metrics["updates"], "score": round(metrics["score"], 2)}
        for metrics in trained(factory, config, seed, settings.phases)
    ]


EXPERIMENTS: list[Experiment[Any]] = [
    Experiment(
        "ba3c-scaling",
        shows="BA3C, Fig. 8 and Sec. 2.3: data points/s by ranks; seconds an update takes, the last awaited or not",
        source="measured",
        run=scaling,
        scales={"minutes": Ranks(24, 150), "hours": Ranks(300, 2000), "paper": Ranks(600, 2000, most=64)},
    ),
    Experiment(
        "ba3c-scaling-model",
        shows="BA3C, Fig. 8: data points/s carried to 64 nodes beside the linear line; the straggler rule simulated",
        source="model",
        run=scaling_model,
        scales=dict.fromkeys(("minutes", "hours", "paper"), Carried()),
    ),
    Experiment(
        "ba3c-links",
        shows="BA3C, Figs 7 and 8: batches/s by ranks and by parameter servers over virtual hosts with narrow links",
        source="measured",
        run=links,
        scales={"minutes": Links(), "hours": Links(300), "paper": Links(2000, ranks=(1, 16, 64), servers=(1, 2, 4, 8))},
    ),
    Experiment(
        "ba3c-width",
        shows="BA3C, Fig. 6: data points/s by the width of the fully connected layer, and its all-reduce",
        source="measured",
        run=widths,
        scales={"minutes": Widths(12), "hours": Widths(300), "paper": Widths(600)},
    ),
    Experiment(
        "ba3c-stability",
        shows="BA3C, Fig. 3: synchronous against asynchronous training on one budget, with two controls",
        source="measured",
        run=stability,
        scales={
            "minutes": tuple(Stability(1, 150_000, first_seed=seed) for seed in range(20)),
            "hours": Stability(20, 1_000_000),
            "paper": Stability(3, 400_000_000, game="Breakout", n_ranks=64),
        },
    ),
    Experiment(
        "ba3c-epsilon",
        shows="BA3C, Fig. 5: score by Adam's epsilon, at effective batches of 32 and 512",
        source="measured",
        run=epsilon,
        scales={
            "minutes": Epsilons(20),
            "hours": Epsilons(40, 1_000_000),
            "paper": Epsilons(3, 400_000_000, eps=(1e-8, 1e-3), batches=(32, 512, 2048), game="Breakout"),
        },
    ),
    Experiment(
        "ba3c-adam",
        shows="BA3C, Fig. 4 and Sec. 2.4: score by Adam's learning rate and betas, at an effective batch of 512",
        source="measured",
        run=adam,
        scales={
            "minutes": Adams(10),
            "hours": Adams(20, 3_000_000),
            "paper": Adams(3, 400_000_000, batch=2048, game="Breakout"),
        },
    ),
]
