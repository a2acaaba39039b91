"""A3C: agents that each learn by themselves, on weights and RMSProp statistics they share (GA3C, Sec. 3.2).

::

    agent 1 ──gradients──▶ ┌──────────────────────────────────┐ ◀──gradients── agent N
    its own copy ◀─weights─ │ shared weights, shared statistics │ ─weights─▶ its own copy

Every agent is a thread with one environment and a copy of the weights. It plays up to t_max steps with its copy,
computes the gradients of that segment with the same copy, steps the shared weights along them, and takes a new
copy. There are no queues, and every prediction is for one observation: the baseline GA3C is compared with.
"""

import copy
from dataclasses import dataclass, replace
from typing import ClassVar

from workbench.algos.rl.crew import Crew
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.settings import TUNABLE, Settings
from workbench.algos.rl.trial import PROGRESS_S, Trial
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Progress


@dataclass(frozen=True)
class A3C(Settings):
    """A3C as a study takes it: settings, and a factory of trials.

    What concerns groups, predictors, trainers and their queues (`n_groups`, `agents_ready`, `n_predictors`,
    `n_trainers`, `min_training_batch`, `training_queue`) has no meaning here and is not read. Runs on the CPU, with
    16 agents by default, as the A3C paper.
    """

    n_agents: int = 16
    n_groups: int = 1
    device: str = "cpu"

    tunable: ClassVar[tuple[str, ...]] = tuple(
        name for name in TUNABLE if name not in ("n_predictors", "n_trainers", "min_training_batch")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.torch_device().type != "cpu":
            raise InvalidInput(f"A3C runs on the CPU, got device {self.device!r}: use GA3C on a GPU")
        if self.adjust_every_s is not None:
            raise InvalidInput("A3C has no predictors and trainers to adjust: leave adjust_every_s None, or use GA3C")

    def __call__(self, config: Config, seed: int) -> "A3CTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return A3CTrial(self.with_config(config), seed)


class A3CTrial(Trial):
    """One set of shared weights, and the agents that learn on them."""

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(replace(settings, n_groups=settings.n_agents, agents_ready=1.0), seed)

    def _n_segments(self) -> int:
        return self.settings.n_agents  # each agent has one, of its own number

    def _open(self) -> None:
        super()._open()
        self._copies: list[ActorCritic] = [copy.deepcopy(self.model) for _ in self._groups]
        self._versions = [self.learner.pull(own) for own in self._copies]

    def _run(self, progress: Progress) -> None:
        if self.settings.lockstep:
            self._run_in_turn(progress)
            return
        self._crew = Crew()
        agents = [self._crew.start(self._learn, number) for number in range(len(self._groups))]
        try:
            while not self._crew.wait(PROGRESS_S):
                self._report(progress)
        finally:
            self._crew.end()
            self._crew.join(agents)
            self._failure = self._crew.failure
        if self._failure is not None:
            raise self._failure

    def _learn(self, number: int) -> None:
        """Agent: take turns until the phase is over."""
        while not self._crew.stopping:
            self._turn(number)
            if self._is_over():
                self._crew.end()

    def _turn(self, number: int) -> None:
        """Observe, learn from the segment that this ends, if any, and act."""
        group, own = self._groups[number], self._copies[number]
        obs = group.observe()
        policy, values = self.learner.predict(obs, own)
        if finished := group.finish(values):
            rollout = self._segments.rollout(finished, self.settings.gamma)
            self._meter.add_update(self.learner.train(rollout, own), 0)
            self._versions[number] = self.learner.pull(own)
            policy, values = self.learner.predict(obs, own)  # the next action is the new weights'
        self._meter.add_prediction(len(obs), 0)
        group.act(policy, values, self._versions[number], lambda finished, n: [number] * n)

    def _run_in_turn(self, progress: Progress) -> None:
        """Let the agents take turns in one thread, always in the same order."""
        reported = 0.0
        while not self._is_over():
            for number in range(len(self._groups)):
                self._turn(number)
            if self._meter.seconds - reported >= PROGRESS_S:
                reported = self._meter.seconds
                self._report(progress)
