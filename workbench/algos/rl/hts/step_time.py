"""Environments that take their time: a step sleeps for as long as a random law says, and costs no processor.

What synchronous methods wait for is the slowest of their environments; how much that costs depends on the variance of
the step times (HTS-RL, Claim 1 and Fig. 4). Here the mean is set apart from the variance, so that one can be varied
without the other, on any machine and with any game.
"""

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from workbench.algos.rl.envs import Envs, Step
from workbench.core.checks import FROM_ZERO
from workbench.core.errors import InvalidInput, unknown

if TYPE_CHECKING:
    from scipy import stats

Law = Literal["constant", "gamma", "lognormal", "pareto"]
LAWS: tuple[Law, ...] = get_args(Law)


@dataclass(frozen=True)
class StepTime:
    """A law of step times.

    Attributes
    ----------
    mean_s : float
        Seconds a step takes on average.
    cv : float
        Coefficient of variation: standard deviation over mean.
    law : {"constant", "gamma", "lognormal", "pareto"}
        ``gamma`` with cv 1 is exponential, with a smaller one near normal. ``lognormal`` has a heavier tail at the same
        cv, ``pareto`` (of type I, index 1 + sqrt(1 + 1/cv²)) the heaviest: rare steps take very long, and the others
        much the same. ``constant`` has cv 0.
    """

    mean_s: float
    cv: float = 0.0
    law: Law = "gamma"

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise unknown("law of step times", self.law, LAWS)
        if not FROM_ZERO.fits(self.mean_s):
            raise InvalidInput(f"StepTime needs mean_s from 0, got {self.mean_s!r}")
        if not FROM_ZERO.fits(self.cv) or (self.law == "constant" and self.cv != 0):
            raise InvalidInput(f"StepTime needs cv a number from 0, and 0 if constant, got {self.cv!r} for {self.law}")

    @property
    def constant(self) -> bool:
        """Every step takes as long."""
        return self.cv == 0 or self.mean_s == 0

    def distribution(self) -> "stats.distributions.rv_frozen":
        """Return the law as SciPy has it, in seconds; there is none of a constant."""
        if self.constant:
            raise InvalidInput("a constant step time has no distribution: use mean_s")
        from scipy import stats  # a second of every worker's, which only the analysis needs

        if self.law == "gamma":
            return stats.gamma(self.cv**-2, scale=self.mean_s * self.cv**2)
        if self.law == "lognormal":
            variance = math.log1p(self.cv**2)  # of the logarithm
            return stats.lognorm(math.sqrt(variance), scale=self.mean_s * math.exp(-variance / 2))
        index = 1 + math.sqrt(1 + self.cv**-2)
        return stats.pareto(index, scale=self.mean_s * (index - 1) / index)

    def draw(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """Draw independent step times, in seconds."""
        if self.constant:
            return np.full(shape, self.mean_s)
        if self.law == "gamma":
            return generator.gamma(self.cv**-2, self.mean_s * self.cv**2, shape)
        if self.law == "lognormal":
            variance = math.log1p(self.cv**2)
            return self.mean_s * np.exp(generator.normal(-variance / 2, math.sqrt(variance), shape))
        index = 1 + math.sqrt(1 + self.cv**-2)
        return self.mean_s * (index - 1) / index * (1 + generator.pareto(index, shape))


class SlowEnvs:
    """Environments whose steps take `step_time` longer; several in one batch sleep side by side, for the longest.

    Games and actions are those of the environments within: only the clock is different.
    """

    def __init__(self, envs: Envs, step_time: StepTime, generator: np.random.Generator) -> None:
        self.game, self.n_envs = envs.game, envs.n_envs
        self._envs, self._step_time, self._generator = envs, step_time, generator
        self._stepping = 0

    def recv(self) -> Step:
        """Sleep, then step; the first observations of all come at once."""
        if self._stepping:
            time.sleep(float(self._step_time.draw(self._generator, self._stepping).max()))
        return self._envs.recv()

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each."""
        self._stepping = len(actions)
        self._envs.send(actions)

    def close(self) -> None:
        """Close the environments within."""
        self._envs.close()
