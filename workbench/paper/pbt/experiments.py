"""What is run for the PBT paper's figures: its toy problem, populations of GA3C, and trials on digits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from workbench.algos.digits.classifier import DigitsClassifier
from workbench.algos.digits.data import load
from workbench.algos.digits.gan import DigitsGAN, digit_score
from workbench.algos.search import PBT, FullRuns, ListSearcher, RandomSearcher
from workbench.core.budget import Budget
from workbench.core.protocols import Event
from workbench.paper.experiment import Experiment, Rows, each, trained
from workbench.paper.pbt import ablations
from workbench.paper.pbt.cartpole import MEASURES, SPACE, last_config, play, summed_up

READINGS: Mapping[str, Mapping[str, Any]] = {
    "as chosen": {},
    "noise 0.05": {"noise": 0.05},
    "noise 0.1": {"noise": 0.1},
    "noise 0.2": {"noise": 0.2},
    "factors 0.8 and 1.2": {"noise": 0.0},
    "factors, h drawn anew with 0.25": {"noise": 0.0, "resample": 0.25},
    "h copied too": {"copy_config": True},
    "h copied too, noise 0.2": {"copy_config": True, "noise": 0.2},
    "members out of step": {"spread": 0.1},
    "tournament": {"exploit": "tournament"},
    "tournament, members out of step, rate 0.01": {"exploit": "tournament", "spread": 0.1, "learning_rate": 0.01},
    "rate 0.01": {"learning_rate": 0.01},
    "rate 0.05": {"learning_rate": 0.05},
}
"""What the paper leaves open about its toy problem, as settings of `ablations.play`."""

CHOICES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("exploit", "truncation"): {},
    ("exploit", "tournament"): {"exploit": "tournament"},
    ("exploit", "t-test"): {"exploit": "t-test"},
    ("copied", "both"): {},
    ("copied", "weights"): {"copy_config": False, "explore": False},
    ("copied", "hyperparameters"): {"copy_weights": False},
}
"""Design and value (Fig. 5) → settings of `PBT`."""

CLASSIFIER_RATES = (1e-3, 1e-2, 1e-1, 1.0)
GAN_RATES = (1e-4, 1e-3, 2e-3, 1e-2)


@dataclass(frozen=True)
class Toy:
    """Seeds of every variant, and which of `READINGS`."""

    seeds: int
    readings: tuple[str, ...] = ("as chosen",)


def toy(settings: Toy) -> Rows:
    """Play the toy problem with its ablations (Fig. 2); the numbers repeat exactly.

    Returns
    -------
    rows
        One a reading, variant and seed: reading, variant, seed, final (Q of the better member at the end), over_time
        (mean of Q).
    """
    return [
        {"reading": reading, "variant": variant, "seed": seed, "final": final, "over_time": over_time}
        for reading in settings.readings
        for variant, finals in ablations.finals(range(settings.seeds), **READINGS[reading]).items()
        for seed, (final, over_time) in enumerate(finals.round(5).tolist())
    ]


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
        Populations of the design space.
    n_agents : int
        Of one member.
    """

    repeats: int
    frames: int
    first_seed: int = 0
    members: int = 10
    sizes: tuple[int, ...] = (5, 10, 20)
    phases: int = 10
    game: str = "CartPole-v1"
    n_agents: int = 8
    processes: int = 2

    def repeated(self, repetition: Callable[..., Rows]) -> Rows:
        """Run a repetition with every seed; join their rows."""
        seeds = range(self.first_seed, self.first_seed + self.repeats)
        return [row for rows in each(repetition, [(self, seed) for seed in seeds], self.processes) for row in rows]

    def played(self, scheduler: Any, members: int, seed: int) -> list[Event]:
        """Train one population; give its log."""
        return play(scheduler, members, self.frames, seed, self.game, self.n_agents)


def against_random(settings: Populations) -> Rows:
    """Train PBT and random search with the same frames, slots and time, on paired seeds.

    In each repetition both begin with the same configurations, in the same order, under the same trial seeds, so that
    their first phases are the same to the last bit. GA3C trains for real, in its deterministic mode on CartPole; only
    the clock is virtual, so the numbers repeat exactly.

    Returns
    -------
    rows
        One a repetition and scheduler: repeat, scheduler, paired (both had the same scores after the first phase), the
        measures of `cartpole.summed_up`, and planned (phases).
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
        One a choice and repetition: design, value, population, repeat, `cartpole.MEASURES`, copies, and random
        search's measures (``random_final``, …).
    """
    return settings.repeated(_choices)


def _choices(settings: Populations, seed: int) -> Rows:
    phases, plain = settings.phases, settings.members

    def searcher() -> RandomSearcher:
        return RandomSearcher(SPACE, seed=seed)

    sizes = sorted({*settings.sizes, plain})
    random = {size: summed_up(settings.played(FullRuns(searcher(), size, phases), size, seed)) for size in sizes}
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


@dataclass(frozen=True)
class DigitRuns:
    """Trials of `phases` phases for every learning rate and seed."""

    seeds: int
    phases: int = 8


def digits(settings: DigitRuns) -> Rows:
    """Train a classifier and a GAN of digits, and score images that nobody trained for. Scores repeat exactly.

    Returns
    -------
    rows
        One a phase of a trial: trainable, learning_rate, seed, phase, score (a share of right answers, the digits
        score); then, without the others, the digits score of the validation images, of their threes, of white noise.
    """
    trainables: Mapping[str, tuple[Any, list[dict[str, float]]]] = {
        "classifier": (DigitsClassifier(Budget(updates=50)), [{"learning_rate": rate} for rate in CLASSIFIER_RATES]),
        "gan": (
            DigitsGAN(Budget(updates=200)),
            [{"generator_learning_rate": rate, "discriminator_learning_rate": rate} for rate in GAN_RATES],
        ),
    }
    rows: Rows = []
    for kind, (factory, configs) in trainables.items():
        for config in configs:
            for seed in range(settings.seeds):
                at = {"trainable": kind, "learning_rate": next(iter(config.values())), "seed": seed}
                for phase, metrics in enumerate(trained(factory, config, seed, settings.phases)):
                    rows.append(at | {"phase": phase, "score": round(metrics["score"], 3)})
    valid, noise = load().valid, torch.rand(1000, 64, generator=torch.Generator().manual_seed(0))
    images = {"validation images": valid.images, "threes alone": valid.images[valid.labels == 3], "white noise": noise}
    return rows + [{"trainable": name, "score": round(digit_score(shown), 2)} for name, shown in images.items()]


# as the paper has it: 2.5e8 steps of 4 frames, ready every 1e7
_MS_PACMAN: dict[str, Any] = {"game": "MsPacman", "n_agents": 32, "phases": 25, "frames": 40_000_000}

EXPERIMENTS: list[Experiment[Any]] = [
    Experiment(
        "pbt-toy",
        shows="PBT, Fig. 2: the toy problem and its ablations",
        source="simulated",
        run=toy,
        scales={"minutes": Toy(100), "hours": Toy(100, tuple(READINGS)), "paper": Toy(100)},
    ),
    Experiment(
        "pbt-design",
        shows="PBT, Fig. 5: population, exploit, what is copied, adaptivity: GA3C on CartPole against random search",
        source="simulated",
        run=design,
        scales={
            "minutes": tuple(Populations(2, 2000, first_seed=seed) for seed in (0, 2, 4)),
            "hours": Populations(30, 5000),
            "paper": Populations(1, sizes=(10, 20, 40, 80), members=40, **_MS_PACMAN),
        },
    ),
    Experiment(
        "pbt-cartpole",
        shows="PBT against random search with the same node time: GA3C on CartPole, paired seeds",
        source="simulated",
        run=against_random,
        scales={
            "minutes": tuple(Populations(5, 5000, first_seed=seed) for seed in (0, 5)),
            "hours": Populations(30, 20_000),
            "paper": Populations(1, members=80, processes=1, **_MS_PACMAN),
        },
    ),
    Experiment(
        "digits",
        shows="PBT, Sec. 4.3, at small scale: a classifier and a GAN of digits by learning rate",
        source="measured",
        run=digits,
        scales={"minutes": DigitRuns(3), "hours": DigitRuns(30)},
    ),
]
