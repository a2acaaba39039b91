"""GA3C's score against frames and seconds, by the two epsilons, least training batch, learning rate or speed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.core.budget import Budget
from workbench.core.showing import so_many
from workbench.paper.experiment import Rows, each, trained

EPSILON: dict[str, dict[str, Any]] = {
    "inside, 1e-5": {"eps_inside_root": True, "rmsprop_eps": 1e-5},
    "inside, 1e-10": {"eps_inside_root": True, "rmsprop_eps": 1e-10},
    "outside, 1e-5": {"eps_inside_root": False, "rmsprop_eps": 1e-5},
    "inside, 0.1": {"eps_inside_root": True, "rmsprop_eps": 0.1},
    "outside, 0.1": {"eps_inside_root": False, "rmsprop_eps": 0.1},
    "inside, 0.1, sums": {"eps_inside_root": True, "rmsprop_eps": 0.1, "reduction": "sum", "max_grad_norm": None},
}
LOG_EPSILON: dict[str, dict[str, Any]] = {
    "epsilon": {"log_epsilon": 1e-6, "max_grad_norm": None},
    "none": {"log_epsilon": 0.0, "max_grad_norm": None},
    "epsilon, clipped": {"log_epsilon": 1e-6, "max_grad_norm": 0.5},
}
TRAINING_BATCH = {str(n): {"min_training_batch": n} for n in (0, 20, 40, 80, 160)}
LEARNING_RATE = {f"{rate:g}": {"learning_rate": rate} for rate in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
PUBLISHED_RATES = {rate: LEARNING_RATE[rate] for rate in ("0.0001", "0.0003")}
ADJUSTED = "adjusted, from 1"
CHANGES = 180  # of a mix: the paper's, one every minute of three hours
SPEED: dict[str, dict[str, Any]] = {  # the paper's Fig. 5: two that are too few, many, and adjusted from the slowest
    **{so_many(n, "agent"): {"n_agents": n, "agents_apart": True} for n in (1, 16, 64)},
    ADJUSTED: {"n_agents": 1, "agents_apart": True, "adjust_up_to": 64},
}
SETS: dict[str, dict[str, dict[str, Any]]] = {
    "epsilon": EPSILON,
    "log-epsilon": LOG_EPSILON,
    "training-batch": TRAINING_BATCH,
    "learning-rate": LEARNING_RATE,
    "published-rates": PUBLISHED_RATES,
    "speed": SPEED,
}


@dataclass(frozen=True)
class Learning:
    """Trials of every variant with every seed.

    Attributes
    ----------
    variants : str
        A key of `SETS`.
    seeds : int
    frames : int
        Of each trial, cut into `phases`.
    seconds : float, optional
        Of each trial, instead of frames.
    processes : int
        Trials at once.
    settings : Mapping
        Of `GA3C`, for all variants.
    """

    variants: str
    seeds: int
    frames: int = 200_000
    seconds: float | None = None
    phases: int = 10
    game: str = "CartPole-v1"
    processes: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)


def curves(settings: Learning) -> Rows:
    """Train every variant with every seed, seed by seed, so that what else the machine does meets all variants alike.

    CartPole runs in the deterministic mode: frames and scores repeat exactly, seconds do not, and several trials run at
    once. Speed is another matter: agents, predictors and trainers decide how many frames are played in the same time,
    so where `seconds` are given, and on Atari, threads run freely; then a trial should have the machine for itself.

    Returns
    -------
    rows
        One a variant, seed and phase: game, variant, seed, frames, seconds, score (mean return of the phase's games).
    """
    if settings.seconds is None:
        phase = Budget(frames=settings.frames // settings.phases)
    else:
        phase = Budget(seconds=settings.seconds / settings.phases)
    free = settings.seconds is not None or find_game(settings.game).atari
    base = {"game": settings.game, "device": "cpu", "lockstep": not free, "phase": phase} | dict(settings.settings)
    names = [(variant, seed) for seed in range(settings.seeds) for variant in SETS[settings.variants]]
    jobs = [(base | variant_of(settings, variant), seed, settings.phases) for variant, seed in names]
    return [
        {"game": settings.game, "variant": variant, "seed": seed, "frames": frames, "seconds": seconds, "score": score}
        for (variant, seed), points in zip(names, each(curve, jobs, settings.processes), strict=True)
        for frames, seconds, score in points
    ]


def variant_of(settings: Learning, name: str) -> dict[str, Any]:
    """Give what is set for a variant; a mix changes as often as the paper's, if not more than once a second."""
    variant = SETS[settings.variants][name]
    return variant | {"adjust_every_s": max(1.0, (settings.seconds or 0.0) / CHANGES)} if name == ADJUSTED else variant


def curve(settings: dict[str, Any], seed: int, phases: int) -> list[tuple[float, float, float]]:
    """Train once; (frames, seconds, score) after every phase."""
    return [
        (metrics["frames"], round(metrics["seconds"], 1), round(metrics["score"], 1))
        for metrics in trained(GA3C(**settings), {}, seed, phases)
    ]
