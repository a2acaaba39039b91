from itertools import combinations, pairwise

import numpy as np
import pytest

from tests.algos.search.arena import play
from tests.support import SPACE
from workbench.algos.search import ASHA, PASHA, ListSearcher
from workbench.core.errors import InvalidInput

CONFIGS = [{"n": n} for n in range(16)]


def furthest(score) -> int:
    world = play(PASHA(ListSearcher(CONFIGS), 16, 16, eta=2), 1, score=score)
    return max(report.phase for report in world.reports) + 1


def test_ranks_that_hold_open_no_rung() -> None:
    """Rungs at 1 and 2 of 1, 2, 4, 8, 16: the better configuration always scores more, so 2 phases suffice."""
    assert furthest(lambda config, trial, phase: config["n"] + phase) == 2


def test_ranks_that_turn_round_open_them_all() -> None:
    """Whoever was ahead is behind in the next phase: curves cross, but of noise they tell only when they cross back."""
    assert furthest(lambda config, trial, phase: (-1) ** phase.bit_length() * config["n"]) > 2


def reported(*curves) -> PASHA:
    """Give a scheduler whose top rung, the third, ends with phase 3, when trials with these curves have ended it."""
    scheduler = PASHA(ListSearcher(CONFIGS), 16, 16, eta=2)
    scheduler._rungs, scheduler._closed = scheduler._rungs + scheduler._closed[:1], scheduler._closed[1:]
    for trial, curve in enumerate(curves):
        scheduler._curves[trial] = dict(enumerate(curve))
        scheduler._arrive(trial)
    return scheduler


def test_crossings_within_the_noise_open_none() -> None:
    """Two equal trials swap places at every phase by 0.1; the others lie far apart. The noise is worked by hand."""
    far = [5.0] * 4
    swapped = reported([1.1, 1.0, 1.0, 1.1], [1.0, 1.1, 1.1, 1.0], far)
    assert swapped._noise() == pytest.approx(0.1)
    assert swapped._ranks_hold()  # 0 is ahead after four phases and was behind after two, by 0.1
    swapped = reported([1.1, 1.0, 1.0, 1.02], [1.0, 1.3, 1.1, 1.0], far)
    assert swapped._noise() == pytest.approx(0.02)
    assert not swapped._ranks_hold()  # by 0.3
    assert reported([1.0, 1.0, 1.2, 1.4], [1.1] * 4, far)._noise() == 0.0  # they have crossed once: 0 is better now
    assert reported([1.0, 1.1, 1.1, 1.2], [1.1] * 4, far)._noise() == 0.0  # equal in between, and still only once


def test_what_a_report_costs_does_not_grow_with_the_pairs_before() -> None:
    """Of n trials whose ranks hold every two are compared once: the cube of n would stall a study of a thousand."""
    asked = 0

    class Score(float):
        def __sub__(self, other) -> float:
            nonlocal asked
            asked += 1
            return float(self) - float(other)

    configs = ListSearcher([{"n": n} for n in range(40)])
    world = play(PASHA(configs, 40, 16, eta=2), 1, score=lambda config, trial, phase: Score(config["n"]))
    n = sum(report.phase == 1 for report in world.reports)
    assert n > 20
    assert asked <= n * n


@pytest.mark.parametrize("seed", range(8))
def test_rungs_open_as_algorithm_1_says(seed) -> None:
    """Counted from the reports alone: a rank is soft, it holds whoever lies within the noise in the rung below."""
    ability, ends, top = np.random.default_rng(seed).normal(size=20), [1, 2, 4, 8, 16], 1
    noise = [0.05, 0.3, 1.0][seed % 3]

    def score(config, trial: int, phase: int) -> float:
        return float(ability[trial] + noise * np.random.default_rng([seed, trial, phase]).normal())

    scheduler, curves = PASHA(SPACE, 20, 16, eta=2, percentile=50 + 5 * seed), {}
    for report in play(scheduler, 3, seed, score=score, fail=0.05).reports:
        if report.failed:
            continue
        curves.setdefault(report.trial, []).append(report.score)
        if top == len(ends) - 1 or len(curves[report.trial]) != ends[top]:
            continue
        there = {trial: curve for trial, curve in curves.items() if len(curve) >= ends[top]}
        apart = []
        for one, other in combinations(there.values(), 2):
            ahead = [a > b for a, b in zip(one[: ends[top]], other, strict=False)]
            if sum(a != b for a, b in pairwise(ahead)) > 1:
                apart.append(abs(one[ends[top] - 1] - other[ends[top] - 1]))
        within = np.percentile(apart, scheduler.percentile) if apart else 0.0
        now, before = (sorted(there, key=lambda t, p=ends[k] - 1: -curves[t][p]) for k in (top, top - 1))
        below = {trial: curve[ends[top - 1] - 1] for trial, curve in there.items()}
        top += any(abs(below[a] - below[b]) > within for a, b in zip(now, before, strict=True))
    assert [rung.phases for rung in scheduler._rungs] == ends[: top + 1]


def test_asha_is_what_it_comes_to_when_all_rungs_are_open() -> None:
    opened = PASHA(SPACE, 12, 9)
    opened._rungs, opened._closed = opened._rungs + opened._closed, []
    assert play(opened, 3).told == play(ASHA(SPACE, 12, 9), 3).told


def test_what_stops_cannot_be_opened_again() -> None:
    with pytest.raises(InvalidInput, match="leave variant at 'promotion'"):
        PASHA(SPACE, 9, 9, variant="stopping")


@pytest.mark.parametrize("percentile", ["90", 101, True])
def test_a_percentile_is_one(percentile) -> None:
    with pytest.raises(InvalidInput, match=r"PASHA needs percentile in \[0, 100\], got"):
        PASHA(SPACE, 9, 9, percentile=percentile)
