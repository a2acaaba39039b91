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
from dataclasses import dataclass
from threading import Barrier, BrokenBarrierError
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from workbench.algos.rl.environment import all_or_none
from workbench.algos.rl.hts.executor import Executor
from workbench.algos.rl.hts.ppo import proximal_update
from workbench.algos.rl.hts.step_time import Law, SlowEnvs, StepTime
from workbench.algos.rl.hts.storage import Storage
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.predictions import PredictionQueue
from workbench.algos.rl.settings import RMSPropSettings
from workbench.algos.rl.trial import Trial, anneal
from workbench.algos.rl.workers import Halted
from workbench.core.checks import PART, Rule, check, check_named, plain_seed, whole
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config

Method = Literal["a2c", "ppo"]


@dataclass(frozen=True)
class HTS(RMSPropSettings):
    """HTS-RL as a study takes it: settings, and a factory of trials.

    Attributes
    ----------
    sync_interval : int
        Steps of every environment between two barriers, alpha of the paper; an update trains on all of them. Those
        that only reset an environment count as well, and are not trained on.
    method : {"a2c", "ppo"}
        What an update is. A2C: one step along the delayed gradient of `actor_critic_loss`, returns cut after `t_max`
        steps, and at every barrier: every `t_max` from `sync_interval` up is the same. PPO: `proximal_update`, on
        advantages that `t_max` does not cut.
    n_executors : int or None
        Threads that step environments, each an equal part of them; one an environment by default.
    n_actors : int
        Threads that compute policies.
    deterministic : bool
        Compute every executor's policies by themselves, one observation a forward pass if it has one environment. A
        batch's composition changes its results in the last bits; so this makes trajectories and weights the same, bit
        for bit, whatever the number of actors and the speed of anything. False: actors serve all who wait in one batch.
    concurrent : bool
        False: the synchronous baseline, with the same updates on as many steps, no lag, and no actors.
    gae_lambda, clip_ratio, n_epochs, n_minibatches
        Of PPO: see `generalised_advantages` and `proximal_update`.
    step_time_law, step_time_mean_s, step_time_cv
        Sleep in each step of each environment, to measure what step times do: see `StepTime`. By default, not at all.
    """

    n_agents: int = 16
    sync_interval: int = 16
    method: Method = "a2c"
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
        *RMSPropSettings.tunable,
        *("sync_interval", "method", "gae_lambda", "clip_ratio", "n_epochs", "n_minibatches"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, whole(1), "sync_interval", "n_actors", "n_epochs", "n_minibatches")
        part = Rule(
            f"a whole number from 1 to n_agents, {self.n_agents}",
            lambda value: whole(1).fits(value) and value <= self.n_agents,
        )
        check(self, part.or_none(), "n_executors")
        check(self, PART, "gae_lambda")
        check(self, Rule("in (0, 1)", lambda value: 0 < value < 1), "clip_ratio")
        check_named(self, "method", get_args(Method))
        if self.method == "ppo" and self.sync_interval * self.n_agents == 1:
            raise InvalidInput(
                "PPO measures advantages from their mean: a rollout of one experience, sync_interval=1 of n_agents=1, "
                "teaches its policy nothing; take more of either, or method='a2c'"
            )
        self.step_time()

    def step_time(self) -> StepTime:
        """Return the law of the time that steps are slowed down by."""
        return StepTime(self.step_time_mean_s, self.step_time_cv, self.step_time_law)

    @property
    def idle(self) -> dict[str, str]:
        """What the other method reads."""
        of_ppo = ("gae_lambda", "clip_ratio", "n_epochs", "n_minibatches")
        return super().idle | dict.fromkeys(of_ppo if self.method == "a2c" else ("t_max",), "method")

    @property
    def repeatable(self) -> bool:
        """In the deterministic mode, and the synchronous baseline in any."""
        return self.deterministic or not self.concurrent

    def __call__(self, config: Config, seed: int) -> "HTSTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return HTSTrial(self.with_config(config), seed)


class HTSTrial(Trial):
    """One learner, its executors, and the two storages between them."""

    settings: HTS

    def __init__(self, settings: HTS, seed: int) -> None:
        s = settings
        self._shuffle = np.random.default_rng([plain_seed(seed), 3])  # of PPO's minibatches
        super().__init__(s, seed, n_groups=s.n_executors or s.n_agents, n_segments=0)  # it has storages instead
        interval = s.sync_interval * s.n_agents * self.game.frames_per_step
        self._phase.longest_wait += interval  # games are counted at its end, and frames at once
        self._recording, self._learning = (Storage(self.game, s.sync_interval, s.n_agents) for _ in range(2))
        self._acting, self._delayed = (copy.deepcopy(self.model) for _ in range(2))
        self._acting_version = 0
        self._learnt = self._first_update = True  # whether what was recorded has been learnt from
        self._learning_s, self._learnings = 0.0, 0  # in this phase
        self._barrier = Barrier(1)
        self._predictions = PredictionQueue()

    def _own_state(self) -> dict[str, Any]:
        return {"shuffle": self._shuffle.bit_generator.state}

    def _take_own_state(self, saved: dict[str, Any]) -> None:
        if "shuffle" in saved:
            self._shuffle.bit_generator.state = saved["shuffle"]

    def _open(self) -> None:
        """Start the environments; there is nothing yet to learn from."""
        self._take_newest()
        self._learnt = self._first_update = True
        super()._open()

    def _open_group(self, n_agents: int) -> None:
        """Start one more executor's environments."""
        number, step_time = len(self._groups), self.settings.step_time()
        with all_or_none() as opened:
            envs = opened(self._start_envs(n_agents, number))
            if step_time.mean_s > 0:
                envs = SlowEnvs(envs, step_time, np.random.default_rng([self.seed, 4, number]))
            self._groups.append(Executor(envs, self._generators[number], self.n_agents))

    def _run(self) -> None:
        self._learning_s, self._learnings = 0.0, 0
        if not self.settings.concurrent:
            self._run_in_turn()
            return
        self._barrier = Barrier(len(self._groups) + 1, action=self._swap)
        self._predictions = PredictionQueue(len(self._groups))
        self._run_workers(self._start, look=self._look, release=self._release)

    def _start(self) -> None:
        """Start executors, actors and the learner.

        Wherever they are stopped, executors end in front of a row and the learner behind an update: the next phase
        goes on from there as if nothing had happened.
        """
        self._workers.start(self._learn)
        for _ in range(self.settings.n_actors):
            self._workers.start(self._act)
        for number in range(len(self._groups)):
            self._workers.start(self._execute, number)

    def _look(self) -> None:
        """End a phase of seconds; the other budgets are counted at the barrier, to be spent alike every time."""
        if self.settings.phase.unit == "seconds" and self._is_over():
            self._workers.stop()

    def _release(self) -> None:
        self._barrier.abort()
        self._predictions.halt_clients()
        for _ in range(self.settings.n_actors):
            self._predictions.end_server()

    def _execute(self, number: int) -> None:
        """Executor: ask for a policy, draw actions and step, until this interval's rows are full."""
        executor: Executor = self._groups[number]
        while not self._workers.stopping:
            if executor.t == self.settings.sync_interval:
                self._meet()
            else:
                executor.step(*self._predictions.ask(number, executor.obs), self._recording)

    def _act(self) -> None:
        """Actor: answer whoever is waiting; in the deterministic mode one executor at a time."""
        self._predictions.serve(
            self.learner,
            self._meter,
            lambda: (self._acting, self._acting_version),
            one_by_one=self.settings.deterministic,
        )

    def _learn(self) -> None:
        """Learner: one update an interval."""
        while not self._workers.stopping:
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
        anneal(self, self.settings)  # here, where all have played as many
        for executor in self._groups:
            executor.t = 0
        store, everyone = self._learning, np.arange(self.settings.n_agents)
        for t in range(len(store)):  # here, in the order of the rows: scores do not depend on who was faster
            played = store.played[t]
            ended = store.terminated[t] | store.truncated[t]
            self.episodes.add(everyone[played], store.rewards[t, played], ended[played])
        if self.settings.concurrent and self._is_over() and self._learnings:  # a phase in new environments trains, too
            self._workers.stop()

    def _update(self) -> None:
        """Make the update of what was recorded in the last interval.

        Raises
        ------
        RuntimeError
            The policy lag is not what the data flow promises.
        """
        if not self._learning.played.any():  # every step only reset an environment
            self._learnt = self._first_update = True  # what comes next has no update to lag behind
            return
        began = time.perf_counter()
        _, last_values = self.learner.predict(self._learning.last_obs, self._delayed)
        update = self._step(last_values)
        promised = 0 if self._first_update or not self.settings.concurrent else 1
        if (update.lags != promised).any():
            raise RuntimeError(f"HTS promises a policy lag of {promised}, found {np.unique(update.lags).tolist()}")
        self.learner.settle()
        self._first_update = False
        self._learnt = True
        self._learning_s += time.perf_counter() - began
        self._learnings += 1
        self._meter.add_update(update, 0)

    def _step(self, last_values: np.ndarray) -> Update:
        """Step the weights by the method of the settings."""
        s = self.settings
        if s.method == "a2c":
            rollout = self._learning.rollout(last_values, t_max=s.t_max, gamma=s.gamma, clip_rewards=self.clips_rewards)
            return self.learner.train(rollout, self._delayed)
        rollout, advantages, log_probs = self._learning.advantages(
            last_values, gamma=s.gamma, gae_lambda=s.gae_lambda, clip_rewards=self.clips_rewards
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

    def _run_in_turn(self) -> None:
        """Run the synchronous baseline: step all, when all have come predict for all, and learn while all wait."""
        starts = np.cumsum([executor.envs.n_envs for executor in self._groups])[:-1]

        def step(executor: Executor, policy: np.ndarray, values: np.ndarray) -> None:
            executor.step(policy, values, self._acting_version, self._recording)

        with ThreadPoolExecutor(len(self._groups)) as pool:
            midway = self.settings.phase.unit == "seconds"  # other budgets are counted at the barrier, as games are
            while (self._groups[0].t and not midway) or not self._is_over():
                obs = np.concatenate([executor.obs for executor in self._groups])
                policy, values = self.learner.predict(obs, self._acting)
                self._meter.add_prediction(len(obs), 0)
                list(pool.map(step, self._groups, np.split(policy, starts), np.split(values, starts)))
                if self._groups[0].t == self.settings.sync_interval:
                    self._swap()
                    self._update()
                    self._take_newest()
                self._report_if_due()

    def _take_newest(self) -> None:
        """Act with the newest weights from now on."""
        self._acting_version = self.learner.pull(self._acting)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        if self._learnings:
            metrics["learning_s"] = self._learning_s / self._learnings
        return metrics
