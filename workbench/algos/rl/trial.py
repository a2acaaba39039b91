"""What every trial of every system is: a learner, its agents' episodes, phases, a checkpoint."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.agents import AgentGroup
from workbench.algos.rl.checkpoint import CHECKPOINT, load_weights, read_checkpoint
from workbench.algos.rl.envs import Agents, available_cores, find_game, make_agents
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.learner import Learner
from workbench.algos.rl.meter import Meter, Reading
from workbench.algos.rl.model import ActorCritic, make_model, network_name
from workbench.algos.rl.optim import SharedRMSProp
from workbench.algos.rl.rollout import Segments
from workbench.algos.rl.settings import Settings
from workbench.core.protocols import Metrics, Progress

PROGRESS_S = 0.5  # seconds between two calls of progress


class Trial(ABC):
    """A learner and its agents, driven phase by phase; a `Trainable`. A system adds its data flow in `_run`.

    Parameters
    ----------
    settings : Settings
        With the trial's config already in.
    seed : int
        Of the weights, the actions and the games' starts.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.game = find_game(settings.game)
        device = settings.torch_device()
        model = make_model(self.game, settings.network, settings.init, _derived(seed, 0)).to(device)
        optimizer = SharedRMSProp(
            model.parameters(),
            settings.learning_rate,
            decay=settings.rmsprop_decay,
            eps=settings.rmsprop_eps,
            eps_inside_root=settings.eps_inside_root,
            max_norm=settings.max_grad_norm,
        )
        self.learner = Learner(
            model,
            optimizer,
            device,
            entropy_beta=settings.entropy_beta,
            value_weight=settings.value_weight,
            reduction=settings.reduction,
            precision=settings.precision,
        )
        self.episodes = Episodes(self._most_agents(), settings.score_window)
        self._generators = [np.random.default_rng([seed, 1, group]) for group in range(settings.n_groups)]
        self._steps_before = 0  # played before the environments now open were started
        self._groups: list[Any] = []  # AgentGroup, or what a system has in its place: envs, steps, close
        self._failure: BaseException | None = None
        self._last: Reading | None = None

    @property
    def model(self) -> ActorCritic:
        """The network, as it is now."""
        return self.learner.model

    @property
    def steps(self) -> int:
        """Transitions played so far, by all agents."""
        return int(self._steps_before + sum(group.steps for group in self._groups))

    def train_phase(self, progress: Progress) -> Metrics:
        """Play and train until the phase's budget is spent.

        Parameters
        ----------
        progress : callable
            Called about twice a second in this thread, first after half a second, with the metrics below as
            they are now and the rates since the last call. What it raises ends the phase, cleanly.

        Returns
        -------
        dict
            ``score`` (see `Episodes.score`); ``frames, steps, updates, episodes`` since the trial began;
            ``episode_length`` in steps; ``seconds`` of this phase; and what `Reading.since` measures of it.

        Raises
        ------
        DivergenceError
            The loss is no longer a number.
        """
        if self._failure is not None:
            raise RuntimeError("this trial has failed; start a new one from its last checkpoint") from self._failure
        torch.set_num_threads(self.settings.torch_threads)
        if not self._groups:
            self._open()
        self._meter, self._last = Meter(), None
        self._before = {"episodes": self.episodes.finished, "steps": self.steps, "updates": self.learner.updates}
        try:
            self._run(progress)
        except FloatingPointError as diverged:
            self._failure = diverged
            raise
        return self._metrics(self._meter.reading(), None) | {"seconds": self._meter.seconds}

    def save(self, path: Path) -> None:
        """Write weights, optimiser statistics, counters and generators into the directory `path`."""
        counters = {
            "game": self.game.name,
            "network": network_name(self.game, self.settings.network),
            "seed": self.seed,
            "steps": self.steps,
            "updates": self.learner.updates,
            "episodes": self.episodes.state_dict(),
            "generators": [generator.bit_generator.state for generator in self._generators],
        }
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "counters": json.dumps(counters),
        }
        torch.save(state, Path(path) / CHECKPOINT)

    def load(self, path: Path) -> None:
        """Go on from a directory written by `save`; environments start new episodes.

        The config stays this trial's own. So do its random generators, unless the checkpoint is of the same seed.

        Raises
        ------
        InvalidInput
            There is no checkpoint, or it is of another network; this trial's weights are left as they were.
        """
        self.close()
        state = read_checkpoint(path, self.learner.device)
        load_weights(self.model, state, f"{network_name(self.game, self.settings.network)} for {self.game.name}", path)
        self.learner.optimizer.load_state_dict(state["optimizer"])
        counters = state["counters"]
        self._steps_before = counters["steps"]
        self.learner.updates = counters["updates"]
        self.episodes.load_state_dict(counters["episodes"])
        if counters["seed"] == self.seed:
            for generator, saved in zip(self._generators, counters["generators"], strict=False):
                generator.bit_generator.state = saved

    def close(self) -> None:
        """Close the environments; between phases there is no other thread to stop."""
        self._steps_before = self.steps
        for group in self._groups:
            group.close()
        self._groups = []

    @abstractmethod
    def _run(self, progress: Progress) -> None:
        """Play and train until `_spent`, calling `_report` every PROGRESS_S seconds."""

    def _open(self) -> None:
        """Start the environments and lay out the room for experiences."""
        s = self.settings
        self._segments = Segments(self.game, self._n_segments(), s.t_max)
        for part in np.array_split(np.arange(s.n_agents), s.n_groups):
            self._open_group(len(part))

    def _most_agents(self) -> int:
        """Agents there may ever be."""
        return self.settings.n_agents

    def _n_segments(self) -> int:
        """Segments to lay out: one in each agent's hands, and those that wait."""
        return self.settings.n_agents + (self.settings.training_queue or self.settings.n_agents)

    def _open_group(self, n_agents: int) -> None:
        """Start the environments of one more group of agents."""
        s, number = self.settings, len(self._groups)
        while len(self._generators) <= number:
            self._generators.append(np.random.default_rng([self.seed, 1, len(self._generators)]))
        self._groups.append(
            AgentGroup(
                self._start_envs(n_agents),
                self._segments,
                self.episodes,
                self._generators[number],
                clip_rewards=self.game.atari if s.clip_rewards is None else s.clip_rewards,
                first_agent=self.n_agents,
            )
        )

    def _start_envs(self, n_agents: int) -> Agents:
        """Start environments for the group that is opened next, with seeds of their own."""
        s = self.settings
        return make_agents(
            self.game,
            n_agents,
            _derived(self.seed, 2, len(self._groups), self._steps_before),
            batch_size=max(1, round(n_agents * s.agents_ready)),
            n_threads=-(-(s.emulator_threads or available_cores()) // s.n_groups),
            noop_max=s.noop_max,
            max_episode_frames=s.max_episode_frames,
            repeat_action_probability=s.repeat_action_probability,
            fire_on_reset=s.fire_on_reset,
        )

    @property
    def n_agents(self) -> int:
        """Agents whose environments are open."""
        return sum(group.envs.n_envs for group in self._groups)

    def _spent(self) -> bool:
        before = self._before
        return self.settings.phase.spent(
            {
                "episodes": self.episodes.finished - before["episodes"],
                "frames": (self.steps - before["steps"]) * self.game.frames_per_step,
                "updates": self.learner.updates - before["updates"],
                "seconds": self._meter.seconds,
            }
        )

    def _report(self, progress: Progress) -> None:
        reading = self._meter.reading()
        progress(self._metrics(reading, self._last))
        self._last = reading

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        return {
            "score": self.episodes.score(),
            "frames": self.steps * self.game.frames_per_step,
            "steps": self.steps,
            "updates": self.learner.updates,
            "episodes": self.episodes.finished,
            "episode_length": self.episodes.mean_length(),
        } | reading.since(earlier)


def _derived(seed: int, *keys: int) -> int:
    """Derive a seed for one purpose from the trial's."""
    return int(np.random.SeedSequence([seed, *keys]).generate_state(1)[0] >> 1)
