"""The best of a study on fresh seeds: from Python, from the shell, of studies with several seeds, taken up again."""

import re
import signal
import threading
from dataclasses import replace

import pytest

from tests.events import begun, ended, events_of, judged, runs, write_log
from tests.support import SPACE, Deterministic, Waits, score_of
from workbench import (
    PBT,
    Explorer,
    FullRuns,
    HyperTrick,
    KnowledgeBase,
    RandomSearcher,
    Study,
    SuccessiveHalving,
    Uniform,
)
from workbench.algos.quadratic import Quadratic
from workbench.cli.main import main
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.protocols import Event, Kind
from workbench.core.seeds import trial_seed
from workbench.knowledge import StudyLog, check, repair
from workbench.study.attached import AttachedStudy
from workbench.study.confirm import requests_to_confirm
from workbench.study.export import export
from workbench.study.results import Results
from workbench.study.run import confirm


def study_of(client, tmp_path, **changes) -> Study:
    given = {"scheduler": HyperTrick(RandomSearcher(SPACE), 8, 3), "trainable": Deterministic, "client": client}
    return Study("a study", db=tmp_path / "kb.db", **{**given, **changes})


def test_the_best_are_trained_again_on_fresh_seeds_and_the_page_says_so_first(client, tmp_path, monkeypatch) -> None:
    run = study_of(client, tmp_path, target_score=-100.0).run()  # reached at once: what is left stays as it is
    claimed = run.results()
    assert "claimed on one seed" in str(claimed)
    assert "confirmed" not in str(claimed)
    table = run.confirm(top=2, seeds=3)
    frames = run.frames()
    assert (~frames.trials["confirms"].astype(bool)).sum() == len(claimed.frames.trials)
    fresh = frames.trials[frames.trials["confirms"].astype(bool)]
    assert fresh.groupby("candidate").size().tolist() == [3] * len(table)
    assert not set(fresh["seed"]) & set(frames.trials.loc[~frames.trials["confirms"].astype(bool), "seed"])
    for row in fresh.to_dict("records"):
        config = {name: row[name] for name in SPACE}
        assert row["last_score"] == score_of(config, row["seed"], row["phases"] - 1)
    results = run.results()
    assert results.summary["best_score"] == claimed.summary["best_score"]  # lucky fresh seeds claim nothing
    shown = str(results)
    assert shown.index("confirmed score") < shown.index("luckiest phase")
    assert results.best_config == frames.configs[table.loc[0, "trial"]]
    monkeypatch.setattr(Results, "figures", lambda self: {})  # what is asked of the page is a table
    assert "Claimed and confirmed" in run.report().read_text()
    assert check(tmp_path / "kb.db") == []


def test_the_best_schedule_is_of_the_search_and_not_of_a_lucky_fresh_seed(client, tmp_path) -> None:
    searched = [trial_seed(0, trial) for trial in (0, 1)]

    def lucky(config, seed):
        yield float(seed not in searched)

    run = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 1), trainable=lucky).run()
    run.confirm(top=1, seeds=2)
    assert run.results().best_schedule()["trial"].tolist() == [0]


def trials_mean(trials, candidate: int) -> float:
    return trials[~trials["confirms"].astype(bool) & (trials["candidate"] == candidate)]["last_score"].mean()


def test_asked_again_only_what_is_missing_runs(client, tmp_path) -> None:
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 3, 2), seeds=2)
    run = study.run()
    assert "claimed on mean of 2 seeds" in str(run.results())
    run.confirm(top=1, seeds=1)
    assert re.search(r"confirmed score +[-\d.]+ \(one seed, fresh; 2 seeds claimed", str(run.results()))  # no interval
    run.confirm(top=1, seeds=3)
    with KnowledgeBase(study.db) as kb:
        events = kb["a study"].events()
    best = max(range(3), key=lambda c: trials_mean(run.frames().trials, c))
    trials = run.frames().trials
    assert set(trials.loc[trials["confirms"].astype(bool), "candidate"]) == {best}
    assert run.results().summary["alpha"] == 1.0
    confirming = [e for e in events if e.kind is Kind.RUN and e.data.get("confirms")]
    assert len(confirming) == 3
    assert len({e.data["seed"] for e in events if e.kind is Kind.RUN}) == 3 * 2 + 3


def test_a_configuration_that_was_run_again_in_every_rung_is_confirmed_once(client, tmp_path) -> None:
    """The best of the rung below is the winner, which had run there, too; the second best is meant."""

    def train(config):
        while True:
            yield config["x"]

    halving = SuccessiveHalving({"x": Uniform(0.0, 1.0)}, 4, 4, eta=2, restart=True)
    run = study_of(client, tmp_path, scheduler=halving, trainable=train).run()
    table = run.confirm(top=2, seeds=1)
    trials = run.frames().trials
    assert sorted(table["confirmed"]) == sorted(trials["x"].unique())[-2:]


def ran(trial: int, candidate: int, *scores: float | None, confirms: bool = False) -> list[Event]:
    """Log a trial of a candidate, phase by phase; where its score is None it failed, short of two it was stopped."""
    config = {"lr": 1e-3 * (1 + candidate), "gamma": 0.9}
    events = [runs(0.0, trial, config, seed=trial, candidate=candidate, confirms=confirms)]
    for phase, score in enumerate(scores):
        events.append(begun(0.0, trial, phase))
        if score is None:
            events.append(Event(Kind.TRIAL_FAILED, 1.0, trial, phase, 0, {"error": "boom"}))
        else:
            events.append(ended(1.0, trial, phase, 0, score))
    why = "finished" if len(scores) == 2 else "stopped"
    return events if None in scores else [*events, judged(1.0, trial, len(scores) - 1, "stop", why)]


def test_the_best_are_those_of_the_study_s_own_aim_and_judge(tmp_path) -> None:
    """The lowest median: 2 against 6, where the mean is 31 against 6. What failed or was stopped is made up for."""
    study = Study(
        "low", FullRuns(RandomSearcher(SPACE), 2, 2), Deterministic, tmp_path / "kb.db", seeds=3, judged_by="median",
        mode="min",
    )  # fmt: skip
    events = [Event(Kind.STUDY_STARTED, 0.0, data={"aim": study.aim.to_json()})]
    last = [(1, 0), (90, 0), (2, 0), (5, 3), (6, 3), (7, 3)]
    events += [event for trial, (score, candidate) in enumerate(last) for event in ran(trial, candidate, 4.0, score)]
    fresh = [(0, 4.0, 8.0), (0, 3.0, None), (0, 2.0), (3, 5.0, 4.0)]  # the third ends after one phase of two
    events += [event for trial, one in enumerate(fresh, 6) for event in ran(trial, *one, confirms=True)]
    write_log(study.db, study.name, [*events, Event(Kind.STUDY_ENDED, 2.0)], study.spec)
    results = Results.open(study.db, study.name)
    assert results.claims[["candidate", "claimed"]].to_numpy().tolist() == [[0, 2], [3, 6]]
    told = results.confirmed[["candidate", "claimed", "confirmed", "confirmed_on"]]
    assert told.to_numpy().tolist() == [[3, 6, 4, 1], [0, 2, 8, 1]]
    assert results.best_schedule()["trial"].tolist() == [3, 3]  # the first seed of the best confirmed
    asked = [(one.trial, one.data) for one in requests_to_confirm(study, top=2, seeds=3)]
    assert asked == [(trial, {"confirms": True, "phases": 2}) for trial in (3, 3, 0, 0)]


def test_fresh_seeds_that_ran_less_than_is_claimed_by_now_are_made_up_for(tmp_path) -> None:
    """As where a study was confirmed while it was interrupted, and has gone on since: they confirm nothing any more."""
    study = Study("went on", FullRuns(RandomSearcher(SPACE), 1, 2), Deterministic, tmp_path / "kb.db")
    short = [*ran(1, 0, 2.0, confirms=True)[:-1], judged(1.0, 1, 0, "stop", "extended")]
    events = [Event(Kind.STUDY_STARTED, 0.0), *ran(0, 0, 4.0, 5.0), *short, *ran(2, 0, 3.0, 4.0, confirms=True)]
    write_log(study.db, study.name, [*events, Event(Kind.STUDY_ENDED, 2.0)], study.spec)
    assert Results.open(study.db, study.name).confirmed["confirmed_on"].tolist() == [1]
    assert [one.data["phases"] for one in requests_to_confirm(study, top=1, seeds=2)] == [2]


def test_what_was_stopped_early_is_not_the_one_to_take_for_being_confirmed(tmp_path) -> None:
    study = Study("early", FullRuns(RandomSearcher(SPACE), 2, 2), Deterministic, tmp_path / "kb.db")
    events = [Event(Kind.STUDY_STARTED, 0.0), *ran(0, 0, 4.0, 5.0), *ran(1, 1, 9.0)]
    events += [event for trial in (2, 3) for event in ran(trial, 1, 9.0, confirms=True)]
    write_log(study.db, study.name, [*events, Event(Kind.STUDY_ENDED, 2.0)], study.spec)
    results = Results.open(study.db, study.name)
    assert results.confirmed["candidate"].tolist() == [1]
    assert (results.best["trial"], results.best_score) == (0, 5.0)
    assert "claimed on one seed" in str(results)
    optuna = pytest.importorskip("optuna")
    made = optuna.load_study(study_name="early", storage=f"sqlite:///{export(study.db, 'early', 'optuna')}")
    told = [(one.state.name, one.user_attrs["confirms"]) for one in made.trials]
    assert told == [("COMPLETE", False), ("PRUNED", False), ("PRUNED", True), ("PRUNED", True)]


def write_search(study: Study, fresh: dict[int, list[float]]) -> Results:
    """Write a study whose trials claim 9, 7 and 5, and the fresh seeds' last scores of some of them."""
    events = [Event(Kind.STUDY_STARTED, 0.0)]
    events += [event for trial, score in enumerate((9.0, 7.0, 5.0)) for event in ran(trial, trial, 0.0, score)]
    seeds = [(trial, score) for trial, scores in fresh.items() for score in scores]
    events += [event for k, (trial, last) in enumerate(seeds, 3) for event in ran(k, trial, 0.0, last, confirms=True)]
    write_log(study.db, study.name, [*events, Event(Kind.STUDY_ENDED, 2.0)], study.spec)
    return Results.open(study.db, study.name)


def test_fresh_seeds_decide_once_what_is_claimed_to_be_best_has_some(tmp_path) -> None:
    for name, fresh, best in (("others", {2: [6.0]}, (0, 9.0)), ("first", {2: [6.0], 0: [1.0, 2.0]}, (2, 6.0))):
        results = write_search(
            Study(name, FullRuns(RandomSearcher(SPACE), 3, 2), Deterministic, tmp_path / "kb.db"), fresh
        )
        assert (results.best["trial"], results.best_score) == best
        assert ("confirmed score" in str(results)) is (name == "first")
    assert "6 (one seed, fresh, the best of 2 confirmed; one seed claimed 5)" in str(results)


@pytest.mark.parametrize(
    ("fresh", "asked"),
    [
        ({}, [0, 0, 1, 1]),
        ({1: [8.0]}, [0, 0, 1]),  # nothing is decided before what is claimed to be best has been tried
        ({0: [1.0], 2: [6.0]}, [2, 0]),  # these are the best two, whatever is claimed of the other
        ({0: [1.0, 1.0], 2: [6.0, 6.0]}, []),
    ],
)
def test_the_best_by_fresh_seeds_are_confirmed_before_what_is_claimed(tmp_path, fresh, asked) -> None:
    study = Study("chosen", FullRuns(RandomSearcher(SPACE), 3, 2), Deterministic, tmp_path / "kb.db")
    write_search(study, fresh)
    assert [one.trial for one in requests_to_confirm(study, top=2, seeds=2)] == asked


def test_what_cannot_be_confirmed_is_refused_in_a_line(client, tmp_path) -> None:
    run = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1)).run()
    for wrong in ({"top": 0}, {"seeds": 2.5}, {"seeds": True}):
        with pytest.raises(InvalidInput, match="confirm takes a whole number >= 1"):
            run.confirm(**wrong)
    space = {"h0": SPACE["lr"], "h1": SPACE["lr"]}
    pbt = Study("population", PBT(space, population=4, n_phases=4), Quadratic(), tmp_path / "kb.db", client=client)
    with pytest.raises(StudyError, match="handed weights from trial to trial"):
        pbt.run().confirm()


@pytest.mark.slow
def test_the_command_confirms_a_study_by_its_name(tmp_path, capsys) -> None:
    Study("toy", FullRuns({"h0": SPACE["lr"], "h1": SPACE["lr"]}, 2, 1), Quadratic(), tmp_path / "kb.db", nodes=1).run()
    assert main(["confirm", "toy", "--top", "1", "--seeds", "2", "--db", str(tmp_path / "kb.db")]) == 0
    assert "confirmed score" in capsys.readouterr().out


def test_a_study_that_stands_still_is_confirmed_and_ends_as_it_did(client, tmp_path) -> None:
    """What a search said of its end, and that it was paused, is not touched by trials that confirm others."""
    study = study_of(client, tmp_path, target_score=-100.0)
    run = study.run()
    with KnowledgeBase(study.db) as kb:
        (why,) = [e.data["why"] for e in kb["a study"].events() if e.kind is Kind.STUDY_ENDED]
    log = StudyLog(study.db, study.name, study.spec, resume=True)
    asked = {"action": "pause study", "accepted": True}
    log.append([Event(Kind.INTERVENTION, log.events()[-1].at, data=asked)])
    log.close()
    assert run.confirm(top=1, seeds=2)["confirmed_on"].tolist() == [2]
    with KnowledgeBase(study.db) as kb:
        ends = [e.data for e in kb["a study"].events() if e.kind is Kind.STUDY_ENDED]
    assert ends == [{"why": why}, {"why": why}]


def test_a_search_that_was_cut_off_after_it_had_ended_once_is_not_said_to_have_ended(client, tmp_path) -> None:
    """It was resumed to extend a trial, and its driver was killed."""
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 1))
    run = study.run()
    log = StudyLog(study.db, study.name, study.spec, resume=True)
    began, *_, last = log.events()
    extended = {"action": "extend", "accepted": True, "phases": 1}
    log.append(
        [Event(Kind.STUDY_RESUMED, last.at, data=began.data), Event(Kind.INTERVENTION, last.at, 0, data=extended)]
    )
    log.append([begun(last.at, 0, 1)])
    log.close()
    assert run.frames().state == "abandoned"
    for seeds in (1, 2):
        confirm(study, top=1, seeds=seeds)
        assert run.frames().state == "interrupted"


def test_phases_added_before_a_confirmation_run_also_where_that_is_interrupted_and_asked_again(
    client, tmp_path
) -> None:
    def stop(events):
        if any(e.kind is Kind.PHASE_STARTED and e.trial == 0 for e in events):
            run.controls.stop_study()

    trainable = Waits(str(tmp_path / "go"), 3)  # in the phase that is added
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 3), trainable=trainable)
    run = study.run()
    run.controls.extend(0, 1)
    confirm(replace(study, callbacks=[stop]), top=1, seeds=1)
    assert run.frames().trials.loc[0, "state"] == "cut off"
    (tmp_path / "go").touch()
    assert confirm(study, top=1, seeds=1)["confirmed_on"].tolist() == [1]
    extended = run.frames().trials.loc[0]
    assert (extended["state"], extended["phases"]) == ("finished", 4)
    assert run.frames().state == "ended"


def test_a_study_whose_confirmation_was_killed_and_repaired_stays_ended(client, tmp_path) -> None:
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 1))
    run = study.run()
    run.confirm(top=1, seeds=1)
    events = events_of(study)
    (began,) = [event for event in events if event.kind is Kind.STUDY_RESUMED]
    write_log(study.db, study.name, [replace(began, at=events[-1].at)], study.spec, resume=True)
    assert run.frames().state == "abandoned"
    repair(study.db)
    assert run.frames().state == "ended"
    run.confirm(top=1, seeds=2)
    assert run.frames().state == "ended"
    AttachedStudy(study.db, study.name).wait()


def test_a_confirmation_whose_cluster_did_not_come_up_is_made_up_for_and_no_more(client, tmp_path, monkeypatch) -> None:
    """Nothing of it waits, and all of it is asked for again; its error is not the end of the search."""
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 3, 1))
    run = study.run()

    def fails(*_, **__):
        raise OSError("no cluster")

    with monkeypatch.context() as patch:
        patch.setattr("workbench.cluster.dask.DaskExecutor", fails)
        with pytest.raises(OSError, match="no cluster"):
            run.confirm(top=1, seeds=3)
    assert run.frames().state == "ended"
    assert not list(tmp_path.rglob("*.inbox/*"))
    AttachedStudy(study.db, study.name).wait()
    with KnowledgeBase(study.db) as kb:
        assert "no cluster" in kb["a study"].events()[-2].data["error"]
    assert run.confirm(top=1, seeds=3)["confirmed_on"].tolist() == [3]
    assert run.frames().trials["confirms"].sum() == 3
    assert run.frames().state == "ended"
    AttachedStudy(study.db, study.name).wait()


def test_a_study_that_is_being_driven_is_not_asked_to_confirm(client, tmp_path) -> None:
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    study.run()
    log = StudyLog(study.db, study.name, study.spec, resume=True)
    with pytest.raises(StudyError, match=r"is being driven by process .*: stop it, or confirm it once it is over"):
        confirm(study, top=1, seeds=1)
    with pytest.raises(StudyError, match=rf"this one: AttachedStudy\('{study.db}', 'a study'\) looks at it"):
        confirm(study, top=1, seeds=1)
    log.close()
    assert not list(tmp_path.rglob("*.inbox/*"))


def test_interrupted_it_tells_how_to_go_on(client, tmp_path) -> None:
    (go := tmp_path / "go").touch()
    study = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 1), trainable=Waits(str(go), 0))
    run = study.run()
    go.unlink()
    pause = threading.Event()

    def interrupt() -> None:
        with KnowledgeBase(study.db) as kb:
            while all(event.trial < 2 for event in kb[study.name].events(Kind.PHASE_STARTED)):
                pause.wait(0.02)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    (other := threading.Thread(target=interrupt)).start()
    with pytest.raises(KeyboardInterrupt, match=r"^confirm\(top=1, seeds=2\) again trains what is missing$"):
        run.confirm(top=1, seeds=2)
    other.join()
    go.touch()
    run.confirm(top=1, seeds=2)
    fresh = run.frames().trials.query("confirms")
    assert (fresh["state"] == "finished").sum() == 2


def test_lucky_fresh_seeds_are_the_best_of_nothing(client, tmp_path) -> None:
    run = study_of(client, tmp_path, scheduler=FullRuns(RandomSearcher(SPACE), 2, 2)).run()
    claimed = run.results().summary["best_score"]
    run.confirm(top=2, seeds=8)
    frames = run.frames()
    assert frames.phases["score"].max() > claimed  # one of sixteen
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert kb.studies["best_score"].item() == claimed
    assert Explorer(tmp_path / "kb.db").table["best_score"].item() == claimed
    assert run.results().figures()["best so far"].data[-1].y[-1] == claimed
