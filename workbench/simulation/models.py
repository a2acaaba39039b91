"""Phase models: what trials would do in virtual time. Synthetic learning curves, and a recorded study replayed.

Curves belong to configurations, not to trial numbers: two schedulers that are given the same model and the same
configurations see the same curves, and a trial restarted from scratch repeats itself.
"""

import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workbench.core.checks import COUNT, FINITE, FROM_ZERO, PART, POSITIVE, check, is_number
from workbench.core.domains import Choice, Domain, LogUniform
from workbench.core.errors import InvalidInput, SchedulerError, unknown
from workbench.core.protocols import Config
from workbench.core.space import Space

if TYPE_CHECKING:
    import pandas as pd

FAMILIES: Mapping[str, Mapping[str, float]] = {
    "steady": {},  # who leads early leads late
    "noisy": {"noise": 0.15},
    "crossing": {"crossing": 1.0},  # the best take off last
    "cheap-but-bad": {"cost_of_quality": 1.5},  # bad configurations report first
    "expensive-but-bad": {"cost_of_quality": -1.5},
    "unrelated": {"luck": 1.0, "noise": 10.0},  # every score a fresh draw: the stationary process of the paper's proof
}
"""Named settings of `SyntheticCurves`."""


@dataclass(frozen=True)
class CostTable:
    """A phase's duration as a function of one hyperparameter, interpolated linearly between logarithms.

    Parameters
    ----------
    hyperparameter : str
    values : sequence of float
        Increasing, positive. Beyond the ends the end's cost holds.
    costs : sequence of float
        Relative durations of a phase.
    """

    hyperparameter: str
    values: Sequence[float]
    costs: Sequence[float]

    def __post_init__(self) -> None:
        increasing = all(a < b for a, b in zip(self.values, self.values[1:], strict=False))
        if len(self.values) != len(self.costs) or not self.values or not increasing:
            raise InvalidInput(
                f"a cost table needs increasing values and as many costs, got {self.values}, {self.costs}"
            )
        if min(*self.values, *self.costs) <= 0:
            raise InvalidInput("a cost table needs positive values and costs")

    def cost(self, config: Config) -> float:
        """Give the relative duration of this configuration's phases."""
        if self.hyperparameter not in config:
            raise unknown("hyperparameter of the cost table", self.hyperparameter, config)
        value = config[self.hyperparameter]
        if not (is_number(value) and POSITIVE.fits(value)):
            raise InvalidInput(f"a cost table goes by {POSITIVE.words}, got {self.hyperparameter} = {value!r}")
        return float(np.exp(np.interp(math.log(value), *self._logarithms)))

    @cached_property
    def _logarithms(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        return np.log(self.values), np.log(self.costs)

    @classmethod
    def read(cls, path: str | Path, hyperparameter: str) -> "CostTable":
        """Read a CSV with a column named as the hyperparameter and a column ``wall_s``; the mean cost becomes 1.

        Of several measurements of one value the shortest counts: a busy neighbour only ever adds.
        """
        import pandas as pd

        try:
            frame = pd.read_csv(path, comment="#")
        except (OSError, ValueError) as err:  # pandas' own are of the second kind
            raise InvalidInput(f"cannot read the cost table {path}: {getattr(err, 'strerror', None) or err}") from None
        for column in (hyperparameter, "wall_s"):
            if column not in frame:
                raise unknown(f"column of the cost table {path}: it needs", column, map(str, frame.columns))
        try:
            numbers = frame[[hyperparameter, "wall_s"]].astype(float)
        except ValueError as err:
            raise InvalidInput(f"the cost table {path} holds numbers: {err}") from None
        least = numbers.groupby(hyperparameter)["wall_s"].min().sort_index()
        return cls(hyperparameter, [float(v) for v in least.index], [float(v) for v in least / least.mean()])


@dataclass
class SyntheticCurves:
    """Learning curves made up from the configuration.

    A configuration has a quality q in [0, 1]: how near its hyperparameters are to hidden best ones, and luck. Its score
    rises towards q, as q (1 - exp(-5 (x - d))), x being the share of the phases done and d = 0.7 crossing q a delay
    before anything is learnt; each score carries Gaussian noise. A phase takes
    `phase_s` · cost of the hyperparameters · exp(cost_of_quality (q - 1/2)) · log-normal noise.

    Parameters
    ----------
    space : Space
    n_phases : int
        Phases a full curve has.
    crossing : float
        0: the ranks of the first phase last; 1: the best configurations learn last, ranks turn over.
    cost_of_quality : float
        Above 0 bad configurations are cheap, below 0 they are expensive.
    noise : float
        Standard deviation of a score.
    luck : float
        Share of q that no hyperparameter explains, 0 to 1.
    cost_noise : float
        Standard deviation of the logarithm of a phase's duration.
    phase_s : float
    cost : CostTable, optional
    seed : int
        Of the hidden optimum, the luck and the noise.
    """

    space: Space
    n_phases: int
    crossing: float = 0.0
    cost_of_quality: float = 0.0
    noise: float = 0.02
    luck: float = 0.3
    cost_noise: float = 0.1
    phase_s: float = 1.0
    cost: CostTable | None = None
    seed: int = 0
    _curves: dict[tuple[object, ...], list[tuple[float, float]]] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check(self, COUNT, "n_phases")
        check(self, PART, "crossing", "luck")
        check(self, FROM_ZERO, "noise", "cost_noise")
        check(self, POSITIVE, "phase_s")
        check(self, FINITE, "cost_of_quality")
        # of a stream of its own: [seed, 0] is seed, of which searchers draw their first configurations
        self._best = np.random.default_rng([self.seed, 0, 0, 1]).uniform(0.2, 0.8, len(self.space))
        self._done = np.arange(1, self.n_phases + 1) / self.n_phases  # share of the phases

    @classmethod
    def family(cls, name: str, space: Space, n_phases: int, **settings: Any) -> "SyntheticCurves":
        """Make one of the named families; `settings` win over the family's."""
        if name not in FAMILIES:
            raise unknown("family of synthetic curves", name, FAMILIES)
        return cls(space, n_phases, **{**FAMILIES[name], **settings})

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Give the duration and the score of a configuration's phase."""
        key = tuple(config.items())  # with their names: somebody's list may have them in another order
        curve = self._curves.get(key)
        if curve is None:
            curve = self._curves[key] = self._curve(config)
        if phase >= self.n_phases:
            raise SchedulerError(f"phase {phase} was asked for, the synthetic curves have {self.n_phases}")
        return curve[phase]

    def _curve(self, config: Config) -> list[tuple[float, float]]:
        rng = np.random.default_rng([self.seed, 1, zlib.crc32(_written(dict(config)).encode())])
        placed = [
            _position(self.space[n], config[n]) if n in config else at
            for n, at in zip(self.space, self._best, strict=True)
        ]
        off = np.array(placed) - self._best  # what does not apply is no worse than the best
        near = max(0.0, 1 - math.sqrt(float((off**2).sum()) / len(off)) / 0.7)
        quality = (1 - self.luck) * near + self.luck * float(rng.uniform())
        rise = 1 - np.exp(-5 * np.maximum(0.0, self._done - 0.7 * self.crossing * quality))
        scores = quality * rise + self.noise * rng.normal(size=self.n_phases)
        base = self.phase_s * (1.0 if self.cost is None else self.cost.cost(config))
        base *= math.exp(self.cost_of_quality * (quality - 0.5))
        durations = base * np.exp(self.cost_noise * rng.normal(size=self.n_phases))
        return list(zip(durations.tolist(), scores.tolist(), strict=True))


class ReplayedStudy:
    """A recorded study replayed: each configuration's phases take as long, and score, as they did.

    Of equal configurations, as of survivors that ran every rung anew, a trial meets what the trial of its number
    recorded, and beyond that what the one that ran the furthest did.

    Parameters
    ----------
    trials, phases : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials` that hold the configuration.
    name : str
        For messages.
    """

    def __init__(
        self, trials: "pd.DataFrame", phases: "pd.DataFrame", hyperparameters: Sequence[str], name: str = "study"
    ) -> None:
        self.name = name
        self.configs: list[dict[str, Any]] = []
        self._numbers: list[int] = []  # of the trials that ran them
        for row in trials.sort_values("trial").to_dict("records"):
            self.configs.append({key: row[key] for key in hyperparameters if row[key] == row[key]})
            self._numbers.append(int(row["trial"]))
        done = phases[phases["ended_s"].notna() & phases["trial"].isin(self._numbers)]
        self._phases = {
            (int(trial), int(phase)): (float(seconds), float(score))
            for trial, phase, seconds, score in zip(
                done["trial"], done["phase"], done["wall_s"], done["score"], strict=True
            )
        }
        if not self._phases:
            raise InvalidInput(f"study {name!r} has no completed phase to replay")
        reached = Counter(trial for trial, _ in self._phases)
        self._furthest: dict[frozenset[Any], int] = {}  # by configuration; a frame may have 2.0 for its 2
        for number, config in sorted(zip(self._numbers, self.configs, strict=True), key=lambda one: -reached[one[0]]):
            self._furthest.setdefault(frozenset(config.items()), number)

    @property
    def n_phases(self) -> int:
        """Phases of the longest trial."""
        return 1 + max(phase for _, phase in self._phases)

    def known(self, config: Config, phase: int) -> bool:
        """Tell whether a configuration's phase was recorded."""
        return (self._furthest.get(frozenset(config.items())), phase) in self._phases

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Give what was recorded for this configuration."""
        known = self._furthest.get(frozenset(config.items()))
        same = trial < len(self.configs) and self.configs[trial] == config
        if same and (self._numbers[trial], phase) in self._phases:
            known = self._numbers[trial]
        if known is None:
            raise SchedulerError(
                f"study {self.name!r} never ran the configuration {dict(config)}: it cannot be replayed"
            )
        if (known, phase) not in self._phases:
            raise SchedulerError(
                f"study {self.name!r} never completed phase {phase} of trial {known}, which the scheduler asks for: "
                "replay a study in which every trial runs to its end, or a scheduler that stops no later"
            )
        return self._phases[known, phase]


_written = json.JSONEncoder(sort_keys=True, default=str).encode


def _position(domain: Domain, value: Any) -> float:
    """Where a value lies in its domain, from 0 to 1."""
    if isinstance(domain, Choice):
        return domain.values.index(value) / max(len(domain.values) - 1, 1)
    low, high = domain.low, domain.high  # type: ignore[attr-defined]
    if isinstance(domain, LogUniform):
        return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return float((value - low) / (high - low))
