"""One trial of an algorithm of Stable-Baselines3: its model learns on, phase by phase, as one call of `learn` would."""

import math
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from workbench.algos.rl.device import torch_device
from workbench.algos.rl.environment import all_or_none
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.games import ATARI_EPISODE_FRAMES
from workbench.algos.rl.phase import Phase
from workbench.algos.rl.playable import longest_of
from workbench.algos.rl.sb3.checkpoint import read, write
from workbench.algos.rl.sb3.draws import Draws, generators_of
from workbench.algos.rl.sb3.make import make_environments, make_model
from workbench.algos.rl.sb3.settings import PHASES, SB3Settings
from workbench.algos.rl.trial import PROGRESS_S, refuse_failed
from workbench.core.checks import plain_seed
from workbench.core.protocols import MOST_RETURNS, Measured, Metrics, Progress
from workbench.core.seeds import derived

FOR_EVER = 2**62  # steps: phases end by the callback
STEPS = 100_000  # that schedules run over where neither frames of phases nor anybody says
_OURS = ("_update_current_progress_remaining", "_excluded_save_params", "train")  # put over a model's own methods


class SB3Trial:
    """A model of Stable-Baselines3, driven phase by phase; a `Trainable`.

    Its random numbers are its own: Python's, numpy's and torch's global generators are lent to it for a phase and given
    back as they were.

    Parameters
    ----------
    settings : SB3Settings
        With the trial's config already in.
    seed : int

    Attributes
    ----------
    model : BaseAlgorithm
        Stable-Baselines3's own: ``trial.model.predict(obs)``, ``trial.model.save(path)``. With `normalize` it reads
        what ``trial.model.get_vec_normalize_env()`` gives, which has a ``save`` of its own.
    """

    def __init__(self, settings: SB3Settings, seed: int) -> None:
        self.settings, self.seed = settings, plain_seed(seed)
        self.episodes = Episodes(settings.n_envs, settings.score_window)
        self._draws = Draws(generators_of(torch_device(settings.device)))
        torch.set_num_threads(settings.torch_threads)
        with self._draws.lent(), all_or_none() as opened:
            self.model = make_model(settings, opened(make_environments(settings, self.episodes)), self.seed)
        self.model.set_logger(Logger(None, []))
        vars(self.model).update(_update_current_progress_remaining=self._schedule, _excluded_save_params=self._left_out)
        if getattr(self.model, "replay_buffer", None) is not None:
            vars(self.model)["train"] = self._train_on_enough
        for optimizer in _optimizers(self.model):
            optimizer.register_step_post_hook(lambda *_: self._sign())  # rollouts apart, an update may take minutes
        self._phase = Phase(
            settings.phase,
            settings.min_games,
            settings.n_envs * ((self._limit() or ATARI_EPISODE_FRAMES) + 1),
            settings.env,
            "cut it off, env_kwargs={'max_episode_steps': 1000}",
        )
        self._closed = False
        self._failure: BaseException | None = None

    def train_phase(self, progress: Progress) -> Measured:
        """Learn until the phase's budget is spent and `min_games` games have ended in it.

        Parameters
        ----------
        progress : callable
            Called about twice a second with the metrics below as they are now. What it raises ends the phase. After
            that, as after whatever else ends one too soon, the trial trains no more: SB3 is between a step and what it
            makes of it.

        Returns
        -------
        dict
            ``score``, the mean raw return of the games that ended in this phase (of the last `score_window` of them),
            and their ``episode_length``; ``games``, how many ended; ``returns``, those of the last; ``frames``,
            ``updates``, ``episodes`` since the trial began; ``fps`` and ``seconds`` of this phase; and what the
            algorithm logs of its training (``loss``, ``value_loss``, ``ent_coef``, …).

        Raises
        ------
        FloatingPointError
            A loss or a weight is no longer a number.
        InvalidInput
            Games do not end.
        """
        refuse_failed(self._failure)
        torch.set_num_threads(self.settings.torch_threads)
        self._progress, self._began = progress, time.perf_counter()
        self._signed = self._began
        self._phase.begin(self._counted())
        self._closed = False
        try:
            with self._draws.lent():
                self._learn()
            self._refuse_nonsense()
        except BaseException as end:
            self._failure = end
            raise
        before = int(self._phase.before["episodes"])
        return {
            **self._metrics(),
            **self.episodes.means(before),
            "returns": self.episodes.since(before)[0][-MOST_RETURNS:],
            "seconds": time.perf_counter() - self._began,
        }

    def save(self, path: Path) -> None:
        """Write weights, optimiser statistics, the replay buffer, counters and generators into the directory `path`."""
        counters = {
            "algorithm": self.settings.algorithm,
            "env": self.settings.env,
            "seed": self.seed,
            "episodes": self.episodes.state_dict(),
            "steps": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "episode_num": self.model._episode_num,
            "calls": getattr(self.model, "_n_calls", 0),  # of DQN and its like, when targets are due
        }
        write(Path(path), self.model, counters, self._draws.state(), self.settings.keep_replay)

    def load(self, path: Path) -> None:
        """Go on from a directory written by `save`; environments start new episodes.

        The hyperparameters stay this trial's own. So do its random numbers, unless the checkpoint is of the same seed.

        Raises
        ------
        InvalidInput
            There is no checkpoint, or it is of another algorithm or network.
        """
        counters, draws = read(Path(path), self.model, self.settings.algorithm)
        self.episodes.load_state_dict(counters["episodes"])
        self.model.num_timesteps = int(counters["steps"])
        self.model._n_updates = int(counters["updates"])
        self.model._episode_num = int(counters["episode_num"])
        if hasattr(self.model, "_n_calls"):
            self.model._n_calls = int(counters.get("calls", 0))
        self._schedule(self.model.num_timesteps, 0)
        if hasattr(self.model, "exploration_schedule"):  # of DQN and its like, which look at it after a step
            rate = self.model.exploration_schedule(self.model._current_progress_remaining)
            vars(self.model).update(exploration_rate=rate)
        if counters["seed"] == self.seed:
            self._draws.restore(draws)
        env = self.model.env
        assert env is not None
        env.seed(derived(self.seed, 2, self.model.num_timesteps))
        self.model.action_space.seed(derived(self.seed, 3, self.model.num_timesteps))  # explored from it
        self.model._last_obs = None  # the environments begin anew

    def close(self) -> None:
        """Close the environments."""
        if not self._closed and self.model.env is not None:
            self.model.env.close()
            self.model._last_obs = None
        self._closed = True

    # -- inside a phase ---------------------------------------------------------------------------------------

    def _learn(self) -> None:
        try:
            self.model.learn(FOR_EVER, _PhaseCallback(self), log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
        except _PhaseOver:
            pass
        except ValueError:  # torch's distributions refuse what is no number, and games give it back
            self._refuse_nonsense()
            raise

    def is_over(self) -> bool:
        """Tell whether the phase is over; asked only between rollouts, so that none is cut short."""
        return self._phase.over(self._counted())

    def _sign(self) -> None:
        now = time.perf_counter()
        if now - self._signed >= PROGRESS_S:
            self._signed = now
            self._progress({**self._metrics(), **self.episodes.means()})

    def _counted(self) -> dict[str, float]:
        done = {"steps": self.model.num_timesteps, "updates": self.model._n_updates}
        return done | {"episodes": self.episodes.finished, "seconds": time.perf_counter() - self._began}

    def _metrics(self) -> Metrics:
        counted = self._counted()
        used = self._phase.used(counted)
        return {
            **_logged(self.model),
            "frames": counted["steps"],
            "updates": counted["updates"],
            "episodes": counted["episodes"],
            "games": used["episodes"],
            "fps": used["frames"] / max(used["seconds"], 1e-9),
        }

    def _schedule(self, num_timesteps: int, _total_timesteps: int) -> None:
        """Tell the model how much of the trial is to come: phases are parts of it, not trainings of their own."""
        phase = self.settings.phase
        default = PHASES * phase.amount if phase.unit == "frames" else STEPS
        self.model._current_progress_remaining = max(0.0, 1.0 - num_timesteps / (self.settings.total_frames or default))

    def _train_on_enough(self, gradient_steps: int, batch_size: int) -> None:
        """Train, but not before the replay buffer, which may have begun empty again, holds what learning starts with.

        SB3 asks for `learning_starts` steps since the trial's first, which one that goes on from a checkpoint has long
        had; and HER draws from whole games.
        """
        model: Any = self.model
        buffer = model.replay_buffer
        enough = buffer.full or buffer.size() * buffer.n_envs > model.learning_starts
        if enough and (not isinstance(buffer, HerReplayBuffer) or buffer.ep_length.any()):
            type(model).train(model, gradient_steps, batch_size)

    def _left_out(self) -> list[str]:
        """Name what `model.save` is to leave out: also what is the trial's own, which cannot be pickled."""
        return [*type(self.model)._excluded_save_params(self.model), *_OURS]

    def _refuse_nonsense(self) -> None:
        losses = {name: value for name, value in self.model.logger.name_to_value.items() if name.endswith("loss")}
        wrong = [name for name, value in losses.items() if not math.isfinite(value)]
        if not all(bool(torch.isfinite(weight).all()) for weight in self.model.policy.parameters()):
            wrong.append("a weight")
        if wrong:
            raise FloatingPointError(
                f"training diverged: {wrong[0]} is no longer a number after {self.model.num_timesteps} steps; try a "
                "smaller learning rate"
            )

    def _limit(self) -> int | None:
        env = self.model.env
        assert env is not None
        return longest_of(env.unwrapped.envs[0])  # type: ignore[attr-defined]


class _PhaseOver(Exception):
    """Ends `learn` where a rollout would begin."""


class _PhaseCallback(BaseCallback):
    """Shows life at every step, and ends the phase between two rollouts."""

    def __init__(self, trial: SB3Trial) -> None:
        super().__init__()
        self.trial = trial

    def _on_step(self) -> bool:
        self.trial._sign()
        return True

    def _on_rollout_start(self) -> None:
        if self.trial.is_over():
            raise _PhaseOver


def _logged(model: BaseAlgorithm) -> dict[str, float]:
    """What the algorithm has logged last of its training, under its own names."""
    if not hasattr(model, "_logger"):
        return {}
    metrics = {}
    for name, value in model.logger.name_to_value.items():
        part, _, plain = name.rpartition("/")
        if part in ("train", "rollout") and plain != "n_updates" and math.isfinite(value):
            metrics[plain] = float(value)
    return metrics


def _optimizers(model: BaseAlgorithm) -> list[torch.optim.Optimizer]:
    parts = [attrgetter(name)(model) for name in model._get_torch_save_params()[0]]
    return [part for part in parts if isinstance(part, torch.optim.Optimizer)]
