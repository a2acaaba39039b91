"""PB2: PBT that explores by a model (Parker-Holder et al., NeurIPS 2020, arXiv 2002.02518)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from workbench.algos.search.pbt import PBT, Member
from workbench.algos.search.surrogate import positions
from workbench.core.checks import COUNT, FROM_ZERO, PART, SHARE, check
from workbench.core.protocols import Config, Decision

Array = npt.NDArray[np.float64]

_OUTLYING = 10.0  # robust standard deviations from the median


@dataclass
class PB2(PBT):
    """PBT whose losers take the hyperparameters that a Gaussian process expects to raise the score most.

    The process sees, for every phase of every member, by how much the score rose: over hyperparameters, time and the
    score before. Outliers, such as the fall of a phase that diverged, are cut to ten robust standard deviations: the
    paper's scales are made of all that is seen. What is older counts less (Bogunovic et al., 2016). Of many
    configurations drawn from the space, the one with the highest upper confidence bound is taken; the spread counts
    those that others have just been given, so that members spread out (GP-BUCB, Sec. 3.2). Choices are drawn like all
    else, where the paper leaves them to others.

    Parameters
    ----------
    searcher, population, n_phases, …
        As `PBT`'s; `factors` and `noise` change a configuration while there are fewer than `warmup` observations.
    kappa : float
        Weight of the spread in the bound.
    forget : float
        The paper's ω: a phase's weight falls by the root of 1 - ω for every phase gone by.
    length : float
        Of the kernel, in shares of the ranks of a hyperparameter.
    draws : int
        Configurations to choose from.
    warmup : int
        Observations before the model is asked.
    """

    kappa: float = 1.0
    forget: float = 0.1
    length: float = 0.5
    draws: int = 200
    warmup: int = 8
    _seen: list[tuple[Config, int, float, float]] = field(init=False, default_factory=list, repr=False, compare=False)
    _given: dict[int, Config] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, COUNT, "draws", "warmup")
        check(self, FROM_ZERO, "kappa")
        check(self, PART, "forget")
        check(self, SHARE, "length")

    def _learn(self, member: Member) -> None:
        """Note by how much the score rose in the phase; what a member has been given is known with its first."""
        assert member.trial is not None  # it has just reported
        self._given.pop(member.index, None)
        last = member.scores[-2:]
        if len(last) == 2 and np.isfinite(last).all():
            self._seen.append((self._trials.configs[member.trial], member.phase, last[0], last[1] - last[0]))

    def _replace_failed(self, member: Member) -> Decision:
        """What it had been given brings no observation: nobody need keep away from it."""
        self._given.pop(member.index, None)
        return super()._replace_failed(member)

    def _changed(self, member: Member, config: Config) -> Config:
        if len(self._seen) < self.warmup:
            chosen = super()._changed(member, config)
        else:
            drawn: list[Config] = [self._space.sample(self._rng) for _ in range(self.draws)]
            chosen = drawn[int(self._bounds(drawn, member).argmax())]
        self._given[member.index] = chosen
        return chosen

    def _bounds(self, drawn: list[Config], member: Member) -> Array:
        """Upper confidence bounds of the rise in a member's next phase, [drawn], in its standard deviations."""
        seen = self._seen[-500:]
        pending = list(self._given.values())
        configs = [*(one[0] for one in seen), *pending, *drawn]
        now, known = member.phase + 1, member.scores and np.isfinite(member.scores[-1])
        score = member.scores[-1] if known else float(np.median([one[2] for one in seen]))  # one that failed has none
        phases = np.array([*(one[1] for one in seen), *[now] * (len(pending) + len(drawn))], dtype=float)
        before = np.array([one[2] for one in seen])
        scores = np.clip([*before, *[score] * (len(pending) + len(drawn))], *_bulk(before))
        at = np.column_stack([positions(configs), (scores - scores.min()) / (np.ptp(scores) or 1.0)])
        rises = np.array([one[3] for one in seen])
        rises = np.clip(rises, *_bulk(rises))
        rises = (rises - rises.mean()) / (rises.std() or 1.0)
        n, m = len(seen), len(seen) + len(pending)
        covariance = self._covariance(at[:m], phases[:m], at[:m], phases[:m]) + 0.1 * np.eye(m)
        cross = self._covariance(at[m:], phases[m:], at[:m], phases[:m])
        means = cross[:, :n] @ np.linalg.solve(covariance[:n, :n], rises)
        spreads = np.sqrt(np.maximum(1 - (cross * np.linalg.solve(covariance, cross.T).T).sum(axis=1), 0))
        return np.asarray((means + self.kappa * spreads).round(6))

    def _covariance(self, at: Array, phases: Array, other: Array, others: Array) -> Array:
        apart = ((at[:, None] - other[None]) ** 2).sum(axis=2)
        aged = (1 - self.forget) ** (np.abs(phases[:, None] - others[None]) / 2)
        return np.asarray(np.exp(-apart / (2 * self.length**2)) * aged)


def _bulk(values: Array) -> tuple[float, float]:
    """Give the range of all but outliers: beside one phase that diverged, all others would count as alike."""
    middle = float(np.median(values))
    reach = _OUTLYING * 1.4826 * float(np.median(np.abs(values - middle)))
    return (middle - reach, middle + reach) if reach > 0 else (-np.inf, np.inf)  # 0: more than half are equal
