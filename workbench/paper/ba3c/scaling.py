"""Distributed BA3C's scaling (1801.02852, Secs. 2.3.3, 2.5, 3.1): what an update takes, and a model of many nodes."""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from workbench.core.errors import InvalidInput, unknown
from workbench.paper.ba3c.published import HOURS_BY_NODES

PAPER_BATCH = 32  # a node
PAPER_SERVERS = 4
FLOAT_BYTES = 4

Draw = Callable[[np.random.Generator, int], float]
"""``(generator, rank) -> seconds`` that a rank needs for one batch and its gradient."""


def mean_step_s(draw: Draw, n_ranks: int, n_awaited: int, n_steps: int = 2000) -> float:
    """Simulate the straggler rule: mean seconds between updates made of the first k of n gradients.

    A rank whose gradient comes too late takes the newest weights then, and so is late for the next update too: draws of
    one update are not independent of the one before, and the mean of the k-th of n draws is too low, but for k = n.

    Parameters
    ----------
    draw : callable
    n_ranks, n_awaited : int
        n and k, 1 <= k <= n.
    n_steps : int
        Updates to simulate.
    """
    if not 1 <= n_awaited <= n_ranks or n_steps < 1:
        raise InvalidInput(f"need 1 <= n_awaited <= n_ranks and n_steps >= 1, got {n_awaited}, {n_ranks}, {n_steps}")
    generator = np.random.default_rng(0)
    ready = [(draw(generator, rank), rank, 0) for rank in range(n_ranks)]  # when a gradient is in, whose, its version
    heapq.heapify(ready)
    waiting: list[int] = []
    version, at = 0, 0.0
    while version < n_steps:
        at, rank, of = heapq.heappop(ready)
        if of != version:  # too late: dropped
            heapq.heappush(ready, (at + draw(generator, rank), rank, version))
            continue
        waiting.append(rank)
        if len(waiting) == n_awaited:
            version += 1
            for going in waiting:
                heapq.heappush(ready, (at + draw(generator, going), going, version))
            waiting = []
    return at / n_steps


def exponential_kth_of_n(n_ranks: int, n_awaited: int) -> float:
    """Mean of the k-th smallest of n exponential draws of mean 1: 1/n + 1/(n-1) + … + 1/(n-k+1)."""
    return float(sum(1 / (n_ranks - i) for i in range(n_awaited)))


@dataclass(frozen=True)
class ScalingModel:
    """Data points a second on n nodes, from what was measured on few. A model: nothing here was run on n nodes.

    Parameters
    ----------
    compute_s : sequence of float
        Measured seconds that a rank took for one batch after the other and its gradient; drawn from again. Agents that
        play in step fill batches of an exact size in more rounds and in fewer, in a pattern that is the same on all
        ranks: where times fall into two such kinds, a rank's next one is drawn from the kind whose turn it is.
    batch : int
        Data points in it.
    n_parameters : int
    latency_s : float
        Of one message between two nodes.
    bytes_per_s : float
        Of one node's link, each way.
    """

    compute_s: Sequence[float]
    batch: int
    n_parameters: int
    latency_s: float
    bytes_per_s: float

    def exchange_s(self, n_ranks: int, way: Literal["all-reduce", "servers"], n_servers: int = PAPER_SERVERS) -> float:
        """Give the seconds that gradients and weights are on their way, for one update.

        A ring all-reduce sends 2 (n-1) messages of 1/n of the model one after the other; s parameter servers share the
        model, and the link of each carries its share of n gradients in, then of n copies of the weights out.
        """
        if n_ranks == 1:
            return 0.0
        model_s = self.n_parameters * FLOAT_BYTES / self.bytes_per_s
        if way == "all-reduce":
            return 2 * (n_ranks - 1) * (self.latency_s + model_s / n_ranks)
        return 2 * (self.latency_s + n_ranks * model_s / n_servers)

    def points_per_s(
        self,
        n_ranks: int,
        n_awaited: int | None = None,
        way: Literal["all-reduce", "servers"] = "all-reduce",
        n_servers: int = PAPER_SERVERS,
    ) -> float:
        """Give the data points an update is made of, over the seconds it takes; dropped ones do not count."""
        k = n_awaited or n_ranks
        compute_s = mean_step_s(self._draw(), n_ranks, k, n_steps=400)
        return k * self.batch / (compute_s + self.exchange_s(n_ranks, way, n_servers))

    def _draw(self) -> Draw:
        """Draw from the batches of the kind whose turn it is, each rank counting its own."""
        samples = np.asarray(self.compute_s, float)
        slow = samples > two_kinds(samples)
        kinds = {kind: samples[slow == kind] for kind in (False, True)}
        turns: Counter[int] = Counter()

        def draw(generator: np.random.Generator, rank: int) -> float:
            turn = turns[rank]
            turns[rank] += 1
            return float(generator.choice(kinds[bool(slow[turn % len(slow)])]))

        return draw

    def linear(self, n_ranks: int) -> float:
        """Give the paper's linear line through one node (Fig. 8)."""
        return n_ranks * self.batch / float(np.mean(self.compute_s))


def two_kinds(values: np.ndarray) -> float:
    """Give the threshold that best parts values into two kinds (Otsu's); infinity if they are of one.

    Two kinds must explain nine tenths of the variance: parting a normal law explains 0.64 of it, a uniform one 0.75.
    """
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    if len(ordered) < 2 or ordered.var() == 0:
        return float("inf")
    sums = np.cumsum(ordered)[:-1]
    between = below * (sums / below - ordered.mean()) ** 2
    above = len(ordered) - below
    between += above * ((ordered.sum() - sums) / above - ordered.mean()) ** 2
    best = int(between.argmax())
    if between[best] < 0.9 * len(ordered) * ordered.var():
        return float("inf")
    return float((ordered[best] + ordered[best + 1]) / 2)


def fitted_link(n_bytes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Fit latency (s) and bandwidth (bytes/s) of the link to measured all-reduces of two ranks.

    Two ranks send 2 messages of half the array: ``t = 2 latency + bytes / bandwidth``, by least squares; a latency
    below 0 is taken as 0.
    """
    slope, offset = np.polyfit(np.asarray(n_bytes, float), np.asarray(seconds, float), 1)
    if slope <= 0:
        raise InvalidInput(f"larger arrays took no longer, {list(seconds)} s: measure more, or larger ones")
    return max(float(offset) / 2, 0.0), 1 / float(slope)


def scaling_points(measured: pd.DataFrame, model: pd.DataFrame, link: str) -> pd.DataFrame:
    """Gather data points a second by nodes for the scaling figure: measured, the model's, and a linear line.

    Parameters
    ----------
    measured, model : DataFrame
        The recordings ``ba3c-scaling`` and ``ba3c-scaling-model``.
    link : str
        Between the model's nodes; one of those recorded.

    Returns
    -------
    DataFrame
        series, source, x (nodes), value, low, high: measured is the median of the phases, from the least to the most.
    """
    rows = [
        ("processes on one machine", "measured", n, rates.median(), rates.min(), rates.max())
        for n, rates in measured[measured["kind"] == "ranks"].groupby("n_ranks")["points_per_s"]
    ]
    carried = model[model["kind"] == "scaling"]
    if link not in set(carried["link"]):
        raise unknown("link of the scaling model", link, carried["link"].unique())
    for row in carried[carried["link"] == link].to_dict("records"):
        linear = row["way"] == "linear"
        series, source = ("one node, so many times", "linear") if linear else (row["way"], "model")
        rows.append((series, source, row["n_nodes"], row["points_per_s"], math.nan, math.nan))
    return pd.DataFrame(rows, columns=["series", "source", "x", "value", "low", "high"])


def speedup_points(points: pd.DataFrame) -> pd.DataFrame:
    """Turn what `scaling_points` gives into speed-ups over one node, with the paper's own beside them (Fig. 8).

    The paper's are of the time to 300 points in Breakout, ours of data points a second.
    """
    one = points[points["x"] == 1].drop_duplicates("series").set_index("series")["value"]
    base = points["series"].map(one)
    ours = points.assign(**{name: points[name] / base for name in ("value", "low", "high")})
    gained = {n: HOURS_BY_NODES[1] / hours for n, hours in HOURS_BY_NODES.items()}
    theirs = [("the paper's time to a score", "published", n, times) for n, times in gained.items()]
    return pd.concat([ours, pd.DataFrame(theirs, columns=["series", "source", "x", "value"])], ignore_index=True)
