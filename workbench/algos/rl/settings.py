"""Settings of a trial: plain data, checked when made, overridden by a trial's config."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import torch

from workbench.algos.rl.checkpoint import check_fits, holds_statistics
from workbench.algos.rl.device import torch_device
from workbench.algos.rl.environment import Wrapper, code_of, packed, unpack
from workbench.algos.rl.games import Game, Rules, find_game
from workbench.algos.rl.learner import Precision
from workbench.algos.rl.loss import Reduction
from workbench.algos.rl.model import Init, check_network, reads_rgb
from workbench.algos.rl.optim import Optimizer, SharedRMSProp
from workbench.core.budget import Budget, check_budget
from workbench.core.checks import (
    DECAY,
    FROM_ZERO,
    POSITIVE,
    SHARE,
    TRUTH,
    WORD,
    Rule,
    check,
    check_named,
    make_plain,
    whole,
)
from workbench.core.errors import InvalidInput, refuse_unknown
from workbench.core.protocols import Scalar

_MOST = 2**31 - 1  # that the emulator can count


@dataclass(frozen=True)
class Settings:
    """What every system reads of a trial's settings; each system's own are in its package. The seed comes apart.

    Attributes
    ----------
    game : str
        Atari game (``Pong``) or a discrete-action Gymnasium id (``CartPole-v1``).
    phase : Budget
        Length of one phase, at least: it ends when this is spent and `min_games` games have ended in it.
    min_games, score_window : int
        What a phase's score is made of, the same for every trial of a study: the mean raw return of the games that
        *ended in that phase*, of the last `score_window` of them (the authors': 1000). A phase goes on until
        `min_games` have, for nothing is ever said of part of a game. In new environments the first games to end are the
        shortest: let a phase have frames for three games an agent or more. Where games may be endless, see
        `max_episode_frames`.
    learning_rate, gamma, t_max : float, float, int
        The paper's three hyperparameters; t_max is the most transitions a segment holds.
    n_agents : int
        Agents in all, of one process.
    network, init : str
        See `make_model`.
    entropy_beta, value_weight, log_epsilon, reduction
        See `actor_critic_loss`; the policy's loss of HTS-RL's PPO has no such logarithm.
    clip_rewards : bool or None
        Train on rewards clipped to [-1, 1]; by default on Atari only. Scores are of raw rewards.
    start_from : str or None
        Directory of a checkpoint (see `Trial.save`) that a trial begins from: weights, optimiser statistics, counters
        and scores; the configuration is the trial's own. `init` is then of no use, nor is `initial_square` unless the
        checkpoint is BA3C's, whose statistics no other system has. From scratch by default.
    noop_max, max_episode_frames, repeat_action_probability, fire_on_reset
        See `Rules`. If the budget is spent and no game has ended for so many frames that the longest one of every agent
        would have fitted in, the phase fails. With a limit on games that cannot happen; without one, neither here nor
        in the environment, a game is taken to last no longer than Atari's 108 000 frames.
    emulator_threads : int or None
        C++ threads over all groups, Atari only; one a core by default.
    torch_threads : int
        Cores one tensor operation may use; set for the whole process when a phase starts.
    precision : {"float32", "bfloat16", "auto"}
        What the network computes in; bfloat16 pays where the processor has units for it (AMX, or a GPU). ``auto``:
        see `choose_precision`.
    device : str
        ``auto`` (CUDA where there is one), ``cpu``, ``cuda``, ``cuda:1`` …
    env_kwargs, wrappers
        How a Gymnasium environment is made: see `Recipe`.
    """

    tunable: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "gamma",
        "t_max",
        "entropy_beta",
        "value_weight",
        "n_agents",
        "network",
        "init",
    )
    """Names that a trial's config may give."""
    shapes_weights: ClassVar[tuple[str, ...]] = ("network",)
    """Those of them with which weights have other shapes."""

    game: str = "Pong"
    phase: Budget = field(default_factory=lambda: Budget(episodes=2500))
    learning_rate: float = 1e-3
    gamma: float = 0.99
    t_max: int = 5
    n_agents: int = 32
    network: str = "auto"
    init: Init = "orthogonal"
    entropy_beta: float = 0.01
    value_weight: float = 0.5
    log_epsilon: float = 1e-6
    reduction: Reduction = "mean"
    clip_rewards: bool | None = None
    start_from: str | None = None
    min_games: int = 10
    score_window: int = 100
    noop_max: int = 30
    max_episode_frames: int | None = None
    repeat_action_probability: float = 0.0
    fire_on_reset: bool = False
    emulator_threads: int | None = None
    torch_threads: int = 1
    precision: Precision | Literal["auto"] = "float32"
    device: str = "auto"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[Wrapper] = ()

    def __post_init__(self) -> None:
        make_plain(self)
        check(self, whole(1), "t_max", "n_agents", "torch_threads", "min_games", "score_window")
        check(self, whole(0, _MOST), "noop_max")
        check(self, whole(1, _MOST).or_none(), "max_episode_frames", "emulator_threads")
        check(self, POSITIVE, "learning_rate")
        check(self, FROM_ZERO, "entropy_beta", "value_weight", "log_epsilon")
        check(self, SHARE, "gamma")
        check(self, DECAY, "repeat_action_probability")
        check(self, TRUTH, *(setting.name for setting in dataclasses.fields(self) if setting.type is bool))
        check(self, TRUTH.or_none(), "clip_rewards")
        check(self, WORD, "network")
        check(self, Rule("a directory", lambda value: isinstance(value, str | PathLike)).or_none(), "start_from")
        check_named(self, "init", get_args(Init))
        check_named(self, "reduction", get_args(Reduction))
        check_named(self, "precision", ("auto", *get_args(Precision)))
        check_budget(self.phase)
        game = self.found_game()
        check_network(game, self.network)
        for name in ("repeat_action_probability", "fire_on_reset"):
            if getattr(self, name) and not game.atari:
                raise InvalidInput(
                    f"{name} is of Atari's emulator, and {game.name} would be played without: leave it out, or take a "
                    "wrapper, such as {'gymnasium.wrappers:StickyAction': {'repeat_action_probability': 0.25}}"
                )
        if self.start_from is not None:
            check_fits(self.start_from, game, self.network)
        torch_device(self.device)

    def found_game(self) -> Game:
        """Look the game up, with its colours if the network reads them."""
        return find_game(self.game, reads_rgb(self.network), self.env_kwargs, self.wrappers)

    @property
    def named_code(self) -> list[Any]:
        """Code that counts for the mark of this trainable, though settings only name it."""
        return code_of(self.game, self.wrappers)

    def __getstate__(self) -> dict[str, Any]:
        return packed(self, self.game)

    def __setstate__(self, state: dict[str, Any]) -> None:
        unpack(self, state)

    @property
    def rules(self) -> Rules:
        """How this trial's games are played, in training and in evaluation."""
        return Rules(self.noop_max, self.max_episode_frames, self.repeat_action_probability, self.fire_on_reset)

    @property
    def repeatable(self) -> bool:
        """Whether the same config and seed give the same weights on the same machine."""
        return False

    def make_optimizer(self, params: Iterable[torch.Tensor]) -> Optimizer:
        """Make what steps the weights."""
        raise NotImplementedError(f"{type(self).__name__} is of no system: use GA3C, A3C, BA3C or HTS")

    @property
    def idle(self) -> dict[str, str]:
        """Hyperparameters that change nothing with these settings → the setting because of which they do not."""
        return {} if self.start_from is None else {"init": "start_from"}

    def check(self, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that no trial could take, or that would change nothing, before a study starts."""
        names = set(config_names)
        refuse_unknown(f"hyperparameter of {type(self).__name__}", names, self.tunable)
        for name, because in self.idle.items():
            if name in names and because not in names:
                raise InvalidInput(
                    f"{name} changes nothing in {type(self).__name__} with {because}={getattr(self, because)!r}: "
                    "take it out of the space"
                )

    def with_config(self, config: Mapping[str, Scalar]) -> Self:
        """Return the settings of one trial: these, overridden by its config."""
        self.check(config)
        return dataclasses.replace(self, **config)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RMSPropSettings(Settings):
    """What the systems read that step with RMSProp: GA3C, A3C and HTS-RL.

    Attributes
    ----------
    anneal_frames : int or None
        Frames over which the learning rate falls from its value to 0, linearly, as A3C (Mnih et al., 2016, supplement);
        counted from the trial's beginning over all its phases. By default it does not fall.
    rmsprop_decay, rmsprop_eps, eps_inside_root, initial_square, max_grad_norm
        See `SharedRMSProp`. By default `initial_square` is 0 where networks read vectors, and 1 where they have
        convolutions, as in the authors' code: from 0 the first steps silence most of their features.
    """

    tunable: ClassVar[tuple[str, ...]] = (
        *Settings.tunable,
        "anneal_frames",
        "reduction",
        "rmsprop_decay",
        "rmsprop_eps",
        "initial_square",
        "max_grad_norm",
    )

    anneal_frames: int | None = None
    rmsprop_decay: float = 0.99
    rmsprop_eps: float = 1e-5
    eps_inside_root: bool = False
    initial_square: float | None = None
    max_grad_norm: float | None = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, whole(1).or_none(), "anneal_frames")
        check(self, POSITIVE, "rmsprop_eps")
        check(self, FROM_ZERO.or_none(), "initial_square")
        check(self, POSITIVE.or_none(), "max_grad_norm")
        check(self, DECAY, "rmsprop_decay")

    @property
    def idle(self) -> dict[str, str]:
        """What statistics begin at, where a checkpoint brings its own."""
        brought = self.start_from is not None and holds_statistics(self.start_from, "square_avg")
        return super().idle | ({"initial_square": "start_from"} if brought else {})

    def make_optimizer(self, params: Iterable[torch.Tensor]) -> SharedRMSProp:
        """Make what steps the weights."""
        params, initial_square = list(params), self.initial_square
        if initial_square is None:
            initial_square = 1.0 if any(weight.dim() == 4 for weight in params) else 0.0
        return SharedRMSProp(
            params,
            self.learning_rate,
            decay=self.rmsprop_decay,
            eps=self.rmsprop_eps,
            eps_inside_root=self.eps_inside_root,
            initial_square=initial_square,
            max_norm=self.max_grad_norm,
        )
