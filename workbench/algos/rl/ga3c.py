"""GA3C: asynchronous advantage actor-critic around one model (GA3C, Sec. 4.1 and Fig. 1b).

::

    agents ──observations──▶ prediction queue ──▶ predictors ──policy, value──▶ agents
    agents ──segments──────▶ training queue ────▶ trainers ──free segments───▶ agents
                                    predictors and trainers share one model

A group of agents has a thread; so has each predictor and each trainer. What goes through a queue is a number
or an array that nobody else writes any more. In the deterministic mode (`lockstep`) one thread calls the
same parts in turn.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

import numpy as np

from workbench.algos.rl.settings import Settings
from workbench.algos.rl.trial import PROGRESS_S, Trial
from workbench.core.protocols import Config, Progress


@dataclass(frozen=True)
class GA3C(Settings):
    """GA3C as a study takes it: settings, and a factory of trials.

    >>> GA3C(game="CartPole-v1", phase=Budget(frames=50_000))({"learning_rate": 1e-3}, seed=1)  # doctest: +SKIP
    """

    def __call__(self, config: Config, seed: int) -> "GA3CTrial":
        """Build a trial from its configuration (names in `TUNABLE`) and its seed."""
        return GA3CTrial(self.with_config(config), seed)


class _Halted(Exception):
    """A queue was closed because another thread failed."""


class GA3CTrial(Trial):
    """One GA3C learner, its agents, and the queues between them."""

    def __init__(self, settings: Settings, seed: int) -> None:
        if settings.lockstep:
            settings = replace(settings, n_groups=1, n_predictors=1, n_trainers=1, agents_ready=1.0)
        super().__init__(settings, seed)

    def _open(self) -> None:
        super()._open()
        waiting = self._segments.n - self.settings.n_agents
        self._gather_limit = max(1, waiting // self.settings.n_trainers)  # trainers cannot hoard what agents wait for
        self._requests: SimpleQueue[tuple[int, np.ndarray] | None] = SimpleQueue()
        self._replies: list[SimpleQueue[tuple[np.ndarray, np.ndarray, int] | None]] = [
            SimpleQueue() for _ in self._groups
        ]
        self._ready: SimpleQueue[int | None] = SimpleQueue()
        self._free: SimpleQueue[int | None] = SimpleQueue()
        for segment in range(self._segments.n):
            self._free.put(segment)
        self._gathered: list[int] = []  # by the deterministic mode

    def _run(self, progress: Progress) -> None:
        if self.settings.lockstep:
            self._run_in_turn(progress)
        else:
            self._run_threads(progress)

    def _run_threads(self, progress: Progress) -> None:
        """Run agents, predictors and trainers until the budget is spent, one fails, or `progress` raises."""
        self._stop, self._wake = threading.Event(), threading.Event()
        agents = [self._thread(self._play, number) for number in range(len(self._groups))]
        predictors = [self._thread(self._predict) for _ in range(self.settings.n_predictors)]
        trainers = [self._thread(self._train) for _ in range(self.settings.n_trainers)]
        try:
            while not self._wake.wait(PROGRESS_S):
                self._report(progress)
        finally:
            self._stop.set()
            _join(agents, self._wake_agents)
            for _ in predictors:
                self._requests.put(None)
            for _ in trainers:
                self._ready.put(None)
            _join(predictors + trainers)
        if self._failure is not None:
            raise self._failure

    def _end(self) -> None:
        self._stop.set()
        self._wake.set()

    def _thread(self, work: Callable[..., None], *args: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*args)
            except _Halted:
                pass
            except BaseException as failure:  # noqa: BLE001 - raised again by the thread that runs the phase
                self._failure = self._failure or failure
                self._end()

        thread = threading.Thread(target=guarded, name=f"ga3c{work.__name__}", daemon=True)
        thread.start()
        return thread

    def _play(self, number: int) -> None:
        """Agents: observe, ask for a policy, act, hand in what is finished."""
        group, replies = self._groups[number], self._replies[number]
        while not self._stop.is_set():
            self._requests.put((number, group.observe()))
            reply = replies.get()
            if reply is None:
                raise _Halted
            group.act(*reply, self._exchange)
            if self._spent():
                self._end()

    def _exchange(self, finished: list[int], n: int) -> list[int]:
        """Hand in finished segments and wait for `n` free ones."""
        for segment in finished:
            self._ready.put(segment)
        free = [self._free.get() for _ in range(n)]
        if None in free:
            raise _Halted
        return free  # type: ignore[return-value]

    def _predict(self) -> None:
        """Predictor: batch the requests that are immediately there, answer each."""
        while (request := self._requests.get()) is not None:
            requests = [request]
            while len(requests) < len(self._groups):
                try:
                    another = self._requests.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._requests.put(None)
                    break
                requests.append(another)
            obs = np.concatenate([o for _, o in requests]) if len(requests) > 1 else request[1]
            version = self.learner.updates
            policy, values = self.learner.predict(obs)
            at = 0
            for number, asked in requests:
                self._replies[number].put((policy[at : at + len(asked)], values[at : at + len(asked)], version))
                at += len(asked)
            self._meter.add_prediction(at, self._requests.qsize())

    def _train(self) -> None:
        """Trainer: gather a batch of segments, free them, update the model."""
        while ids := self._gather():
            rollout = self._segments.rollout(ids, self.settings.gamma)
            for segment in ids:
                self._free.put(segment)
            self._meter.add_update(self.learner.train(rollout), self._ready.qsize())
            if self._spent():
                self._end()

    def _gather(self) -> list[int]:
        """Wait for segments of at least `min_training_batch` experiences; none when the phase is over."""
        ids: list[int] = []
        experiences = 0
        while not ids or (experiences < self.settings.min_training_batch and len(ids) < self._gather_limit):
            segment = self._ready.get()
            if segment is None:
                for unused in ids:
                    self._ready.put(unused)  # the next phase begins with them
                return []
            ids.append(segment)
            experiences += int(self._segments.lengths[segment])
        return ids

    def _wake_agents(self) -> None:
        """If a thread has failed, let agents go that wait for its answer."""
        if self._failure is None:
            return
        for replies in self._replies:
            replies.put(None)
            for _ in range(self.settings.n_agents):
                self._free.put(None)

    def _run_in_turn(self, progress: Progress) -> None:
        """Play, predict and train in one thread, always in the same order."""
        group = self._groups[0]
        reported = 0.0
        while not self._spent():
            obs = group.observe()
            policy, values = self.learner.predict(obs)
            self._meter.add_prediction(len(obs), 0)
            group.act(policy, values, self.learner.updates, self._exchange_in_turn)
            if self._meter.seconds - reported >= PROGRESS_S:
                reported = self._meter.seconds
                self._report(progress)

    def _exchange_in_turn(self, finished: list[int], n: int) -> list[int]:
        """Train on finished segments as soon as there are enough, then give `n` free ones."""
        for segment in finished:
            self._gathered.append(segment)
            experiences = int(self._segments.lengths[self._gathered].sum())
            if experiences >= self.settings.min_training_batch or len(self._gathered) >= self._gather_limit:
                rollout = self._segments.rollout(self._gathered, self.settings.gamma)
                for free in self._gathered:
                    self._free.put(free)
                self._gathered = []
                self._meter.add_update(self.learner.train(rollout), 0)
        return [self._free.get() for _ in range(n)]  # type: ignore[misc]


def _join(threads: list[threading.Thread], meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until the threads have ended, calling `meanwhile` now and then."""
    for thread in threads:
        while thread.is_alive():
            meanwhile()
            thread.join(0.1)
