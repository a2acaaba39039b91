"""Any algorithm of Stable-Baselines3 or sb3-contrib as a study takes it: settings, and a factory of trials."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from workbench.algos.rl.sb3.settings import LINEAR, PHASES, SB3Settings
from workbench.core.protocols import Config

if TYPE_CHECKING:
    from workbench.algos.rl.sb3.trial import SB3Trial


@dataclass(frozen=True)
class SB3(SB3Settings):
    """An algorithm of Stable-Baselines3 or sb3-contrib, and a factory of trials.

    Trials learn as the algorithm's own ``learn`` does: phases change nothing of it, but with ``use_sde``, and in
    ARS, which draw before a rollout and draw again where a phase begins. A phase ends where a rollout does, so a phase
    of PPO is a whole number of ``n_steps × n_envs``.

    Parameters
    ----------
    algorithm : str
        ``PPO``, ``DQN``, ``SAC``, ``TD3``, ``TQC``, …
    env : str
        A Gymnasium id (``LunarLander-v3``, ``my_module:Env-v0``) of any environment that the algorithm takes.
    phase : Budget
        Length of one phase, at least: it ends when this is spent and `min_games` games have ended in it. A step of the
        environment counts as a frame. Updates are those that SB3 counts itself, its ``n_updates``: an epoch of PPO's
        and its relatives', all that TRPO and ARS make of a rollout, the gradient steps of A2C, DQN, SAC, ….
    hyperparameters : Mapping
        Of the algorithm, by its own names, as far as they are not its defaults and no search space has them;
        ``policy_kwargs`` is one. Where SB3 wants an object there is a word: ``"lin_0.001"`` for a value that falls to 0
        over `total_frames`, a number for ``action_noise`` (the standard deviation of normal noise), a class's name for
        ``…_class`` and ``…_fn`` (``"HerReplayBuffer"``, ``"ReLU"``, ``"my_module:Extractor"``). A search space may also
        name what is in ``policy_kwargs``: ``policy_kwargs.net_arch``.
    policy : str or None
        ``MlpPolicy``, ``CnnPolicy``, ``MultiInputPolicy``, …; by default what fits the observations.
    n_envs : int
        Environments played side by side, in one process.
    env_kwargs, wrappers
        How an environment is made: see `Recipe`. Scores are of what a wrapped environment gives, but for SB3's
        ``EpisodicLifeEnv`` and ``ClipRewardEnv``, ``AtariWrapper``'s among them, and Gymnasium's ``ClipReward``: of
        whole games and raw rewards.
    normalize : bool
        Put SB3's ``VecNormalize`` around the environments; scores are of raw rewards all the same.
    total_frames : int or None
        Frames over which schedules run, DQN's exploration among them: those a whole trial is expected to take. By
        default those of ten phases, or 100 000 where phases are not counted in frames.
    min_games, score_window
        As of every system: see `Settings`.
    keep_replay : bool
        Whether checkpoints hold the replay buffer, as far as it is filled. Without it, a trial that goes on from one
        begins with an empty one: it plays by its policy, and learns once that holds over ``learning_starts`` steps.
    torch_threads : int
        Cores one tensor operation may use; set for the whole process when a phase starts.
    device : str
        As of every system: see `Settings`.

    Examples
    --------
    >>> SB3("PPO", "LunarLander-v3", phase=Budget(frames=20_000))  # doctest: +SKIP
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        with self.trying() as try_out:
            try_out({})  # a study that cannot run is refused at once

    @contextmanager
    def trying(self) -> Iterator[Callable[[Config], object]]:
        """Make environments, and give what makes a configuration's model for them, but for its networks and buffers."""
        from workbench.algos.rl.episodes import Episodes
        from workbench.algos.rl.sb3.make import make_environments, make_model

        plain = SB3Settings(**{one.name: getattr(self, one.name) for one in fields(self)})  # which tries nothing itself
        env = make_environments(plain, Episodes(self.n_envs, 1))

        def made(config: Config) -> object:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "You have specified a mini-batch size")  # SB3 warns in trials, too
                return make_model(plain.with_config(config), env, 0, _init_setup_model=False)

        try:
            yield made
        finally:
            env.close()

    def doubts(self, config: Config, n_phases: int) -> str:
        """Say that a configuration's value falls to 0 before so many phases have run; nothing where it does not."""
        values = {**self.hyperparameters, **config}
        falling = [name for name, value in values.items() if isinstance(value, str) and value.startswith(LINEAR)]
        if not falling or n_phases <= PHASES or self.total_frames is not None or self.phase.unit != "frames":
            return ""
        return (
            f"{falling[0]} {values[falling[0]]!r} falls to 0 within {PHASES} of {n_phases} phases: set the frames of a "
            f"whole trial, SB3(…, total_frames={n_phases * self.phase.amount:.0f})"
        )

    def __call__(self, config: Config, seed: int) -> "SB3Trial":
        """Build a trial from its configuration, hyperparameters of the algorithm, and its seed."""
        from workbench.algos.rl.sb3.trial import SB3Trial

        self.check(config)
        return SB3Trial(self.with_config(config), seed)
