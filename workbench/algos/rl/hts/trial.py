"""HTS-RL: rollout and learning at once, on two storages that swap at a barrier (Liu, Yeh and Schwing, NeurIPS 2020).

::

    executors ──observations──▶ waiting ──▶ actors ──policy, value──▶ executors      with the weights w_j
        │                                                                            in interval j
        └──writes──▶ storage A          storage B ◀──reads── learner ──▶ w_{j+1}
                         └────── swap at the barrier, every sync_interval steps ──────┘

An executor is a thread with one environment or several. It draws its actions itself, from its own generator; actors
only compute policies, for whichever observations are waiting. So executors wait for no other until the barrier, and
the longest of their *sums* of step times counts instead of the sum of the longest step times.

The delayed gradient: in interval j the executors act with w_j, while the learner takes the gradient of what was
recorded in interval j-1, at the weights that acted then, and steps the newest weights along it:
``w_{j+1} = w_j + step(gradient at w_{j-1})``. PPO, of many steps, starts from the newest weights instead, and its
ratio to the policy that acted accounts for the lag. The policy lag is exactly one update, whatever the threads do;
only the first update after the environments were started has nothing to lag behind.

With ``concurrent=False`` it is the synchronous baseline: every environment waits for every other at each step, one
prediction serves all, and nobody plays while the learner learns.
"""

import copy
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Barrier, BrokenBarrierError
from typing import ClassVar, Literal

import numpy as np
import torch

from workbench.algos.rl.crew import Crew, Halted
from workbench.algos.rl.envs import Agents
from workbench.algos.rl.hts.executor import Executor
from workbench.algos.rl.hts.ppo import proximal_update
from workbench.algos.rl.hts.step_time import Law, SlowAgents, StepTime
from workbench.algos.rl.hts.storage import Storage
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.settings import TUNABLE, Settings, _check, _is_int
from workbench.algos.rl.trial import PROGRESS_S, Trial
from workbench.core.errors import InvalidInput, unknown
from workbench.core.protocols import Config, Progress

Reply = tuple[np.ndarray, np.ndarray, int] | None  # policy, values, version of the weights; None: none will come


@dataclass(frozen=True)
class HTS(Settings):
    """HTS-RL as a study takes it: settings, and a factory of trials.

    What concerns GA3C's groups, predictors, trainers and their queues (`n_groups`, `agents_ready`, `n_predictors`,
    `n_trainers`, `min_training_batch`, `training_queue`) has no meaning here and is not read.

    Attributes
    ----------
    sync_interval : int
        Steps of every environment between two barriers, alpha of the paper; an update trains on all of them. Those
        that only reset an environment count as well, and are not trained on.
    method : {"a2c", "ppo"}
        What an update is. A2C: one step along the delayed gradient of `actor_critic_loss`, returns cut after `t_max`
        steps. PPO: `proximal_update`, on advantages that `t_max` does not cut.
    n_executors : int or None
        Threads that step environments, each an equal part of them; one an environment by default.
    n_actors : int
        Threads that compute policies.
    deterministic : bool
        Compute every executor's policies by themselves, one observation a forward pass if it has one environment. A
        batch's composition changes its results in the last bits; so this makes trajectories and weights the same, bit
        for bit, whatever the number of actors and the speed of anything. False: actors serve all who wait in one batch.
    concurrent : bool
        False: the synchronous baseline, with the same updates on as many steps, and no lag; `n_actors` is not read.
    gae_lambda, clip_ratio, n_epochs, n_minibatches
        Of PPO: see `generalised_advantages` and `proximal_update`.
    step_time_law, step_time_mean_s, step_time_cv
        Sleep in each step of each environment, to measure what step times do: see `StepTime`. By default, not at all.
    """

    n_agents: int = 16
    n_groups: int = 1
    sync_interval: int = 16
    method: Literal["a2c", "ppo"] = "a2c"
    n_executors: int | None = None
    n_actors: int = 4
    deterministic: bool = True
    concurrent: bool = True
    gae_lambda: float = 0.95
    clip_ratio: float = 0.2
    n_epochs: int = 4
    n_minibatches: int = 4
    step_time_law: Law = "gamma"
    step_time_mean_s: float = 0.0
    step_time_cv: float = 0.0

    tunable: ClassVar[tuple[str, ...]] = (
        *(name for name in TUNABLE if name not in ("n_predictors", "n_trainers", "min_training_batch")),
        *("sync_interval", "method", "gae_lambda", "clip_ratio", "n_epochs", "n_minibatches"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sync_interval", "n_actors", "n_epochs", "n_minibatches"):
            _check(self, name, "a whole number from 1", lambda v: _is_int(v) and v >= 1)
        allowed = f"a whole number from 1 to n_agents, {self.n_agents}, or None"
        _check(self, "n_executors", allowed, lambda v: v is None or (_is_int(v) and 1 <= v <= self.n_agents))
        _check(self, "gae_lambda", "in [0, 1]", lambda v: 0 <= v <= 1)
        _check(self, "clip_ratio", "in (0, 1)", lambda v: 0 < v < 1)
        if self.method not in ("a2c", "ppo"):
            raise unknown("method", str(self.method), ["a2c", "ppo"])
        if self.lockstep:
            raise InvalidInput("HTS repeats with its threads running: leave lockstep False and deterministic True")
        if self.adjust_every_s is not None:
            raise InvalidInput("HTS has no predictors and trainers to adjust: leave adjust_every_s None, or use GA3C")
        self.step_time()

    def __call__(self, config: Config, seed: int) -> "HTSTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return HTSTrial(self.with_config(config), seed)

    def step_time(self) -> StepTime:
        """Return the law of the time that steps are slowed down by."""
        return StepTime(self.step_time_mean_s, self.step_time_cv, self.step_time_law)


class HTSTrial(Trial):
    """One learner, its executors, and the two storages between them."""

    settings: HTS

    def __init__(self, settings: HTS, seed: int) -> None:
        super().__init__(replace(settings, n_groups=settings.n_executors or settings.n_agents, agents_ready=1.0), seed)
        self._shuffle = np.random.default_rng([seed, 3])  # of PPO's minibatches
        self._generators.append(self._shuffle)  # after the executors': it is saved with them

    def _open(self) -> None:
        """Start the environments, with two empty storages."""
        s = self.settings
        self._recording, self._learning = (Storage(self.game, s.sync_interval, s.n_agents) for _ in range(2))
        self._acting, self._delayed = (copy.deepcopy(self.model) for _ in range(2))
        self._take_newest()
        self._learnt = True  # there is nothing yet to learn from
        self._first_update = True
        for part in np.array_split(np.arange(s.n_agents), s.n_groups):
            self._open_group(len(part))

    def _open_group(self, n_agents: int) -> None:
        """Start one more executor's environments."""
        number = len(self._groups)
        self._groups.append(Executor(self._start_envs(n_agents), self._generators[number], self.n_agents))

    def _start_envs(self, n_agents: int) -> Agents:
        envs, step_time = super()._start_envs(n_agents), self.settings.step_time()
        if step_time.mean_s == 0:
            return envs
        return SlowAgents(envs, step_time, np.random.default_rng([self.seed, 4, len(self._groups)]))

    def _run(self, progress: Progress) -> None:
        self._learning_s, self._learnings = 0.0, 0
        if self.settings.concurrent:
            self._run_at_once(progress)
        else:
            self._run_in_turn(progress)

    def _run_at_once(self, progress: Progress) -> None:
        """Run executors, actors and the learner until the budget is spent, one fails, or `progress` raises.

        Wherever they are stopped, executors end in front of a row and the learner behind an update: the next phase
        goes on from there as if nothing had happened.
        """
        self._crew = Crew()
        self._barrier = Barrier(len(self._groups) + 1, action=self._swap)
        self._waiting: SimpleQueue[int | None] = SimpleQueue()
        self._replies: list[SimpleQueue[Reply]] = [SimpleQueue() for _ in self._groups]
        try:
            threads = [self._crew.start(self._learn)]
            threads += [self._crew.start(self._act) for _ in range(self.settings.n_actors)]
            threads += [self._crew.start(self._execute, number) for number in range(len(self._groups))]
            while not self._crew.wait(PROGRESS_S):
                self._report(progress)
                if self.settings.phase.unit == "seconds" and self._is_over():
                    break  # the other budgets are counted at the barrier, so that they are spent alike every time
        finally:
            self._crew.end()
            self._barrier.abort()
            for replies in self._replies:
                replies.put(None)
            for _ in range(self.settings.n_actors):
                self._waiting.put(None)
            self._crew.join(threads)
            self._failure = self._crew.failure
        if self._failure is not None:
            raise self._failure

    def _execute(self, number: int) -> None:
        """Executor: ask for a policy, draw actions and step, until this interval's rows are full."""
        executor: Executor = self._groups[number]
        while not self._crew.stopping:
            if executor.t == self.settings.sync_interval:
                self._meet()
                continue
            self._waiting.put(number)
            reply = self._replies[number].get()
            if reply is None:
                raise Halted
            executor.step(*reply, self._recording)

    def _act(self) -> None:
        """Actor: answer whoever is waiting; in the deterministic mode one executor at a time."""
        most = 1 if self.settings.deterministic else len(self._groups)
        while (number := self._waiting.get()) is not None:
            numbers = [number]
            while len(numbers) < most:
                try:
                    another = self._waiting.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._waiting.put(None)  # another actor's, or this one's next
                    break
                numbers.append(another)
            obs = [self._groups[number].obs for number in numbers]
            policy, values = self.learner.predict(np.concatenate(obs), self._acting)
            at = 0
            for number, asked in zip(numbers, obs, strict=True):
                part = slice(at, at := at + len(asked))
                self._replies[number].put((policy[part], values[part], self._acting_version))
            self._meter.add_prediction(at, self._waiting.qsize())

    def _learn(self) -> None:
        """Learner: one update an interval."""
        while not self._crew.stopping:
            if not self._learnt:
                self._update()
            self._meet()

    def _meet(self) -> None:
        """Wait at the barrier for all executors and the learner; the last to come swaps."""
        try:
            self._barrier.wait()
        except BrokenBarrierError:
            raise Halted from None

    def _swap(self) -> None:
        """At the barrier: exchange the storages, act with the newest weights, and keep those that acted till now."""
        self._recording, self._learning = self._learning, self._recording
        self._acting, self._delayed = self._delayed, self._acting
        self._take_newest()
        self._learnt = False
        for executor in self._groups:
            executor.t = 0
        store, everyone = self._learning, np.arange(self.settings.n_agents)
        for t in range(len(store)):  # here, in the order of the rows: scores do not depend on who was faster
            played = store.played[t]
            ended = store.terminated[t] | store.truncated[t]
            self.episodes.add(everyone[played], store.rewards[t, played], ended[played])
        if self.settings.concurrent and self._is_over():
            self._crew.end()

    def _update(self) -> None:
        """Make the update of what was recorded in the last interval.

        Raises
        ------
        RuntimeError
            The policy lag is not what the data flow promises.
        """
        began = time.perf_counter()
        _, last_values = self.learner.predict(self._learning.last_obs, self._delayed)
        update = (self._ppo if self.settings.method == "ppo" else self._a2c)(last_values)
        promised = 0 if self._first_update or not self.settings.concurrent else 1
        if (update.lags != promised).any():
            raise RuntimeError(f"HTS promises a policy lag of {promised}, found {np.unique(update.lags).tolist()}")
        self._settle()
        self._first_update = False
        self._learnt = True
        self._learning_s += time.perf_counter() - began
        self._learnings += 1
        self._meter.add_update(update, 0)

    def _a2c(self, last_values: np.ndarray) -> Update:
        s = self.settings
        rollout = self._learning.rollout(last_values, t_max=s.t_max, gamma=s.gamma, clip_rewards=self._clip_rewards())
        return self.learner.train(rollout, self._delayed)

    def _ppo(self, last_values: np.ndarray) -> Update:
        s = self.settings
        rollout, advantages, log_probs = self._learning.advantages(
            last_values, gamma=s.gamma, gae_lambda=s.gae_lambda, clip_rewards=self._clip_rewards()
        )
        return proximal_update(
            self.learner,
            rollout,
            advantages,
            log_probs,
            generator=self._shuffle,
            n_epochs=s.n_epochs,
            n_minibatches=s.n_minibatches,
            clip_ratio=s.clip_ratio,
        )

    def _run_in_turn(self, progress: Progress) -> None:
        """Run the synchronous baseline: step all, when all have come predict for all, and learn while all wait."""
        reported = 0.0
        starts = np.cumsum([executor.envs.n_envs for executor in self._groups])[:-1]

        def step(executor: Executor, policy: np.ndarray, values: np.ndarray) -> None:
            executor.step(policy, values, self._acting_version, self._recording)

        with ThreadPoolExecutor(len(self._groups)) as pool:
            while not self._is_over():
                obs = np.concatenate([executor.obs for executor in self._groups])
                policy, values = self.learner.predict(obs, self._acting)
                self._meter.add_prediction(len(obs), 0)
                try:
                    list(pool.map(step, self._groups, np.split(policy, starts), np.split(values, starts)))
                except Exception as failure:
                    self._failure = failure
                    raise
                if self._groups[0].t == self.settings.sync_interval:
                    self._swap()
                    self._update()
                    self._take_newest()
                if self._meter.seconds - reported >= PROGRESS_S:
                    reported = self._meter.seconds
                    self._report(progress)

    def _take_newest(self) -> None:
        """Act with the newest weights from now on."""
        self._acting_version = self.learner.pull(self._acting)
        self._settle()

    def _settle(self) -> None:
        """Wait for a GPU: each thread has a stream there, and others are to find the weights complete."""
        if self.learner.device.type == "cuda":
            torch.cuda.synchronize(self.learner.device)

    def _clip_rewards(self) -> bool:
        return self.game.atari if self.settings.clip_rewards is None else self.settings.clip_rewards

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        if self._learnings:
            metrics["learning_s"] = self._learning_s / self._learnings
        return metrics
