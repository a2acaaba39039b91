"""Studies that know of earlier ones, that get more trials, and that have conditions and a constraint."""

from functools import partial
from itertools import count

import pytest

from tests.events import begun, ended, runs, write_log
from tests.simulated import keep, kept
from tests.support import NETWORK, SPACE, Deterministic, simulate
from workbench import (
    Choice,
    CostAwareSearcher,
    EvolutionSearcher,
    FullRuns,
    GridSearcher,
    Hyperband,
    HyperTrick,
    KnowledgeBase,
    RandomSearcher,
    Results,
    Space,
    Study,
    Uniform,
    analysis,
    warm_start,
)
from workbench.algos.quadratic import Quadratic
from workbench.core.describe import describe
from workbench.core.errors import InvalidInput, SchedulerError, StudyError
from workbench.core.protocols import Event, Kind
from workbench.core.resume import take_up
from workbench.study.file import recorded_study, study_from


@pytest.mark.parametrize("aim", [None, {"mode": "min"}])
def test_a_warm_start_tries_the_best_of_earlier_studies_first(tmp_path, aim) -> None:
    best = keep(tmp_path / "kb.db", "earlier", FullRuns(RandomSearcher(SPACE), 8, 3), aim)
    searcher = warm_start(RandomSearcher(SPACE, seed=5), tmp_path / "kb.db", "earlier", best=2)
    assert [searcher.suggest(k) for k in range(2)] == [{k: one[k] for k in SPACE} for one in best[:2]]
    assert searcher.suggest(2) == RandomSearcher(SPACE, seed=5).suggest(0)
    assert searcher.past == ()


def test_a_searcher_that_learns_is_told_of_every_trial(tmp_path) -> None:
    best = keep(tmp_path / "kb.db", "earlier", HyperTrick(RandomSearcher(SPACE), 8, 3))
    searcher = warm_start(EvolutionSearcher(SPACE), tmp_path / "kb.db", "earlier", best=1)
    assert len(searcher.past) == 8
    assert {len(one["scores"]) for one in searcher.past} == {1, 2, 3}
    assert len(searcher.searcher._fitness) == 8
    lowest = warm_start(EvolutionSearcher(SPACE), tmp_path / "kb.db", "earlier", tell=False)
    assert (lowest.past, lowest.first[0]) == ((), {k: best[0][k] for k in SPACE})


def test_a_searcher_of_costs_knows_the_front_that_the_earlier_study_had(tmp_path) -> None:
    own = CostAwareSearcher(SPACE)
    keep(tmp_path / "kb.db", "earlier", FullRuns(RandomSearcher(SPACE), 14, 3))
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        for report in filter(None, (event.report() for event in kb["earlier"].events())):
            own.observe(report)
    told = warm_start(CostAwareSearcher(SPACE), tmp_path / "kb.db", "earlier", best=0).searcher
    assert len(own.front()) > 1
    assert list(told.front().values()) == list(own.front().values())


def keep_seeds(db, name, by_config, mode="max", judged_by="mean", fresh=()) -> None:
    """Write a study of several seeds a configuration: h0 → the scores of each seed's phases, and None where it fell.

    Then come fresh seeds: candidate, h0 and scores of each.
    """
    events = [Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": mode}})]
    trial = 0
    for h0, seeds in by_config.items():
        candidate = trial
        for scores in seeds:
            events.append(runs(1.0, trial, {"h0": h0}, seed=trial, candidate=candidate))
            for phase, score in enumerate(scores):
                events.append(begun(1.0, trial, phase))
                if score is None:
                    events.append(Event(Kind.TRIAL_FAILED, 2.0, trial=trial, phase=phase, data={"error": "fell"}))
                else:
                    events.append(ended(2.0, trial, phase, 0, score))
            trial += 1
    for number, (candidate, h0, scores) in enumerate(fresh, trial):
        events.append(runs(3.0, number, {"h0": h0}, seed=number, candidate=candidate, confirms=True))
        for phase, score in enumerate(scores):
            events += [begun(3.0, number, phase), ended(4.0, number, phase, 0, score)]
    write_log(db, name, events, {"scheduler": {"kind": "seeded", "judged_by": judged_by}, "seed": 0})


def first_of(db, *studies, best=9) -> list[float]:
    """Give h0 of what a warm start tries first."""
    searcher = warm_start(RandomSearcher(Space({"h0": Uniform(0, 1)})), db, *studies, best=best)
    return [config["h0"] for config in searcher.first]


def test_a_warm_start_ranks_as_the_study_did(tmp_path) -> None:
    seeds = {
        0.1: [(1, 1), (1, 2), (1, 90)],  # a mean for which one seed stands
        0.2: [(9, 4), (9, 5), (9, 6)],  # fell from what it had been
        0.3: [(5, 7), (5, 7), (5, None)],  # a seed that failed
        0.4: [(1, 99)],  # one lucky seed
        0.5: [(98,), (98,), (98,)],  # few phases
    }
    keep_seeds(tmp_path / "kb.db", "median", seeds, judged_by="median")
    keep_seeds(tmp_path / "kb.db", "mean", seeds)
    keep_seeds(tmp_path / "kb.db", "least", seeds, mode="min", judged_by="median")
    assert first_of(tmp_path / "kb.db", "median") == [0.3, 0.2, 0.1, 0.4, 0.5]
    assert first_of(tmp_path / "kb.db", "mean") == [0.1, 0.3, 0.2, 0.4, 0.5]
    assert first_of(tmp_path / "kb.db", "least") == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_what_several_studies_claim_is_ranked_together(tmp_path) -> None:
    db = tmp_path / "kb.db"
    keep_seeds(db, "one", {0.1: [(1, 5)] * 3, 0.2: [(1, 3)] * 3})
    keep_seeds(db, "other", {0.1: [(1, 2, 8)] * 3, 0.3: [(1, 4)] * 3, 0.4: [(99, 99)]})
    keep_seeds(db, "none", {0.5: [(None,)]})
    assert first_of(db, "one", "other", "none") == [0.1, 0.3, 0.2, 0.4]
    assert first_of(db, "other", "one", best=2) == [0.1, 0.3]
    assert first_of(db, "none") == []


def test_how_many_seeds_a_study_has_tells_nothing_of_another_s_configurations(tmp_path) -> None:
    db = tmp_path / "kb.db"
    keep_seeds(db, "single", {0.1: [(1, 7)], 0.2: [(1, 9)]})
    keep_seeds(db, "seeded", {0.3: [(1, 3)] * 3, 0.4: [(1, 8)] * 3, 0.5: [(1, 99)]})  # the last is lucky
    assert first_of(db, "single", "seeded") == [0.2, 0.4, 0.1, 0.3, 0.5]


@pytest.mark.parametrize(("mode", "sign"), [("max", 1), ("min", -1)])
def test_what_fresh_seeds_say_goes_before_what_was_claimed(tmp_path, mode, sign) -> None:
    db = tmp_path / "kb.db"
    claimed = {0.1: [(1, sign * 9)], 0.2: [(1, sign * 7)], 0.3: [(1, sign * 6)]}
    fresh = [(0, 0.1, (1, sign * 2)), (1, 0.2, (1, sign * 5))]
    keep_seeds(db, "confirmed", claimed, mode, fresh=fresh)
    keep_seeds(db, "other", {0.4: [(1, sign * 5.5)]}, mode)
    assert first_of(db, "confirmed") == [0.2, 0.3, 0.1]  # the one to take, and the others by what is known of them
    assert first_of(db, "confirmed", "other") == [0.3, 0.4, 0.2, 0.1]


def test_of_trials_that_began_with_anothers_weights_a_searcher_is_not_told(tmp_path) -> None:
    keep_seeds(tmp_path / "kb.db", "one", {0.1: [(1, 5)]})
    spec = {"scheduler": {"kind": "seeded", "judged_by": "mean"}, "seed": 0}
    copied = runs(3.0, 1, {"h0": 0.2}, phase=1, parent=0, seed=1)
    write_log(tmp_path / "kb.db", "one", [copied, begun(3.0, 1, 1), ended(4.0, 1, 1, 0, 9.0)], spec, resume=True)
    searcher = warm_start(EvolutionSearcher(Space({"h0": Uniform(0, 1)})), tmp_path / "kb.db", "one")
    assert [told["config"] for told in searcher.past] == [{"h0": 0.1}]


def test_what_a_searcher_is_told_is_finite_and_higher_where_it_is_better(tmp_path) -> None:
    keep_seeds(tmp_path / "kb.db", "one", {0.1: [(1, 5)], 0.2: [(float("inf"),)]}, mode="min")
    searcher = warm_start(EvolutionSearcher(Space({"h0": Uniform(0, 1)})), tmp_path / "kb.db", "one")
    assert list(searcher.past) == [{"config": {"h0": 0.1}, "scores": [-1, -5]}]


def test_trials_outside_the_space_are_left_out_with_a_warning(tmp_path) -> None:
    keep(tmp_path / "kb.db", "earlier", FullRuns(RandomSearcher(SPACE), 8, 1))
    narrow = Space({"lr": SPACE["lr"], "gamma": type(SPACE["gamma"])([0.9])})
    with pytest.warns(UserWarning, match=r"\d of 8 earlier trials lie outside the space"):
        searcher = warm_start(EvolutionSearcher(narrow), tmp_path / "kb.db", "earlier", best=8)
    assert {config["gamma"] for config in searcher.first} == {0.9}
    for studies, best in (((), 3), (("earlier",), -1), (("earlier",), 1.5)):
        with pytest.raises(InvalidInput, match="needs one or more studies and best >= 0"):
            warm_start(RandomSearcher(SPACE), tmp_path / "kb.db", *studies, best=best)
    with pytest.raises(StudyError, match="unknown study 'nothing'"):
        warm_start(RandomSearcher(SPACE), tmp_path / "kb.db", "nothing")


def test_first_configurations_stand_in_a_study_file(tmp_path) -> None:
    table = {
        "study": {"name": "known", "db": tmp_path / "kb.db"},
        "space": {"h0": {"uniform": [0, 1]}, "h1": {"uniform": [0, 1]}},
        "first": [{"h0": 0.5, "h1": 0.25}],
        "scheduler": {"kind": "full", "n_trials": 3, "n_phases": 2},
        "trainable": {"kind": "quadratic"},
    }
    assert study_from(table).scheduler.ask().config == {"h0": 0.5, "h1": 0.25}
    with pytest.raises(InvalidInput, match="h0=5 lies outside"):
        study_from({**table, "first": [{"h0": 5, "h1": 0.25}]})
    with pytest.raises(
        InvalidInput, match=r"each configuration to try first is a table \[\[first\]\], got {'h0': 0.5}"
    ):
        study_from({**table, "first": {"h0": 0.5}})
    within = table["scheduler"] | {"searcher": {"kind": "evolution"}}
    with pytest.raises(InvalidInput, match=r"a searcher is a table of its own, \[searcher\], got one in \[scheduler\]"):
        study_from({**table, "scheduler": within})


def test_a_study_file_names_a_constraint_by_its_module(tmp_path) -> None:
    table = {
        "study": {"name": "bound", "db": tmp_path / "kb.db"},
        "space": {"h0": {"uniform": [0, 1]}, "h1": {"uniform": [0, 1]}, "constraint": f"{__name__}:is_low"},
        "scheduler": {"kind": "full", "n_trials": 20, "n_phases": 1},
        "trainable": {"kind": "quadratic"},
    }
    study = study_from(table)
    assert all(is_low(study.scheduler.ask().config) for _ in range(20))
    assert study.spec["scheduler"]["searcher"]["space"]["constraint"] == {"kind": f"{__name__}:is_low"}
    conditional = Space({"h0": Choice([0.0, 0.5]), "h1": Uniform(0, 1)}, only_if={"h1": {"h0": 0.5}})
    table["space"] = {**conditional.to_json(), "constraint": f"{__name__}:is_low"}
    assert study_from(table).scheduler.searcher.space.only_if == conditional.only_if
    table["space"]["constraint"] = "h0 < 3"
    with pytest.raises(InvalidInput, match="named by its module, 'my_module:fits', got 'h0 < 3'"):
        study_from(table)
    table["space"]["constraint"] = f"{__name__}:nothing"
    with pytest.raises(InvalidInput, match="unknown name in module"):
        study_from(table)


def is_low(config) -> bool:
    return config["h0"] + config.get("h1", 0.0) < 0.7


def test_a_study_that_has_ended_gets_more_trials_and_resumes_by_its_name(client, tmp_path) -> None:
    db = tmp_path / "kb.db"
    table = {
        "study": {"name": "more"},
        "space": {"h0": {"uniform": [0, 1]}, "h1": {"uniform": [0, 1]}},
        "scheduler": {"kind": "hypertrick", "n_trials": 4, "n_phases": 2},
        "trainable": {"kind": "quadratic"},
    }
    assert len(study_from(table, client=client, db=db).run().trials) == 4
    run = recorded_study(db, "more", n_trials=7, client=client).run(resume=True)
    assert len(run.trials) == run.progress.n_trials == 7
    again = recorded_study(db, "more", client=client)
    assert again.scheduler.n_trials == 4  # as it was begun; the log raises it
    assert len(again.run(resume=True).trials) == 7
    with KnowledgeBase(db) as kb:
        assert kb["more"].frames().size.n_trials == 7
    for fewer in (6, 4):  # also as many as it began with: it would go on with 7
        with pytest.raises(StudyError, match=f"has n_trials = 7, not {fewer}: it can only be raised"):
            recorded_study(db, "more", n_trials=fewer, client=client).run(resume=True)
    table["scheduler"]["n_trials"] = 9
    assert len(study_from(table, client=client, db=db).run(resume=True).trials) == 9


def taken_up(scheduler, begun, past):
    specs = [{"scheduler": describe(one), "trainable": {"kind": "mine:Trial"}, "seed": 0} for one in (scheduler, begun)]
    return take_up("a study", scheduler, *specs, past)


def test_what_cannot_have_more_trials_says_so(tmp_path) -> None:
    begun = HyperTrick(RandomSearcher(SPACE), 4, 2)
    past = simulate(HyperTrick(RandomSearcher(SPACE), 4, 2))
    scheduler, _, raised = taken_up(HyperTrick(RandomSearcher(SPACE), 6, 2), begun, past)
    assert (scheduler.n_trials, raised) == (6, 6)
    assert scheduler.ask().trial == 4
    resumed = Event(Kind.STUDY_RESUMED, 9.0, data={"n_trials": 6})
    scheduler, _, raised = taken_up(HyperTrick(RandomSearcher(SPACE), 6, 2), begun, [*past, resumed])
    assert (scheduler.n_trials, raised) == (6, None)  # the log has raised it
    clone = runs(9.0, 4, {}, by="person")
    with pytest.raises(StudyError, match="has clones or fresh seeds under the numbers from 4 on"):
        taken_up(HyperTrick(RandomSearcher(SPACE), 6, 2), begun, [*past, clone])
    from workbench import SuccessiveHalving, TopK

    with pytest.raises(StudyError, match="n_trials = 4, which TopK cannot raise"):
        taken_up(TopK(RandomSearcher(SPACE), 8, 2), TopK(RandomSearcher(SPACE), 4, 2), [])
    with pytest.raises(StudyError, match="n_configs = 4, not 8"):
        taken_up(SuccessiveHalving(RandomSearcher(SPACE), 8, 2), SuccessiveHalving(RandomSearcher(SPACE), 4, 2), [])
    keep(tmp_path / "kb.db", "bands", Hyperband(RandomSearcher(SPACE), 3))
    with pytest.raises(InvalidInput, match="runs hyperband, where n_trials cannot be raised"):
        recorded_study(tmp_path / "kb.db", "bands", n_trials=100)
    keep(tmp_path / "kb.db", "halving", SuccessiveHalving(RandomSearcher(SPACE), 4, 2))
    with pytest.raises(InvalidInput, match="runs halving, where n_trials cannot be raised"):  # it keeps n_configs, too
        recorded_study(tmp_path / "kb.db", "halving", n_trials=8)
    with pytest.raises(SchedulerError):
        taken_up(*(HyperTrick(RandomSearcher(SPACE, seed=1), n, 2) for n in (6, 4)), past)


class Whims(RandomSearcher):
    """A searcher of one's own, which does not suggest the same twice."""

    @staticmethod
    def suggest(trial) -> dict:
        return {"h0": float(next(DRAWS)), "h1": 0.5}


DRAWS = count()


def test_a_searcher_that_does_not_answer_alike_twice_is_named_not_its_scheduler() -> None:
    begun = HyperTrick(Whims(SPACE), 4, 2)
    with pytest.raises(
        SchedulerError, match=r"recorded with another tests.study.test_more:Whims: its code has changed"
    ):
        taken_up(HyperTrick(Whims(SPACE), 4, 2), begun, simulate(begun))


def test_a_study_over_a_space_with_conditions_is_shown_and_its_constraint_asks_for_python(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(analysis, "importance", partial(analysis.importance, forests=3, resamples=5))
    scheduler = FullRuns(RandomSearcher(NETWORK), 20, 2)
    keep(tmp_path / "kb.db", "network", scheduler)
    results = Results.open(tmp_path / "kb.db", "network")
    assert set(results.frames.trials["optimizer"]) == {"sgd", "adam", "none"}
    assert results.frames.trials["momentum"].isna().sum() == (results.frames.trials["optimizer"] != "sgd").sum()
    NETWORK.validate({**results.best_config, "width": int(results.best_config["width"])})
    assert set(results.figures()) >= {"parallel coordinates", "importance", "search space", "score by hyperparameter"}
    with pytest.raises(InvalidInput, match=r"runs tests.support:<lambda>, .* or from Python"):
        recorded_study(tmp_path / "kb.db", "network")
    named = Study("network", scheduler, Deterministic, tmp_path / "kb.db").spec["scheduler"]["searcher"]["space"]
    assert named["constraint"] == {"kind": "tests.support:<lambda>"}


def test_more_trials_than_a_grid_has_points_are_refused(tmp_path) -> None:
    scheduler = HyperTrick(GridSearcher(Space({"h0": Uniform(0, 1), "h1": Uniform(0, 1)}), 2), 4, 2)
    kept(tmp_path / "kb.db", Study("grid", scheduler, Quadratic(), tmp_path / "kb.db", nodes=1))
    assert recorded_study(tmp_path / "kb.db", "grid", 4).scheduler.n_trials == 4
    with pytest.raises(InvalidInput, match=r"'grid' can have 4 trials at most, .*, got n_trials = 8$"):
        recorded_study(tmp_path / "kb.db", "grid", 8)
