"""What GA3C reads beside every system's settings: its groups of agents, its threads and its queues."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from workbench.algos.rl.learner import Precision
from workbench.algos.rl.settings import RMSPropSettings
from workbench.core.checks import POSITIVE, SHARE, check, whole
from workbench.core.errors import InvalidInput

AUTHORS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_predictors": 2,
    "n_trainers": 2,
    "min_training_batch": 0,
    "init": "uniform",
    "reduction": "sum",
    "rmsprop_eps": 0.1,
    "eps_inside_root": True,
    "initial_square": 1.0,
    "max_grad_norm": None,
    "score_window": 1000,
}
"""What GA3C's authors set in their released code, where the default here differs: ``GA3C("Pong", **AUTHORS)``."""


@dataclass(frozen=True)
class GA3CSettings(RMSPropSettings):
    """Settings of GA3C. What its authors set: `AUTHORS`.

    Attributes
    ----------
    n_groups : int
        Groups the agents play in: a group steps and asks together, in its own thread.
    agents_ready : float
        Share of a group's agents that must be ready before it asks, in (0, 1]; below 1 the rest play on
        meanwhile. Atari only.
    n_predictors, n_trainers : int
        Threads (N_P, N_T of the paper).
    min_training_batch : int
        Experiences an update waits for, at least (Fig. 7: best 20 to 40), whatever `t_max` and `training_queue` are.
    training_queue : int or None
        Segments that may wait for a trainer; agents wait when it is full, which bounds the policy lag. As
        many as agents by default.
    lockstep : bool
        Deterministic mode: play, predict and train in turn, in one thread; n_groups, n_predictors and
        n_trainers are then 1 and `agents_ready` 1.
    adjust_every_s : float or None
        Seconds between automatic changes of the number of groups, predictors and trainers (Sec. 4.3; the paper's
        minute is 60), which then start from `n_groups`, `n_predictors` and `n_trainers`. None keeps them as they
        are: what a reproducible study wants.
    """

    tunable: ClassVar[tuple[str, ...]] = (
        *RMSPropSettings.tunable,
        "min_training_batch",
        "n_predictors",
        "n_trainers",
    )

    precision: Precision | Literal["auto"] = "auto"
    n_groups: int = 2
    agents_ready: float = 1.0
    n_predictors: int = 1
    n_trainers: int = 1
    min_training_batch: int = 40
    training_queue: int | None = None
    lockstep: bool = False
    adjust_every_s: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, whole(1), "n_groups", "n_predictors", "n_trainers")
        check(self, whole(0), "min_training_batch")
        check(self, whole(1).or_none(), "training_queue")
        check(self, SHARE, "agents_ready")
        check(self, POSITIVE.or_none(), "adjust_every_s")
        if self.n_groups > self.n_agents and not self.lockstep:
            raise InvalidInput(f"{self.n_groups} groups of agents need as many agents, got {self.n_agents}")
        if self.lockstep and self.adjust_every_s is not None:
            raise InvalidInput(
                "lockstep=True works in one thread: there is nothing to adjust, leave adjust_every_s None"
            )

    @property
    def repeatable(self) -> bool:
        """In the deterministic mode."""
        return self.lockstep
