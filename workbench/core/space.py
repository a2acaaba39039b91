"""Search spaces: what may be tuned, and how to draw, enumerate, check and perturb it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, runtime_checkable

import numpy as np

from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Scalar

_SCALARS = (bool, int, float, str)


@runtime_checkable
class Domain(Protocol):
    """The values one hyperparameter may take."""

    def sample(self, rng: np.random.Generator) -> Scalar:
        """Draw one value."""

    def grid(self, n: int) -> list[Scalar]:
        """Give at most `n` values spread over the domain, ends included."""

    def contains(self, value: object) -> bool:
        """Tell whether `value` may be taken."""

    def perturb(self, value: Scalar, factor: float, rng: np.random.Generator) -> Scalar:
        """Multiply `value` by `factor` and bring it back into the domain; a choice moves to a neighbour.

        A value with a step moves by one step at least, away from 0 if the factor is above 1 and towards it if below:
        rounded to the nearest step, 2 times 0.8 or 1.2 would stay 2 for ever. The ends of the domain hold it.
        """

    def shift(self, value: Scalar, share: float) -> Scalar:
        """Move `value` by a share of the domain's length, and bring it back into the domain.

        The length is that of the logarithm where the domain is log-uniform; a choice moves by that share of its list,
        rounded. A choice, and a value with a step, move by one step at least unless the share is 0.
        """

    def to_json(self) -> dict[str, Any]:
        """Describe the domain so that `domain_from_json` gives it back."""


@dataclass(frozen=True)
class Uniform(Domain):
    """Uniform on [low, high], on multiples of `step` counted from `low` if a step is given.

    With integer `low` and `step` the values are integers.
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def sample(self, rng: np.random.Generator) -> Scalar:
        if self.step is None:
            return float(rng.uniform(self.low, self.high))
        return _on_step(self, self.low + self.step * float(rng.integers(_n_steps(self) + 1)))

    def grid(self, n: int) -> list[Scalar]:
        return _spread(self, [float(v) for v in np.linspace(self.low, self.high, n)])

    def contains(self, value: object) -> bool:
        return _in_range(self, value)

    def perturb(self, value: Scalar, factor: float, rng: np.random.Generator) -> Scalar:
        return _moved(self, float(value), float(value) * factor, (factor - 1) * (-1 if float(value) < 0 else 1))

    def shift(self, value: Scalar, share: float) -> Scalar:
        return _moved(self, float(value), float(value) + share * (self.high - self.low), share)

    def to_json(self) -> dict[str, Any]:
        return {"uniform": [self.low, self.high], **_step_json(self)}


@dataclass(frozen=True)
class LogUniform(Domain):
    """Log-uniform on [low, high]; quantised to multiples of `step` counted from `low` if a step is given.

    Quantising draws from the continuous law on [low - step/2, high + step/2) and rounds, so that the end
    values are as likely as their neighbours' density says.
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        _check_range(self)
        if not self.low > 0:
            raise InvalidInput(f"LogUniform needs 0 < low, got low={self.low}: use Uniform for ranges that reach 0")

    def sample(self, rng: np.random.Generator) -> Scalar:
        half = (self.step or 0.0) / 2
        low, high = max(self.low - half, self.low / 2), self.high + half
        return _on_step(self, math.exp(rng.uniform(math.log(low), math.log(high))))

    def grid(self, n: int) -> list[Scalar]:
        return _spread(self, [float(v) for v in np.geomspace(self.low, self.high, n)])

    def contains(self, value: object) -> bool:
        return _in_range(self, value)

    def perturb(self, value: Scalar, factor: float, rng: np.random.Generator) -> Scalar:
        return _moved(self, float(value), float(value) * factor, (factor - 1) * (-1 if float(value) < 0 else 1))

    def shift(self, value: Scalar, share: float) -> Scalar:
        return _moved(self, float(value), float(value) * (self.high / self.low) ** share, share)

    def to_json(self) -> dict[str, Any]:
        return {"log_uniform": [self.low, self.high], **_step_json(self)}


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few values, all equally likely; their order counts for `perturb`."""

    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        if isinstance(self.values, (str, bytes, Mapping, Set)) or not isinstance(self.values, Iterable):
            raise InvalidInput(f"Choice takes a list of values, got {self.values!r}: write Choice([…])")
        object.__setattr__(self, "values", tuple(map(_plain, self.values)))
        for value in self.values:
            if not isinstance(value, _SCALARS) or value != value or not _written(value):
                raise InvalidInput(
                    f"Choice is between numbers, words and true or false, got {value!r}: name it, as in "
                    "Choice(['small', 'large']), and look up in your code what the name stands for"
                )
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidInput(f"Choice needs one or more values, each once, got {list(self.values)}")

    def sample(self, rng: np.random.Generator) -> Scalar:
        return self.values[int(rng.integers(len(self.values)))]

    def grid(self, n: int) -> list[Scalar]:
        if n >= len(self.values):
            return list(self.values)
        picks = np.linspace(0, len(self.values) - 1, n).round().astype(int)
        return [self.values[int(i)] for i in picks]

    def contains(self, value: object) -> bool:
        return any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in self.values)

    def perturb(self, value: Scalar, factor: float, rng: np.random.Generator) -> Scalar:
        at = self.values.index(value) + (factor > 1) - (factor < 1)
        return self.values[min(max(at, 0), len(self.values) - 1)]

    def shift(self, value: Scalar, share: float) -> Scalar:
        steps = round(abs(share) * len(self.values))
        at = self.values.index(value) + int(math.copysign(max(steps, share != 0), share))
        return self.values[min(max(at, 0), len(self.values) - 1)]

    def to_json(self) -> dict[str, Any]:
        return {"choice": list(self.values)}


def _written(value: object) -> bool:
    """Tell whether a word can be written down: half a surrogate pair cannot."""
    return not isinstance(value, str) or value.encode("utf-8", "replace").decode() == value


class Space(Mapping[str, Domain]):
    """A named set of domains.

    Parameters
    ----------
    domains : Mapping[str, Domain]
        Hyperparameter name → domain. The order is kept: it is the order of sampling and of the grid.
    only_if : Mapping, optional
        Name → the earlier hyperparameters it depends on, each with the value, or a list of the values, under which it
        applies: ``{"momentum": {"optimizer": "sgd"}}``. A configuration under which it does not apply is without it.
    constraint : callable, optional
        Configuration → whether it may be run. Points are drawn until it holds. A record only names the function: a
        study that has one is resumed from Python.

    Examples
    --------
    >>> space = Space({"learning_rate": LogUniform(1e-5, 1e-2), "t_max": LogUniform(2, 100, step=1)})
    >>> sorted(space.sample(np.random.default_rng(0)))
    ['learning_rate', 't_max']
    """

    def __init__(
        self,
        domains: Mapping[str, Domain],
        only_if: Mapping[str, Mapping[str, Any]] | None = None,
        constraint: Callable[[Config], bool] | None = None,
    ) -> None:
        if not isinstance(domains, Mapping) or not domains:
            raise InvalidInput(f"a search space is a dict of one or more hyperparameters, got {domains!r}")
        self._domains = dict(domains)
        for name, domain in self._domains.items():
            if not isinstance(name, str) or not _written(name):
                raise InvalidInput(f"a hyperparameter's name is a word, got {name!r}")
            if not isinstance(domain, Domain) or isinstance(domain, type):
                raise InvalidInput(f"hyperparameter {name!r}: got {domain!r}; {_meant(domain)}")
        self.only_if = {name: _conditions(name, told, self._domains) for name, told in (only_if or {}).items()}
        self.constraint = constraint
        if constraint is not None and (not callable(constraint) or "constraint" in self._domains):
            raise InvalidInput(
                f"constraint is a function of a configuration, got {constraint!r}; no hyperparameter can have its name"
            )

    @classmethod
    def of(cls, given: Mapping[str, Domain]) -> "Space":
        """Take a space, or make one of a plain dict."""
        return given if isinstance(given, Space) else cls(given)

    def __getitem__(self, name: str) -> Domain:
        return self._domains[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    def __repr__(self) -> str:
        more = f", only_if={self.only_if!r}" if self.only_if else ""
        return f"Space({self._domains!r}{more}{f', constraint={self.constraint!r}' if self.constraint else ''})"

    def applies(self, name: str, config: Config) -> bool:
        """Tell whether a hyperparameter has a place in a configuration, by those before it."""
        return all(
            parent in config and config[parent] in values for parent, values in self.only_if.get(name, {}).items()
        )

    def allows(self, config: Config) -> bool:
        """Tell whether the constraint holds, if there is one."""
        return self.constraint is None or bool(self.constraint(dict(config)))

    def once(self, value: Callable[[str, Domain], Scalar]) -> dict[str, Scalar]:
        """Ask for the value of every hyperparameter that applies, in order."""
        config: dict[str, Scalar] = {}
        for name, domain in self.items():
            if self.applies(name, config):
                config[name] = value(name, domain)
        return config

    def point(self, value: Callable[[str, Domain], Scalar], instead: Config | None = None) -> dict[str, Scalar]:
        """Ask for the value of every hyperparameter that applies until the constraint holds.

        Parameters
        ----------
        value : callable
            Asked with the name and the domain; it draws anew each time.
        instead : Config, optional
            What is given where the constraint did not hold in a thousand tries; without it that is an error.
        """
        for _ in range(_TRIES):
            config = self.once(value)
            if self.allows(config):
                return config
        if instead is None:
            raise InvalidInput(f"the constraint held for none of {_TRIES} configurations drawn: loosen it")
        return dict(instead)

    def sample(self, rng: np.random.Generator) -> dict[str, Scalar]:
        """Draw one configuration."""
        return self.point(lambda name, domain: domain.sample(rng))

    def grid(self, per_axis: int | Mapping[str, int]) -> list[dict[str, Scalar]]:
        """Enumerate the product of `per_axis` values a hyperparameter; the last name varies fastest."""
        counts = per_axis if isinstance(per_axis, Mapping) else dict.fromkeys(self, per_axis)
        if set(counts) != set(self) or min(counts.values()) < 1:
            raise InvalidInput(f"a grid needs a count of 1 or more for each of {list(self)}, got {dict(counts)}")
        axes = [domain.grid(counts[name]) for name, domain in self.items()]
        found: dict[tuple[tuple[str, Scalar], ...], dict[str, Scalar]] = {}
        for every in product(*axes):
            config = self._of(dict(zip(self, every, strict=True)))
            if self.allows(config):
                found.setdefault(tuple(config.items()), config)
        if not found:
            raise InvalidInput("the constraint holds for no point of the grid: loosen it, or take more values")
        return list(found.values())

    def _of(self, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return self.once(lambda name, _: values[name])

    def validate(self, config: Config) -> None:
        """Raise `InvalidInput` unless `config` is a point of this space."""
        wanted = [name for name in self if self.applies(name, config)]
        if set(config) != set(wanted):
            raise InvalidInput(f"a configuration of this space names {sorted(wanted)}, got {sorted(config)}")
        for name in wanted:
            if not self[name].contains(config[name]):
                raise InvalidInput(f"{name}={config[name]!r} lies outside {self[name]}")
        if not self.allows(config):
            raise InvalidInput(f"{dict(config)} breaks the space's constraint")

    def perturb(self, config: Config, factors: Sequence[float], rng: np.random.Generator) -> dict[str, Scalar]:
        """Multiply each value by a factor drawn from `factors` (PBT's explore step, arXiv 1711.09846, Sec. 4.1)."""

        def moved(name: str, domain: Domain) -> Scalar:
            if name not in config:  # it applies since what it depends on has moved
                return domain.sample(rng)
            return domain.perturb(config[name], factors[int(rng.integers(len(factors)))], rng)

        return self.point(moved, instead=config)

    def shift(self, config: Config, spread: float, rng: np.random.Generator) -> dict[str, Scalar]:
        """Move each value by a Gaussian share of its domain, of standard deviation `spread`; it leaves 0, too."""

        def moved(name: str, domain: Domain) -> Scalar:
            return domain.shift(config[name], spread * float(rng.normal())) if name in config else domain.sample(rng)

        return self.point(moved, instead=config)

    def redraw(self, config: Config, probability: float, rng: np.random.Generator) -> dict[str, Scalar]:
        """Draw each value anew with some probability."""

        def drawn(name: str, domain: Domain) -> Scalar:
            kept = rng.random() >= probability and name in config
            return config[name] if kept else domain.sample(rng)

        return self.point(drawn, instead=config)

    def to_json(self) -> dict[str, Any]:
        """Describe the space in JSON's types; `Space.from_json` gives it back, unless it has a constraint."""
        told: dict[str, Any] = {name: domain.to_json() for name, domain in self.items()}
        for name, conditions in self.only_if.items():
            told[name]["only_if"] = {parent: list(values) for parent, values in conditions.items()}
        if self.constraint is not None:
            named = self.constraint if hasattr(self.constraint, "__qualname__") else type(self.constraint)
            told["constraint"] = {"kind": f"{named.__module__}:{named.__qualname__}"}
        return told

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> "Space":
        """Build a space from its description, as it stands in study files and in the log."""
        if not isinstance(described, Mapping):
            raise InvalidInput(f"a search space is a table of hyperparameters, got {described!r}")
        if isinstance(given := described.get("constraint"), Mapping) and "kind" in given:
            raise InvalidInput(f"the constraint {given['kind']!r} is code of your own: build this space in Python")
        entries = {name: dict(entry) if isinstance(entry, Mapping) else entry for name, entry in described.items()}
        conditions = {
            n: entry.pop("only_if") for n, entry in entries.items() if isinstance(entry, dict) and "only_if" in entry
        }
        return cls({name: domain_from_json(name, entry) for name, entry in entries.items()}, conditions)


_TRIES = 1000


def _conditions(name: str, told: Any, domains: Mapping[str, Domain]) -> dict[str, tuple[Scalar, ...]]:
    """Check what a hyperparameter depends on, and write single values as lists of one."""
    order = list(domains)
    if name not in domains or not isinstance(told, Mapping) or not told:
        raise InvalidInput(f"only_if of {name!r}: write {{name = value}} or {{name = [values]}}, got {told!r}")
    found = {}
    for parent, values in told.items():
        if parent not in order[: order.index(name)]:
            raise InvalidInput(f"{name!r} depends on {parent!r}, which must be a hyperparameter that comes before it")
        found[parent] = tuple(values) if isinstance(values, (list, tuple)) else (values,)
        if wrong := [value for value in found[parent] if not domains[parent].contains(value)]:
            raise InvalidInput(f"{name!r} applies only if {parent} = {wrong[0]!r}, which {domains[parent]} never is")
    return found


def domain_from_json(name: str, entry: Any) -> Domain:
    """Read ``{"log_uniform": [low, high], "step": 1}`` and its like."""
    allowed = "write {uniform = [low, high]}, {log_uniform = [low, high], step = 1} or {choice = [a, b, …]}"
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"hyperparameter {name!r}: got {entry!r}; {allowed}")
    rest = dict(entry)
    step = rest.pop("step", None)
    if len(rest) != 1:
        raise InvalidInput(f"hyperparameter {name!r}: got {dict(entry)}; {allowed}")
    ((kind, values),) = rest.items()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidInput(f"hyperparameter {name!r}: {kind} takes a list, got {values!r}; {allowed}")
    try:
        if kind == "choice" and step is None:
            return Choice(values)
        if kind in ("uniform", "log_uniform") and len(values) == 2:
            return (Uniform if kind == "uniform" else LogUniform)(values[0], values[1], step)
    except (InvalidInput, TypeError) as err:
        raise InvalidInput(f"hyperparameter {name!r}: {err}") from None
    raise InvalidInput(f"hyperparameter {name!r}: got {dict(entry)}; {allowed}")


_Range = Uniform | LogUniform


def _meant(given: object) -> str:
    """Say what to write in place of what is no domain."""
    if isinstance(given, type):
        return f"pass an object, such as {given.__name__}(…)"
    values = [*map(_plain, given if isinstance(given, (list, tuple, range, np.ndarray)) else [given])]
    if not values or not all(isinstance(value, _SCALARS) for value in values):
        return "write Uniform(low, high), LogUniform(low, high) or Choice([…])"
    numbers = len(values) == 2 and not any(isinstance(value, (str, bool)) for value in values)
    return (
        f"write Uniform({values[0]}, {values[1]}), LogUniform(…) or Choice({values})"
        if numbers
        else f"write Choice({values})"
    )


def _plain(value: Any) -> Any:
    """Turn a number or word of numpy's into Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _check_range(d: _Range) -> None:
    for name in ("low", "high", "step"):
        object.__setattr__(d, name, _plain(getattr(d, name)))
    numbers = [d.low, d.high, *([] if d.step is None else [d.step])]
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in numbers):
        raise InvalidInput(f"{d} needs finite numbers")
    if not d.low < d.high:
        raise InvalidInput(f"{d} is {'empty' if d.low == d.high else 'inverted'}: low must be less than high")
    if d.step is not None and not 0 < d.step <= d.high - d.low:
        raise InvalidInput(f"{d} needs 0 < step <= high - low")


def _n_steps(d: _Range) -> int:
    return math.floor((d.high - d.low) / (d.step or 1) + 1e-9)


def _on_step(d: _Range, value: float) -> Scalar:
    """Clip to the range and round to the step."""
    value = min(max(value, d.low), d.high)
    if d.step is None:
        return float(value)
    at = d.low + d.step * min(max(round((value - d.low) / d.step), 0), _n_steps(d))
    return int(at) if float(d.low).is_integer() and float(d.step).is_integer() else float(at)


def _moved(d: _Range, value: float, wanted: float, direction: float) -> Scalar:
    """Bring `wanted` into the range, and with a step at least one of them away from `value`, as `direction` points."""
    at, was = _on_step(d, wanted), _on_step(d, value)
    if d.step is None or not direction or at != was:
        return at
    return _on_step(d, float(was) + math.copysign(d.step, direction))


def _in_range(d: _Range, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not d.low <= value <= d.high:
        return False
    if d.step is None:
        return True
    steps = (value - d.low) / d.step
    return math.isclose(steps, round(steps), abs_tol=1e-9)


def _spread(d: _Range, values: list[float]) -> list[Scalar]:
    return list(dict.fromkeys(_on_step(d, v) for v in values))


def _step_json(d: _Range) -> dict[str, Any]:
    return {} if d.step is None else {"step": d.step}
