"""What a trial of Stable-Baselines3 or sb3-contrib is told: an algorithm by name, with its own hyperparameters."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from numbers import Integral
from typing import Any, ClassVar, Self, get_args

from workbench.algos.rl.environment import Recipe, Wrapper, code_of, named, packed, unpack
from workbench.core.budget import Budget, check_budget
from workbench.core.checks import TRUTH, WORD, check, is_number, make_plain, whole
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.extras import how_to_get
from workbench.core.protocols import Config

LIBRARIES = {"stable_baselines3": "stable-baselines3", "sb3_contrib": "sb3-contrib"}
CONTRIB = ("ARS", "CrossQ", "MaskablePPO", "QRDQN", "RecurrentPPO", "TQC", "TRPO")
POLICY = "policy_kwargs."
_OURS = {
    *("self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size"),
    *("monitor_wrapper", "_init_setup_model"),
}
"""What an algorithm's signature has besides hyperparameters, and what the workbench sets."""
_SHAPING = (
    *("net_arch", "features_extractor_class", "features_extractor_kwargs", "share_features_extractor", "n_critics"),
    *("n_quantiles", "lstm_hidden_size", "n_lstm_layers", "shared_lstm", "enable_critic_lstm"),
)
_POLICY_OURS = {"self", "observation_space", "action_space", "lr_schedule"}
LINEAR = "lin_"
PHASES = 10  # that schedules run over where nobody says
_ALL = 1000  # hyperparameters to list, where one is unknown


@dataclass(frozen=True)
class SB3Settings:
    """Settings, checked, and put into the objects that SB3 wants; `SB3` says what each is."""

    shapes_weights: ClassVar[tuple[str, ...]] = ("use_sde", *(f"{POLICY}{name}" for name in _SHAPING))
    """Hyperparameters with which weights have other shapes."""

    algorithm: str
    env: str
    phase: Budget = field(default_factory=lambda: Budget(frames=20_000))
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    n_envs: int = 1
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[Wrapper] = ()
    normalize: bool = False
    total_frames: int | None = None
    min_games: int = 10
    score_window: int = 100
    keep_replay: bool = True
    torch_threads: int = 1
    device: str = "auto"

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Refuse what is no setting with the place where it stands."""
        algorithm = given[0] if given else settings.get("algorithm")
        for name, value in settings.items():
            if name in cls.__dataclass_fields__:
                continue
            if name == "total_timesteps":
                raise InvalidInput(
                    f"SB3 has no setting {name!r}: phase=Budget(frames=…) is how long a phase is, and the scheduler's "
                    "n_phases how many a trial has"
                )
            if isinstance(algorithm, str) and name in allowed(algorithm_class(algorithm)):
                raise InvalidInput(
                    f"SB3 has no setting {name!r}: the algorithm's own go into hyperparameters={{{name!r}: {value!r}}}"
                )
            raise unknown("setting of SB3", name, cls.__dataclass_fields__, _ALL)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        make_plain(self)
        check(self, whole(1), "n_envs", "min_games", "score_window", "torch_threads")
        check(self, whole(1).or_none(), "total_frames")
        check(self, TRUTH, "normalize", "keep_replay")
        check(self, WORD, "algorithm")
        check(self, WORD.or_none(), "policy")
        check_budget(self.phase)
        if not isinstance(self.env, str):
            raise InvalidInput(
                f"an environment goes by its id, got {self.env!r}: gymnasium.register('Mine-v0', MyEnv) gives it one"
            )
        if not isinstance(self.hyperparameters, Mapping):
            raise InvalidInput(f"hyperparameters is a table of them by name, got {self.hyperparameters!r}")
        self.check(self.hyperparameters)

    def check(self, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that the algorithm does not have, before a study starts."""
        names = list(config_names)
        if ours := [name for name in names if name in self.__dataclass_fields__]:
            raise InvalidInput(
                f"{ours[0]} is no hyperparameter but SB3's own setting, the same for all trials: SB3(…, {ours[0]}=…)"
            )
        kwargs = [name.removeprefix(POLICY) for name in names if name.startswith(POLICY)]
        what = f"hyperparameter of {self.algorithm}"
        own = [name for name in names if not name.startswith(POLICY)]
        refuse_unknown(what, own, allowed(algorithm_class(self.algorithm)), _ALL)
        refuse_unknown(f"policy_kwargs {what}", kwargs, self.policy_settings(), _ALL)

    def policy_settings(self) -> set[str]:
        """Name what ``policy_kwargs`` may hold."""
        return set(inspect.signature(self._some_policy.__init__).parameters) - _POLICY_OURS

    @property
    def _some_policy(self) -> Any:
        """The policy's class; where none is named another of the algorithm's, which have the same settings."""
        policies = algorithm_class(self.algorithm).policy_aliases
        return policies[self.policy] if self.policy in policies else next(iter(policies.values()))

    def _check_whole(self, made: Any, given: Mapping[str, Any]) -> None:
        """Refuse fractions of what a class counts: SB3 fails of them in mid-training, and names no hyperparameter."""
        for name, parameter in inspect.signature(made.__init__).parameters.items():
            kinds, value = get_args(parameter.annotation) or (parameter.annotation,), given.get(name)
            if int in kinds and float not in kinds and is_number(value) and not isinstance(value, Integral):
                raise InvalidInput(
                    f"{self.algorithm} needs {name} a whole number, got {value!r}: in a space give it step=1"
                )

    def with_config(self, config: Config) -> Self:
        """Return the settings of one trial: these, overridden by its config."""
        given = {**self.hyperparameters, **{k: v for k, v in config.items() if not k.startswith(POLICY)}}
        inner = {k.removeprefix(POLICY): v for k, v in config.items() if k.startswith(POLICY)}
        if inner:
            given["policy_kwargs"] = {**given.get("policy_kwargs", {}), **inner}
        return replace(self, hyperparameters=given)

    @property
    def recipe(self) -> Recipe:
        """How one environment is made."""
        return Recipe(self.env, self.env_kwargs, self.wrappers)

    def arguments(self) -> dict[str, Any]:
        """Give what the algorithm's class is called with: words become the objects that SB3 wants."""
        self._check_whole(algorithm_class(self.algorithm), self.hyperparameters)
        given = {name: _meant(name, value) for name, value in self.hyperparameters.items()}
        policy_kwargs = given.pop("policy_kwargs", None) or {}
        if not isinstance(policy_kwargs, Mapping):
            raise InvalidInput(f"policy_kwargs is a table, got {policy_kwargs!r}")
        inner = {k.removeprefix(POLICY): given.pop(k) for k in list(given) if k.startswith(POLICY)}
        inner = {**policy_kwargs, **inner}
        refuse_unknown(f"policy_kwargs hyperparameter of {self.algorithm}", inner, self.policy_settings(), _ALL)
        self._check_whole(self._some_policy, inner)
        if inner:
            given["policy_kwargs"] = {name: _meant(name, value) for name, value in inner.items()}
        return given

    @property
    def named_code(self) -> list[Any]:
        """Code that counts for the mark of this trainable, though settings only name it."""
        return code_of(self.env, self.wrappers)

    def __getstate__(self) -> dict[str, Any]:
        return packed(self, self.env)

    def __setstate__(self, state: dict[str, Any]) -> None:
        unpack(self, state)


@cache
def algorithm_class(name: str) -> Any:
    """Find an algorithm's class by its name, first in stable-baselines3, then in sb3-contrib.

    Raises
    ------
    InvalidInput
        There is none, or its library is not installed.
    """
    known: dict[str, Any] = {}
    for library in LIBRARIES:
        with suppress(ModuleNotFoundError):
            module = import_module(library)
            known |= {k: v for k in module.__all__ if hasattr(v := getattr(module, k), "policy_aliases")}
    if not known:
        raise InvalidInput(
            f"SB3({name!r}, …) needs Stable-Baselines3: {how_to_get('stable_baselines3')}, or stable-baselines3 alone"
        )
    if name in CONTRIB and name not in known:
        raise InvalidInput(f"{name} is of sb3-contrib, which is not installed: pip install sb3-contrib")
    if name not in known:
        raise unknown("algorithm", str(name), [*known, *CONTRIB])
    return known[name]


def allowed(algorithm: Any) -> list[str]:
    """Name an algorithm's hyperparameters."""
    return [name for name in inspect.signature(algorithm.__init__).parameters if name not in _OURS]


def _meant(name: str, value: Any) -> Any:
    """Put the object that SB3 wants in the place of the word or the list that stands for it."""
    if isinstance(value, str) and name.endswith(("_fn", "_class")):
        return _class_named(name, value)
    if isinstance(value, str) and value.startswith(LINEAR):
        from stable_baselines3.common.utils import LinearSchedule

        try:
            return LinearSchedule(float(value.removeprefix(LINEAR)), 0.0, 1.0)
        except ValueError:
            raise InvalidInput(f"{name} {value!r} is no schedule: write for example 'lin_0.001'") from None
    if name == "net_arch" and isinstance(value, int):
        return [value, value]
    return tuple(value) if name == "train_freq" and isinstance(value, list) else value


def _class_named(name: str, value: str) -> Any:
    """Find a class of torch or SB3 by its name, or anybody's by its module and name."""
    if ":" in value:
        return named(name, value)
    for module in ("torch.nn", "torch.optim", *LIBRARIES):
        with suppress(ModuleNotFoundError, AttributeError):
            return getattr(import_module(module), value)
    raise InvalidInput(
        f"{name} {value!r} is no class of torch or SB3: name others by their module, 'my_module:{value}'"
    )
