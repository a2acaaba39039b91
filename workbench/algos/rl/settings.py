"""Settings of a trial: plain data, checked when made, described in JSON, overridden by a trial's config."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import torch

from workbench.algos.rl.envs import Rules, find_game
from workbench.algos.rl.learner import Precision
from workbench.algos.rl.loss import Reduction
from workbench.algos.rl.model import Init, check_network, reads_rgb
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.protocols import Scalar

TUNABLE = (
    "learning_rate",
    "gamma",
    "t_max",
    "entropy_beta",
    "value_weight",
    "min_training_batch",
    "max_grad_norm",
    "rmsprop_decay",
    "rmsprop_eps",
    "n_agents",
    "n_predictors",
    "n_trainers",
    "network",
    "init",
    "reduction",
)

AUTHORS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_predictors": 2,
    "n_trainers": 2,
    "min_training_batch": 0,
    "init": "uniform",
    "reduction": "sum",
    "rmsprop_eps": 0.1,
    "eps_inside_root": True,
    "max_grad_norm": None,
    "score_window": 1000,
}
"""What GA3C's authors set in their released code, where the default here differs: ``GA3C("Pong", **AUTHORS)``."""


@dataclass(frozen=True)
class Settings:
    """Everything that makes a trial, but its seed. A system's own class may allow less, and say what it ignores.

    Attributes
    ----------
    game : str
        Atari game (``Pong``) or a discrete-action Gymnasium id (``CartPole-v1``).
    phase : Budget
        Length of one phase, at least: it ends when this is spent and `min_games` games have ended in it.
    min_games, score_window : int
        What a phase's score is made of, the same for every trial of a study: the mean raw return of the games that
        *ended in that phase*, of the last `score_window` of them (the authors': 1000). A phase goes on until
        `min_games` have: so a policy that survives long is not punished, and nothing is ever said of part of a game.
        Where games may be endless, see `max_episode_frames`.
    learning_rate, gamma, t_max : float, float, int
        The paper's three hyperparameters; t_max is the most transitions a segment holds.
    n_agents, n_groups : int
        Agents in all, and the groups they play in: a group steps and asks together, in its own thread.
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
    network, init : str
        See `make_model`.
    entropy_beta, value_weight, reduction
        See `actor_critic_loss`.
    rmsprop_decay, rmsprop_eps, eps_inside_root, max_grad_norm
        See `SharedRMSProp`. What GA3C's authors set: `AUTHORS`.
    clip_rewards : bool or None
        Train on rewards clipped to [-1, 1]; by default on Atari only. Scores are of raw rewards.
    start_from : str or None
        Directory of a checkpoint (see `Trial.save`) that a trial begins from: weights, optimiser statistics, counters
        and scores; the configuration is the trial's own. From scratch by default.
    noop_max, max_episode_frames, repeat_action_probability, fire_on_reset
        See `Rules`. If the budget is spent and no game has ended for so many frames that the longest one of every agent
        would have fitted in, the phase fails. With a limit on games that cannot happen; without one, neither here nor
        in the environment, a game is taken to last no longer than Atari's 108 000 frames.
    lockstep : bool
        Deterministic mode: play, predict and train in turn, in one thread; n_groups, n_predictors and
        n_trainers are then 1 and `agents_ready` 1.
    emulator_threads : int or None
        C++ threads over all groups, Atari only; one a core by default.
    torch_threads : int
        Cores one tensor operation may use; set for the whole process when a phase starts.
    precision : {"float32", "bfloat16"}
        What the network computes in; bfloat16 pays where the processor has units for it (AMX, or a GPU).
    device : str
        ``auto`` (CUDA where there is one), ``cpu``, ``cuda``, ``cuda:1`` …
    adjust_every_s : float or None
        Seconds between automatic changes of the number of groups, predictors and trainers (Sec. 4.3; the paper's
        minute is 60), which then start from `n_groups`, `n_predictors` and `n_trainers`. None keeps them as they
        are: what a reproducible study wants.
    """

    tunable: ClassVar[tuple[str, ...]] = TUNABLE

    game: str = "Pong"
    phase: Budget = field(default_factory=lambda: Budget(episodes=2500))
    learning_rate: float = 1e-3
    gamma: float = 0.99
    t_max: int = 5
    n_agents: int = 32
    n_groups: int = 2
    agents_ready: float = 1.0
    n_predictors: int = 1
    n_trainers: int = 1
    min_training_batch: int = 40
    training_queue: int | None = None
    network: str = "auto"
    init: Init = "orthogonal"
    entropy_beta: float = 0.01
    value_weight: float = 0.5
    reduction: Reduction = "mean"
    rmsprop_decay: float = 0.99
    rmsprop_eps: float = 1e-5
    eps_inside_root: bool = False
    max_grad_norm: float | None = 0.5
    clip_rewards: bool | None = None
    start_from: str | None = None
    min_games: int = 10
    score_window: int = 100
    noop_max: int = 30
    max_episode_frames: int | None = None
    repeat_action_probability: float = 0.0
    fire_on_reset: bool = False
    lockstep: bool = False
    emulator_threads: int | None = None
    torch_threads: int = 1
    precision: Precision = "float32"
    device: str = "auto"
    adjust_every_s: float | None = None

    def __post_init__(self) -> None:
        positive = ("t_max", "n_agents", "n_groups", "n_predictors", "n_trainers", "torch_threads")
        for name in (*positive, "min_games", "score_window"):
            _check(self, name, "a whole number from 1", lambda v: _is_int(v) and v >= 1)
        for name in ("min_training_batch", "noop_max"):
            _check(self, name, "a whole number from 0", lambda v: _is_int(v) and v >= 0)
        for name in ("training_queue", "max_episode_frames", "emulator_threads"):
            _check(self, name, "a whole number from 1, or None", lambda v: v is None or (_is_int(v) and v >= 1))
        for name in ("learning_rate", "rmsprop_eps"):
            _check(self, name, "a number above 0", lambda v: 0 < v < float("inf"))
        _check(self, "max_grad_norm", "a number above 0, or None", lambda v: v is None or v > 0)
        _check(self, "adjust_every_s", "a number above 0, or None", lambda v: v is None or 0 < v < float("inf"))
        if self.lockstep and self.adjust_every_s is not None:
            raise InvalidInput(
                "lockstep=True works in one thread: there is nothing to adjust, leave adjust_every_s None"
            )
        _check(self, "gamma", "in (0, 1]", lambda v: 0 < v <= 1)
        _check(self, "agents_ready", "in (0, 1]", lambda v: 0 < v <= 1)
        _check(self, "rmsprop_decay", "in [0, 1)", lambda v: 0 <= v < 1)
        _check(self, "repeat_action_probability", "in [0, 1)", lambda v: 0 <= v < 1)
        for name in ("entropy_beta", "value_weight"):
            _check(self, name, "a number from 0", lambda v: 0 <= v < float("inf"))
        named = (
            ("init", ("uniform", "orthogonal")),
            ("reduction", ("mean", "sum")),
            ("precision", ("float32", "bfloat16")),
        )
        for name, allowed in named:
            if getattr(self, name) not in allowed:
                raise unknown(name, str(getattr(self, name)), allowed)
        if self.n_groups > self.n_agents:
            raise InvalidInput(f"{self.n_groups} groups of agents need as many agents, got {self.n_agents}")
        if not isinstance(self.phase, Budget):
            raise InvalidInput(f"phase is a Budget, got {self.phase!r}: write for example Budget(frames=100_000)")
        check_network(find_game(self.game, reads_rgb(self.network)), self.network)
        self.torch_device()

    @property
    def rules(self) -> Rules:
        """How this trial's games are played, in training and in evaluation."""
        return Rules(self.noop_max, self.max_episode_frames, self.repeat_action_probability, self.fire_on_reset)

    @classmethod
    def check(cls, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that no trial could take, before a study starts."""
        refuse_unknown(f"hyperparameter of {cls.__name__}", config_names, cls.tunable)

    def with_config(self, config: Mapping[str, Scalar]) -> Self:
        """Return the settings of one trial: these, overridden by its config."""
        self.check(config)
        return dataclasses.replace(self, **config)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Describe these settings in JSON's types."""
        described = dataclasses.asdict(self)
        described["phase"] = {self.phase.unit: getattr(self.phase, self.phase.unit)}
        return described

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Self:
        """Make settings from what `to_json` returned, or from part of it."""
        known = [f.name for f in dataclasses.fields(cls)]
        refuse_unknown(f"{cls.__name__} setting", described, known)
        given = dict(described)
        if isinstance(given.get("phase"), Mapping):
            given["phase"] = Budget(**given["phase"])
        return cls(**given)

    def torch_device(self) -> torch.device:
        """Resolve `device`."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise unknown("device", self.device, ["auto", "cpu", "cuda"]) from None
        if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
            raise InvalidInput(f"device {self.device!r} is not available here: use 'auto' or 'cpu'")
        return device


def _is_int(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check(settings: Settings, name: str, allowed: str, fits: Any) -> None:
    """Refuse a setting that does not fit, or that cannot even be compared."""
    value = getattr(settings, name)
    try:
        good = bool(fits(value))
    except TypeError:
        good = False
    if not good:
        raise InvalidInput(f"{type(settings).__name__} needs {name} {allowed}, got {value!r}")
