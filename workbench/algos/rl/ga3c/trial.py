"""GA3C: asynchronous advantage actor-critic around one model (GA3C, Sec. 4.1 and Fig. 1b).

::

    agents ──observations──▶ prediction queue ──▶ predictors ──policy, value──▶ agents
    agents ──segments──────▶ training queue ────▶ trainers ──free segments───▶ agents
                                    predictors and trainers share one model

A group of agents has a thread; so has each predictor and each trainer. What goes through a queue is a number
or an array that nobody else writes any more. In the deterministic mode (`lockstep`) one thread calls the
same parts in turn.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Thread

import numpy as np

from workbench.algos.rl.crew import Crew, Halted
from workbench.algos.rl.ga3c.adjust import Adjuster, Mix
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.rollout import Pool, Rollout
from workbench.algos.rl.settings import Settings
from workbench.algos.rl.trial import PROGRESS_S, Trial
from workbench.core.protocols import Config, Progress

MOST = 8  # groups, predictors and trainers, each, that automatic adjustment may reach


@dataclass(frozen=True)
class GA3C(Settings):
    """GA3C as a study takes it: settings, and a factory of trials.

    >>> GA3C(game="CartPole-v1", phase=Budget(frames=50_000))({"learning_rate": 1e-3}, seed=1)  # doctest: +SKIP
    """

    def __call__(self, config: Config, seed: int) -> "GA3CTrial":
        """Build a trial from its configuration (names in `TUNABLE`) and its seed."""
        return GA3CTrial(self.with_config(config), seed)


class GA3CTrial(Trial):
    """One GA3C learner, its agents, and the queues between them.

    Attributes
    ----------
    mix : Mix
        Groups, predictors and trainers at work; it changes in mid-phase only if `adjust_every_s` is set.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        if settings.lockstep:
            settings = replace(settings, n_groups=1, n_predictors=1, n_trainers=1, agents_ready=1.0)
        super().__init__(settings, seed)
        self.mix = Mix(settings.n_groups, settings.n_predictors, settings.n_trainers)
        self._adjuster: Adjuster | None = None
        if settings.adjust_every_s is not None:
            self._adjuster = Adjuster(self.mix, np.random.default_rng([seed, 3]), max(MOST, *self.mix))

    def _most_agents(self) -> int:
        s = self.settings
        if s.adjust_every_s is None:
            return s.n_agents
        return s.n_agents + max(0, MOST - s.n_groups) * self._group_size()

    def _group_size(self) -> int:
        """Agents in a group that automatic adjustment adds."""
        return -(-self.settings.n_agents // self.settings.n_groups)

    def _n_segments(self) -> int:
        return super()._n_segments() + self._most_agents() - self.settings.n_agents

    def _open(self) -> None:
        self._requests: SimpleQueue[tuple[int, np.ndarray] | None] = SimpleQueue()
        self._replies: list[SimpleQueue[tuple[np.ndarray, np.ndarray, int] | None]] = []
        self._ready: SimpleQueue[int | None] = SimpleQueue()
        self._free: SimpleQueue[int | None] = SimpleQueue()
        self._left: SimpleQueue[Rollout] = SimpleQueue()  # what trainers had copied when they were to end
        self._gathered: list[int] = []  # by the deterministic mode, as a trainer's ids and pool
        self._pool = Pool()
        self._waiting = self.settings.training_queue or self.settings.n_agents  # segments not in agents' hands
        for segment in range(self._waiting):
            self._free.put(segment)
        super()._open()
        while len(self._groups) < self.mix.groups:  # as many as automatic adjustment had come to
            self._open_group(self._group_size())

    def _open_group(self, n_agents: int) -> None:
        for segment in range(self._waiting + self.n_agents, self._waiting + self.n_agents + n_agents):
            self._free.put(segment)
        self._replies.append(SimpleQueue())
        super()._open_group(n_agents)

    def _run(self, progress: Progress) -> None:
        if self.settings.lockstep:
            self._run_in_turn(progress)
        else:
            self._run_threads(progress)

    def _run_threads(self, progress: Progress) -> None:
        """Run agents, predictors and trainers until the budget is spent, one fails, or `progress` raises."""
        self._crew = Crew()
        self._players: list[Thread] = []
        self._servers: list[Thread] = []
        self._adjusted: Reading | None = None
        mix, self.mix = self.mix, Mix(0, 0, 0)
        try:
            self._change_to(mix)
            while not self._crew.wait(PROGRESS_S):
                self._report(progress)
                self._adjust()
        finally:
            self._crew.end()
            self._crew.join(self._players, self._wake_agents)
            for _ in range(self.mix.predictors):
                self._requests.put(None)
            for _ in range(self.mix.trainers):
                self._ready.put(None)
            self._crew.join(self._servers)
            self._failure = self._crew.failure
        if self._failure is not None:
            raise self._failure

    def _change_to(self, mix: Mix) -> None:
        """Start the threads that are missing from `mix`, and let go of those that are too many."""
        for _ in range(self.mix.predictors, mix.predictors):
            self._servers.append(self._crew.start(self._predict))
        for _ in range(self.mix.trainers, mix.trainers):
            self._servers.append(self._crew.start(self._train))
        for _ in range(mix.predictors, self.mix.predictors):
            self._requests.put(None)
        for _ in range(mix.trainers, self.mix.trainers):
            self._ready.put(None)
        before, self.mix = self.mix.groups, mix
        if mix.groups < before:
            self._crew.join(self._players[mix.groups :], self._wake_agents)
            del self._players[mix.groups :]  # their emulators stay as they are until they are wanted again
        for number in range(before, mix.groups):
            if number == len(self._groups):
                self._open_group(self._group_size())
            self._players.append(self._crew.start(self._play, number))

    def _adjust(self) -> None:
        """Change the mix, if it is time to."""
        every = self.settings.adjust_every_s
        if self._adjuster is None or every is None:
            return
        reading = self._meter.reading()
        seconds = reading.seconds - (self._adjusted.seconds if self._adjusted else 0.0)
        if seconds >= every:
            trained = reading.sums["trained"] - (self._adjusted.sums["trained"] if self._adjusted else 0.0)
            self._adjusted = reading
            self._change_to(self._adjuster.tell(trained / seconds))

    def _play(self, number: int) -> None:
        """Agents: observe, ask for a policy, act, hand in what is finished."""
        group, replies = self._groups[number], self._replies[number]
        while not self._crew.stopping and number < self.mix.groups:
            self._requests.put((number, group.observe()))
            reply = replies.get()
            if reply is None:
                raise Halted
            group.act(*reply, self._exchange)
            if self._is_over():
                self._crew.end()

    def _exchange(self, finished: list[int], n: int) -> list[int]:
        """Hand in finished segments and wait for `n` free ones."""
        for segment in finished:
            self._ready.put(segment)
        free = [self._free.get() for _ in range(n)]
        if None in free:
            raise Halted
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
        """Trainer: gather a batch of segments, update the model."""
        ids: list[int] = []
        pool = Pool()
        while (segment := self._ready.get()) is not None:
            with suppress(Empty):
                while True:
                    pool.add(self._left.get_nowait())
            if self._enough(segment, ids, pool):
                self._meter.add_update(self.learner.train(pool.take(len(pool))), self._ready.qsize())
                if self._is_over():
                    self._crew.end()
        for unused in ids:  # others go on with what was gathered, or the next phase
            self._ready.put(unused)
        if len(pool):
            self._left.put(pool.take(len(pool)))

    def _enough(self, segment: int, ids: list[int], pool: Pool) -> bool:
        """Put a segment to those gathered, and tell whether they are a batch, which is then in `pool`.

        Of segments a trainer holds only its share, since agents wait for free ones: what is more, and every batch, it
        copies into `pool` and frees. So a batch may be larger than all the segments there are.
        """
        ids.append(segment)
        enough = len(pool) + int(self._segments.lengths[ids].sum()) >= self.settings.min_training_batch
        if enough or len(ids) >= self._most_held():
            pool.add(self._segments.rollout(ids, self.settings.gamma))
            for copied in ids:
                self._free.put(copied)
            ids.clear()
        return enough

    def _most_held(self) -> int:
        """Segments that a trainer may hold: its share of those that agents do not."""
        return max(1, self._waiting // max(1, self.mix.trainers))

    def _wake_agents(self) -> None:
        """If a thread has failed, let agents go that wait for its answer."""
        if self._crew.failure is None:
            return
        for replies in self._replies:
            replies.put(None)
        for _ in range(self.n_agents):
            self._free.put(None)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        if self._adjuster is not None:
            metrics["n_agents"] = sum(group.envs.n_envs for group in self._groups[: self.mix.groups])
            metrics["n_predictors"], metrics["n_trainers"] = self.mix.predictors, self.mix.trainers
        return metrics

    def _run_in_turn(self, progress: Progress) -> None:
        """Play, predict and train in one thread, always in the same order."""
        group = self._groups[0]
        reported = 0.0
        while not self._is_over():
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
            if self._enough(segment, self._gathered, self._pool):
                self._meter.add_update(self.learner.train(self._pool.take(len(self._pool))), 0)
        return [self._free.get() for _ in range(n)]  # type: ignore[misc]
