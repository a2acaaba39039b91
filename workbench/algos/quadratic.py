"""A trial so small that it can be worked by hand: the toy problem of PBT's Fig. 2 (arXiv 1711.09846)."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.core.budget import Budget, updates_of
from workbench.core.checks import FINITE, FROM_ZERO, POSITIVE, check
from workbench.core.errors import InvalidInput, refuse_unknown
from workbench.core.protocols import Config, Metrics, Progress

_STATE = "theta.json"


@dataclass(frozen=True)
class Quadratic:
    """Maximise Q(θ) = 1.2 - (θ0² + θ1²) by climbing the surrogate Q̂(θ|h) = 1.2 - (h0 θ0² + h1 θ1²).

    Hyperparameters ``h0`` and ``h1``, 0 or more; with h = (1, 1) the surrogate would be Q itself.

    Parameters
    ----------
    phase : Budget
        In updates: steps along the gradient. The paper exploits and explores every 4.
    learning_rate : float
        θ ← θ + rate · ∂Q̂/∂θ; the paper does not give it.
    theta : sequence of float
        Where every trial starts; the paper's (0.9, 0.9).
    """

    tunable: ClassVar[tuple[str, ...]] = ("h0", "h1")

    phase: Budget = field(default_factory=lambda: Budget(updates=4))
    learning_rate: float = 0.02
    theta: tuple[float, float] = (0.9, 0.9)

    def __post_init__(self) -> None:
        updates_of(self)  # or refuse the phase
        check(self, POSITIVE, "learning_rate")
        theta = self.theta
        if not isinstance(theta, Sequence | np.ndarray) or len(theta) != 2 or not all(map(FINITE.fits, theta)):
            raise InvalidInput(f"Quadratic starts at two finite numbers theta, got {theta!r}")
        object.__setattr__(self, "theta", tuple(theta))

    @classmethod
    def check(cls, config_names: Iterable[str]) -> None:
        """Refuse a hyperparameter that no trial could take, before a study starts."""
        refuse_unknown("hyperparameter of Quadratic", config_names, cls.tunable)

    def with_config(self, config: Config) -> np.ndarray:
        """Give the hyperparameters of one trial, (h0, h1), shape [2]."""
        self.check(config)
        h = [config.get(name, 1.0) for name in self.tunable]
        if not all(map(FROM_ZERO.fits, h)):
            raise InvalidInput(f"Quadratic needs numbers h0, h1 >= 0, got {h}: below 0 it would run away")
        return np.array(h, dtype=float)

    def __call__(self, config: Config, seed: int) -> "QuadraticTrial":
        """Build a trial; the seed changes nothing, there is no chance in it."""
        return QuadraticTrial(self, self.with_config(config))


class QuadraticTrial:
    """One point θ on its way up."""

    def __init__(self, settings: Quadratic, h: np.ndarray) -> None:
        self.settings, self.h = settings, h
        self.theta = np.array(settings.theta, dtype=float)
        self.updates = 0

    @property
    def q(self) -> float:
        """The true objective."""
        return 1.2 - float(self.theta @ self.theta)

    def train_phase(self, progress: Progress) -> Metrics:
        """Climb for a phase.

        Returns
        -------
        dict
            ``score`` (Q), ``theta0``, ``theta1``, and ``updates`` since the weights began; `progress` is called with
            the same after every step.
        """
        for _ in range(updates_of(self.settings)):
            self.theta = self.theta * (1 - 2 * self.settings.learning_rate * self.h)
            self.updates += 1
            progress(self._metrics())
        if not math.isfinite(self.q):
            raise FloatingPointError(f"theta is {self.theta.tolist()} at h = {self.h.tolist()}: take a smaller rate")
        return self._metrics()

    def save(self, path: Path) -> None:
        """Write θ and the number of updates."""
        (Path(path) / _STATE).write_text(json.dumps({"theta": self.theta.tolist(), "updates": self.updates}))

    def load(self, path: Path) -> None:
        """Go on from another's θ, along this trial's own h."""
        state = json.loads((Path(path) / _STATE).read_text())
        self.theta, self.updates = np.array(state["theta"], dtype=float), int(state["updates"])

    def close(self) -> None:
        """Nothing to release."""

    def _metrics(self) -> dict[str, float]:
        theta0, theta1 = self.theta.tolist()
        return {"score": self.q, "theta0": theta0, "theta1": theta1, "updates": self.updates}
