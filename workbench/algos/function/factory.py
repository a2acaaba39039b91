"""What a user may call a trainable: a generator function, a class with the four methods, or a factory."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workbench.algos.function.state import load_state
from workbench.algos.function.trial import FunctionTrial
from workbench.core.describe import bound_by_place
from workbench.core.errors import InvalidInput, unknown
from workbench.core.failures import named, short, unwrapped
from workbench.core.protocols import Config, TrainableFactory

Asked = Callable[[Config], object]
"""Raises `InvalidInput` for a configuration that no trial could begin with."""
_METHODS = ("train_phase", "save", "load", "close")
_CLASS = (
    "a trial's class has __init__(config, seed), train_phase(progress), save(path) and load(path), where path is a "
    "directory, and close()"
)


def as_factory(thing: Any) -> TrainableFactory:
    """Take what a user calls a trainable.

    Raises
    ------
    InvalidInput
        It is none; the message names it, and its line.
    """
    if isinstance(thing, partial) and isinstance(thing.func, Function):
        thing = partial(thing.func.function, *thing.args, **thing.keywords)
    given = inspect.unwrap(thing)
    if isinstance(given, partial):
        _check_keywords(given)
    _check_kind(given)
    if isinstance(cls := unwrapped(thing), type) and (thing is cls or isinstance(thing, partial)):
        _check_class(cls, thing)
    elif not isinstance(thing, Function) and _yields(thing):
        return Function(thing)
    elif not callable(thing) or all(hasattr(thing, method) for method in _METHODS):
        raise _untrainable(thing)
    elif inspect.isroutine(thing) or isinstance(thing, partial):
        _check_plain(thing)
    factory: TrainableFactory = thing
    return factory


def trying(trainable: Any) -> AbstractContextManager[Asked | None]:
    """Give what refuses a configuration that no trial of a trainable could begin with; ``None`` of one that has none.

    That is its `with_config`, if it has `check` besides; or what its `trying` gives, which makes more than settings,
    such as environments, once.
    """
    if getattr(trainable, "check", None) is None:
        return nullcontext(None)
    own: Callable[[], AbstractContextManager[Asked | None]] | None = getattr(trainable, "trying", None)
    return nullcontext(getattr(trainable, "with_config", None)) if own is None else own()


def _untrainable(thing: Any) -> InvalidInput:
    return InvalidInput(
        f"what is trained is a function that yields a score once a phase, a class with {', '.join(_METHODS)}, "
        f"or a factory such as GA3C(…); got {short(thing)}"
    )


@dataclass(frozen=True, repr=False)
class Function:
    """Trials that run a generator function, to its next yield in every phase.

    It yields a score, or a mapping with a ``score`` and other numbers, once a phase. With ``yield score, state`` it
    hands over a checkpoint: tensors, arrays, numbers, text, bytes, and dicts, lists and tuples of these. That comes
    back as its argument ``state`` (at first ``None``) where the trial goes on in another process, or another trial from
    it. A function that yields no state runs again from its start there, unreported up to the phase that is due; another
    trial cannot go on from it, and fails.

    Parameters
    ----------
    function : callable
        Called with the configuration, a dict, and by name with those of ``seed`` (int) and ``state`` that it takes.

    Examples
    --------
    >>> def train(config, seed):
    ...     for phase in range(9):
    ...         yield phase * config["lr"]
    >>> trial = Function(train)({"lr": 0.5}, seed=0)
    >>> [trial.train_phase(lambda metrics: None)["score"] for _ in range(3)]
    [0.0, 0.5, 1.0]
    >>> trial.close()
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise _untrainable(self.function)
        self._arguments({}, 0, None)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """What is run; records and marks of code are of this."""
        return self.function

    def __repr__(self) -> str:
        return named(self.function)

    def __call__(self, config: Config, seed: int) -> FunctionTrial:
        """Build a trial; the function is called when its first phase begins."""
        takes_state = "state" in self._arguments(config, seed, None)
        return FunctionTrial(repr(self), lambda state: self._begun(config, seed, state), takes_state)

    @staticmethod
    def state_in(checkpoint: str | Path) -> Any:
        """Read the state that a function has yielded, from the directory of a checkpoint; tensors come to the CPU.

        Raises
        ------
        CheckpointError
            There is none, or it cannot be read.
        """
        return load_state(Path(checkpoint), "the function")

    def _begun(self, config: Config, seed: int, state: Any) -> Iterator[Any]:
        made = self.function(dict(config), **self._arguments(config, seed, state))
        if not isinstance(made, Iterator):
            raise InvalidInput(f"{self} returned {short(made)}: it has to yield a score once a phase")
        return made

    def _arguments(self, config: Config, seed: int, state: Any) -> dict[str, Any]:
        """Give what the function takes by name."""
        try:
            signature = inspect.signature(self.function)
        except ValueError:  # of some that are written in C nothing is known
            return {}
        bound = self.function.keywords if isinstance(self.function, partial) else {}  # whoever binds a seed means it
        given = {"seed": seed, "state": state}
        by_name = {k: v for k, v in given.items() if k in signature.parameters and k not in bound}
        try:
            signature.bind(dict(config), **by_name)
        except TypeError as err:
            raise InvalidInput(
                f"{self} cannot be called with a configuration ({err}): its first argument is the configuration, and "
                "it may take seed and state by these names; others need defaults"
            ) from None
        return by_name


def _yields(thing: Any) -> bool:
    called = getattr(thing, "__call__", None)  # noqa: B004  an object's method may be a generator
    return any(map(inspect.isgeneratorfunction, (thing, inspect.unwrap(thing), called)))


def _check_class(cls: type, called: Callable[..., Any]) -> None:
    """Refuse a class that is none of a trial, or that `called`, it or a `partial` of it, cannot make one of."""
    missing = [method for method in _METHODS if not callable(getattr(cls, method, None))]
    if hasattr(cls, "rank"):
        return
    if not missing:
        _check_built(cls.__name__, called)
        return
    if len(missing) == len(_METHODS) and "__call__" in cls.__dict__:
        raise InvalidInput(f"{cls.__name__} is a class whose objects build trials: pass one, {cls.__name__}(…)")
    raise InvalidInput(f"{cls.__name__} lacks {', '.join(missing)}: {_CLASS}")


def _check_built(name: str, called: Callable[..., Any]) -> None:
    """Refuse a class that a configuration and a seed do not make an object of."""
    try:
        inspect.signature(called).bind({}, 0)
    except ValueError:  # of some that are written in C nothing is known
        return
    except TypeError as err:
        raise InvalidInput(f"{name} is called with (config, seed): {err}; {_CLASS}") from None


def _check_keywords(given: "partial[Any]") -> None:
    """Refuse keyword arguments that the function or class does not have, or that a study hands over itself."""
    try:
        takes = list(inspect.signature(partial(given.func, *given.args)).parameters.values())
    except ValueError:  # of some that are written in C nothing is known
        return
    if twice := [name for name in bound_by_place(given) if name in given.keywords]:
        raise InvalidInput(f"{named(given)} is given {twice[0]} twice, by its place and by its name: bind it once")
    handed = ["configuration"] if _yields(given.func) else ["configuration", "seed"]
    for what, argument in zip(handed, takes, strict=False):
        if argument.name in given.keywords:
            raise InvalidInput(
                f"{named(given)} gets the {what} of each trial as {argument.name}: the study hands it over, and "
                "neither a partial nor a study file can set it"
            )
    if any(p.kind is p.VAR_KEYWORD for p in takes):
        return
    names = [p.name for p in takes if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for name in given.keywords:
        if name not in names:
            own = set(names[len(handed) :]) - {"seed", "state"}
            raise unknown(f"keyword argument of {named(given)}", name, own)


def _check_kind(given: Any) -> None:
    """Refuse a setting that would stand in the record in the place of what is trained."""
    names = [*bound_by_place(given), *given.keywords] if isinstance(given, partial) else []
    if is_dataclass(given) and not isinstance(given, type):
        names = [f.name for f in fields(given) if f.init]
    if "kind" in names:
        raise InvalidInput(
            f"{named(given)} has a setting called kind, the word by which a study's record tells what is trained: "
            "give it another name"
        )


def _check_plain(function: Callable[..., Any]) -> None:
    """Refuse a function that can be no factory, being called with a configuration and a seed."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            f"{named(function)} is asynchronous, and a trial's function is not: write def, and asyncio.run(…) within "
            "it for what awaits"
        )
    try:
        signature = inspect.signature(function)
        signature.bind({}, 0)
        fits = "state" not in signature.parameters
    except TypeError:
        fits = False
    except ValueError:
        return
    if not fits:
        raise InvalidInput(
            f"{named(function)} has no yield of its own: a function yields its score once a phase instead of returning "
            "it (one that calls another does: yield from other(config))"
        )
