"""Ours beside the Distributed BA3C paper's numbers and claims: our networks' parameters, and few ranks measured."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import make_model
from workbench.analysis.bootstrap import mean_of
from workbench.analysis.variants import score_table, split, worst_falls
from workbench.core.showing import so_many
from workbench.paper.ba3c.published import CLAIMS, FIG_6, LEARNING_RATE, NUMBERS, SMALL_EPSILON
from workbench.paper.experiment import RecordedTable
from workbench.paper.numbers import Counterpart, Origin, Pairs, find
from workbench.paper.verdicts import (
    NEARLY,
    above,
    below,
    better,
    exact,
    not_comparable,
    paired_percent,
    percent,
    with_room,
)

_TIMES = "the paper's are times to a score, on 64 nodes"


def parameters(root: Path) -> Pairs:
    """Parameters by the width of the fully connected layer (Fig. 6)."""
    counts, origin = _parameters(), Origin("computed", "make_model")
    for width, count in counts.items():
        number = find(NUMBERS, "Fig. 6", f"fully connected width {width}")
        yield exact(number, count, origin, "our network's, six actions")
        share = find(NUMBERS, "Fig. 6", f"of the widest's, width {width}")
        yield exact(
            share,
            100 * count / max(counts.values()),
            origin,
            "of 61.75 the paper cut what it had to round" * (width == 128),
        )


@lru_cache(maxsize=1)
def _parameters() -> dict[int, int]:
    game = find_game("Pong", rgb=True)  # of six actions
    models = {w: make_model(game, f"ba3c-{w}", "uniform") for w in FIG_6}  # sooner made than orthogonal ones
    return {w: sum(p.numel() for p in model.parameters()) for w, model in models.items()}


def stability(root: Path) -> Pairs:
    """How far each variant's score falls below its best so far, as a share of that best (Fig. 3)."""
    kept = RecordedTable.open("ba3c-stability", root)
    falls = _worst_falls(kept.frame)
    gap = mean_of(falls["asynchronous"] - falls["synchronous"])
    number = find(CLAIMS, "Sec. 2.3", "asynchronous training collapses, synchronous training does not")
    why = "worst fall below the best so far, as a share of it, asynchronous (four times the updates) less "
    why += f"synchronous; CartPole, 4 ranks, {len(falls['synchronous'])} seeds, "
    why += f"learning rate {kept.frame['learning_rate'].iloc[0]:g}, the paper's {LEARNING_RATE:g}"
    yield above(number, gap, 50, kept.origin, why, "points")


def _worst_falls(curves: pd.DataFrame) -> dict[str, np.ndarray]:
    """Give the worst fall of every seed of every variant, in percent of the best before it."""
    return {
        name: 100 * worst_falls(score_table(runs), as_share=True) for name, runs in split(curves, "variant").items()
    }


def epsilon(root: Path) -> Pairs:
    """Adam's epsilon (Fig. 5): 1e-8, the paper's, against 1e-3, the single node's; the mean score over all phases."""
    kept = RecordedTable.open("ba3c-epsilon", root)
    speeds = kept.frame.groupby(["batch", "adam_eps", "seed"])["score"].mean()
    gaps = {batch: paired_percent(speeds[batch, 1e-8], speeds[batch, 1e-3]) for batch in (32, 512)}
    why = f"score over time at 1e-8 less at 1e-3, CartPole, {speeds.index.get_level_values('seed').nunique()} seeds"
    number = find(CLAIMS, "Sec. 2.4.3", SMALL_EPSILON)
    whose = f"{why}, batch 512; another game, and the paper's differ from one another"
    yield not_comparable(number, gaps[512].value, kept.origin, whose, "%", gaps[512])
    number = find(CLAIMS, "Sec. 2.4.3", "with smaller effective batches it does not")
    pair = below(number, gaps[32], NEARLY, kept.origin, f"{why}, batch 32", "%")
    yield with_room(pair, speeds[32, 1e-8], speeds[32, 1e-3])


def adam(root: Path) -> Pairs:
    """Adam's learning rate (Fig. 4) and betas (Sec. 2.4.4) at a large effective batch, beside what was published."""
    kept = RecordedTable.open("ba3c-adam", root)
    runs = split(kept.frame, "variant")
    falls = _worst_falls(kept.frame)
    on = f"CartPole, batch {int(kept.frame['batch'].max())}, {len(falls['as published'])} seeds"
    number = find(CLAIMS, "Fig. 4", "a larger learning rate makes training unstable, up to scores of 0")
    for times in (4, 16):
        gap = mean_of(falls[f"learning rate times {times}"] - falls["as published"])
        why = f"worst fall below the best so far, as a share of it, {times} times 1e-3 less 1e-3; {on}"
        yield better(number, gap, kept.origin, why, "points")
    over_time = {variant: of.groupby("seed")["score"].mean() for variant, of in runs.items()}
    gap = paired_percent(over_time["betas 0.9 and 0.999"], over_time["as published"])
    number = find(CLAIMS, "Sec. 2.4.4", "other betas of Adam bring nothing")
    yield below(number, gap, NEARLY, kept.origin, f"score over time, 0.9 and 0.999 less 0.8 and 0.75; {on}", "%")


def width(root: Path) -> Pairs:
    """Data points a second by the width of the fully connected layer (Fig. 6): the narrowest against the widest."""
    kept = RecordedTable.open("ba3c-width", root)
    for n, runs in split(kept.frame, "n_ranks").items():
        rates = split(runs, "width")
        gap = percent(rates[16]["points_per_s"], rates[256]["points_per_s"]).value
        number = find(CLAIMS, "Sec. 2.5.1", "a narrower fully connected layer processes more data points a second")
        why = f"width 16 less 256, Pong, {so_many(n, 'rank')}, one launch of each: nothing tells how far others lie off"
        yield not_comparable(number, gap, kept.origin, why, "%")


def scaling(root: Path) -> Pairs:
    """How speed grows with ranks (Fig. 8), and what the straggler rule saves (Sec. 2.3)."""
    kept = RecordedTable.open("ba3c-scaling", root)
    rates = split(kept.frame[kept.frame["kind"] == "ranks"], "n_ranks")
    most = int(max(rates))
    gap = percent(rates[most]["points_per_s"], most * rates[1]["points_per_s"])
    number = find(CLAIMS, "Fig. 8", "n nodes come to a score in an n-th of the time, up to 64")
    why = f"data points a second, {most} ranks on one machine less {most} times one, Pong; {_TIMES}"
    yield not_comparable(number, gap.value, kept.origin, why, "%", gap)
    number = find(CLAIMS, "Sec. 2.3", "waiting for 90 % of the gradients significantly shortens an update")
    for law, rows in split(kept.frame[kept.frame["kind"] == "straggler"], "law").items():
        step = rows.set_index("n_awaited")["step_s"]
        saved = 100 * (step[3.0] / step[4.0] - 1)
        why = f"3 of 4 awaited, made to sleep: {law}; one run of 150 updates"
        yield not_comparable(number, saved, kept.origin, why, "%")


def links(root: Path) -> Pairs:
    """What ranks (Fig. 8) and parameter servers (Fig. 7) make of narrow links: hosts are virtual, batches are slept."""
    kept = RecordedTable.open("ba3c-links", root)
    for mbit_per_s, rows in split(kept.frame, "mbit_per_s").items():
        ranks, servers = (
            rows[rows["way"] == way].pivot(index="repeat", columns=of, values="batches_per_s")
            for way, of in (("all-reduce", "n_ranks"), ("servers", "n_servers"))
        )
        most, on = int(ranks.columns.max()), f"virtual hosts, links of {mbit_per_s:g} Mbit/s, {len(ranks)} times"
        gap = paired_percent(servers[servers.columns.max()], servers[1])
        why = f"batches a second, {servers.columns.max()} servers less 1; {most} ranks whose batches are slept, {on}"
        yield better(find(CLAIMS, "Fig. 7", "more parameter servers use the network better"), gap, kept.origin, why)
        gap = paired_percent(ranks[most], most * ranks[1])
        why = f"batches a second, {most} ranks less {most} times one, all-reduce; their batches are slept; {on}"
        number = find(CLAIMS, "Fig. 8", "n nodes come to a score in an n-th of the time, up to 64")
        yield not_comparable(number, gap.value, kept.origin, f"{why}; {_TIMES}", "%", gap)


COUNTERPARTS: list[Counterpart] = [parameters, stability, epsilon, adam, width, scaling, links]
