"""What HTS-RL claims (NeurIPS 2020): how much faster than its synchronous baseline it should be, and that it repeats.

**Speed-up** (Claim 1), from the law of step times. A synchronous method waits for the longest of n step times at each
step. HTS-RL waits for the longest of n sums of alpha step times, once every alpha steps. In a sum the long steps and
the short ones even out; the more the larger alpha. The paper's closed form is an approximation for large n and
exponential times, and is lost in the text we have; here the two expectations are computed as they are.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import integrate, stats

from workbench.algos.rl.hts.step_time import StepTime
from workbench.analysis import bootstrap_interval, median_of
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config

if TYPE_CHECKING:
    from workbench.algos.rl.hts.trial import HTS
    from workbench.algos.rl.trial import Trial


@dataclass(frozen=True)
class StepSeconds:
    """Seconds that one step of all environments takes, learning included.

    Attributes
    ----------
    synchronous_s, concurrent_s : float
        Of the baseline, and of HTS-RL.
    """

    synchronous_s: float
    concurrent_s: float

    @property
    def speedup(self) -> float:
        """How often HTS-RL does what the baseline does once."""
        return self.synchronous_s / self.concurrent_s


def expected_speedup(
    step_time: StepTime, n_envs: int, sync_interval: int, learning_s: float = 0.0, prediction_s: float = 0.0
) -> StepSeconds:
    """Weigh the baseline against HTS-RL.

    Parameters
    ----------
    step_time : StepTime
        Of one environment; steps are independent.
    n_envs : int
    sync_interval : int
        alpha: steps between two barriers.
    learning_s : float
        Seconds an update takes, of which there is one an interval. The baseline adds it to its rollout, HTS-RL waits
        for the longer of the two.
    prediction_s : float
        Seconds from an environment's observation to its action, in both systems.
    """
    per_step = learning_s / sync_interval
    slowest = expected_longest_step(step_time, n_envs) + prediction_s
    rollout = expected_longest_sum(step_time, n_envs, sync_interval) / sync_interval + prediction_s
    return StepSeconds(slowest + per_step, max(rollout, per_step))


def for_as_many_updates(runs: pd.DataFrame) -> pd.Series:
    """Give the baseline's seconds for all updates over HTS-RL's for as many, a value a run of ``hts-speedup``.

    HTS-RL plays one interval more, the last, which it does not train on: a share of short runs that the ratio of steps
    played, the column ``speedup``, counts for it.
    """
    baseline, ours = (runs[f"{system}_step_ms"] * runs[f"{system}_steps"] for system in ("synchronous", "hts"))
    return baseline / ours


def speedups(runs: pd.DataFrame) -> pd.DataFrame:
    """Sum up measured runs of both systems, and put the expectation beside them.

    Parameters
    ----------
    runs : DataFrame
        The recording ``hts-speedup``: one row a law of step times and seed.

    Returns
    -------
    DataFrame
        One row a law and cv, as `figures.speedup_by_variance` takes it:

        ====================== =====================================================================================
        law, cv                of the step times
        n                      seeds
        speedup, low, high     median of seconds a step played, the baseline's over HTS-RL's, and its 95 % interval, or
                               of fewer than six seeds their range
        updates, updates_low,  the same of seconds for as many updates: HTS-RL's last interval, which it does not train
        updates_high           on, is no gain
        expected               from the law alone, no learning
        expected_with_learning with the seconds that the baseline's updates took (median)
        difference             mean return after training, HTS-RL's less the baseline's, paired by seed
        difference_low, _high  its 95 % bootstrap interval
        ====================== =====================================================================================
    """
    rows = []
    for _, of_law in runs.groupby(["law", "cv"], sort=False):
        shown: Any = of_law.iloc[0]
        law, cv = shown["law"], float(shown["cv"])
        step_time = StepTime(float(shown["mean_ms"]) / 1e3, cv, law)
        size = (int(shown["n_agents"]), int(shown["sync_interval"]))
        ratio = median_of(of_law["speedup"].to_numpy(float), or_range=True)
        gain = bootstrap_interval((of_law["hts_return"] - of_law["synchronous_return"]).to_numpy(float), "mean")
        learning_s = float(of_law["synchronous_learning_s"].median())
        rows.append(
            {"law": law, "cv": cv, "n": len(of_law), "speedup": ratio.value, "low": ratio.low, "high": ratio.high}
            | median_of(for_as_many_updates(of_law).to_numpy(float), or_range=True).columns("updates")
            | {"expected": expected_speedup(step_time, *size).speedup}
            | {"expected_with_learning": expected_speedup(step_time, *size, learning_s=learning_s).speedup}
            | gain.columns("difference")
        )
    return pd.DataFrame(rows)


def fingerprints(variants: "Mapping[str, HTS]", config: Config, seed: int = 0) -> pd.DataFrame:
    """Train each variant for a phase from the same seed, and tell whether they come to the same weights.

    Parameters
    ----------
    variants : Mapping of str to HTS
        Name → settings, such as other numbers of actors.
    config : Config
    seed : int

    Returns
    -------
    DataFrame
        One row a variant: variant, seconds, updates, score, weights (a digest: equal only if every bit of them is).
    """
    rows = []
    for name, settings in variants.items():
        trial = settings(config, seed)
        metrics = trial.train_phase(lambda metrics: None)
        trial.close()
        rows.append((name, metrics["seconds"], int(metrics["updates"]), metrics["score"], mark_of(trial)))
    return pd.DataFrame(rows, columns=["variant", "seconds", "updates", "score", "weights"])


def mark_of(trial: "Trial") -> str:
    """Give a digest of a trial's weights: equal only if every bit of them is."""
    digest = hashlib.blake2b(digest_size=6)
    for tensor in trial.model.state_dict().values():
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def swept(runs: pd.DataFrame) -> pd.DataFrame:
    """Sum up the recording ``hts-sweeps`` (Tables 4 and 5).

    Returns
    -------
    DataFrame
        One row a value: setting, value, n (seeds), step_ms (median, of all environments) with step_ms_low and
        step_ms_high (of fewer than six seeds their range), expected_ms (the longest sum of an interval's step times
        alone, a step), learning_ms (of an update, a step), return (mean) with return_low and return_high.
    """
    rows = []
    for (setting, value), of in runs.groupby(["setting", "value"], sort=False):
        alpha, step_time = int(of["sync_interval"].iloc[0]), StepTime(of["mean_ms"].iloc[0] / 1e3, 1.0, "gamma")
        took = median_of(of["step_ms"].to_numpy(float), or_range=True)
        rows.append(
            {"setting": setting, "value": value, "n": len(of)}
            | took.columns("step_ms")
            | {"expected_ms": 1e3 * expected_longest_sum(step_time, int(of["n_agents"].iloc[0]), alpha) / alpha}
            | {"learning_ms": 1e3 * float(of["learning_s"].median()) / alpha}
            | bootstrap_interval(of["return"].to_numpy(float), "mean").columns("return")
        )
    return pd.DataFrame(rows)


def expected_longest_step(step_time: StepTime, n: int) -> float:
    """Return the mean of the longest of `n` step times, in seconds; for an exponential law, H_n times its mean."""
    _check(n, "n")
    if step_time.constant:
        return step_time.mean_s
    return _expected_maximum(step_time.distribution(), n)


def expected_longest_sum(step_time: StepTime, n: int, n_steps: int, *, n_draws: int = 4000) -> float:
    """Return the mean of the longest of `n` sums of `n_steps` step times, in seconds.

    Exact for constant and gamma times, whose sums have a gamma law. Of the others a mean of `n_draws` draws, always the
    same.
    """
    _check(n, "n")
    _check(n_steps, "n_steps")
    if step_time.constant:
        return n_steps * step_time.mean_s
    if step_time.law == "gamma":
        return _expected_maximum(stats.gamma(n_steps * step_time.cv**-2, scale=step_time.mean_s * step_time.cv**2), n)
    generator = np.random.default_rng(0)
    sums = np.stack([step_time.draw(generator, (n, n_steps)).sum(1) for _ in range(n_draws)])
    return float(sums.max(1).mean())


def _expected_maximum(law: stats.distributions.rv_frozen, n: int) -> float:
    """Integrate over upper quantiles, n ∫ q(s) (1 - s)^(n-1) ds, with s = e^-y: in y heavy tails are smooth."""

    def weighed(y: float) -> float:
        return float(law.isf(math.exp(-y))) * n * (-math.expm1(-y)) ** (n - 1) * math.exp(-y)

    edge = math.log(n) + 5  # below it is most of the mass; 100 beyond, even of a Pareto law of index 2 only e^-50
    parts = ((0.0, edge), (edge, edge + 100))
    return float(sum(integrate.quad(weighed, low, high, limit=200)[0] for low, high in parts))


def _check(value: int, name: str) -> None:
    if value < 1:
        raise InvalidInput(f"{name} must be a whole number from 1, got {value!r}")
