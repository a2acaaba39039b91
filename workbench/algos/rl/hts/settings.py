"""What HTS-RL reads beside every system's settings."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from workbench.algos.rl.hts.step_time import Law, StepTime
from workbench.algos.rl.settings import RMSPropSettings
from workbench.core.checks import PART, Rule, check, check_named, whole
from workbench.core.errors import InvalidInput

Method = Literal["a2c", "ppo"]


@dataclass(frozen=True)
class HTSSettings(RMSPropSettings):
    """Settings of HTS-RL.

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
    def repeatable(self) -> bool:
        """In the deterministic mode, and the synchronous baseline in any."""
        return self.deterministic or not self.concurrent
