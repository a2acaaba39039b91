"""Search spaces: what may be tuned, and how to draw, enumerate, check and perturb it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from itertools import product
from typing import Any

import numpy as np

from workbench.core.checks import whole
from workbench.core.domains import Domain, domain_from_json, is_continuous, meant, on_step, scalar, written
from workbench.core.errors import InvalidInput, unknown
from workbench.core.measured import one_line
from workbench.core.protocols import Config, Scalar
from workbench.core.script import code_path

CONFIG_ID = "config_id"
"""What names a configuration in a table of recorded curves stands among its hyperparameters, and is none."""


class Space(Mapping[str, Domain]):
    """A named set of domains.

    Parameters
    ----------
    domains : Mapping[str, Domain]
        Hyperparameter name → domain. The order is kept: it is the order of sampling and of the grid.
    only_if : Mapping, optional
        Name → the earlier hyperparameters it depends on, each with the value, or a list of the values, under which it
        applies: ``{"momentum": {"optimizer": "sgd"}}``. A configuration under which it does not apply is without it.
        What it depends on is a choice or has a step.
    constraint : callable, optional
        Configuration → whether it may be run. Points are drawn until it holds. A record only names the function: a
        study that has one is resumed from Python, or with its study file.

    Examples
    --------
    >>> from workbench.core.domains import LogUniform
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
            if not isinstance(name, str) or not name or not written(name):
                raise InvalidInput(f"a hyperparameter's name is a word, got {name!r}")
            if not isinstance(domain, Domain) or isinstance(domain, type):
                raise InvalidInput(f"hyperparameter {name!r}: got {domain!r}; {meant(domain)}")
        if not isinstance(only_if, Mapping | None):
            raise InvalidInput(f"only_if is a dict, {{name: {{parent: value}}}}, got {only_if!r}")
        self.only_if = {
            name: _conditions(name, condition, self._domains) for name, condition in (only_if or {}).items()
        }
        self._applies_if = {
            name: {parent: tuple(on_step(self[parent], value) for value in values) for parent, values in of.items()}
            for name, of in self.only_if.items()
        }
        self.constraint = constraint
        if constraint is not None and (not callable(constraint) or "constraint" in self._domains):
            raise InvalidInput(
                f"constraint is a function of a configuration, got {constraint!r}; no hyperparameter can have its name"
            )
        if any(late(constraint) for late in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)):
            raise InvalidInput(
                f"a constraint returns whether a configuration may be run, and {constraint!r} yields or awaits, which "
                "is true of every one: let it return True or False"
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
        return self._unmet(name, config) is None

    def _unmet(self, name: str, config: Config) -> str | None:
        """Name what keeps a hyperparameter from having a place in a configuration, if anything does."""
        for parent, values in self.conditions(name).items():
            if parent not in config or on_step(self[parent], config[parent]) not in values:
                return parent
        return None

    def conditions(self, name: str) -> Mapping[str, tuple[Scalar, ...]]:
        """Give what a hyperparameter depends on, with the values under which it applies, as their domains have them."""
        return self._applies_if.get(name, {})

    def allows(self, config: Config) -> bool:
        """Tell whether the constraint holds, if there is one.

        Raises
        ------
        InvalidInput
            It failed: with what it raised and for which configuration.
        """
        if self.constraint is None:
            return True
        try:
            return bool(self.constraint(dict(config)))
        except Exception as err:
            absent = [name for name in self if name not in config]
            hint = f"; what does not apply there is absent, as config.get({absent[0]!r}) tells" if absent else ""
            raise InvalidInput(f"the constraint raised {one_line(err)} for {dict(config)}{hint}") from err

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
        if set(counts) != set(self) or not all(map(whole(1).fits, counts.values())):
            raise InvalidInput(f"a grid needs a whole number from 1 for each of {list(self)}, got {dict(counts)}")
        axes = [domain.grid(counts[name]) for name, domain in self.items()]
        configs: dict[tuple[tuple[str, Scalar], ...], dict[str, Scalar]] = {}
        for every in product(*axes):
            config = self.applying(dict(zip(self, every, strict=True)))
            if self.allows(config):
                configs.setdefault(tuple(config.items()), config)
        if not configs:
            raise InvalidInput("the constraint holds for no point of the grid: loosen it, or take more values")
        return list(configs.values())

    def applying(self, values: Config) -> dict[str, Scalar]:
        """Leave out of the values of all hyperparameters those that do not apply."""
        return self.once(lambda name, _: values[name])

    def validate(self, config: Config) -> None:
        """Raise `InvalidInput` unless `config` is a point of this space."""
        unmet = {name: self._unmet(name, config) for name in self}
        for name, parent in unmet.items():
            if name in config and parent is not None and parent in config:
                raise InvalidInput(f"{name!r} does not apply where {parent} is {config[parent]!r}: leave it out")
        wanted = [name for name, parent in unmet.items() if parent is None]
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
            return domain.perturb(config[name], factors[int(rng.integers(len(factors)))])

        return self.point(moved, instead=config)

    def shift(self, config: Config, spread: float, rng: np.random.Generator, *, least: int = 1) -> dict[str, Scalar]:
        """Move each value by a Gaussian share of its domain, of standard deviation `spread`; it leaves 0, too.

        A choice, and a value with a step, moves by one step at least, or with `least` 0 not always.
        """

        def moved(name: str, domain: Domain) -> Scalar:
            if name not in config:
                return domain.sample(rng)
            return domain.shift(config[name], spread * float(rng.normal()), least=least)

        return self.point(moved, instead=config)

    def redraw(self, config: Config, probability: float, rng: np.random.Generator) -> dict[str, Scalar]:
        """Draw each value anew with some probability."""

        def drawn(name: str, domain: Domain) -> Scalar:
            kept = rng.random() >= probability and name in config
            return config[name] if kept else domain.sample(rng)

        return self.point(drawn, instead=config)

    def to_json(self) -> dict[str, Any]:
        """Describe the space in JSON's types; `Space.from_json` gives it back, unless it has a constraint."""
        dimensions: dict[str, Any] = {name: domain.to_json() for name, domain in self.items()}
        for name, conditions in self.only_if.items():
            dimensions[name]["only_if"] = {parent: list(values) for parent, values in conditions.items()}
        if self.constraint is not None:
            named = self.constraint if hasattr(self.constraint, "__qualname__") else type(self.constraint)
            dimensions["constraint"] = {"kind": code_path(named)}
        return dimensions

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


def space_of(scheduler: object) -> Any:
    """Give the space that a scheduler's configurations are points of: its own or its searcher's, ``None`` without."""
    own = getattr(rule_in(scheduler), "space", None)  # PBT's, which moves through it
    return getattr(searcher_in(scheduler), "space", None) if own is None else own


def searcher_in(scheduler: object) -> Any:
    """Give the searcher that draws a scheduler's configurations, ``None`` without."""
    return getattr(rule_in(scheduler), "searcher", None)


def rule_in(scheduler: object) -> object:
    """Give the scheduler whose trials are run, by itself or by others around it, as `Seeded` is."""
    while (inner := getattr(scheduler, "scheduler", None)) is not None:
        scheduler = inner
    return scheduler


def some_of(space: Space) -> Iterator[dict[str, Scalar]]:
    """Draw some configurations, by a generator of its own, for whoever wants to try a space before a study has begun.

    Raises
    ------
    InvalidInput
        The constraint raised for one of them, or held for none.
    """
    rng = np.random.default_rng(0)
    return (space.sample(rng) for _ in range(_DRAWN))


_TRIES = 1000
_DRAWN = 32


def _conditions(name: str, condition: Any, domains: Mapping[str, Domain]) -> dict[str, tuple[Scalar, ...]]:
    """Check what a hyperparameter depends on, and write single values as lists of one."""
    order = list(domains)
    if name not in domains:
        raise unknown("hyperparameter in only_if", name, domains)
    if not isinstance(condition, Mapping) or not condition:
        raise InvalidInput(f"only_if of {name!r}: write {{name = value}} or {{name = [values]}}, got {condition!r}")
    parents = {}
    for parent, values in condition.items():
        if parent not in order[: order.index(name)]:
            raise InvalidInput(f"{name!r} depends on {parent!r}, which must be a hyperparameter that comes before it")
        parents[parent] = tuple(map(scalar, values if isinstance(values, (list, tuple)) else (values,)))
        if wrong := [value for value in parents[parent] if not domains[parent].contains(value)]:
            raise InvalidInput(f"{name!r} applies only if {parent} = {wrong[0]!r}, which {domains[parent]} never is")
        if is_continuous(domains[parent]):
            raise InvalidInput(
                f"{name!r} applies only if {parent} = {', '.join(map(repr, parents[parent]))}, but {parent!r} is "
                "continuous and is never exactly that: let it depend on a Choice or a value with a step"
            )
    return parents
