"""GA3C: asynchronous advantage actor-critic around one model (GA3C, Sec. 4.1 and Fig. 1b).

::

    agents ──observations──▶ prediction queue ──▶ predictors ──policy, value──▶ agents
    agents ──segments──────▶ training queue ────▶ trainers ──free segments───▶ agents
                                    predictors and trainers share one model

A group of agents has a thread; so has each predictor and each trainer. What goes through a queue is a number
or an array that nobody else writes any more. In the deterministic mode (`lockstep`) one thread calls the
same parts in turn.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, ClassVar, Literal

import numpy as np

from workbench.algos.rl.apart import EnvsApart
from workbench.algos.rl.envs import Envs
from workbench.algos.rl.ga3c.adjust import Adjuster, Adjustment, Mix
from workbench.algos.rl.learner import Precision
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.predictions import PredictionQueue
from workbench.algos.rl.rollout import Pool, Rollout
from workbench.algos.rl.settings import RMSPropSettings
from workbench.algos.rl.trial import Trial, anneal
from workbench.algos.rl.workers import Halted
from workbench.core.checks import POSITIVE, SHARE, check, plain_seed, whole
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config

AUTHORS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_predictors": 2,
    "n_trainers": 2,
    "min_training_batch": 0,
    "training_queue": 100,
    "init": "uniform",
    "reduction": "sum",
    "rmsprop_eps": 0.1,
    "eps_inside_root": True,
    "initial_square": 1.0,
    "max_grad_norm": None,
    "score_window": 1000,
}
"""What GA3C's authors set in their released code, where the default here differs: ``GA3C("Pong", **AUTHORS)``.

All but the automatic adjustment, which is on there: ``adjust_every_s=20``; and what is no setting: there frames are
resized bilinearly, convolutions padded and pixels scaled to about [-1, 1]."""


@dataclass(frozen=True)
class GA3C(RMSPropSettings):
    """GA3C as a study takes it: settings, and a factory of trials. What its authors set: `AUTHORS`.

    Attributes
    ----------
    n_groups : int
        Groups the agents play in: a group steps and asks together, in its own thread. Of fewer agents each is one.
    agents_ready : float
        Share of a group's agents that must be ready before it asks, in (0, 1]; below 1 the rest play on
        meanwhile. Atari only.
    n_predictors, n_trainers : int
        Threads (N_P, N_T of the paper).
    min_training_batch : int
        Experiences an update waits for, at least (Fig. 7: best 20 to 40), whatever `t_max` and `training_queue` are.
    training_queue : int or None
        Segments that may wait for a trainer; agents wait when it is full, which bounds the policy lag. As
        many as agents by default; where their number is adjusted, as there may come to be.
    lockstep : bool
        Deterministic mode: play, predict and train in turn, in one thread; n_groups, n_predictors and
        n_trainers are then 1 and `agents_ready` 1.
    adjust_every_s : float or None
        Seconds between automatic changes of the number of groups, predictors and trainers (Sec. 4.3; the paper's
        minute is 60), which then start from `n_groups`, `n_predictors` and `n_trainers`. None keeps them as they
        are: what a reproducible study wants.
    adjust_up_to : int
        Most of each that this may reach, if they do not begin with more. Memory is laid out for that many groups.
    agents_apart : bool
        One group plays all agents, and each has environments of its own, whatever `n_groups` is: what is adjusted is
        then the number of single agents, from `n_agents`, as in the paper.

    Examples
    --------
    >>> GA3C(game="CartPole-v1", phase=Budget(frames=50_000))({"learning_rate": 1e-3}, seed=1)  # doctest: +SKIP
    """

    tunable: ClassVar[tuple[str, ...]] = (
        *RMSPropSettings.tunable,
        "min_training_batch",
        "n_predictors",
        "n_trainers",
    )

    precision: Precision | Literal["auto"] = "auto"
    n_groups: int = 2
    agents_ready: float = 1.0
    n_predictors: int = 1
    n_trainers: int = 1
    min_training_batch: int = 40
    training_queue: int | None = None
    lockstep: bool = False
    adjust_every_s: float | None = None
    adjust_up_to: int = 8
    agents_apart: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, whole(1), "n_groups", "n_predictors", "n_trainers", "adjust_up_to")
        check(self, whole(0), "min_training_batch")
        check(self, whole(1).or_none(), "training_queue")
        check(self, SHARE, "agents_ready")
        check(self, POSITIVE.or_none(), "adjust_every_s")
        if self.lockstep and self.adjust_every_s is not None:
            raise InvalidInput(
                "lockstep=True works in one thread: there is nothing to adjust, leave adjust_every_s None"
            )
        for name, plain in (("lockstep", False), ("agents_ready", 1.0)):
            if self.agents_apart and getattr(self, name) != plain:
                raise InvalidInput(
                    f"agents_apart=True has agents come and go in a group that waits for all: leave {name} {plain}"
                )

    @property
    def mix(self) -> Mix:
        """Groups, or agents that are apart, predictors and trainers that a trial begins with."""
        if self.lockstep:
            return Mix(1, 1, 1)
        groups = self.n_agents if self.agents_apart else min(self.n_groups, self.n_agents)
        return Mix(groups, self.n_predictors, self.n_trainers)

    def n_players(self, mix: Mix) -> int:
        """Tell how many threads the agents of a mix play in: one a group, or one for all that are apart."""
        return min(mix.groups, 1) if self.agents_apart else mix.groups

    @property
    def idle(self) -> dict[str, str]:
        """In the deterministic mode there is one of each."""
        return super().idle | (dict.fromkeys(("n_predictors", "n_trainers"), "lockstep") if self.lockstep else {})

    @property
    def repeatable(self) -> bool:
        """In the deterministic mode."""
        return self.lockstep

    def __call__(self, config: Config, seed: int) -> "GA3CTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return GA3CTrial(self.with_config(config), seed)


class Queues:
    """What passes between the threads, by the numbers of the segments; all are free at first.

    Attributes
    ----------
    predictions : PredictionQueue
        Its clients are the groups.
    ready, free : SimpleQueue of int or None
        Segments to train on, and to record in; None: whoever gets it, ends.
    left : SimpleQueue of Rollout
        What trainers had copied when they were to end.
    """

    def __init__(self, n_waiting: int) -> None:
        self.predictions = PredictionQueue()
        self.ready: SimpleQueue[int | None] = SimpleQueue()
        self.free: SimpleQueue[int | None] = SimpleQueue()
        self.left: SimpleQueue[Rollout] = SimpleQueue()
        self.add_free(range(n_waiting))

    def add_free(self, segments: Iterable[int]) -> None:
        """Let segments be recorded in."""
        for segment in segments:
            self.free.put(segment)

    def exchange(self, finished: list[int], n: int) -> list[int]:
        """Hand in finished segments and wait for `n` free ones."""
        for segment in finished:
            self.ready.put(segment)
        free = [self.free.get() for _ in range(n)]
        if None in free:
            raise Halted
        return free  # type: ignore[return-value]


class GA3CTrial(Trial):
    """One GA3C learner, its agents, and the queues between them.

    Attributes
    ----------
    mix : Mix
        Groups, predictors and trainers at work; it changes in mid-phase only if `adjust_every_s` is set.
    """

    settings: GA3C

    def __init__(self, settings: GA3C, seed: int) -> None:
        s = settings
        self.mix = s.mix
        self._group_size = -(-s.n_agents // self.mix.groups)  # of those that automatic adjustment adds
        most_of_each = max(s.adjust_up_to, *self.mix)
        added = most_of_each - self.mix.groups if s.adjust_every_s else 0
        most = s.n_agents + added * self._group_size
        self._most, self._waiting = most, s.training_queue or most  # the latter: segments not in agents' hands
        self._adjustment: Adjustment | None = None
        if s.adjust_every_s is not None:
            adjuster = Adjuster(self.mix, np.random.default_rng([plain_seed(seed), 3]), most_of_each)
            self._adjustment = Adjustment(adjuster, s.adjust_every_s)
        super().__init__(
            s,
            seed,
            n_groups=s.n_players(self.mix),
            most_agents=most,
            n_segments=most + self._waiting,
            agents_ready=1.0 if s.lockstep else s.agents_ready,
        )
        self._queues = Queues(self._waiting)
        self._gathered: list[int] = []  # by the deterministic mode, as a trainer's segments and pool
        self._pool = Pool()
        self._players: list[Thread] = []

    def _own_state(self) -> dict[str, Any]:
        return {} if self._adjustment is None else {"mix": self._adjustment.adjuster.kept}

    def _take_own_state(self, saved: dict[str, Any]) -> None:
        if self._adjustment is not None and "mix" in saved:
            self.mix = self._adjustment.adjuster.begin(Mix(*saved["mix"]))

    def _open(self) -> None:
        self._queues, self._gathered, self._pool = Queues(self._waiting), [], Pool()
        super()._open()
        while len(self._groups) < self.settings.n_players(self.mix):  # as many as automatic adjustment had come to
            self._open_group(self._group_size)

    def _open_group(self, n_agents: int) -> None:
        if self.settings.agents_apart:
            n_agents = self._most
        first = self._waiting + self.n_agents
        self._queues.add_free(range(first, first + n_agents))
        self._queues.predictions.add_client()
        super()._open_group(n_agents)

    def _start_envs(self, n_agents: int, number: int) -> Envs:
        if not self.settings.agents_apart:
            return super()._start_envs(n_agents, number)
        start = super()._start_envs
        return EnvsApart(self.game, n_agents, lambda agent: start(1, agent))

    def _run(self) -> None:
        if self.settings.lockstep:
            self._run_in_turn()
            return
        mix, self.mix, self._players = self.mix, Mix(0, 0, 0), []
        try:
            self._run_workers(lambda: self._change_to(mix), look=self._adjust, release=self._release)
        finally:
            if self._adjustment is not None:
                self._adjustment.end_phase(self._meter.reading())

    def _change_to(self, mix: Mix) -> None:
        """Start the threads that are missing from `mix`, and let go of those that are too many."""
        for _ in range(self.mix.predictors, mix.predictors):
            self._workers.start(self._predict)
        for _ in range(self.mix.trainers, mix.trainers):
            self._workers.start(self._train)
        for _ in range(mix.predictors, self.mix.predictors):
            self._queues.predictions.end_server()
        for _ in range(mix.trainers, self.mix.trainers):
            self._queues.ready.put(None)
        before, after, self.mix = self.settings.n_players(self.mix), self.settings.n_players(mix), mix
        if self.settings.agents_apart:
            self._groups[0].envs.playing = mix.groups
        if after < before:
            self._workers.join(self._players[after:], self._wake_agents)
            del self._players[after:]  # their emulators stay as they are until they are wanted again
        for number in range(before, after):
            if number == len(self._groups):
                self._open_group(self._group_size)
            self._players.append(self._workers.start(self._play, number))

    def _release(self) -> None:
        """End the agents, and then those that they wait for."""
        self._workers.join(self._players, self._wake_agents)
        for _ in range(self.mix.predictors):
            self._queues.predictions.end_server()
        for _ in range(self.mix.trainers):
            self._queues.ready.put(None)

    def _wake_agents(self) -> None:
        """If a thread has failed, let agents go that wait for its answer."""
        if self._workers.failure is None:
            return
        self._queues.predictions.halt_clients()
        for _ in range(self.n_agents):
            self._queues.free.put(None)

    def _adjust(self) -> None:
        """Change the mix, if it is time to."""
        if self._adjustment is not None and (mix := self._adjustment.look(self._meter.reading())) is not None:
            self._change_to(mix)

    def _play(self, number: int) -> None:
        """Agents: observe, ask for a policy, act, hand in what is finished."""
        group = self._groups[number]
        while not self._workers.stopping and number < self.settings.n_players(self.mix):
            answer = self._queues.predictions.ask(number, group.observe())
            group.act(*answer, self._queues.exchange)
            if self._is_over():
                self._workers.stop()

    def _predict(self) -> None:
        """Predictor: answer the groups."""
        self._queues.predictions.serve(self.learner, self._meter, lambda: (None, self.learner.updates))

    def _train(self) -> None:
        """Trainer: gather a batch of segments, update the model."""
        segments: list[int] = []
        pool, queues = Pool(), self._queues
        while (segment := queues.ready.get()) is not None:
            with suppress(Empty):
                while True:
                    pool.add(queues.left.get_nowait())
            if self._enough(segment, segments, pool):
                self._update(pool, queues.ready.qsize())
                if self._is_over():
                    self._workers.stop()
        for unused in segments:  # others go on with what was gathered, or the next phase
            queues.ready.put(unused)
        if len(pool):
            queues.left.put(pool.take(len(pool)))

    def _update(self, pool: Pool, waiting: int) -> None:
        anneal(self, self.settings)
        self._meter.add_update(self.learner.train(pool.take(len(pool))), waiting)

    def _enough(self, segment: int, gathered: list[int], pool: Pool) -> bool:
        """Put a segment to those gathered, and tell whether they are a batch, which is then in `pool`.

        Of segments a trainer holds only its share, since agents wait for free ones: what is more, and every batch, it
        copies into `pool` and frees. So a batch may be larger than all the segments there are.
        """
        gathered.append(segment)
        missing = self.settings.min_training_batch - len(pool)
        enough = len(gathered) * self._segments.t_max >= missing  # else they need not be counted
        enough = enough and int(self._segments.lengths[gathered].sum()) >= missing
        if enough or len(gathered) >= max(1, self._waiting // max(1, self.mix.trainers)):
            pool.add(self._segments.rollout(gathered, self.settings.gamma))
            self._queues.add_free(gathered)
            gathered.clear()
        return enough

    def _run_in_turn(self) -> None:
        """Play, predict and train in one thread, always in the same order."""
        group = self._groups[0]
        while not self._is_over():
            obs = group.observe()
            policy, values = self.learner.predict(obs)
            self._meter.add_prediction(len(obs), 0)
            group.act(policy, values, self.learner.updates, self._exchange_in_turn)
            self._report_if_due()

    def _exchange_in_turn(self, finished: list[int], n: int) -> list[int]:
        """Train on finished segments as soon as there are enough, then give `n` free ones."""
        for segment in finished:
            if self._enough(segment, self._gathered, self._pool):
                self._update(self._pool, 0)
        return self._queues.exchange([], n)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        if self._adjustment is not None:
            playing = [group.envs.n_envs for group in self._groups[: self.mix.groups]]
            metrics["n_agents"] = self.mix.groups if self.settings.agents_apart else sum(playing)
            metrics["n_predictors"], metrics["n_trainers"] = self.mix.predictors, self.mix.trainers
        return metrics
