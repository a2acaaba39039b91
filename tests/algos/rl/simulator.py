"""An environment that holds on to something until it is closed, as one with a process of its own does."""

from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces


class Simulator(gymnasium.Env):
    """It counts how many of it run, and refuses to be one too many, or to begin.

    Attributes
    ----------
    running : list
        Those that are not closed yet, of all arguments.
    """

    running: ClassVar[list] = []
    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, most=9, begins=True, first=0.0):
        if len(self.running) == most:
            raise OSError("the port is taken")
        self.running.append(self)
        self.begins, self.first = begins, first

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if not self.begins:
            raise OSError("no answer")
        return np.full(1, self.first, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, True, False, {}

    def close(self):
        self.running.remove(self)


gymnasium.register("WorkbenchSimulator-v0", Simulator, disable_env_checker=True)
