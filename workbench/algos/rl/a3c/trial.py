"""A3C: agents that each learn by themselves, on weights and RMSProp statistics they share (GA3C, Sec. 3.2).

::

    agent 1 ──gradients──▶ ┌──────────────────────────────────┐ ◀──gradients── agent N
    its own copy ◀─weights─ │ shared weights, shared statistics │ ─weights─▶ its own copy

Every agent is a thread with one environment and a copy of the weights. It plays up to t_max steps with its copy,
computes the gradients of that segment with the same copy, steps the shared weights along them, and takes a new
copy. There are no queues, and every prediction is for one observation: the baseline GA3C is compared with.
"""

import copy
from dataclasses import dataclass

from workbench.algos.rl.device import torch_device
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.settings import RMSPropSettings
from workbench.algos.rl.trial import Trial, anneal
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config


@dataclass(frozen=True)
class A3C(RMSPropSettings):
    """A3C as a study takes it: settings, and a factory of trials.

    It runs on the CPU, with 16 agents by default, as the A3C paper.

    Attributes
    ----------
    lockstep : bool
        Deterministic mode: the agents take turns in one thread, always in the same order.
    """

    n_agents: int = 16
    device: str = "cpu"
    lockstep: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if torch_device(self.device).type != "cpu":
            raise InvalidInput(f"A3C runs on the CPU, got device {self.device!r}: use GA3C on a GPU")

    @property
    def repeatable(self) -> bool:
        """In the deterministic mode."""
        return self.lockstep

    def __call__(self, config: Config, seed: int) -> "A3CTrial":
        """Build a trial from its configuration (names in `tunable`) and its seed."""
        return A3CTrial(self.with_config(config), seed)


class A3CTrial(Trial):
    """One set of shared weights, and the agents that learn on them: each is a group and has a segment of its number."""

    settings: A3C

    def __init__(self, settings: A3C, seed: int) -> None:
        super().__init__(settings, seed, n_groups=settings.n_agents)
        self._copies: list[ActorCritic] = [copy.deepcopy(self.model) for _ in range(settings.n_agents)]
        self._versions = [0] * settings.n_agents

    def _open(self) -> None:
        super()._open()
        self._versions = [self.learner.pull(own) for own in self._copies]

    def _run(self) -> None:
        agents = range(len(self._groups))
        if not self.settings.lockstep:
            self._run_workers(lambda: [self._workers.start(self._learn, number) for number in agents])
            return
        while not self._is_over():
            for number in agents:
                self._turn(number)
            self._report_if_due()

    def _learn(self, number: int) -> None:
        """Agent: take turns until the phase is over."""
        while not self._workers.stopping:
            self._turn(number)
            if self._is_over():
                self._workers.stop()

    def _turn(self, number: int) -> None:
        """Observe, learn from the segment that this ends, if any, and act."""
        group, own = self._groups[number], self._copies[number]
        obs = group.observe()
        policy, values = self.learner.predict(obs, own)
        if finished := group.finish(values):
            rollout = self._segments.rollout(finished, self.settings.gamma)
            anneal(self, self.settings)
            self._meter.add_update(self.learner.train(rollout, own), 0)
            self._versions[number] = self.learner.pull(own)
            policy, values = self.learner.predict(obs, own)  # the next action is the new weights'
        self._meter.add_prediction(len(obs), 0)
        group.act(policy, values, self._versions[number], lambda finished, n: [number] * n)
