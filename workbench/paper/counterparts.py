"""Our counterparts of the papers' numbers: computed from formulas, simulated, or read from the recordings in ``data/``.

Each function gives pairs of a published number and ours. One that needs a recording which is not there raises
`DatabaseError`, and its numbers count as not run.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.analysis.bootstrap import bootstrap_interval
from workbench.paper.experiments import Kept
from workbench.paper.published import ALL, BA3C_FIG_6, BA3C_NODES, GA3C_TABLE_2, Published, published

Source = Literal["computed", "simulated", "measured", "model"]
Pairs = Iterator[tuple[Published, "Ours"]]


@dataclass(frozen=True)
class Ours:
    """A number of ours beside a published one.

    Attributes
    ----------
    value : float
        In the published number's unit.
    source : {"computed", "simulated", "measured", "model"}
    agrees : bool
    why : str
        What was compared how, or why it differs.
    interval : (float, float), optional
        95 %, where there are repetitions.
    scale : str
        What it was run on, and for how long; empty for what has no scale.
    """

    value: float
    source: Source
    agrees: bool
    why: str = ""
    interval: tuple[float, float] | None = None
    scale: str = ""


def _exact(number: Published, value: float, source: Source = "computed", why: str = "") -> tuple[Published, Ours]:
    """Compare to the digits that were printed."""
    digits = len(f"{number.value:g}".partition(".")[2])
    return number, Ours(value, source, round(value, digits) == round(number.value, digits), why)


def _hypertrick_formulas(root: Path) -> Pairs:
    from workbench.algos.search.hyperband import bracket_table, completion_rate
    from workbench.algos.search.hypertrick import (
        eviction_rate_for,
        expected_completion_rate,
        minimum_completion_rate,
    )

    for n_phases in (10, 5):
        expected = published("HyperTrick", "Table 1", f"E[alpha], Np = {n_phases}")
        least = published("HyperTrick", "Table 1", f"min alpha, Np = {n_phases}")
        yield _exact(expected, 100 * expected_completion_rate(0.25, n_phases), why="Eq. 9")
        yield _exact(least, 100 * minimum_completion_rate(0.25, n_phases), why="Eq. 8")
    brackets = bracket_table(27, 3)
    configs = sum(bracket[0].n_trials for bracket in brackets)
    yield _exact(published("HyperTrick", "Sec. 5.2.4", "Hyperband, R = 27, eta = 3"), configs)
    for s, bracket in zip((3, 2, 1, 0), brackets, strict=True):
        yield _exact(published("HyperTrick", "Table 2", f"alpha, s = {s}"), 100 * completion_rate([bracket]))
    together = completion_rate(brackets)
    yield _exact(published("HyperTrick", "Table 2", "alpha"), 100 * together)
    rate = published("HyperTrick", "Sec. 5.2.4", "r of equal expected alpha, Np = 27")
    yield _exact(rate, 100 * eviction_rate_for(together, 27), why="Eq. 9 solved for r")


def _toy_problem(root: Path) -> Pairs:
    from workbench.paper.hypertrick import toy_problem as toy

    table = toy.table()
    names = {
        "hypertrick": "HyperTrick",
        "sh-dynamic": "Successive Halving, dynamic",
        "sh-static": "Successive Halving, static",
        "grid": "Grid Search",
    }
    for name, scheduler in toy.schedulers(table).items():
        number = published("HyperTrick", "Figs 2, 3, 8, 9", f"makespan, {names[name]}")
        makespan = toy.play(scheduler, table).outcome.makespan
        yield _exact(
            number, makespan, "simulated", "on a table reconstructed to fit: shows that the numbers can be met"
        )


def _hyperband_on_recorded_curves(root: Path) -> Pairs:
    kept = Kept.open("curves-hyperband-against-hypertrick", root)
    rows: dict[str, dict[str, Any]] = kept.frame.set_index("scheduler").to_dict("index")  # type: ignore[assignment]
    repeats = rows["hypertrick"]["repeats"]
    for what, measure in (("wall time", "makespan"), ("time to best score", "time_to_best")):
        ratio = rows["hypertrick"][measure] / rows["hyperband"][measure]
        gap = [rows["hypertrick - hyperband"][measure + end] for end in ("", "_low", "_high")]
        why = (
            f"ratio of medians over {repeats} repetitions on measured CartPole curves, all games alike; median of the "
            "paired differences {:.3g} s [{:.3g}, {:.3g}]; agrees if the same one is faster".format(*gap)
        )
        for number in ALL:
            if number.paper == "HyperTrick" and number.what.startswith(f"{what}, HyperTrick over Hyperband"):
                # the size of the gain depends on the game: what can be compared is who is faster
                agrees = (ratio < 1) == (number.value < 1)
                yield number, Ours(ratio, "simulated", agrees, why, scale=kept.scale)


def _atari_studies(root: Path) -> Pairs:
    from workbench.paper.hypertrick import atari

    for number, value, agrees, why, scale in atari.numbers(root):
        yield number, Ours(value, "measured", agrees, why, scale=scale)


def _ga3c_networks(root: Path) -> Pairs:
    kept = Kept.open("ga3c-networks", root)
    rows = {row["network"]: row for row in kept.frame.to_dict("records")}
    for network, (a3c, ga3c) in GA3C_TABLE_2.items():
        ours = {name: float(rows[network][name]) for name in ("ga3c_pps", "a3c_pps", "ratio")}
        for system, told, value in (("GA3C", ga3c, ours["ga3c_pps"]), ("A3C", a3c, ours["a3c_pps"])):
            why = "no GPU here, and other processors" if system == "GA3C" else "other processors"
            agrees = 0.5 <= value / told <= 2
            number = published("GA3C", "Table 2", f"{system}, {network}")
            yield number, Ours(value, "measured", agrees, f"{why}; agrees if within a factor of 2", scale=kept.scale)
        number = published("GA3C", "Table 2", f"GA3C over A3C, {network}")
        why = "no GPU here; each system in the faster of two precisions; agrees if within a factor of 2"
        agrees = 0.5 <= ours["ratio"] / number.value <= 2
        yield number, Ours(ours["ratio"], "measured", agrees, why, scale=kept.scale)


def _ga3c_training_batch(root: Path) -> Pairs:
    from workbench.analysis.variants import final_scores

    kept = Kept.open("ga3c-training-batch", root)
    means = final_scores(kept.frame).groupby("variant")["score"].mean()
    best = int(str(means.idxmax()))
    why = f"the best of {len(means)} sizes by the mean score of {kept.frame['seed'].nunique()} seeds on CartPole"
    for end in ("from", "to"):
        number = published("GA3C", "Fig. 7", f"best least training batch, {end}")
        agrees = best >= number.value if end == "from" else best <= number.value
        yield number, Ours(best, "measured", agrees, f"{why}; agrees if it lies in the range", scale=kept.scale)


def _pong_agent(root: Path) -> Pairs:
    from workbench.study.results import Results

    sittings = [Results.of_recording(root / name) for name in ("pong-agent", "pong-agent-slower")]
    frames = sum(run.frames.phases["score"].count() * run.spec["trainable"]["phase"]["frames"] for run in sittings)
    found = json.loads((root / "pong-agent-slower" / "evaluation.json").read_text(encoding="utf-8"))
    number = published("GA3C", "Table 3", "after one day, pong")
    why = f"mean of {found['n_episodes']} games, actions drawn; agrees if at least as high"
    scale = f"one agent, {frames / 1e6:.0f} million frames in {len(sittings)} sittings"
    yield number, Ours(found["mean"], "measured", found["mean"] >= number.value, why, scale=scale)


def _ba3c_parameters(root: Path) -> Pairs:
    from workbench.algos.rl.envs import find_game
    from workbench.algos.rl.model import make_model

    game = find_game("Pong", rgb=True)  # of six actions
    for width in BA3C_FIG_6:
        model = make_model(game, f"ba3c-{width}")
        count = sum(weights.numel() for weights in model.parameters())
        yield _exact(
            published("BA3C", "Fig. 6", f"fully connected width {width}"), count, why="our network's, six actions"
        )


def _ba3c_scaling(root: Path) -> Pairs:
    from workbench.paper.ba3c.scaling import scaling_points, speedup_points

    link, way, most = "10 Gbit/s, 50 us", "4 servers, 90 % awaited", max(BA3C_NODES)
    kept = Kept.open("ba3c-scaling-model", root)
    points = speedup_points(scaling_points(Kept.open("ba3c-scaling", root).frame, kept.frame, link))
    row = points[(points["series"] == way) & (points["x"] == most)].iloc[0]
    number = published("BA3C", "Fig. 8", f"speed-up on {most} nodes, Breakout to 300 points")
    why = f"data points/s over one node's, {way}, {link}; not the time to a score; agrees if within a factor of 2"
    value = float(row["value"])
    yield number, Ours(value, "model", 0.5 <= value / number.value <= 2, why, scale=kept.scale)


def _pbt_toy(root: Path) -> Pairs:
    kept = Kept.open("pbt-toy", root)
    found = kept.frame[kept.frame["reading"] == "as chosen"].groupby("variant")["final"]
    for variant, what in (("grid", "grid search, about"), ("PBT", "PBT, about")):
        interval = bootstrap_interval(found.get_group(variant).to_numpy(), "mean")
        number = published("PBT", "Fig. 2", what)
        why = f"mean of {found.size()[variant]} seeds; agrees to one decimal"
        value, agrees = interval.value, round(interval.value, 1) == number.value
        yield number, Ours(value, "simulated", agrees, why, (interval.low, interval.high), kept.scale)


def _pbt_population(root: Path) -> Pairs:
    from workbench.paper.pbt.cartpole import improvements

    kept = Kept.open("pbt-design", root)
    rows = improvements(kept.frame)
    why = "final score over random search's on CartPole; agrees if its interval holds the published or is on its side"
    for row in rows[rows["group"] == "population"].to_dict("records"):
        what = f"PBT over random search, {row['name']} members"
        for number in (n for n in ALL if n.paper == "PBT" and n.what == what):
            beyond = row["low"] > 1 if number.value > 1 else row["high"] < 1
            agrees = bool(row["low"] <= number.value <= row["high"] or beyond)
            yield number, Ours(row["value"], "simulated", agrees, why, (row["low"], row["high"]), kept.scale)


def _hts_speedup(root: Path) -> Pairs:
    from workbench.paper.hts.speedup import speedups

    kept = Kept.open("hts-speedup", root)
    gamma = speedups(kept.frame[kept.frame["law"] == "gamma"]).sort_values("cv").to_dict("records")
    for row, what in ((gamma[0], "low step-time variance, about"), (gamma[-1], "high step-time variance, above")):
        number = published("HTS-RL", "Fig. 4 (left)", f"speed-up at {what}")
        value, interval = row["speedup"], (row["low"], row["high"])
        about = what.endswith("about")
        agrees = abs(value / number.value - 1) <= 0.2 if about else value > number.value
        how = "within a fifth" if about else "above"
        why = f"sleeping CartPole, gamma times of deviation / mean {row['cv']:g}; "
        why += f"{row['expected_with_learning']:.3g} expected from the law and the time of an update, "
        why += f"which is a setting here; agrees if {how}"
        yield number, Ours(value, "measured", agrees, why, interval, kept.scale)


COUNTERPARTS: list[Callable[[Path], Pairs]] = [
    _hypertrick_formulas,
    _toy_problem,
    _hyperband_on_recorded_curves,
    _atari_studies,  # after what was simulated for all games, and before Pong's agent: the last stands
    _ga3c_networks,
    _ga3c_training_batch,
    _pong_agent,
    _ba3c_parameters,
    _ba3c_scaling,
    _pbt_toy,
    _pbt_population,
    _hts_speedup,
]
