import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.algos.search.arena import asked, play, told
from tests.support import SPACE
from workbench.algos.search import PBT, ListSearcher, RandomSearcher
from workbench.core.describe import describe
from workbench.core.domains import LogUniform, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report
from workbench.core.space import Space

X = Space({"x": Uniform(0.0, 100.0)})


def population(n, n_phases=4, **settings) -> PBT:
    return PBT(ListSearcher([{"x": 10.0 * (i + 1)} for i in range(n)]), n, n_phases, space=X, **settings)


def test_its_space_may_be_a_dict_of_dimensions() -> None:
    scheduler = PBT(ListSearcher([{"x": 1.0}] * 2), 2, 2, space=dict(X))
    assert describe(scheduler)["space"] == X.to_json()


def begun(n, **settings) -> PBT:
    return asked(population(n, **settings), n)


def test_truncation_worked_by_hand() -> None:
    """Five members: the fifth to report completes the population, and the worst of five copies the best."""
    scheduler = begun(5)
    for trial, score in enumerate([3.0, 5.0, 4.0, 2.0]):
        assert told(scheduler, trial, 0, score) == ("continue", "kept")
    assert told(scheduler, 4, 0, 1.0) == ("stop", "exploited")
    child = scheduler.ask()
    assert (child.trial, child.parent, child.phase) == (5, 1, 1)
    assert child.config["x"] in (pytest.approx(20 * 0.8), pytest.approx(20 * 1.2))
    assert told(scheduler, 3, 1, 2.0) == ("stop", "exploited")  # the copy counts with its donor's score: 3 is the worst
    assert scheduler.ask().parent == 1


@pytest.mark.parametrize("lost", [0, 1])
def test_on_a_plateau_the_lower_number_ranks_higher_and_of_four_one_copies(lost) -> None:
    """A fifth of four is nobody, but one at least copies once all have reported who are left."""
    scheduler = begun(lost + 4)
    for trial in range(lost):
        assert told(scheduler, trial, 0, math.nan, failed=True) == ("stop", "failed")
    for trial in range(lost, lost + 3):
        assert told(scheduler, trial, 0, 1.0) == ("continue", "kept")
    assert told(scheduler, lost + 3, 0, 1.0) == ("stop", "exploited")
    assert scheduler.ask().parent == lost


def test_nobody_is_held_against_a_copy_before_it_has_reported_nor_copies_it() -> None:
    """A lucky score would else go from copy to copy, though no weights come to it again."""
    scheduler = begun(3, share=0.34, explore=False)
    told(scheduler, 0, 0, 10.0)
    told(scheduler, 2, 0, 5.0)
    assert told(scheduler, 1, 0, 1.0) == ("stop", "exploited")
    copy = scheduler.ask()
    assert (copy.trial, copy.parent, copy.phase) == (3, 0, 1)
    assert told(scheduler, 0, 1, -100.0) == ("stop", "exploited")  # it collapses: the copy has no score to copy it for
    assert scheduler.ask().parent == 2
    assert told(scheduler, 3, 1, 7.0) == ("continue", "kept")  # second of those that have a score of their own
    assert told(scheduler, 2, 1, 6.0) == ("stop", "exploited")
    assert scheduler.ask().parent == 3


def test_a_copy_made_late_goes_on_from_the_newer_weights_and_from_their_scores() -> None:
    scheduler = begun(3, exploit="t-test", explore=False)
    for trial, score in ((0, 10.0), (1, 10.5), (2, 11.0)):
        told(scheduler, trial, 0, score)
    loser = next(trial for trial in range(3) if told(scheduler, trial, 1, -math.inf)[1] == "exploited")
    heir, donor = scheduler._member_of[loser], scheduler._member_of[loser].weights
    told(scheduler, donor, 1 if donor > loser else 2, 12.0)
    assert scheduler.ask().parent == donor
    assert heir.scores[-1] == 12.0


def test_a_failed_member_copies_one_that_is_yet_to_report_where_there_is_no_other() -> None:
    scheduler = begun(2, share=0.5)
    told(scheduler, 0, 0, 5.0)
    assert told(scheduler, 1, 0, 1.0) == ("stop", "exploited")
    assert told(scheduler, 0, 1, math.nan, failed=True) == ("stop", "failed")
    assert [(r.trial, r.parent) for r in (scheduler.ask(), scheduler.ask())] == [(2, 0), (3, 0)]


def copied(scheduler, score, rng) -> float:
    """Share of the members that copy after a phase, all reporting once a phase; ``score(trial, parent, phase)``."""
    going = [scheduler.ask() for _ in range(scheduler.population)]
    copies = 0
    for phase in range(scheduler.n_phases):
        for k in rng.permutation(len(going)):
            trial, parent = going[k].trial, going[k].parent
            if told(scheduler, trial, phase, score(trial, parent, phase)) == ("stop", "exploited"):
                copies, going[k] = copies + 1, scheduler.ask()
    return copies / len(going) / (scheduler.n_phases - 1)


def copied_where_copies_are_evaluated_at_once(n, n_phases, score, rng) -> float:
    """The same under Algorithm 1 to the letter, with truncation: a copy has a score of its own from the beginning."""
    trials, scores, copies = list(range(n)), np.full(n, -math.inf), 0
    for phase in range(n_phases):
        for k in rng.permutation(n):
            scores[k] = score(trials[k], None, phase)
            ranked = sorted(np.flatnonzero(scores > -math.inf), key=lambda member: -scores[member])
            n_top = len(ranked) // 5
            if phase < n_phases - 1 and n_top and k in ranked[-n_top:]:
                donor = trials[ranked[rng.integers(n_top)]]
                copies, trials[k] = copies + 1, n + copies
                scores[k] = score(trials[k], donor, phase)
    return copies / n / (n_phases - 1)


@pytest.mark.parametrize(
    ("rise", "lasting", "noise", "most"), [(1.0, 0.0, 1.0, 1.4), (0.2, 1.0, 0.3, 1.4), (0.0, 0.0, 1.0, 2.3)]
)
@pytest.mark.parametrize("n", [10, 20, 40])
def test_about_as_many_copy_as_where_a_copy_is_evaluated_at_once(n, rise, lasting, noise, most) -> None:
    """Where scores rise, or members differ for good, two to three times as many had copied."""
    rng, skill = np.random.default_rng(n), {}

    def score(trial, parent, phase) -> float:
        if trial not in skill:
            skill[trial] = rng.normal() if parent is None else skill[parent] + rng.normal(0, 0.1)
        return lasting * skill[trial] + rise * phase + rng.normal(0, noise)

    ours, theirs = [], []
    for seed in range(10):
        skill.clear()
        ours.append(copied(PBT(SPACE, n, 10, seed=seed), score, rng))
        skill.clear()
        theirs.append(copied_where_copies_are_evaluated_at_once(n, 10, score, rng))
    assert 0.6 < np.mean(ours) / np.mean(theirs) < most


@pytest.mark.parametrize("n", [10, 40])
def test_on_a_plateau_a_share_copies_and_not_the_same_members_again_and_again(n) -> None:
    assert 0.1 < copied(PBT(SPACE, n, 12), lambda *_: 1.0, np.random.default_rng(0)) < 0.35


@pytest.mark.parametrize("nodes", [10, 2])
def test_weights_go_on_being_trained_however_much_luck_there_is_in_scores(nodes) -> None:
    """A phase adds 1 to a score whose noise is 3: of 20 phases weights had seen 4 to 16, ever again the same ones."""
    scheduler, rng = PBT(SPACE, 10, 20, seed=1), np.random.default_rng(1)
    trained: dict[int, int] = {}
    running: list[tuple[float, int, int]] = []  # when a trial's phase ends
    now = 0.0
    while True:
        while len(running) < nodes and (run := scheduler.ask()) is not None:
            trained.setdefault(run.trial, trained.get(run.parent, 0))
            running.append((now + rng.normal(1, 0.1), run.trial, run.phase))
        if not running:
            break
        running.remove(first := min(running))
        now, trial, phase = first
        trained[trial] += 1
        if told(scheduler, trial, phase, trained[trial] + rng.normal(0, 3))[0] == "continue":
            running.append((now + rng.normal(1, 0.1), trial, phase + 1))
    last = [trained[member.trial] for member in scheduler._members]
    assert sum(last) / len(last) > 15


def test_the_tournament_copies_whoever_is_better_of_two() -> None:
    scheduler = begun(2, exploit="tournament")
    assert told(scheduler, 0, 0, 1.0) == ("continue", "kept")
    assert told(scheduler, 1, 0, 1.0) == ("continue", "kept")  # not better
    assert told(scheduler, 1, 1, 2.0) == ("continue", "kept")
    assert told(scheduler, 0, 1, 1.5) == ("stop", "exploited")


def test_the_t_test_asks_for_a_difference_beyond_the_spread() -> None:
    scheduler = begun(2, exploit="t-test", n_phases=9)
    for phase, (good, bad) in enumerate([(10.0, 1.0), (10.5, 1.5)]):
        assert told(scheduler, 0, phase, good) == ("continue", "kept")
        last = told(scheduler, 1, phase, bad)
    assert last == ("stop", "exploited")  # t = 9 / sqrt(2 * .0625) = 25.5 on 2 degrees of freedom: p = .0015
    scheduler = begun(2, exploit="t-test")
    scheduler.tell(Report(0, 0, 1.5, returns=(1.0, 2.0)))
    better = scheduler.tell(Report(1, 0, 10.5, returns=(10.0, 11.0)))[1]
    assert (str(better.verdict), better.reason["mode"]) == ("continue", "kept")  # as far apart, but it is the better
    scheduler = begun(2, exploit="t-test", n_phases=9)
    for phase, (good, bad) in enumerate([(10.0, 9.0), (1.0, 0.5)]):
        told(scheduler, 0, phase, good)
        last = told(scheduler, 1, phase, bad)
    assert last == ("continue", "kept")


def test_exploit_alone_copies_the_config_unchanged_and_explore_alone_copies_nobody() -> None:
    scheduler = begun(2, share=0.5, explore=False)
    told(scheduler, 0, 0, 5.0)
    told(scheduler, 1, 0, 1.0)
    assert scheduler.ask().config == {"x": 10.0}
    scheduler = begun(2, exploit="none")
    assert told(scheduler, 1, 0, 1.0) == ("stop", "explored")
    child = scheduler.ask()
    assert child.parent == 1
    assert child.config["x"] in (pytest.approx(16.0), pytest.approx(24.0))


def test_the_hyperparameters_alone_are_copied_and_the_member_keeps_its_weights() -> None:
    scheduler = begun(3, share=0.5, explore=False, copy_weights=False)
    told(scheduler, 0, 0, 5.0)
    assert told(scheduler, 1, 0, 1.0) == ("stop", "exploited")
    child = scheduler.ask()
    assert (child.parent, child.config) == (1, {"x": 10.0})
    told(scheduler, 0, 1, 5.0)
    assert told(scheduler, 2, 0, 0.0, failed=True) == ("stop", "failed")
    assert scheduler.ask().parent in (0, 1)  # it has no weights of its own to keep
    with pytest.raises(InvalidInput, match="for neither, set exploit='none'"):
        population(2, copy_weights=False, copy_config=False)


def test_resampling_draws_from_the_space() -> None:
    scheduler = begun(2, share=0.5, resample=1.0)
    told(scheduler, 0, 0, 5.0)
    told(scheduler, 1, 0, 1.0)
    x = scheduler.ask().config["x"]
    assert 0 <= x <= 100
    assert x not in (pytest.approx(8.0), pytest.approx(12.0))


def test_noise_moves_a_hyperparameter_that_factors_could_not() -> None:
    scheduler = PBT(ListSearcher([{"x": 0.0}]), 1, 30, space=X, exploit="none", noise=0.1)
    values = [scheduler.ask().config["x"]]
    for phase in range(29):
        told(scheduler, phase, phase, 0.0)
        values.append(scheduler.ask().config["x"])
    assert max(values) > 0
    assert min(values) >= 0
    assert np.abs(np.diff(values)).max() < 50  # five standard deviations
    with pytest.raises(InvalidInput, match=r"noise in \[0, 1\]"):
        population(2, noise=2.0)


def test_members_take_turns_when_there_are_more_of_them_than_nodes() -> None:
    """Four members of equal pace on two nodes, never copied: who ends a phase makes room for whoever is behind."""
    scheduler = population(4, exploit="tournament", n_phases=3)
    going, done, turns = [scheduler.ask(), scheduler.ask()], [0] * 4, []
    while going:
        run = going.pop(0)
        verdict = told(scheduler, run.trial, done[run.trial], 0.0)[0]
        done[run.trial] += 1
        assert max(done) - min(done) <= 1
        turns.append(f"{run.trial} {verdict}")
        following = run if verdict == "continue" else scheduler.ask()
        going += [] if following is None else [following]
    assert turns[:4] == ["0 pause", "1 pause", "2 continue", "3 continue"]
    assert turns[4:8] == ["2 pause", "3 pause", "0 continue", "1 continue"]
    assert turns[8:] == ["0 stop", "1 stop", "2 stop", "3 stop"]


def test_a_failed_member_copies_the_best_and_loses_the_phase() -> None:
    scheduler = begun(3)
    assert told(scheduler, 0, 0, math.nan, failed=True) == ("stop", "failed")  # nobody to copy: it is gone
    assert scheduler.ask() is None
    told(scheduler, 1, 0, 1.0)
    assert told(scheduler, 2, 0, math.nan, failed=True) == ("stop", "failed")
    run = scheduler.ask()
    assert (run.parent, run.phase) == (1, 1)


def test_where_nobody_copies_a_failed_member_is_gone() -> None:
    scheduler = begun(2, exploit="none", explore=False)
    assert told(scheduler, 0, 0, 1.0) == ("continue", "kept")  # nor does it become a new trial where nothing changes
    assert told(scheduler, 1, 0, math.nan, failed=True) == ("stop", "failed")
    assert scheduler.ask() is None


def test_whoever_is_furthest_behind_goes_next_after_one_that_waited_was_stopped() -> None:
    scheduler = begun(4, exploit="none", explore=True)
    told(scheduler, 3, 0, 1.0)
    ahead = scheduler.ask().trial
    told(scheduler, ahead, 1, 1.0)  # waits for its third phase
    for trial in range(3):
        told(scheduler, trial, 0, 1.0)  # wait for their second
    first = scheduler.ask()
    assert first.phase == 1
    waiting = [scheduler.ask() for _ in range(3)]
    assert [run.phase for run in waiting] == [1, 1, 2]


def test_a_failed_member_that_goes_on_with_its_own_weights_keeps_their_score() -> None:
    scheduler = begun(2, n_phases=4, copy_weights=False, explore=False)
    for trial in (0, 1):
        told(scheduler, trial, 0, float(trial))
    assert told(scheduler, 0, 1, math.nan, failed=True) == ("stop", "failed")
    assert told(scheduler, 1, 1, math.nan, failed=True) == ("stop", "failed")  # the other's score stands
    runs = [scheduler.ask(), scheduler.ask()]
    assert [(run.parent, run.phase) for run in runs] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("score", [-1.0, math.nan])
def test_whom_a_loser_copies_is_drawn_from_the_top_share(score) -> None:
    """Trials 8 and 7 are the top fifth of ten, for one that has lost its score as well."""
    parents = set()
    for seed in range(10):
        scheduler = begun(10, seed=seed)
        for trial in range(9):
            assert told(scheduler, trial, 0, float(trial)) == ("continue", "kept")
        assert told(scheduler, 9, 0, score) == ("stop", "exploited")
        parents.add(scheduler.ask().parent)
    assert parents == {7, 8}


@pytest.mark.parametrize("seed", range(3))
def test_a_failed_member_copies_from_the_top_share_alone(seed) -> None:
    """A fifth of nine, rounded down, is one."""
    scheduler = begun(10, seed=seed)
    for trial in range(9):
        assert told(scheduler, trial, 0, float(trial)) == ("continue", "kept")
    told(scheduler, 9, 0, math.nan, failed=True)
    assert scheduler.ask().parent == 8


@settings(max_examples=20, deadline=None)
@given(
    n_slots=st.integers(1, 12),
    seed=st.integers(0, 1000),
    fail=st.sampled_from([0.0, 0.2, 1.0]),
    exploit=st.sampled_from(["truncation", "t-test", "tournament", "none"]),
    resample=st.sampled_from([0.0, 0.5]),
    explore=st.booleans(),
)
def test_every_population_ends_with_every_phase_run(n_slots, seed, fail, exploit, resample, explore) -> None:
    scheduler = PBT(RandomSearcher(SPACE), 8, 5, exploit=exploit, resample=resample, explore=explore, seed=seed)
    world = play(scheduler, n_slots, seed, fail=fail)
    assert len({r.trial for r in world.runs}) <= scheduler.n_trials
    for run in world.runs:
        SPACE.validate(run.config)
    if fail == 0.0:
        assert len(world.reports) == scheduler.expected_phases


# -- the toy problem of Fig. 2 ----------------------------------------------------------------------------------


class Quadratic:
    """Q = 1.2 - |theta|², climbed along the gradient of 1.2 - (h0 theta0² + h1 theta1²), four steps a phase."""

    def __init__(self, rate=0.02) -> None:
        self.rate, self.theta = rate, {}

    def run(self, scheduler, n_slots=2) -> float:
        going, best = [], -math.inf
        while True:
            while len(going) < n_slots and (run := scheduler.ask()) is not None:
                self.theta[run.trial] = self.theta[run.parent] if run.parent is not None else np.array([0.9, 0.9])
                going.append((run.trial, run.phase, np.array([run.config["h0"], run.config["h1"]])))
            if not going:
                return best
            trial, phase, h = going.pop(0)
            for _ in range(4):
                self.theta[trial] = self.theta[trial] * (1 - 2 * self.rate * h)
            q = 1.2 - float(self.theta[trial] @ self.theta[trial])
            best = max(best, q)
            if str(scheduler.tell(Report(trial, phase, q))[trial].verdict) == "continue":
                going.append((trial, phase + 1, h))


def toy(**settings) -> float:
    space = Space({"h0": Uniform(0.0, 1.0), "h1": Uniform(0.0, 1.0)})
    searcher = ListSearcher([{"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0}])
    return Quadratic().run(PBT(searcher, 2, 50, space=space, share=0.5, copy_config=False, **settings))


def test_on_the_toy_problem_copying_weights_reaches_the_optimum_that_neither_member_can() -> None:
    """Fig. 2: grid search ends near 0.4, PBT near 1.2, and most of that comes from copying."""
    plain = toy(exploit="none", explore=False)
    assert plain == pytest.approx(1.2 - 0.81, abs=0.01)
    assert toy(explore=False) > 1.15
    assert np.mean([toy(seed=s) for s in range(10)]) > 1.15
    # a product leaves a hyperparameter of 0 where it is: here exploring alone gains nothing unless it resamples
    assert toy(exploit="none") == pytest.approx(plain, abs=0.01)
    assert np.mean([toy(exploit="none", resample=0.25, seed=s) for s in range(10)]) > 1.15


# -- the t-test on episode returns, and scores that are no numbers ---------------------------------------------------


def returned(scheduler, trial, phase, returns):
    report = Report(trial, phase, float(np.mean(returns)), returns=tuple(returns))
    return scheduler.tell(report)[trial]


def test_the_t_test_compares_the_last_ten_episode_returns() -> None:
    """After one phase already, where scores alone would be too few; p is SciPy's, of the last ten returns of each."""
    good, bad = [10.0, 12.0, 11.0, 9.0, 13.0, 10.0, 12.0, 11.0, 9.0, 13.0], [7.0, 9.0, 8.0, 6.0, 10.0] * 2
    scheduler = begun(2, exploit="t-test", n_phases=9)
    assert returned(scheduler, 0, 0, [-50.0, *good]).reason["mode"] == "kept"  # the eleventh last is forgotten
    told = returned(scheduler, 1, 0, bad)
    assert (str(told.verdict), told.reason["mode"]) == ("stop", "exploited")
    assert told.reason["p_value"] == stats.ttest_ind(good, bad, equal_var=False).pvalue
    child = scheduler.ask()
    told = returned(scheduler, child.trial, 1, bad[:1])  # a copy has its donor's returns, and nine of them still
    assert told.reason["mode"] == "kept"
    assert told.reason["p_value"] == stats.ttest_ind(good, [*good[1:], *bad[:1]], equal_var=False).pvalue


def test_returns_gather_over_phases() -> None:
    scheduler = begun(2, exploit="t-test", n_phases=9, last_scores=4, level=1e-9)
    for phase, value in enumerate([1.0, 2.0, 1.5]):
        returned(scheduler, 0, phase, [value, value + 1])
    returned(scheduler, 1, 0, [0.0, 0.5])
    told = returned(scheduler, 1, 1, [0.5])
    assert told.reason["p_value"] == stats.ttest_ind([2, 3, 1.5, 2.5], [0, 0.5, 0.5], equal_var=False).pvalue


def test_samples_without_spread_differ_or_do_not() -> None:
    scheduler = begun(2, exploit="t-test", n_phases=9)
    returned(scheduler, 0, 0, [2.0, 2.0])
    assert returned(scheduler, 1, 0, [2.0, 2.0]).reason["mode"] == "kept"
    told = returned(scheduler, 1, 1, [1.0] * 10)
    assert (told.reason["mode"], told.reason["p_value"]) == ("exploited", 0.0)


@pytest.mark.parametrize("exploit", ["truncation", "t-test", "tournament"])
def test_a_member_whose_score_is_no_number_copies_whoever_has_one(exploit) -> None:
    scheduler = begun(4, exploit=exploit, n_phases=9)
    assert told(scheduler, 0, 0, math.nan) == ("continue", "kept")  # nobody to copy yet
    assert told(scheduler, 1, 0, -3.0) == ("continue", "kept")
    assert told(scheduler, 2, 0, math.nan) == ("stop", "exploited")
    assert scheduler.ask().parent == 1
    assert told(scheduler, 0, 1, math.nan) == ("stop", "exploited")
    assert scheduler.ask().parent in (1, 2)  # trial 2's member has trial 1's weights


def test_a_value_at_the_end_of_its_range_is_left_again() -> None:
    """t_max = 2 in [2, 100]: rounded to the nearest step, a fifth more would be 2 for ever."""
    space = Space({"t_max": LogUniform(2, 100, step=1)})
    scheduler = PBT(ListSearcher([{"t_max": 2}]), 1, 30, space=space, exploit="none")
    seen = {scheduler.ask().config["t_max"]}
    for phase in range(29):
        told(scheduler, phase, phase, 0.0)
        seen.add(scheduler.ask().config["t_max"])
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"exploit": "best"}, "unknown exploit 'best': did you mean 't-test'"),
        ({"share": 0.6}, "0 < share <= 0.5"),
        ({"resample": 1.5}, r"resample in \[0, 1\]"),
        ({"factors": ()}, "positive factors"),
        ({"factors": (0.8, "1.2")}, "factors a number above 0, got '1.2'"),
        ({"exploit": "t-test", "last_scores": 1}, "last_scores a whole number from 2"),
        ({"space": None}, "this searcher has none: pass space="),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        PBT(ListSearcher([{"x": 1.0}]), 1, 2, **{"space": X, **settings})


def test_nobody_copies_while_it_burns_in() -> None:
    """Two members, share a half: without burn-in the weaker copies after its first phase, with it after its third."""
    for burn_in, first in ((0, 0), (2, 2)):
        world = play(
            PBT(RandomSearcher(SPACE), 2, 5, share=0.5, burn_in=burn_in),
            2,
            score=lambda config, trial, phase: config["lr"],
        )
        copied = [
            r.phase for r, why in zip(world.reports, world.reasons, strict=True) if why[r.trial]["mode"] == "exploited"
        ]
        assert min(copied) == first
