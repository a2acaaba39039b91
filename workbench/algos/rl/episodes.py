"""Episode returns, and what is said of them: only of whole games."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np


class Episodes:
    """Running returns of all agents, and the last finished episodes.

    Several threads may add, each for agents of its own.

    Parameters
    ----------
    n_agents : int
    window : int
        Finished episodes to keep.

    Attributes
    ----------
    finished : int
        Episodes finished so far.
    returns, lengths : deque
        Raw returns, and lengths in agent steps, of the last `window` finished episodes, oldest first.
    """

    def __init__(self, n_agents: int, window: int) -> None:
        self.finished = 0
        self.returns: deque[float] = deque(maxlen=window)
        self.lengths: deque[int] = deque(maxlen=window)
        self._running = np.zeros(n_agents)
        self._steps = np.zeros(n_agents, np.int64)
        self._lock = threading.Lock()

    def add(self, agents: np.ndarray, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Count one transition of each agent in `agents`: raw rewards (B,), episode ends (B,)."""
        self._running[agents] += rewards
        self._steps[agents] += 1
        if ended.any():
            done = agents[ended]
            with self._lock:
                self.returns.extend(self._running[done].tolist())
                self.lengths.extend(self._steps[done].tolist())
                self.finished += len(done)
            self._running[done] = 0
            self._steps[done] = 0

    def abandon(self) -> None:
        """Forget the episodes that have not ended: their environments are no more."""
        self._running[:] = 0
        self._steps[:] = 0

    def merge(self, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """Count episodes that were finished elsewhere, oldest first."""
        with self._lock:
            self.returns.extend(returns)
            self.lengths.extend(lengths)
            self.finished += len(returns)

    def since(self, finished: int) -> tuple[list[float], list[int]]:
        """Return the returns and lengths of what ended after the first `finished`, as far as the window holds them."""
        with self._lock:
            n = min(self.finished - finished, len(self.returns))
            return list(self.returns)[len(self.returns) - n :], list(self.lengths)[len(self.lengths) - n :]

    def means(self, finished: int = 0) -> dict[str, float]:
        """Return ``score`` and ``episode_length``, the means of what `since` returns; nothing if no game has ended."""
        returns, lengths = self.since(finished)
        return {"score": float(np.mean(returns)), "episode_length": float(np.mean(lengths))} if returns else {}

    def state_dict(self) -> dict[str, Any]:
        """Return what outlives a restart, in JSON's types; unfinished episodes do not."""
        with self._lock:
            return {"finished": self.finished, "returns": list(self.returns), "lengths": list(self.lengths)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        with self._lock:
            self.finished = int(state["finished"])
            for own, saved in ((self.returns, state["returns"]), (self.lengths, state["lengths"])):
                own.clear()
                own.extend(saved)
