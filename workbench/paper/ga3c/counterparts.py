"""Ours beside the GA3C paper's numbers and claims, all measured."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from scipy import stats

from workbench.analysis.bootstrap import Interval
from workbench.analysis.variants import final_scores, split
from workbench.paper.experiment import RecordedTable
from workbench.paper.ga3c.agents import agents
from workbench.paper.ga3c.learning import ADJUSTED
from workbench.paper.ga3c.published import CLAIMS, NUMBERS, TABLE_2
from workbench.paper.numbers import Counterpart, Origin, Pairs, Published, find
from workbench.paper.verdicts import (
    CHANCE,
    NEARLY,
    above,
    better,
    least,
    met,
    not_comparable,
    paired_percent,
    percent,
    rising,
    where_needed,
    with_room,
    within,
)

SPEEDS = ("ga3c-speed", "ga3c-speed-atari")
TRAINING_BATCHES = {
    "ga3c-training-batch": "CartPole in lockstep",
    "ga3c-training-batch-atari": "Ms. Pac-Man, free threads, summed gradients",
}
_ROBUST = "it is robust to the learning rate (1e-4, 3e-4)"
_FASTER_IS_BETTER = "who plays more frames in the same time scores higher"


def networks(root: Path) -> Pairs:
    """What GA3C gains over A3C on each network of Table 2, without a GPU."""
    kept = RecordedTable.open("ga3c-networks", root)
    rows, origin = kept.frame.set_index("network").loc[list(TABLE_2)], kept.origin
    took_turns = f"least and most of {rows['repeats'].iloc[0]} turns"
    least, most = rows["ratio_low"].min(), rows["ratio_high"].max()
    middle = Interval(float(rows["ratio"].median()), float(least), float(most))
    why = f"no GPU, to which the paper owes it: ratio of PPS, by batches alone; {took_turns}, 5 networks"
    number = _claim("Sec. 6", "GA3C is significantly faster than A3C on the same machine")
    yield not_comparable(number, middle.value, origin, why, "ratio", middle)
    growth = float(stats.kendalltau(range(len(rows)), rows["ratio"]).statistic)
    number = _claim("Sec. 5.1", "the larger the network, the more GA3C gains over A3C")
    yield not_comparable(
        number, growth, origin, "no GPU, whose load is the paper's cause; ratio along 5 networks", "tau"
    )


def on_device(root: Path) -> Pairs:
    """Predictions a second where there is a GPU, and how busy it is; A3C plays on the processor."""
    kept = RecordedTable.open("ga3c-gpu", root)
    table = kept.frame[(kept.frame["part"] == "table") & kept.frame["utilisation"].notna()]
    if table.empty:  # tried without a GPU
        return
    rates = table.pivot(index="network", columns="system", values="pps").loc[list(TABLE_2)].astype(float)
    busy = table[table["system"] == "GA3C"].set_index("network")["utilisation"]
    ratios = rates["GA3C"] / rates["A3C"]
    why = f"another GPU, {kept.about['cores']} cores; measured once"
    for network in TABLE_2:
        for system in ("GA3C", "A3C"):
            number = find(NUMBERS, "Table 2", f"{system}, {network}")
            yield not_comparable(number, rates[system][network], kept.origin, why)
        number = find(NUMBERS, "Table 2", f"GA3C over A3C, {network}")
        yield not_comparable(number, float(ratios[network]), kept.origin, why)
        number = find(NUMBERS, "Table 2", f"GPU used, {network}")
        yield not_comparable(number, float(busy[network]), kept.origin, why)
    yield from _with_a_layer_more(table[table["system"] == "GA3C"].set_index("network"), kept.origin, why)
    for system, what in (("GA3C", "GA3C, I"), ("A3C", "A3C, system I")):
        number, slower = find(NUMBERS, "Sec. 5.1", what), rates[system]["small"] / rates[system]["large-1"]
        yield not_comparable(number, float(slower), kept.origin, why)
    why = f"A3C's agents here are threads, which share one interpreter's lock: 16 make little more than two; {why}"
    middle = Interval(float(ratios.median()), float(ratios.min()), float(ratios.max()))
    number = _claim("Sec. 6", "GA3C is significantly faster than A3C on the same machine")
    yield not_comparable(number, middle.value, kept.origin, f"{why}, least and most of 5 networks", "ratio", middle)
    growth = float(stats.kendalltau(range(len(ratios)), ratios).statistic)
    number = _claim("Sec. 5.1", "the larger the network, the more GA3C gains over A3C")
    yield not_comparable(number, growth, kept.origin, f"{why}; ratio along 5 networks", "tau")


def _with_a_layer_more(rows: pd.DataFrame, origin: Origin, why: str) -> Pairs:
    """Give what the fastest setting takes of the GPU, and what a layer more costs (Sec. 5.1)."""
    rates = rows[["tps", "utilisation"]].astype(float)
    small, deeper = (rates.loc[network].to_dict() for network in ("small", "large-4"))
    for what, value, told in (
        ("GPU used by the fastest", small["utilisation"], "small"),
        ("TPS lost with a layer more", 100 * (1 - deeper["tps"] / small["tps"]), "small less large-4"),
        ("GPU used more, with it", deeper["utilisation"] - small["utilisation"], "large-4 less small, in points"),
    ):
        yield not_comparable(find(NUMBERS, "Sec. 5.1", what), value, origin, f"{told}; {why}")


def sweeps(root: Path) -> Pairs:
    """What agents and training batches change (Figs 3 and 4, Sec. 5.3): one measurement a value."""
    kept = RecordedTable.open("ga3c-sweeps", root)
    agents, batches = (kept.frame[kept.frame["setting"] == setting] for setting in ("agents", "batches"))
    along, sizes = float(stats.kendalltau(range(len(agents)), agents["tps"]).statistic), agents["train_batch"]
    why = f"updates a second, {_list(agents['value'])} agents; of {sizes.iloc[0]:g} experiences each at first and "
    why += f"of {sizes.iloc[-1]:g} at last, the paper's of one agent's segment, from 16 agents on"
    yield not_comparable(_claim("Fig. 3", "more agents bring more TPS"), along, kept.origin, why, "tau")
    number = _claim("Sec. 5.3", "a larger training batch lessens the policy lag")
    why = f"minus the mean lag, least batches {_list(batches['value'])}"
    yield rising(number, (-batches["policy_lag"]).tolist(), kept.origin, why)


def adjustment(root: Path) -> Pairs:
    """Whether adjustment ends at one of the fastest mixes (Fig. 2), and how many of all would pass for one."""
    kept = RecordedTable.open("ga3c-adjustment", root)
    rates = {kind: rows["trained"] for kind, rows in split(kept.frame, "kind").items()}
    gap, mixes = 100 * (rates["kept"].iloc[0] / rates["best"].iloc[0] - 1), rates["static"]
    chance = float((mixes >= (1 - NEARLY / 100) * mixes.max()).mean())
    why = f"rate of the mix kept less the fastest's, Pong, medians of turns; agrees above {-NEARLY:g}"
    number = _claim("Fig. 2", "adjustment finds the fastest mix")
    yield met(number, gap >= -NEARLY, gap, chance, kept.origin, why, "%")


def speed(root: Path) -> Pairs:
    """Scores over the same wall time, and the frames played in it, by agents, fixed and adjusted (Fig. 5)."""
    for kept in RecordedTable.those_of(SPEEDS, root):
        game, scores = kept.frame["game"].iloc[0], over_training(kept.frame)
        frames = kept.frame.groupby(["seed", "variant"])["frames"].last().unstack()
        fixed = frames.drop(columns=ADJUSTED).mean().sort_values().index
        *slower, fast = map(str, fixed)  # the paper's best is the one that plays most frames
        limited = game == "CartPole-v1"
        on = f"{game}, {len(scores)} seeds"
        number = _claim("Sec. 5.2", "adjustment comes to nearly the score of the fastest fixed mix")
        why = f"mean score over time, {ADJUSTED} agent, less {fast}; {on}"
        pair = above(number, percent(scores[ADJUSTED], scores[fast]), -NEARLY, kept.origin, why, "%")
        pair = with_room(pair, scores[ADJUSTED], scores[fast]) if limited else pair
        yield where_needed(pair, percent(scores[fast], scores["1 agent"]), "one agent is too few")
        number = _claim("Sec. 5.2", "adjustment plays only slightly fewer frames than the fastest fixed mix")
        why = f"frames at the end, {ADJUSTED} agent, less {fast}; {on}"
        yield above(number, percent(frames[ADJUSTED], frames[fast]), -NEARLY, kept.origin, why, "%")
        gain = least([percent(scores[fast], scores[mix]) for mix in slower])
        why = f"mean score over time, {fast} less each that plays fewer frames, the least gain; {on}"
        rival = scores[slower].max(axis=1) if limited else -math.inf
        yield better(_claim("Sec. 5.2", _FASTER_IS_BETTER), gain, kept.origin, why, rival=rival)


def learning(root: Path) -> Pairs:
    """Learning rates (Fig. 6): the paper's two."""
    kept = RecordedTable.open("ga3c-learning-rate", root)
    scores = split(final_scores(kept.frame), "variant")
    gap = percent(scores["0.0001"]["score"], scores["0.0003"]["score"])
    why = f"last score at 1e-4 less at 3e-4; CartPole, {kept.frame['seed'].nunique()} seeds"
    yield within(_claim("Sec. 5.2", _ROBUST), gap, -NEARLY, NEARLY, kept.origin, why, "%")


def learning_on_atari(root: Path) -> Pairs:
    """Learning rates (Fig. 6) on Atari: games are the repetitions, each by how far its runs rose.

    Where nothing has been learned all rates do alike: a game counts where its runs end above where they began. They are
    not held against random play: the paper's, in Table 3, stands above what agents begin with here.
    """
    kept = RecordedTable.open("ga3c-learning-rate-atari", root)
    runs = kept.frame.groupby(["game", "variant", "seed"])
    rises = runs["score"].last() - runs["score"].first()
    chances = rises.groupby("game").apply(lambda of: stats.ttest_1samp(of, 0, alternative="greater").pvalue)
    learned = rises.groupby(["game", "variant"]).mean().unstack()[chances < CHANCE]
    shares = learned.div(learned.mean(axis=1), axis=0)  # so that each game counts as much
    gap = paired_percent(shares["0.0001"], shares["0.0003"])
    length, n = runs["frames"].last().median() / 1e6, kept.frame["seed"].nunique()
    why = "what scores rose by at 1e-4 less at 3e-4, each game counting as much; "
    why += f"{len(learned)} of {len(chances)} games, where anything was learned within {length:.1f} million frames, "
    why += f"{n} seeds each, the paper's of a day"
    yield within(_claim("Sec. 5.2", _ROBUST), gap, -NEARLY, NEARLY, kept.origin, why, "%")


def training_batch(root: Path) -> Pairs:
    """The least training batch (Fig. 7): how fast learning is, the mean score over all phases."""
    for kept in RecordedTable.those_of(TRAINING_BATCHES, root):
        speeds = over_training(kept.frame)
        on = f"mean score, {TRAINING_BATCHES[kept.name]}, {len(speeds)} seeds"
        gain = paired_percent(speeds[["20", "40"]].mean(axis=1), speeds["0"])
        number = _claim("Sec. 5.3", "a least training batch of 20 to 40 learns faster than none")
        yield better(number, gain, kept.origin, f"20 and 40 less 0; {on}")
        gain = least([paired_percent(speeds[size], speeds["80"]) for size in ("20", "40")])
        number = _claim("Sec. 5.3", "20 to 40 is best, larger ones learn slower")
        yield better(number, gain, kept.origin, f"20 less 80 and 40 less 80, the lesser gain; {on}")


def epsilon(root: Path) -> Pairs:
    """Where RMSProp's epsilon stands (Eq. 3)."""
    kept = RecordedTable.open("ga3c-epsilon", root)
    scores = over_training(kept.frame)
    gap = paired_percent(scores["inside, 1e-5"], scores["outside, 1e-5"])
    why = f"the paper tells no effect; mean score inside less outside, both 1e-5, CartPole, {len(scores)} seeds"
    yield not_comparable(
        _claim("Eq. 3", "RMSProp's epsilon stands inside the root"), gap.value, kept.origin, why, "%", gap
    )


def log_epsilon(root: Path) -> Pairs:
    """Epsilon in the policy's logarithm (Eq. 5): how fast learning is with and without it, the mean over all phases."""
    kept = RecordedTable.open("ga3c-log-epsilon", root)
    speeds = over_training(kept.frame)
    on = f"mean score over as many frames; CartPole, free threads, settings of the paper's code, {len(speeds)} seeds"
    gain = paired_percent(speeds["epsilon"], speeds["none"])
    why = f"1e-6 less none, gradients not clipped; {on}"
    yield better(_claim("Eq. 5", "epsilon in the logarithm steadies learning"), gain, kept.origin, why)
    gap = paired_percent(speeds["epsilon"], speeds["epsilon, clipped"])
    why = f"1e-6, gradients free less clipped to a norm of 0.5; {on}"
    pair = above(_claim("Eq. 5", "with it gradients need not be clipped"), gap, -NEARLY, kept.origin, why, "%")
    yield where_needed(pair, gain)


def over_training(curves: pd.DataFrame) -> pd.DataFrame:
    """Give how fast each variant learned with each seed, its mean score over all phases: a row a seed."""
    return curves.groupby(["seed", "variant"])["score"].mean().unstack()


def _claim(where: str, what: str) -> Published:
    return find(CLAIMS, where, what)


def _list(values: Sequence[str] | pd.Series) -> str:
    return ", ".join(map(str, values))


COUNTERPARTS: list[Counterpart] = [
    networks,
    on_device,
    sweeps,
    adjustment,
    speed,
    learning,
    learning_on_atari,
    training_batch,
    epsilon,
    log_epsilon,
    agents,
]
