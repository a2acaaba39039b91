import math

import numpy as np
import pytest

from tests.support import SPACE
from workbench.algos.search import CostAwareSearcher, FullRuns, HyperTrick, RandomSearcher, Seeded, cost_aware
from workbench.algos.search.surrogate import NOISE, OWN, positions
from workbench.analysis import front
from workbench.core.domains import Choice, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Event, Kind, Report
from workbench.core.space import Space
from workbench.knowledge import frames_of
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster

TWO = Space({"skill": Uniform(0.0, 1.0), "size": Uniform(0.0, 1.0)})


def told(searcher, trial, *phases: tuple[float, float]) -> None:
    for phase, (score, seconds) in enumerate(phases):
        searcher.observe(Report(trial, phase, score, seconds=seconds))


def test_the_front_by_hand() -> None:
    """Worth is the share beaten at the last common phase, cost the mean of the phases' seconds."""
    searcher = CostAwareSearcher(SPACE)
    told(searcher, 0, (1.0, 2.0), (9.0, 4.0))  # 3 s a phase; behind 1 and 3 after a phase, ahead of 2
    told(searcher, 1, (2.0, 1.0))  # 1 s; ahead of 0 and 2, behind 3
    told(searcher, 2, (0.5, 4.0), (1.0, 4.0))  # 4 s; behind all
    told(searcher, 3, (3.0, 8.0), (0.0, 6.0))  # 7 s; ahead of 1 alone: after two phases behind 0 and 2
    assert searcher.front() == {1: (1.0, 2.5 / 4)}
    told(searcher, 4, (5.0, 5.0))  # ahead of all
    assert searcher.front() == {1: (1.0, 2.5 / 5), 4: (5.0, 4.5 / 5)}


def test_a_failure_and_a_score_that_is_no_number_say_nothing_and_unknown_costs_count_as_the_median() -> None:
    searcher = CostAwareSearcher(SPACE)
    searcher.observe(Report(0, 0, float("nan"), failed=True))
    searcher.observe(Report(1, 0, float("nan"), seconds=3.0))
    assert searcher.front() == {}
    told(searcher, 2, (1.0, 0.0))
    assert searcher.front() == {2: (1.0, 0.5)}
    told(searcher, 3, (2.0, 6.0))
    assert searcher.front() == {3: (6.0, 0.75)}


def test_a_trial_that_begins_anew_and_one_that_begins_late_are_compared_phase_by_phase() -> None:
    searcher = CostAwareSearcher(SPACE)
    told(searcher, 0, (1.0, 1.0), (5.0, 1.0))
    told(searcher, 1, (2.0, 1.0))
    told(searcher, 1, (2.0, 1.0), (3.0, 1.0))  # from its first phase again: 2 and 3, not 2, 2, 3
    assert searcher.front() == {0: (1.0, 0.75)}
    searcher.observe(Report(2, 7, 0.0, seconds=1.0))  # a copy, whose first phase is its member's eighth
    assert searcher.front() == {0: (1.0, (0.5 + 1.0 + 0.5) / 3)}  # no phase in common


def suggested(searcher, n: int = 60) -> list[dict]:
    """Worth is skill alone; a phase takes longer by a factor of 100 over `size`."""
    configs = []
    for trial in range(n):
        configs.append(searcher.suggest(trial))
        TWO.validate(configs[-1])
        told(searcher, trial, (configs[-1]["skill"], 100 ** configs[-1]["size"]))
    return configs[n // 2 :]


def test_what_costs_and_brings_nothing_is_left_and_what_brings_much_is_sought() -> None:
    ours, drawn = (
        [config for seed in range(5) for config in suggested(kind(TWO, seed))]
        for kind in (CostAwareSearcher, RandomSearcher)
    )
    skill, size = ([np.mean([config[name] for config in configs]) for configs in (ours, drawn)] for name in TWO)
    assert skill[0] > skill[1] + 0.3
    assert size[0] < size[1] - 0.25


def test_the_cost_that_is_expected_of_a_draw_by_hand(monkeypatch) -> None:
    """Logarithms 0 and 4: mean 2, deviation 2. The draw is where the first is, the second half the ranks away."""
    limits: list[float] = []
    monkeypatch.setattr(cost_aware, "_reached", lambda worth, costs, limit: limits.append(limit) or 0.0)
    searcher = CostAwareSearcher(TWO, warmup=2, random=0.0, draws=1, spread=0.0)
    for trial, (at, score, seconds) in enumerate([(0.25, 1.0, 1.0), (0.75, 0.0, math.exp(4))]):
        searcher.adopt(trial, {"skill": at, "size": at})
        told(searcher, trial, (score, seconds))
    searcher.suggest(2)
    near, far = 1 - OWN, (1 - OWN) * math.exp(-0.5)
    assert limits == [pytest.approx(2 - 2 * (near - far) / (1 + NOISE - far))]


@pytest.mark.parametrize("asked_before", [True, False])
def test_of_thousands_the_latest_and_the_front_are_learned_from(monkeypatch, asked_before) -> None:
    """The cube of all would stall a study; the best of all is the first, long since not among the latest."""
    sizes = []
    monkeypatch.setattr(cost_aware, "MOST", 20)
    monkeypatch.setattr(cost_aware, "positions", lambda configs: sizes.append(len(configs)) or positions(configs))
    searcher, rng = CostAwareSearcher(TWO, random=0.0, spread=0.001, draws=10), np.random.default_rng(0)
    for trial in range(100):
        searcher.adopt(trial, {"skill": 0.9, "size": 0.1} if trial == 0 else TWO.sample(rng))
        told(searcher, trial, (2.0, 1.0) if trial == 0 else (float(rng.random()), 2.0 + float(rng.random())))
        if asked_before and trial > 10:
            searcher.suggest(1000 + trial)
    assert searcher.suggest(100) == pytest.approx({"skill": 0.9, "size": 0.1}, abs=0.01)
    assert max(sizes) <= 10 + 20 + 1  # drawn, the latest, the front


def test_the_best_of_a_choice_and_of_whole_numbers_is_tried_again() -> None:
    """What lies between others was left by every draw around it."""
    space = Space({"net": Choice(["a", "b", "c"]), "layers": Uniform(1, 3, step=1), "skill": Uniform(0.0, 1.0)})
    searcher, tried = CostAwareSearcher(space, seed=0, warmup=9, random=0.0), []
    for trial in range(30):
        config = searcher.suggest(trial)
        tried.append((config["net"], config["layers"]))
        told(searcher, trial, (config["skill"] + 2.0 * (config["net"] == "b") + 2.0 * (config["layers"] == 2), 1.0))
    assert tried[15:].count(("b", 2)) > 7


def test_before_enough_have_reported_it_draws_at_random_and_the_same_seed_gives_the_same() -> None:
    searcher, random = CostAwareSearcher(TWO, seed=3, warmup=5), RandomSearcher(TWO, seed=3)
    assert [searcher.suggest(t) for t in range(9)] == [random.suggest(t) for t in range(9)]
    assert suggested(CostAwareSearcher(TWO, 1)) == suggested(CostAwareSearcher(TWO, 1))


def test_reports_bring_the_seconds_of_a_phase() -> None:
    event = Event(Kind.PHASE_ENDED, 9.0, 2, 1, 0, {"score": 3.0, "wall_s": 4.5})
    assert event.report() == Report(2, 1, 3.0, seconds=4.5)
    assert Event(Kind.PHASE_ENDED, 9.0, 2, 1, 0, {"score": 3.0}).report().seconds == 0
    seeded = Seeded(FullRuns(searcher := CostAwareSearcher(TWO), 1, 1), 2)
    for trial in range(2):
        seeded.ask()
        seeded.tell(Report(trial, 0, 1.0, seconds=2.0))
    assert searcher.front() == {0: (4.0, 0.5)}


class Slow:
    """A phase takes a second, ten where `size` is large."""

    def phase(self, trial, phase, config, seed):
        return 1.0 + 9.0 * (config["size"] > 0.5), config["skill"]


def test_it_learns_the_costs_of_a_study() -> None:
    scheduler, events = HyperTrick(CostAwareSearcher(TWO, warmup=4), 20, 3, 0.2), []
    simulate(scheduler, Slow(), VirtualCluster(nodes=2), events=events)
    assert {event.report().seconds for event in events if event.report()} == {1.0, 10.0}
    assert {cost for cost, _ in scheduler.searcher.front().values()} <= {1.0, 10.0}
    table = front(frames_of(events).phases, "wall_s", second_mode="min")  # as docs/schedulers.md draws it
    assert set(table["second"].round(6)) == {1.0, 10.0}
    assert table.loc[table["second"] < 2, "on_front"].any()


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings, words in (({"draws": 0}, "draws"), ({"spread": -1.0}, "spread"), ({"random": 2.0}, "random")):
        with pytest.raises(InvalidInput, match=words):
            CostAwareSearcher(TWO, **settings)
