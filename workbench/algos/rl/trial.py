"""What every trial of every system is: a learner, its agents' episodes, phases, a checkpoint."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.agents import AgentGroup
from workbench.algos.rl.checkpoint import CHECKPOINT, load_weights, read_checkpoint
from workbench.algos.rl.device import torch_device
from workbench.algos.rl.envs import Envs, make_envs
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.games import ATARI_EPISODE_FRAMES, Game
from workbench.algos.rl.learner import Learner
from workbench.algos.rl.meter import Meter, Reading
from workbench.algos.rl.model import ActorCritic, make_model, network_name
from workbench.algos.rl.phase import Phase
from workbench.algos.rl.precision import choose_precision
from workbench.algos.rl.recipes import recipe_record
from workbench.algos.rl.rollout import Segments
from workbench.algos.rl.settings import RMSPropSettings, Settings
from workbench.algos.rl.workers import Workers
from workbench.core.checks import plain_seed
from workbench.core.machine import cores_a_slot
from workbench.core.protocols import MOST_RETURNS, Metrics, Progress
from workbench.core.seeds import derived

PROGRESS_S = 0.5  # seconds between two calls of progress


class Trial(ABC):
    """A learner and its agents, driven phase by phase; a `Trainable`. A system adds its data flow in `_run`.

    It can be saved within a phase (`resumes_midway`).

    Parameters
    ----------
    settings : Settings
        With the trial's config already in.
    seed : int
        Of the weights, the actions and the games' starts.
    n_groups : int
        Groups that agents play in.
    most_agents : int, optional
        Agents there may ever be; `n_agents` by default.
    n_segments : int, optional
        Room for experiences; a segment an agent by default.
    agents_ready : float
        Share of a group's agents that a step waits for; see `GA3C`.
    """

    resumes_midway = True

    def __init__(
        self,
        settings: Settings,
        seed: int,
        *,
        n_groups: int = 1,
        most_agents: int | None = None,
        n_segments: int | None = None,
        agents_ready: float = 1.0,
    ) -> None:
        self.settings, self.seed, self.n_groups = settings, plain_seed(seed), n_groups
        self._agents_ready = agents_ready
        self.game = settings.found_game()
        self.clips_rewards = self.game.atari if settings.clip_rewards is None else settings.clip_rewards
        self.learner = _learner(settings, self.game, seed)
        most = most_agents or settings.n_agents
        self.episodes = Episodes(most, settings.score_window)
        self._own_episodes = self.episodes  # what this process's agents play; a rank's are not all of its trial's
        self._phase = Phase(
            settings.phase,
            settings.min_games,
            most * (settings.rules.longest(self.game) + self.game.frames_per_step),
            self.game.name,
            f"set max_episode_frames, after which a game is cut off (for example to {ATARI_EPISODE_FRAMES // 100})",
            self.game.frames_per_step,
        )
        self._segments = Segments(self.game, settings.n_agents if n_segments is None else n_segments, settings.t_max)
        self._generators = [np.random.default_rng([seed, 1, group]) for group in range(n_groups)]
        self._steps_before = 0  # played before the environments now open were started
        self._groups: list[Any] = []  # AgentGroup, or what a system has in its place: envs, steps, close
        self._workers = Workers()
        self._failure: BaseException | None = None
        self._clean_end: BaseException | None = None  # what ended the phase where the next one can go on from
        self._meter = Meter()
        self._progress: Progress = lambda metrics: None
        self._last: Reading | None = None  # when progress was last called
        self._began_at = 0  # steps that the weights had seen when the trial began
        self.kept: dict[str, float] = {}  # what a system has measured or counted, for later phases to tell
        if settings.start_from is not None:
            self._start_from(Path(settings.start_from))

    @property
    def model(self) -> ActorCritic:
        """The network, as it is now."""
        return self.learner.model

    @property
    def steps(self) -> int:
        """Transitions played so far, by all agents."""
        return self._steps_before + sum(int(group.steps) for group in self._groups)

    @property
    def finished(self) -> int:
        """Episodes finished so far, by all agents."""
        return self.episodes.finished

    @property
    def n_agents(self) -> int:
        """Agents whose environments are open."""
        return sum(group.envs.n_envs for group in self._groups)

    def train_phase(self, progress: Progress) -> Metrics:
        """Play and train until the phase's budget is spent and `min_games` games have ended.

        Parameters
        ----------
        progress : callable
            Called about twice a second in this thread while the trial gets on, first after half a second, with the
            metrics below as they are now and the rates since the last call. What it raises ends the phase, cleanly:
            the next one goes on from there; so does Ctrl-C where threads play. After whatever else ends a phase the
            trial trains no more.

        Returns
        -------
        dict
            ``score``, the mean raw return of the games that ended in this phase (see `Settings`), and their
            ``episode_length`` in steps; ``games``, how many ended; ``returns``, a list of the last `MOST_RETURNS` of
            them, oldest first; ``frames, steps, updates, episodes`` since the trial began; ``seconds`` of this phase;
            and what `Reading.since` measures of it. `progress` is given no ``returns``, and ``score`` and
            ``episode_length`` over the last games of whichever phase, or none before any game has ended.

        Raises
        ------
        FloatingPointError
            The loss is no longer a number.
        InvalidInput
            Games do not end.
        """
        refuse_failed(self._failure)
        torch.set_num_threads(self.settings.torch_threads)
        torch.backends.cudnn.deterministic = self.settings.repeatable  # the quickest convolutions are not
        try:
            if not self._groups:
                self._open()
            self._meter, self._last, self._progress = Meter(), None, progress
            self._phase.budget = self.settings.phase  # the settings of a trial may be exchanged between phases
            self._phase.begin(self._counted(0.0))
            self._run()
        except BaseException as end:
            clean, self._clean_end = end is self._clean_end, None
            self._failure = self._workers.failure or (None if clean else end)
            raise
        self._phase.end()
        before = int(self._phase.before["episodes"])
        returns = self.episodes.since(before)[0][-MOST_RETURNS:]
        ended: dict[str, Any] = {"returns": returns, **self.episodes.means(before)}
        return self.measured() | ended

    def measured(self) -> dict[str, float]:
        """Return what `progress` is given, over the whole phase so far, and its ``seconds``, elsewhere too."""
        reading = self._meter.reading()
        return self._metrics(reading, None) | {"seconds": reading.seconds - self._phase.before["seconds"]}

    def save(self, path: Path) -> None:
        """Write weights, optimiser statistics, counters and generators into the directory `path`.

        Where `progress` has ended a phase by what it raised, also where that phase began: the rest of it is then run by
        the first `train_phase` after `load`.
        """
        counters = {
            "game": self.game.name,
            "network": network_name(self.game, self.settings.network),
            "rules": asdict(self.settings.rules),
            "seed": self.seed,
            "steps": self.steps,
            "began_at": self._began_at,
            "updates": self.learner.updates,
            "episodes": self.episodes.state_dict(),
            "generators": [generator.bit_generator.state for generator in self._generators],
            "own": self._own_state(),
            "kept": self.kept,
            "within": self._phase.state_dict(self._meter.seconds),
        }
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "counters": json.dumps(counters),
            "recipe": recipe_record(self.game.recipe) if self.game.recipe is not None else {},
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
        self._steps_before, self._began_at = counters["steps"], counters["began_at"]
        self.learner.updates = counters["updates"]
        self.episodes.load_state_dict(counters["episodes"])
        self._phase.load_state_dict(counters.get("within"))
        self.kept = counters["kept"]
        if counters["seed"] == self.seed:
            for generator, saved in zip(self._generators, counters["generators"], strict=False):
                generator.bit_generator.state = saved
            self._take_own_state(counters.get("own", {}))

    def close(self) -> None:
        """Close the environments; between phases there is no other thread to stop."""
        self._steps_before = self.steps
        groups, self._groups = self._groups, []
        self.episodes.abandon()
        with ExitStack() as all_of_them:
            for group in groups:
                all_of_them.callback(group.close)

    def _start_from(self, path: Path) -> None:
        """Begin with a checkpoint's weights and counters; phases, and a rate that falls, begin here."""
        self.load(path)
        self._began_at = self._steps_before
        self._phase.load_state_dict(None)

    def _own_state(self) -> dict[str, Any]:
        """Return what a system saves besides for a trial of the same seed, in JSON's types."""
        return {}

    def _take_own_state(self, saved: dict[str, Any]) -> None:
        """Take over what `_own_state` gave, of this system or another; with `start_from`, while the trial is built."""
        return

    @abstractmethod
    def _run(self) -> None:
        """Play and train until `_is_over`, calling `_report_if_due` often, or in threads (`_run_workers`)."""

    def _run_workers(
        self,
        start: Callable[[], object],
        *,
        look: Callable[[], object] = lambda: None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        """Run a phase in threads, until one of them ends it or fails, or `progress` raises; wait for all of them.

        Progress is reported only where there is some: an environment that hangs in its thread is no sign of life.

        Parameters
        ----------
        start : callable
            Starts them, as workers of `_workers`.
        look : callable
            Called every PROGRESS_S seconds, in this thread.
        release : callable
            Wakes those that wait, when the phase is over.
        """
        self._workers, seen = Workers(), None
        try:
            start()
            while not self._workers.wait(PROGRESS_S):
                now = self.steps, self.learner.descents
                if now != seen:
                    self._report_if_due(at_once=True)
                seen = now
                look()
        except KeyboardInterrupt as end:  # of this thread alone: the others end as where `progress` has ended the phase
            self._clean_end = end
            raise
        finally:
            self._workers.stop()
            release()
            self._workers.join()
        if self._workers.failure is not None:
            raise self._workers.failure

    def _open(self) -> None:
        """Start the environments."""
        for part in np.array_split(np.arange(self.settings.n_agents), self.n_groups):
            self._open_group(len(part))

    def _open_group(self, n_agents: int) -> None:
        """Start the environments of one more group of agents."""
        number = len(self._groups)
        while len(self._generators) <= number:
            self._generators.append(np.random.default_rng([self.seed, 1, len(self._generators)]))
        self._groups.append(
            AgentGroup(
                self._start_envs(n_agents, number),
                self._segments,
                self._own_episodes,
                self._generators[number],
                clip_rewards=self.clips_rewards,
                first_agent=self.n_agents,
            )
        )

    def _start_envs(self, n_agents: int, number: int) -> Envs:
        """Start the environments of a group, by its number, with seeds of their own."""
        s = self.settings
        return make_envs(
            self.game,
            n_agents,
            derived(self.seed, 2, number, self._steps_before),
            s.rules,
            batch_size=max(1, round(n_agents * self._agents_ready)),
            n_threads=-(-(s.emulator_threads or cores_a_slot()) // self.n_groups),
        )

    def _counted(self, seconds: float) -> dict[str, float]:
        """Give the counters that a `Phase` looks at."""
        episodes, updates = self.finished, self.learner.updates
        return {"episodes": episodes, "steps": self.steps, "updates": updates, "seconds": seconds}

    def _is_over(self, seconds: float | None = None) -> bool:
        """Tell whether the phase is over, by the rule in `Settings`; any thread may ask.

        Parameters
        ----------
        seconds : float, optional
            Since it began, if another's clock counts.

        Raises
        ------
        InvalidInput
            As `Phase.over`.
        """
        return self._phase.over(self._counted(self._meter.seconds if seconds is None else seconds))

    def _report_if_due(self, *, at_once: bool = False) -> None:
        """Report if it is PROGRESS_S seconds since the last time, or at once; raises what ends the phase."""
        if at_once or self._meter.seconds - (self._last.seconds if self._last else 0.0) >= PROGRESS_S:
            reading = self._meter.reading()
            metrics = self._metrics(reading, self._last)
            try:
                self._progress(metrics)
            except BaseException as end:
                self._clean_end = end
                raise
            self._last = reading

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        return {
            "frames": self.steps * self.game.frames_per_step,
            "steps": self.steps,
            "updates": self.learner.updates,
            "episodes": self.finished,
            "games": self.finished - self._phase.before["episodes"],
            **self.episodes.means(),
        } | reading.since(earlier)


def refuse_failed(failure: BaseException | None) -> None:
    """Refuse to train on after what has ended a phase in the midst of something."""
    if failure is not None:
        raise RuntimeError("this trial has failed; start a new one from its last checkpoint") from failure


def anneal(trial: Trial, settings: RMSPropSettings) -> None:
    """Let a trial learn at the rate of the frames played so far, if its settings have the rate fall."""
    if settings.anneal_frames is not None:
        played = (trial.steps - trial._began_at) * trial.game.frames_per_step / settings.anneal_frames
        trial.learner.optimizer.lr = settings.learning_rate * max(0.0, 1 - played)


def _learner(settings: Settings, game: Game, seed: int) -> Learner:
    """Make the network with its first weights, and what trains it."""
    device = torch_device(settings.device)
    torch.set_num_threads(settings.torch_threads)  # before the weights are drawn: their last bits depend on it
    model = make_model(game, settings.network, settings.init, derived(seed, 0)).to(device)
    return Learner(
        model,
        settings.make_optimizer(model.parameters()),
        device,
        entropy_beta=settings.entropy_beta,
        value_weight=settings.value_weight,
        log_epsilon=settings.log_epsilon,
        reduction=settings.reduction,
        precision=choose_precision(settings.precision, game, settings.network, device, repeatable=settings.repeatable),
    )
