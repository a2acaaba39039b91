"""Gymnasium environments: named, made with arguments and wrappers, carried to workers.

An environment goes by its id. Gymnasium's own form ``my_module:Env-v0`` imports the module that registers it; what was
registered in a notebook's cell travels, with its class, wherever a trial that names it does.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import cloudpickle
import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from workbench.algos.rl.playable import refuse_wrappers
from workbench.core.errors import InvalidInput
from workbench.core.failures import place_of, short
from workbench.core.imports import AT_HAND, imported, imported_module
from workbench.core.measured import one_line
from workbench.core.script import SCRIPT, pickled

Wrapper = str | Mapping[str, Mapping[str, Any]] | Callable[..., gymnasium.Env]
"""A wrapper by name (``"my_module:MyWrapper"``), by name with its arguments (``{"my_module:MyWrapper": {"n": 3}}``), or
itself: what takes an environment and gives one."""

_OURS = tuple(f"{name}:" for name in SCRIPT)
_NOT_THERE = (gymnasium.error.NameNotFound, gymnasium.error.NamespaceNotFound)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one environment is made.

    Attributes
    ----------
    id : str
        ``CartPole-v1``, or ``my_module:Env-v0``, whose module is imported first.
    kwargs : Mapping
        What `gymnasium.make` is given besides.
    wrappers : sequence of Wrapper
        Put around it, the first one innermost.
    """

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[Wrapper] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kwargs, Mapping):
            raise InvalidInput(f"env_kwargs is a table of arguments by name, got {self.kwargs!r}")
        if isinstance(self.wrappers, str | Mapping) or not isinstance(self.wrappers, Sequence):
            raise InvalidInput(f"wrappers is a list, innermost first, got {self.wrappers!r}: write [{self.wrappers!r}]")

    def make(self, max_episode_steps: int | None = None) -> gymnasium.Env:
        """Make the environment.

        Raises
        ------
        InvalidInput
            A module, a package or a wrapper it needs is missing, or its own code refuses what it is given. Or it exists
            only in vector form, or a wrapper keeps running means, or skips frames and ends games by lives at once.
        """
        limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
        wraps = [_wrapper(wrapper) for wrapper in self.wrappers]
        name = self.id.rpartition(":")[2]
        if registered(self.id) and gymnasium.registry[name].entry_point is None:
            raise InvalidInput(
                f"environment {self.id} exists only as a vector environment: register its single form as well, "
                f"gymnasium.register({name!r}, entry_point=…, vector_entry_point=…)"
            )
        with all_or_none() as opened:
            try:
                env = opened(gymnasium.make(name, **{**self.kwargs, **limit}))
                for wrap, settings in wraps:
                    env = wrap(env, **settings)
            except Exception as err:  # noqa: BLE001  an environment is anybody's code
                place = f" ({where})" if (where := place_of(err)) else ""
                hint = f"; {how_to_register(self.id)}" if isinstance(err, _NOT_THERE) else ""
                said = f"{one_line(err)}{place}{hint}"
                raise InvalidInput(f"environment {self.id} cannot be made: {said}") from None
            if not isinstance(env, gymnasium.Env):  # of a function that forgets its return
                raise InvalidInput(
                    f"the last wrapper of environment {self.id} gave {short(env)}: it takes an environment and returns "
                    "one"
                )
            refuse_wrappers(env, self.id)
        return env


Opened = Callable[[Any], Any]
"""Notes, and gives back, what is to be closed."""


@contextmanager
def all_or_none() -> Iterator[Opened]:
    """Give what is told of each environment as it is opened: where not all come about, those that have are closed.

    A worker keeps one trial after another, and of many a simulator there may be but one on a machine.
    """
    with ExitStack() as opened:

        def noted(env: Any) -> Any:
            opened.callback(_close, env)
            return env

        yield noted
        opened.pop_all()


def _close(env: Any) -> None:
    with suppress(Exception):  # why the others have not come about is what is to be told
        env.close()


def registered(name: str) -> bool:
    """Tell whether Gymnasium knows an environment, once the module that it names is imported.

    Raises
    ------
    InvalidInput
        That module cannot be imported.
    """
    module, _, plain = name.rpartition(":")
    if module:
        with _said_of(f"environment {name}"):
            imported_module(module)
    return plain in gymnasium.registry


def how_to_register(name: str) -> str:
    """Say what to do about an environment that Gymnasium does not know."""
    module, _, plain = name.rpartition(":")
    if module:
        return f"{module} registers no environment {plain!r}: gymnasium.register({plain!r}, …) it there"
    return "one of your own: gymnasium.register it in a cell, or say 'my_module:NAME'"


# -- names of code --------------------------------------------------------------------------------------------


def named(what: str, path: str) -> Any:
    """Import what ``"module:Name"`` names; `what` says for the error what it was to be."""
    with _said_of(what):
        return imported(path)


@contextmanager
def _said_of(what: str) -> Iterator[None]:
    """Put before a refusal what it is about."""
    try:
        yield
    except InvalidInput as err:
        raise InvalidInput(f"{what}: {err}") from None


def _wrapper(wrapper: Wrapper) -> tuple[Callable[..., gymnasium.Env], Mapping[str, Any]]:
    """Find a wrapper and its arguments."""
    settings: Mapping[str, Any] = {}
    if isinstance(wrapper, Mapping) and len(wrapper) == 1:
        ((wrapper, settings),) = wrapper.items()
    if isinstance(wrapper, str):
        wrapper = named(f"wrapper {wrapper}", wrapper)
    if not callable(wrapper) or not isinstance(settings, Mapping):
        raise InvalidInput(
            "a wrapper is 'my_module:MyWrapper', or with its arguments {'my_module:MyWrapper': {'n': 3}}, or a class; "
            f"got {wrapper!r}" + (f" with {settings!r}" if settings else "")
        )
    return wrapper, settings


def code_of(name: str, wrappers: Sequence[Wrapper]) -> list[Any]:
    """Give the code that an environment's id and wrappers' names stand for, ``None`` where it has not been imported."""
    spec = gymnasium.registry.get(name.rpartition(":")[2])
    named = [[one] if isinstance(one, str) else one for one in wrappers if isinstance(one, str | Mapping)]
    entries = [spec and spec.entry_point, *chain.from_iterable(named)]
    return [_at_hand(entry) if isinstance(entry, str) else entry for entry in entries]


def _at_hand(path: str) -> Any:
    module, _, name = path.rpartition(":")
    return getattr(sys.modules.get(module), name, None)


# -- to other processes ---------------------------------------------------------------------------------------


def packed(settings: Any, name: str) -> dict[str, Any]:
    """Give the state of settings, and in it, pickled, what another process would not know of their environment.

    That is its registration, and wrappers with their classes. Nothing where it can find out by itself: the environment
    is Gymnasium's, or its module is named.
    """
    state, wrappers = dict(settings.__dict__), settings.wrappers
    spec = gymnasium.registry.get(name) if isinstance(name, str) else None
    entry = spec.entry_point if spec is not None else ""
    module = entry.partition(":")[0] if isinstance(entry, str) else str(getattr(entry, "__module__", ""))
    if module.partition(".")[0] in AT_HAND:
        spec = None
    if spec is None and all(isinstance(wrapper, str) for wrapper in wrappers):
        return state
    try:
        return {**state, "wrappers": (), "packet": pickled((spec and _whole(spec), wrappers))}
    except Exception as err:  # noqa: BLE001  pickling runs whatever code an object brings along
        raise InvalidInput(
            f"environment {name} cannot be sent to another process ({one_line(err)}): put it into a module "
            "that registers it, and name it 'my_module:Env-v0'"
        ) from None


def _whole(spec: EnvSpec) -> EnvSpec:
    """Put code in the place of its name, "__main__:Corridor": the script is another in another process."""
    named = {key: getattr(spec, key) for key in ("entry_point", "vector_entry_point")}
    ours = {key: entry for key, entry in named.items() if isinstance(entry, str) and entry.startswith(_OURS)}
    code: dict[str, Any] = {key: load_env_creator(entry) for key, entry in ours.items()}
    return replace(spec, **code)


def unpack(settings: object, state: dict[str, Any]) -> None:
    """Take over what `packed` gave, and register here what it took along."""
    if (packet := state.pop("packet", None)) is not None:
        spec, state["wrappers"] = cloudpickle.loads(packet)
        if spec is not None:
            gymnasium.registry[spec.id] = spec  # also over an older one: a cell may have been run again
    settings.__dict__.update(state)
