"""Ours beside the HTS-RL paper's numbers and claims, measured on sleeping CartPole by a law of step times."""

from pathlib import Path

import numpy as np
import pandas as pd

from workbench.analysis.bootstrap import mean_of
from workbench.analysis.variants import split
from workbench.paper.experiment import RecordedTable
from workbench.paper.hts.asynchronous import over_frames
from workbench.paper.hts.published import CLAIMS, IN_THE_SAME_TIME, NUMBERS
from workbench.paper.hts.speedup import for_as_many_updates
from workbench.paper.numbers import Counterpart, Pairs, find
from workbench.paper.verdicts import (
    NEARLY,
    above,
    better,
    by_construction,
    met,
    not_comparable,
    paired_percent,
    percent,
    with_room,
)


def speedup(root: Path) -> Pairs:
    """The speed-up by the variance of step times (Fig. 4, left), the lag, and what the concurrency costs."""
    kept = RecordedTable.open("hts-speedup", root)
    gamma = split(kept.frame[kept.frame["law"] == "gamma"], "cv")
    found = {cv: for_as_many_updates(of_law) for cv, of_law in gamma.items()}
    least, most = min(gamma), max(gamma)
    on = "time for as many updates; by a variance and an update's time of ours, which make it; gamma times, "
    on += "deviation/mean"
    number = find(NUMBERS, "Fig. 4 (left)", "speed-up at low step-time variance, about")
    why = f"{on} {least:g}, {len(gamma[least])} seeds"
    yield not_comparable(number, (mean := mean_of(found[least])).value, kept.origin, why, interval=mean)
    number = find(NUMBERS, "Fig. 4 (left)", "speed-up at high step-time variance, above")
    why = f"{on} {most:g}, {len(gamma[most])} seeds"
    yield not_comparable(number, (mean := mean_of(found[most])).value, kept.origin, why, interval=mean)
    number = find(CLAIMS, "Fig. 4 (left)", "the speed-up grows with the variance of step times")
    grown = percent(found[most], found[least])
    yield better(number, grown, kept.origin, f"time for as many updates, at deviation/mean {most:g} less at {least:g}")
    number, lags = find(NUMBERS, "Methods", "the policy that acts lags by exactly"), kept.frame["hts_policy_lag"]
    why = f"the largest lag of {len(lags)} runs; a trial stops with an error where it is another"
    yield by_construction(number, float(lags.max()), kept.origin, why)
    number = find(CLAIMS, "Conclusion", "as many steps train as well as without concurrency")
    runs = max(gamma.values(), key=len)  # what is trained on does not depend on the law: the same runs under each
    gap = paired_percent(runs["hts_return"], runs["synchronous_return"])
    why = f"return after training, HTS-RL less synchronous; PPO, sleeping CartPole, {len(runs)} seeds"
    yield above(number, gap, -NEARLY, kept.origin, why, "%")


def actors(root: Path) -> Pairs:
    """What the number of actors changes (Table 4): the weights that seeds come to, bit by bit."""
    kept = RecordedTable.open("hts-sweeps", root)
    runs = kept.frame[kept.frame["setting"] == "actors"]
    most = int(runs.groupby("seed")["weights"].nunique().max())
    numbers = ", ".join(str(n) for n in sorted(runs["value"].unique()))
    why = f"different weights a seed ends with, {numbers} actors, {runs['seed'].nunique()} seeds; agrees if one"
    number = find(CLAIMS, "Methods", "results do not depend on the actors")
    yield met(number, most == 1, most, 0.0, kept.origin, why, "weights", miss=0.0)


def returns(root: Path) -> Pairs:
    """Scores against frames and against wall time (Fig. 5), of A2C and PPO."""
    kept = RecordedTable.open("hts-return", root)
    for method, runs in split(kept.frame, "method").items():
        systems = split(runs, "concurrent")
        both = [systems[concurrent] for concurrent in (True, False)]
        as_many = pd.concat([runs.groupby("seed")["frames"].max() for runs in both], axis=1).min(axis=1)
        on = f"{str(method).upper()}, sleeping CartPole, {runs['seed'].nunique()} seeds"
        number = find(CLAIMS, "Conclusion", "as many steps train as well as without concurrency")
        why = f"score after as many frames, HTS-RL less synchronous; {on}"
        scores = [_scores_at(runs, as_many) for runs in both]
        yield with_room(above(number, paired_percent(*scores), -NEARLY, kept.origin, why, "%"), *scores)
        until = systems[True].groupby("seed")["seconds"].max()
        ours, then = (_scores_at(runs, until, "seconds") for runs in both)
        number = find(CLAIMS, "Table 1", IN_THE_SAME_TIME)
        why = f"score when HTS-RL had ended, less synchronous; {on}"
        yield better(number, paired_percent(ours, then), kept.origin, why, rival=then)


def asynchronous(root: Path) -> Pairs:
    """What as many steps teach beside GA3C and A3C: scores over the same frames, at each learning rate."""
    kept = RecordedTable.open("hts-asynchronous", root)
    scores = over_frames(kept.frame)
    number = find(CLAIMS, "Abstract", "asynchronous methods learn less from as many steps")
    for system in ("GA3C", "A3C"):
        for rate in sorted(kept.frame["learning_rate"].unique()):
            ours, theirs = scores["HTS-RL", rate], scores[system, rate]
            why = f"mean score over as many frames, HTS-RL (A2C) less {system}, learning rate {rate:g}; "
            why += f"CartPole, {len(ours)} seeds"
            yield better(number, paired_percent(ours, theirs), kept.origin, why)


def _scores_at(runs: pd.DataFrame, place: pd.Series, by: str = "frames") -> np.ndarray:
    """Give each seed's score at its place, so many frames or seconds, between its phases in a straight line."""
    curves = {seed: runs[runs["seed"] == seed] for seed in place.index}
    return np.array([np.interp(place[seed], curve[by], curve["score"]) for seed, curve in curves.items()])


COUNTERPARTS: list[Counterpart] = [speedup, actors, returns, asynchronous]
