"""Agents that were evaluated by a paper's protocol: a recording's `evaluations.jsonl`, a line an agent."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from scipy import stats

from workbench.analysis.bootstrap import Interval, mean_of
from workbench.core.errors import DatabaseError
from workbench.paper.verdicts import CONFIDENCE

EVALUATIONS = "evaluations.jsonl"
"""What `workbench evaluate` prints of a recording's checkpoints."""


def made_by(preset: str) -> str:
    """Tell what makes a recording and its evaluations: a run records the study alone."""
    folder = f"data/{preset}"
    return f"workbench run --preset {preset} --record {folder}; workbench evaluate CHECKPOINTS > {folder}/{EVALUATIONS}"


def evaluations_of(folder: str | Path) -> list[dict[str, Any]]:
    """Read what a recording's agents came to, an agent each; `DatabaseError` where none was evaluated to its end."""
    path = Path(folder) / EVALUATIONS
    with suppress(OSError, ValueError):
        if evaluations := [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]:
            return evaluations
    raise DatabaseError(f"no evaluation of {path.parent.name} in {path.parent.parent}")


def evaluated(root: str | Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the recordings whose agents were evaluated, by name."""
    for path in sorted(Path(root).glob(f"*/{EVALUATIONS}")):
        with suppress(DatabaseError):
            yield path.parent.name, evaluations_of(path.parent)


def mean_score(evaluations: Sequence[dict[str, Any]]) -> Interval:
    """Give the mean with its 95 % interval: over agents where there are several, else over games.

    As of agents, one game and games that all ended alike give no limits: see `mean_of`.
    """
    if len(evaluations) > 1:
        return mean_of([evaluation["mean"] for evaluation in evaluations])
    (one,) = evaluations
    n, mean = one["n_episodes"], one["mean"]
    if n < 2 or not one["std"]:
        return Interval(mean, -math.inf, math.inf)
    low, high = stats.t.interval(CONFIDENCE, n - 1, mean, one["std"] / math.sqrt(n - 1))
    return Interval(mean, float(low), float(high))
