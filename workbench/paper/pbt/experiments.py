"""What is run for the PBT paper's figures: its toy problem, populations of GA3C, and trials on digits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from workbench.algos.digits.classifier import DigitsClassifier
from workbench.algos.digits.data import load
from workbench.algos.digits.gan import DigitsGAN, digit_score
from workbench.core.budget import Budget
from workbench.paper.experiment import Experiment, Rows, trained
from workbench.paper.pbt import ablations
from workbench.paper.pbt.gans import GANs, gans
from workbench.paper.pbt.populations import Populations, against_random, by_size, design

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


SIZES = (10, 20, 40, 80)  # of Table 1

# as the paper has it: 2.5e8 steps of 4 frames, ready every 1e7
_MS_PACMAN: dict[str, Any] = {"game": "MsPacman", "n_agents": 32, "phases": 25, "frames": 40_000_000}
# as fast as processors that have bfloat16 play it
_FAST: dict[str, Any] = {"game": "MsPacman", "n_agents": 16, "precision": "bfloat16"}

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
            "paper": Populations(1, sizes=SIZES, members=40, **_MS_PACMAN),
        },
    ),
    Experiment(
        "pbt-population",
        shows="PBT, Figs 5(a), 6: populations of 10 to 80, GA3C on CartPole against random search; founders left",
        source="simulated",
        run=by_size,
        scales={
            "minutes": tuple(Populations(2, 2000, first_seed=seed, sizes=SIZES) for seed in (20, 22, 24)),
            "hours": Populations(30, 5000, sizes=SIZES),
            "paper": Populations(1, sizes=SIZES, processes=1, **_MS_PACMAN),
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
        "pbt-ms-pacman",
        shows="PBT, Sec. 4.1.2, on Atari: GA3C on Ms. Pac-Man against random search with the same node time",
        source="simulated",
        run=against_random,
        scales={
            "minutes": Populations(2, 20_000, members=5, phases=5, **_FAST),
            "hours": tuple(Populations(2, 75_000, first_seed=seed, **_FAST) for seed in (0, 2, 4)),
            "paper": Populations(1, members=80, processes=1, **_FAST | _MS_PACMAN),
        },
    ),
    Experiment(
        "pbt-digits-gan",
        shows="PBT, Sec. 4.3, Figs 5(b), 6: 45 GANs of digits by WGAN-GP, truncation, tournaments and rates by hand",
        source="simulated",
        run=gans,
        scales={
            "minutes": tuple(GANs(2, first_seed=seed) for seed in (0, 2)),
            "hours": GANs(8, phases=50, updates=40),
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
