"""Populations of GA3C against random search: the same frames, the design space of Fig. 5, and the population's size."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.algos.search import PBT, FullRuns, ListSearcher, RandomSearcher
from workbench.core.protocols import Event
from workbench.paper.experiment import Rows, rows_of_each
from workbench.paper.pbt.measures import MEASURES, SPACE, last_config, play, summed_up

CHOICES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("exploit", "truncation"): {},
    ("exploit", "tournament"): {"exploit": "tournament"},
    ("exploit", "t-test"): {"exploit": "t-test"},
    ("copied", "both"): {},
    ("copied", "weights"): {"copy_config": False, "explore": False},
    ("copied", "hyperparameters"): {"copy_weights": False},
}
"""Design and value (Fig. 5) → settings of `PBT`."""


@dataclass(frozen=True)
class Populations:
    """Repetitions over GA3C, with the seeds `first_seed` and on.

    Attributes
    ----------
    frames : int
        Of one phase of one member.
    members : int
        Of a population; in the design space, of all choices but its size.
    sizes : tuple of int
        Of populations, where several are compared.
    n_agents : int
        Of one member.
    precision : {"float32", "bfloat16"}
        Of its network.
    """

    repeats: int
    frames: int
    first_seed: int = 0
    members: int = 10
    sizes: tuple[int, ...] = (5, 10, 20)
    phases: int = 10
    game: str = "CartPole-v1"
    n_agents: int = 8
    precision: str = "float32"
    processes: int = 2

    def repeated(self, repetition: Callable[..., Rows]) -> Rows:
        """Run a repetition with every seed; join their rows."""
        seeds = range(self.first_seed, self.first_seed + self.repeats)
        return rows_of_each(repetition, [(self, seed) for seed in seeds], self.processes)

    def played(self, scheduler: Any, members: int, seed: int) -> list[Event]:
        """Train one population; give its log."""
        return play(scheduler, members, self.frames, seed, self.game, self.n_agents, self.precision)

    def random(self, sizes: Collection[int], seed: int) -> dict[int, dict[str, Any]]:
        """Take the measures of random search by its size, each of as many members.

        The members of a smaller one are the first of the largest's: configurations come in the same order, and a
        trial's seed depends on its number. So it is trained once.
        """
        largest = max(sizes)
        events = self.played(FullRuns(RandomSearcher(SPACE, seed=seed), largest, self.phases), largest, seed)
        return {size: summed_up(events, size) for size in sizes}


def against_random(settings: Populations) -> Rows:
    """Train PBT and random search with the same frames, slots and time, on paired seeds.

    In each repetition both begin with the same configurations, in the same order, under the same trial seeds, so that
    their first phases are the same to the last bit. GA3C trains for real, in its deterministic mode; only the clock is
    virtual, so the numbers repeat exactly.

    Returns
    -------
    rows
        One a repetition and scheduler: repeat, scheduler, paired (both had the same scores after the first phase), the
        measures that `summed_up` takes, and planned (phases).
    """
    return settings.repeated(_pair)


def _pair(settings: Populations, seed: int) -> Rows:
    members, phases = settings.members, settings.phases
    both: dict[str, Any] = {
        "pbt": PBT(RandomSearcher(SPACE, seed=seed), members, phases, seed=seed),
        "random": FullRuns(RandomSearcher(SPACE, seed=seed), members, phases),
    }
    measured = {name: summed_up(settings.played(scheduler, members, seed)) for name, scheduler in both.items()}
    paired = measured["pbt"]["first_phase"] == measured["random"]["first_phase"]
    return [
        {"repeat": seed, "scheduler": name, "paired": paired}
        | {measure: measures[measure] for measure in (*MEASURES, "phases")}
        | {"planned": members * phases, "copies": measures["copies"]}
        for name, measures in measured.items()
    ]


def design(settings: Populations) -> Rows:
    """Weigh each choice of Fig. 5 against random search with as many members, the same seeds, frames and node time.

    ``population``: its size, with truncation, weights and hyperparameters copied. ``exploit``: truncation, binary
    tournament, Welch's t-test. ``copied``: both; the weights alone, hyperparameters neither copied nor explored; the
    hyperparameters alone. ``adaptive``: the whole of PBT, and as many runs with the hyperparameters PBT ended with,
    from their first step on.

    Returns
    -------
    rows
        One a choice and repetition: design, value, population, repeat, `MEASURES`, copies, and random search's measures
        (``random_final``, …).
    """
    return settings.repeated(_choices)


def _choices(settings: Populations, seed: int) -> Rows:
    phases, plain = settings.phases, settings.members

    def searcher() -> RandomSearcher:
        return RandomSearcher(SPACE, seed=seed)

    sizes = sorted({*settings.sizes, plain})
    random = settings.random(sizes, seed)
    whole = {size: settings.played(PBT(searcher(), size, phases, seed=seed), size, seed) for size in sizes}
    measured = {("population", str(size)): (size, summed_up(whole[size])) for size in sizes}
    for choice, changes in CHOICES.items():
        if changes:
            scheduler = PBT(searcher(), plain, phases, seed=seed, **changes)
            measured[choice] = (plain, summed_up(settings.played(scheduler, plain, seed)))
        else:
            measured[choice] = measured["population", str(plain)]
    fixed = ListSearcher([last_config(whole[plain])] * plain)
    measured["adaptive", "yes"] = measured["population", str(plain)]
    runs = settings.played(FullRuns(fixed, plain, phases), plain, seed)
    measured["adaptive", "no: PBT's last"] = (plain, summed_up(runs))
    return [
        {"design": design, "value": value, "population": size, "repeat": seed}
        | {name: measures[name] for name in (*MEASURES, "copies")}
        | {f"random_{name}": random[size][name] for name in MEASURES}
        for (design, value), (size, measures) in measured.items()
    ]


def by_size(settings: Populations) -> Rows:
    """Train populations of every size, and random search with as many members (Fig. 5a); tell who is left (Fig. 6).

    Returns
    -------
    rows
        One a size and repetition: design ("population"), value (the size, as text), population, phases, repeat, paired
        (PBT and random search had the same scores after the first phase), `MEASURES`, copies, founders (how many first
        trials the members at the end descend from), and random search's measures (``random_final``, …).
    """
    return settings.repeated(_sizes)


def _sizes(settings: Populations, seed: int) -> Rows:
    phases, random = settings.phases, settings.random(settings.sizes, seed)
    rows: Rows = []
    for size in settings.sizes:
        population = PBT(RandomSearcher(SPACE, seed=seed), size, phases, seed=seed)
        pbt, others = summed_up(settings.played(population, size, seed)), random[size]
        rows.append(
            {"design": "population", "value": str(size), "population": size, "phases": phases}
            | {"repeat": seed, "paired": pbt["first_phase"] == others["first_phase"]}
            | {name: pbt[name] for name in (*MEASURES, "copies", "founders")}
            | {f"random_{name}": others[name] for name in MEASURES}
        )
    return rows
