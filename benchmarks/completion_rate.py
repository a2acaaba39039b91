"""HyperTrick's completion rate, measured, against Eq. 9 (arXiv 1902.02725); prints a table of it, in percent, as JSON.

Eq. 9 holds for scores that know nothing of each other, in which case who is judged, and among how many, is all that
decides. Plateaus, where scores are equal, must not change it: equal scores are ordered by a draw.
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from workbench.algos.search import HyperTrick, ListSearcher
from workbench.algos.search.hypertrick import expected_completion_rate
from workbench.core.protocols import Report, Verdict

Draw = Callable[[np.random.Generator], float]

SCORES: Mapping[str, Draw] = {
    "independent": lambda rng: float(rng.random()),
    "three-valued": lambda rng: float(rng.integers(3)),
    "constant": lambda rng: 0.0,
}
"""How a phase's score is drawn: all different, one of three, always the same."""


@dataclass(frozen=True)
class Case:
    """A HyperTrick's size: the paper's W0, Np and r, and the nodes it runs on."""

    n_trials: int
    n_phases: int
    eviction_rate: float
    nodes: int

    @property
    def expected(self) -> float:
        """E[alpha] by Eq. 9."""
        return expected_completion_rate(self.eviction_rate, self.n_phases)


CASES: Sequence[Case] = (
    Case(15, 9, 0.169, 2),
    Case(46, 27, 0.1085, 46),
    Case(12, 4, 0.25, 2),
    Case(100, 10, 0.25, 10),
)
"""Small and large, narrow and wide; the second is the paper's against Hyperband, the last its Table 1 on ten nodes."""


def measure(case: Case, scores: Draw, runs: int, seed: int = 0) -> tuple[float, float]:
    """Play a HyperTrick many times over scores and phase durations drawn at random.

    Durations are exponential. Nothing but the order of the reports matters to HyperTrick, so that is all there is here
    of a cluster.

    Returns
    -------
    mean : float
        Completion rate, the share of the W0 Np phases that ran, over the runs.
    error : float
        Standard error of the mean.
    """
    rng = np.random.default_rng(seed)
    alphas = [_phases(case, scores, rng, seed + run) / (case.n_trials * case.n_phases) for run in range(runs)]
    return float(np.mean(alphas)), float(np.std(alphas, ddof=1)) / math.sqrt(runs)


def _phases(case: Case, scores: Draw, rng: np.random.Generator, seed: int) -> int:
    """Play one HyperTrick to its end; return the phases that ran."""
    searcher = ListSearcher([{"number": i} for i in range(case.n_trials)])
    scheduler = HyperTrick(searcher, case.n_trials, case.n_phases, case.eviction_rate, seed)
    ends: list[tuple[float, int, int]] = []  # of what runs: (when, trial, phase)
    now, n_phases = 0.0, 0
    while True:
        while len(ends) < case.nodes and (run := scheduler.ask()) is not None:
            heappush(ends, (now + float(rng.exponential()), run.trial, 0))
        if not ends:
            return n_phases
        now, trial, phase = heappop(ends)
        n_phases += 1
        if scheduler.tell(Report(trial, phase, scores(rng)))[trial].verdict is Verdict.CONTINUE:
            heappush(ends, (now + float(rng.exponential()), trial, phase + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = []
    for case in CASES:
        row = {"W0": case.n_trials, "Np": case.n_phases, "r": case.eviction_rate, "nodes": case.nodes}
        row["Eq. 9"] = round(100 * case.expected, 2)
        for name, draw in SCORES.items():
            mean, error = measure(case, draw, arguments.runs, arguments.seed)
            row[name] = {"mean": round(100 * mean, 2), "standard error": round(100 * error, 2)}
        table.append(row)
    print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
