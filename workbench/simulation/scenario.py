"""A simulation written down: learning curves, a cluster, and the schedulers to try on them, in TOML or as tables.

Repetitions are paired: in one repetition every scheduler meets the same configurations in the same order, the same
curves, the same node speeds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from workbench.algos.search import Hyperband, Seeded
from workbench.core.checks import COUNT, check, check_value, plain_seed
from workbench.core.describe import build, made, settings_of
from workbench.core.domains import Choice
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.protocols import Config, Event, Scheduler, Searcher
from workbench.core.registry import SCHEDULERS, SEARCHERS
from workbench.core.size import full_runs
from workbench.core.space import CONFIG_ID, Space
from workbench.simulation.cluster import Hazards, VirtualCluster
from workbench.simulation.executor import PhaseModel
from workbench.simulation.outcome import Outcome
from workbench.simulation.run import simulate
from workbench.simulation.sources import SOURCES, CurveSource, read_curves
from workbench.study import file
from workbench.study.own import with_own

_TABLES = {"simulation", "cluster", "curves", "space", "searcher", "scheduler", "schedulers"}
_LEARNING = {"cost-aware", "evolution", "optuna", "smac"}
_SIMULATION = {"name", "seed", "repeats", "seeds"}


@dataclass(frozen=True)
class Scenario:
    """Schedulers to run in virtual time, and what they meet.

    Parameters
    ----------
    schedulers : Mapping of str to Mapping
        Label → ``kind`` and settings, as in a study file; the first is the one the scenario is about. One may have a
        ``searcher`` of its own.
    curves : Mapping
        ``kind`` (synthetic, table, study) and settings: see docs/simulator.md.
    cluster : VirtualCluster
    space : Space, optional
        What synthetic curves depend on.
    searcher : Mapping
        ``kind`` and settings; by default random in the space, or the configurations there are in shuffled order.
    seed : int
        Repetition n is made from seed + n.
    repeats : int
    name : str
    seeds : int, optional
        Trials of each configuration, judged together (see `Seeded`), where curves are a table with several seeds: what
        is chosen is judged by the other seeds, see `compare_held_out`. A scheduler may have ``seeds`` of its own.
    """

    schedulers: Mapping[str, Mapping[str, Any]]
    curves: Mapping[str, Any]
    cluster: VirtualCluster = field(default_factory=VirtualCluster)
    space: Space | None = None
    searcher: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    repeats: int = 1
    name: str = "simulation"
    seeds: int | None = None

    def __post_init__(self) -> None:
        if not self.schedulers:
            raise InvalidInput("a simulation needs a scheduler: add a table [scheduler] with a kind")
        for label, described in self.schedulers.items():
            if not isinstance(described, Mapping):
                raise InvalidInput(f"scheduler {label!r} is a table with a kind and settings, got {described!r}")
        check(self, COUNT, "repeats")
        check(self, COUNT.or_none(), "seeds")
        object.__setattr__(self, "seed", plain_seed(self.seed))

    def with_curves(self, **settings: Any) -> "Scenario":
        """Give the same scenario with some settings of its curves changed: ``family="crossing"``."""
        return replace(self, curves={**self.curves, **settings})

    @cached_property
    def source(self) -> CurveSource:
        """The curves, read and checked."""
        return read_curves(self.curves, self.space)

    def repetition(self, number: int = 0) -> "Repetition":
        """Draw everything that is random in one repetition."""
        seed = self.seed + number
        return Repetition(self, seed, self.source.model(seed), replace(self.cluster, seed=seed))

    def scheduler(self, label: str, seed: int) -> Scheduler:
        """Build a fresh scheduler over the configurations of a repetition.

        Number of trials, of phases, of nodes, and of Hyperband's rounds are filled in from the curves and the cluster
        where they are left out.

        Raises
        ------
        InvalidInput
            There is no scheduler of this name, or its settings cannot be.
        """
        if label not in self.schedulers:
            raise unknown("scheduler of the simulation", label, self.schedulers)
        configs = self.source.configs
        others = {"searcher"}  # of its table, but not its own
        if self.seeds is not None and not self._has(label, "smooth"):
            others.add("smooth")  # without seeds nothing is chosen by the mean of scores: it is refused as unknown
        described = {key: value for key, value in self.schedulers[label].items() if key not in others}
        seeds, registry = self.seeds_of(label), with_own(described, SCHEDULERS)
        if described.get("kind") in registry:
            allowed = settings_of("scheduler", described, registry)
            filled: dict[str, Any] = {
                "n_phases": self.source.n_phases,
                "n_nodes": self.cluster.n_slots,
                "seed": seed,
            }
            if "seeds" in allowed and self.seeds is not None:
                filled, seeds = {**filled, "seeds": seeds}, 1
            elif self.seeds is not None:
                described.pop("seeds", None)
            if configs is not None:
                filled |= {**_sizes(len(configs)), "space": self._numbers(label)}
                if {"n_trials", "n_configs"} <= allowed:  # one is made from the other
                    filled["n_trials"] = described.get("n_configs", len(configs))
                    del filled["n_configs"]
            described = {key: value for key, value in filled.items() if key in allowed} | described
        scheduler: Scheduler = build("scheduler", described, registry, searcher=self.searcher_of(label, seed))
        if isinstance(scheduler, Hyperband) and configs is not None and "rounds" not in described:
            scheduler = replace(scheduler, rounds=len(configs) // scheduler.n_configs)
        several: Any = scheduler if seeds == 1 else Seeded(scheduler, seeds)
        return several  # type: ignore[no-any-return]

    def seeds_of(self, label: str) -> int:
        """Say with how many seeds a scheduler may run a configuration."""
        seeds = 1 if self.seeds is None else self.schedulers[label].get("seeds", self.seeds)
        check_value(self, COUNT, f"seeds of {label!r}", seeds)
        return int(seeds)

    @property
    def n_seeds(self) -> int:
        """Seeds of a table that schedulers meet; the others are held out."""
        return max(self.seeds or 1, *map(self.seeds_of, self.schedulers))

    def smooth_of(self, label: str) -> int:
        """Say how many latest scores of a trial are averaged where a scheduler names no leader of its own."""
        if self._has(label, "smooth"):
            return 1
        smooth: int = self.schedulers[label].get("smooth", 1)
        check_value(self, COUNT, f"smooth of {label!r}", smooth)
        return smooth

    def alike(self) -> list[list[str]]:
        """Group the schedulers that are the same but for `smooth_of`."""
        groups: dict[str, list[str]] = {}
        for label, table in self.schedulers.items():
            counts = sorted((k, v) for k, v in table.items() if k != "smooth" or self._has(label, "smooth"))
            groups.setdefault(repr(counts), []).append(label)
        return list(groups.values())

    def _has(self, label: str, setting: str) -> bool:
        """Tell whether a scheduler itself has this setting, as `Sure` has ``smooth``."""
        named = {"kind": self.schedulers[label].get("kind")}
        registry = with_own(named, SCHEDULERS)
        return named["kind"] in registry and setting in settings_of("scheduler", named, registry)

    def searcher_of(self, label: str, seed: int) -> Any:
        """Build the searcher that a scheduler gets in a repetition.

        One that moves through a space, as PBT does, gets the same of a list of configurations, as `_numbers` has them.
        """
        configs, described, numbers = self.source.configs, self._searcher(label), self._numbers(label)
        if described["kind"] in ("shuffled", "list"):
            if configs is None:
                raise InvalidInput("synthetic curves have no list of configurations: use a random or a grid searcher")
            if numbers is not None:
                configs = [{CONFIG_ID: config[CONFIG_ID]} for config in configs]
            if described["kind"] == "shuffled":
                configs = [configs[i] for i in np.random.default_rng([seed, 3]).permutation(len(configs))]
            return build("searcher", {"kind": "list"}, SEARCHERS, configs=configs)
        if numbers is not None:
            raise InvalidInput(
                f"{label!r} moves through the listed configurations, and begins with those that the searcher "
                f"'shuffled' or 'list' gives: take one of these, not {described['kind']!r}"
            )
        registry = with_own(described, SEARCHERS)
        left = settings_of("searcher", described, registry) - described.keys()
        if self.space is None and "space" in left:
            raise InvalidInput(f"a {described['kind']} searcher needs a [space]")
        given = {"space": self.space, "seed": seed}
        return build("searcher", described, registry, **{name: given[name] for name in left & given.keys()})

    def _numbers(self, label: str) -> Space | None:
        """Give the space of a scheduler that moves through one, as PBT does, where there is only a list: its numbers.

        Of these neighbours are as unlike as any.
        """
        configs = self.source.configs
        if configs is None or not self._has(label, "space"):
            return None
        if any(CONFIG_ID not in config for config in configs):
            raise InvalidInput(
                f"{label!r} makes up configurations, and a recorded study has curves of its own alone: "
                "replay it with another kind of scheduler, or simulate this one on curves of kind 'synthetic'"
            )
        return Space({CONFIG_ID: Choice([config[CONFIG_ID] for config in configs])})

    def learns(self, label: str) -> bool:
        """Tell whether the configurations a scheduler gets depend on what was reported; one's own searcher's may."""
        described: Any = self._searcher(label)
        while isinstance(described, Mapping):  # one that is informed goes on as another
            kind = str(described.get("kind"))
            if kind in _LEARNING or ":" in kind:
                return True
            described = described.get("searcher")
        return False

    def _searcher(self, label: str) -> dict[str, Any]:
        described = self.schedulers[label].get("searcher", self.searcher)
        if not isinstance(described, Mapping) or not isinstance(described.get("kind", ""), str):
            raise InvalidInput(f"a searcher is a table with a kind, one of {', '.join(SEARCHERS)}; got {described!r}")
        return {"kind": "random" if self.source.configs is None else "shuffled", **described}

    @property
    def spec(self) -> dict[str, Any]:
        """What is simulated, in JSON's types, the schedulers left out."""
        cluster = {f.name: getattr(self.cluster, f.name) for f in fields(self.cluster) if f.name != "hazards"}
        hazards = {f.name: getattr(self.cluster.hazards, f.name) for f in fields(self.cluster.hazards)}
        space = {} if self.space is None else {"space": self.space.to_json()}
        return {"trainable": {"kind": "simulated", "curves": dict(self.curves), **space}, "cluster": cluster | hazards}


@dataclass(frozen=True)
class Repetition:
    """One draw of configurations, curves and node speeds, to be met by every scheduler."""

    scenario: Scenario
    seed: int
    model: PhaseModel
    cluster: VirtualCluster

    def run(self, label: str, events: list[Event] | None = None) -> Outcome:
        """Simulate one scheduler; `events` is filled with its log."""
        if self.scenario.seeds is not None:
            raise InvalidInput("a simulation with seeds is judged by those held out: use compare_held_out")
        return simulate(self.scheduler(label), self.model, self.cluster, seed=self.seed, events=events)

    def scheduler(self, label: str) -> Scheduler:
        """Build the scheduler, fresh."""
        return self.scenario.scheduler(label, self.seed)

    def best_possible(self) -> float:
        """Find the best score in the full curves of the configurations that any scheduler may try.

        A searcher that learns is left out: what it might come to is not known beforehand. So are phases that a replayed
        study has not recorded.
        """
        plain = [label for label in self.scenario.schedulers if not self.scenario.learns(label)]
        n_configs: dict[str, int] = {}  # of searchers that give the same configurations, the most that are asked for
        searchers: dict[str, Searcher] = {}
        for label in plain:
            searcher = self.scenario.searcher_of(label, self.seed)
            searchers.setdefault(repr(searcher), searcher)
            n_configs[repr(searcher)] = max(n_configs.get(repr(searcher), 0), full_runs(self.scheduler(label)))
        configs: list[Config] = []
        for which, searcher in searchers.items():
            suggested = map(searcher.suggest, range(n_configs[which]))
            configs += [config for config in suggested if config is not None]
        model, known = self.model, getattr(self.model, "known", lambda config, phase: True)
        full = ((config, phase) for config in configs for phase in range(self.scenario.source.n_phases))
        scores = (model.phase(0, phase, config, 0)[1] for config, phase in full if known(config, phase))
        return max(scores, default=-math.inf)


def presets() -> list[str]:
    """Names of the simulations that come with the package."""
    return file.presets("simulation")


def preset(name: str) -> Scenario:
    """Read a simulation that comes with the package."""
    return scenario_from(file.read_preset(name, "simulation"))


def scenario_from(table: Mapping[str, Any]) -> Scenario:
    """Build a scenario from tables ``simulation``, ``cluster``, ``curves``, ``space``, ``searcher``, ``scheduler(s)``.

    Raises
    ------
    InvalidInput
        The first thing that is wrong, with its name.
    """
    refuse_unknown("table in a simulation file", table, _TABLES)
    for name, given in table.items():
        if not isinstance(given, Mapping):
            raise InvalidInput(f"{name} in a simulation file is a table, got {given!r}: write [{name}]")
    if "curves" not in table:
        raise InvalidInput("a simulation needs a table [curves] with a kind, one of " + ", ".join(sorted(SOURCES)))
    if "scheduler" in table and "schedulers" in table:
        raise InvalidInput("give [scheduler] or [schedulers.NAME], not both")
    settings = dict(table.get("simulation", {}))
    refuse_unknown("setting of [simulation]", settings, _SIMULATION)
    one = table.get("scheduler")
    schedulers = {str(one.get("kind")): one} if one is not None else table.get("schedulers", {})
    space = Space.from_json(table["space"]) if "space" in table else None
    cluster = cluster_from(table.get("cluster", {}))
    return Scenario(schedulers, table["curves"], cluster, space, table.get("searcher", {}), **settings)


def cluster_from(table: Mapping[str, Any]) -> VirtualCluster:
    """Build a cluster from its table; what can go wrong is set beside the rest."""
    hazards = {f.name for f in fields(Hazards)}
    allowed = hazards | {f.name for f in fields(VirtualCluster)} - {"hazards", "seed"}
    refuse_unknown("setting of [cluster]", table, allowed)
    plain = {key: value for key, value in table.items() if key not in hazards}
    wrong = made("[cluster]", Hazards, {key: table[key] for key in table if key in hazards})
    return made("[cluster]", VirtualCluster, {**plain, "hazards": wrong})  # type: ignore[no-any-return]


def _sizes(n_configs: int) -> dict[str, Any]:
    """Say how much of a list of configurations a scheduler takes that is not told: all, or a population of 20."""
    parts = [n_configs - 2 * (n_configs // 3), n_configs // 3, n_configs // 3]
    rates = {"sizes": parts, "eviction_rates": [0.1, 0.25, 0.5]} if n_configs >= 3 else {}
    return {"n_trials": n_configs, "n_configs": n_configs, "population": min(n_configs, 20), **rates}
