"""Requests for a policy, answered in batches of whatever is immediately there (GA3C, Sec. 4.1; HTS-RL's actors)."""

from collections.abc import Callable
from queue import Empty, SimpleQueue

import numpy as np

from workbench.algos.rl.learner import Learner
from workbench.algos.rl.meter import Meter
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.workers import Halted

Answer = tuple[np.ndarray, np.ndarray, int]
"""Policy (B, n_actions), values (B,), version of the weights that gave them."""
Acting = Callable[[], tuple[ActorCritic | None, int]]
"""Whose policy it is (None: the shared weights'), and its version."""


class PredictionQueue:
    """Requests of numbered clients; each has at most one waiting. Any number of threads may `serve`."""

    def __init__(self, n_clients: int = 0) -> None:
        self._requests: SimpleQueue[tuple[int, np.ndarray] | None] = SimpleQueue()
        self._answers: list[SimpleQueue[Answer | None]] = [SimpleQueue() for _ in range(n_clients)]

    def add_client(self) -> None:
        """Make room for one more client."""
        self._answers.append(SimpleQueue())

    def ask(self, client: int, obs: np.ndarray) -> Answer:
        """Wait for the policy of observations (B, *obs_shape); raises `Halted` if there will be none."""
        self._requests.put((client, obs))
        answer = self._answers[client].get()
        if answer is None:
            raise Halted
        return answer

    def serve(self, learner: Learner, meter: Meter, acting: Acting, *, one_by_one: bool = False) -> None:
        """Answer clients, all that wait in one batch or each by itself, until `end_server` is called."""
        while (first := self._requests.get()) is not None:
            asked = [first]
            while not one_by_one and (another := self._waiting()) is not None:
                asked.append(another)
            model, version = acting()
            obs = [request[1] for request in asked]
            policy, values = learner.predict(np.concatenate(obs) if len(obs) > 1 else obs[0], model)
            at = 0
            for client, part in asked:
                cut = slice(at, at := at + len(part))
                self._answers[client].put((policy[cut], values[cut], version))
            meter.add_prediction(at, self._requests.qsize())

    def end_server(self) -> None:
        """Let one of the threads that serve return."""
        self._requests.put(None)

    def halt_clients(self) -> None:
        """Wake every client that waits, or will, with nothing."""
        for answers in self._answers:
            answers.put(None)

    def _waiting(self) -> tuple[int, np.ndarray] | None:
        """Take a request that is there already."""
        try:
            request = self._requests.get_nowait()
        except Empty:
            return None
        if request is None:
            self._requests.put(None)  # another server's, or this one's next
        return request
