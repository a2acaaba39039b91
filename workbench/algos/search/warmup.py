"""What searchers have in common that learn from scores: they draw at random first, and now and then after."""

from dataclasses import dataclass, field

import numpy as np

from workbench.core.checks import COUNT, PART, SEED, check
from workbench.core.protocols import Config
from workbench.core.showing import settings_html
from workbench.core.space import Space


@dataclass
class LearningSearcher:
    """Draws configurations until enough trials have reported; then those that a kind of searcher makes of them.

    Parameters
    ----------
    space : Space
    seed : int
    warmup : int
        Configurations are drawn at random until so many trials have reported.
    random : float
        Probability for a configuration to be drawn at random all the same.
    """

    space: Space
    seed: int = 0
    warmup: int = 10
    random: float = field(default=0.1, kw_only=True)
    _configs: dict[int, Config] = field(init=False, default_factory=dict, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.space = Space.of(self.space)
        check(self, COUNT, "warmup")
        check(self, PART, "random")
        self._rng = np.random.default_rng(self.seed)

    def suggest(self, trial: int) -> Config | None:
        """Make a configuration of what is known, or draw one."""
        enough = self._reported() >= max(self.warmup, 2)
        config = self._learned() if enough and self._rng.random() >= self.random else self.space.sample(self._rng)
        self._configs[trial] = config
        return config

    def adopt(self, trial: int, config: Config) -> None:
        """Hear of a trial that runs, or ran, a configuration of somebody else's."""
        self._configs[trial] = config

    def _reported(self) -> int:
        """Count the trials that have reported a score."""
        raise NotImplementedError

    def _learned(self) -> Config:
        """Make a configuration of what is known; at least two trials have reported."""
        raise NotImplementedError
