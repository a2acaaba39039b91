"""What a study's results say of a study that has hardly begun."""

import json
import re
import warnings
from contextlib import closing, nullcontext
from html import unescape

import pytest

from tests.events import begun, ended, judged, runs, write_log
from tests.support import SPACE, Deterministic, saved
from workbench import AttachedStudy, Explorer, HyperTrick, KnowledgeBase, RandomSearcher, Study
from workbench.cli.main import main
from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.errors import StudyError
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.knowledge import StudyLog
from workbench.study.results import Results, best_checkpoint, best_of
from workbench.study.warm import warm_start

SCHEDULER = HyperTrick(RandomSearcher(SPACE), 8, 3)
FAILED = {"why": "crash", "error": "boom", "place": "", "traceback": "", "attempt": 0}
EVENTS = [
    Event(Kind.STUDY_STARTED, 0.0, data={"size": size_of(SCHEDULER).to_json()}),
    Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "n"}),
    runs(0.0, 0, {"learning_rate": 1e-3}),
    begun(0.0, 0, 0),
    Event(Kind.TRIAL_FAILED, 0.0, 0, 0, 0, FAILED),
    Event(Kind.STUDY_ENDED, 0.0),
]


@pytest.mark.parametrize("n", [1, 4, len(EVENTS)])
def test_what_nobody_knows_yet_is_never_told_as_a_number(tmp_path, drawn_once, n) -> None:
    """After each of its first events, all at second 0: no phase, no score, no slot time, no rate."""
    write_log(tmp_path / "kb.db", "one", EVENTS[:n], Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    results = Results.open(tmp_path / "kb.db", "one")
    progress = AttachedStudy(tmp_path / "kb.db", "one").progress
    drawn = [f"{figure.layout.title.text} {figure.layout.annotations}" for figure in results.figures().values()]
    report = results.write_report(tmp_path / "r.html").read_text()
    report = re.sub("<script.*?</script>", "", report, flags=re.DOTALL)
    texts = [str(results), results._repr_html_(), report, str(progress), progress._repr_html_(), *drawn]
    assert "no score yet" in str(results)
    assert [text for text in texts if re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)] == []


def test_a_completion_rate_below_its_minimum_says_of_what_runs_that_is(tmp_path) -> None:
    """The only trial has failed, or has run all its phases."""
    whole = [runs(0.0, 0, {"a": 1})]
    for phase in (0, 1):
        whole += [begun(phase, 0, phase), ended(phase + 1, 0, phase, 0, 1.0)]
    for name, events in (("lost", EVENTS[2:]), ("kept", [*whole, Event(Kind.STUDY_ENDED, 2.0)])):
        size = {"n_trials": 1, "n_configs": 1, "n_phases": 2, "began": [1.0, 1.0], "fewest": [1.0, 1.0]}
        log = [Event(Kind.STUDY_STARTED, 0.0, data={"size": size}), *events]
        write_log(tmp_path / "kb.db", name, log, {"scheduler": {"kind": "full"}, "trainable": {"kind": "x"}, "seed": 0})
    lost, kept = (Results.open(tmp_path / "kb.db", name)._repr_html_() for name in ("lost", "kept"))
    assert "0.0% (expected 100.0%, minimum 100.0% if it runs as planned)" in lost
    assert "100.0% (expected 100.0%, minimum 100.0%)" in kept


def test_a_trial_none_of_whose_phases_has_ended_has_no_schedule(tmp_path, capsys) -> None:
    write_log(tmp_path / "kb.db", "one", EVENTS, Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    written = ["--out", str(tmp_path / "best.json"), "--db", str(tmp_path / "kb.db")]
    assert main(["schedule", "one", "--trial", "0", *written]) == 2
    assert "trial 0 of study 'one' has no schedule: no phase of its weights has ended" in capsys.readouterr().err
    assert main(["schedule", "one", *written]) == 2
    assert "study 'one' has no schedule: none of its phases has ended" in capsys.readouterr().err
    assert not (tmp_path / "best.json").exists()


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ([], "the driver of study 'one' died without a word: resume it$"),
        ([Event(Kind.STUDY_INTERRUPTED, 9.0, data={"error": "boom"})], "study 'one' stopped: boom"),
        ([Event(Kind.STUDY_INTERRUPTED, 9.0)], None),
        ([Event(Kind.STUDY_ENDED, 9.0)], None),
    ],
)
def test_no_trial_is_said_to_run_once_its_study_does_not(tmp_path, last, said) -> None:
    log = StudyLog(tmp_path / "kb.db", "one", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    log.append(EVENTS[:4])
    assert "1: 1 running" in str(Results.open(tmp_path / "kb.db", "one"))
    run = AttachedStudy(tmp_path / "kb.db", "one")
    assert (run.running, run.wait(0.0)) == (True, False)
    log.append(last)
    log.close()
    assert "1: 1 cut off" in str(Results.open(tmp_path / "kb.db", "one"))
    assert ("died without a word: resume it" in repr(run)) is (not last)
    with nullcontext() if said is None else pytest.raises(StudyError, match=said):
        assert run.wait()


def test_a_study_whose_driver_died_is_not_said_to_run(tmp_path) -> None:
    path, spec = tmp_path / "kb.db", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec
    with closing(StudyLog(path, "one", spec)) as log:
        log.append(EVENTS[:4])
        log.append([ended(1.0, 0, 0, 0, 3.0), judged(1.0, 0, 0, "continue", "collecting"), begun(1.0, 0, 1)])
        run = AttachedStudy(path, "one")
        assert run.progress.state == "running"
    assert run.progress.state == "abandoned"
    assert repr(run).startswith("one: abandoned · ")
    with closing(StudyLog(path, "one", resume=True)) as log:
        log.append([Event(Kind.STUDY_RESUMED, 2.0)])
        assert run.progress.state == "running"


def test_the_configuration_to_take_is_not_that_of_the_luckiest_phase(tmp_path) -> None:
    """Trial 0 has the highest score and falls, trial 1 ends ahead; a scheduler may name another still."""
    db, spec = tmp_path / "kb.db", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec
    events, configs = EVENTS[:2], [{"lr": lr, "gamma": 0.9} for lr in (1e-5, 1e-4, 1e-3)]
    for trial, scores in enumerate([(9.0, 1.0), (2.0, 4.0), (1.0, 3.0)]):
        events += [runs(0.0, trial, configs[trial])]
        for phase, score in enumerate(scores):
            place = f"trial-{trial:05d}/phase-{phase:03d}"
            events += [begun(phase, trial, phase), ended(phase + 1.0, trial, phase, 0, score, place)]
        events += [judged(2.0, trial, 1, "stop", "finished")]
    write_log(db, "one", events, spec)
    write_log(db, "led", [*events, judged(2.0, 2, 1, "stop", "finished", leader=2)], spec)
    plain, led = Results.open(db, "one"), Results.open(db, "led")
    assert [(r.best["trial"], r.best_config, r.best_score) for r in (plain, led)] == [
        (1, configs[1], 4.0),
        (2, configs[2], 3.0),
    ]
    assert [best_checkpoint(db, r.name)[-21:] for r in (plain, led)] == [f"trial-0000{n}/phase-001" for n in (1, 2)]
    shown = str(plain)
    assert re.search(r"best score +4 \(configuration of trial 1\), claimed on one seed", shown)
    assert re.search(r"luckiest phase +9 \(trial 0, after 1 s\)", shown)
    assert list(warm_start(SPACE, db, "led", best=2).first) == configs[:0:-1]
    assert list(warm_start(SPACE, db, "one", "led", best=2).first) == configs[1:]  # by scores alone


def test_where_no_weights_are_handed_on_the_schedule_is_of_the_configuration_to_take(tmp_path) -> None:
    """The first trial is stopped after a better phase than any other's; in a population it would be the best."""
    events = EVENTS[:2]
    for trial, scores in enumerate([(9.0,), (1.0, 2.0), (3.0, 1.0)]):
        events += [runs(0.0, trial, {"lr": 1e-3 * (1 + trial), "gamma": 0.9})]
        for phase, score in enumerate(scores):
            events += [begun(phase, trial, phase), ended(phase + 1.0, trial, phase, 0, score, "c")]
        events += [judged(2.0, trial, len(scores) - 1, "stop", "finished" if trial else "stopped")]
    write_log(tmp_path / "kb.db", "one", events, Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    results = Results.open(tmp_path / "kb.db", "one")
    assert results.best["trial"] == 1
    assert results.best_schedule()["trial"].tolist() == [1, 1]
    written = json.loads(results.write_schedule(tmp_path / "s.json").read_text())
    assert [row["config"] for row in written["phases"]] == [results.best_config] * 2
    assert results.best_schedule(0)["score"].tolist() == [9.0]


def test_a_trial_that_a_person_lets_run_on_wins_by_its_score_alone(tmp_path) -> None:
    db, spec = tmp_path / "kb.db", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec
    events, configs = EVENTS[:2], [{"lr": lr, "gamma": 0.9} for lr in (1e-5, 1e-4)]
    for trial, n_phases, score in ((0, 3, 10.0), (1, 4, 2.0)):
        events += [runs(0.0, trial, configs[trial])]
        for phase in range(n_phases):
            place = f"trial-{trial:05d}/phase-{phase:03d}"
            events += [begun(phase, trial, phase), ended(phase + 1.0, trial, phase, 0, score, place)]
        events += [judged(n_phases, trial, n_phases - 1, "stop", "extended" if trial else "finished")]
    for name in ("one", "two"):
        write_log(db, name, events, spec)
    assert Results.open(db, "one").best_config == configs[0]
    assert "/trial-00000/" in str(best_checkpoint(db, "one"))
    assert list(warm_start(SPACE, db, "one", "two", best=1).first) == configs[:1]


def test_the_best_checkpoint_is_that_of_the_best_phase_of_all_for_it_is_kept(tmp_path) -> None:
    """A person let a trial run on: its score is of the study's own last phase, its weights may be of a later one."""
    store = CheckpointStore(str(tmp_path / "kept"), keep=1)
    events = [*EVENTS[:2], runs(0.0, 0, {"lr": 1e-3, "gamma": 0.9})]
    for phase, score in enumerate((5.0, 4.0, 3.0, 9.0, 1.0)):  # the study has three
        name = saved(store, Deterministic({}, 0), 0, phase, score)
        events += [begun(phase, 0, phase), ended(phase + 1.0, 0, phase, 0, score, name)]
    events += [judged(5.0, 0, 4, "stop", "extended")]
    spec = Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec
    write_log(tmp_path / "kb.db", "one", events, spec)
    assert Results.open(tmp_path / "kb.db", "one").best_score == 3.0
    best = best_of(spec, events)
    assert best == "trial-00000/phase-003"
    assert store.has(best)
    assert not store.has("trial-00000/phase-000")


def test_no_trial_is_on_the_front_by_phases_that_a_person_added(tmp_path) -> None:
    """The first lost its place by its fourth phase, beyond the study's own three; the second won one."""
    aim = {"aim": {"second": "flops", "second_mode": "min"}}
    events = [Event(Kind.STUDY_STARTED, 0.0, data=aim), EVENTS[1]]
    for trial, scores in enumerate([(1.0, 1.0, 9.0, 2.0), (1.0, 1.0, 5.0, 8.0), (1.0, 1.0, 7.0)]):
        events += [runs(0.0, trial, {"lr": 1e-3, "gamma": 0.9})]
        for phase, score in enumerate(scores):
            flops = 1.0 if (trial, phase) == (1, 3) else 5.0
            events += [begun(phase, trial, phase), ended(phase + 1.0, trial, phase, 0, score, flops=flops)]
        events += [judged(4.0, trial, len(scores) - 1, "stop", "extended" if len(scores) > 3 else "finished")]
    write_log(tmp_path / "kb.db", "one", events, Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    results = Results.open(tmp_path / "kb.db", "one")
    rows = [(0, 2, 9.0, 5.0, True), (2, 2, 7.0, 5.0, False), (1, 2, 5.0, 5.0, False)]
    assert [tuple(row) for row in results.front.to_numpy().tolist()] == rows
    assert results.front["score"].max() == results.best_score


def test_configurations_are_given_as_they_ran(tmp_path) -> None:
    """A whole number stays one, though another trial does not have it."""
    configs = [{"layers": 3, "net": "deep"}, {"net": "flat"}]
    spec = Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db", seed=7).spec
    events = EVENTS[:2]
    for trial, config in enumerate(configs):
        events += [runs(0.0, trial, config), begun(0.0, trial, 0), ended(1.0, trial, 0, 0, 5 - trial)]
        events += [judged(1.0, trial, 0, "stop", "finished")]
    write_log(tmp_path / "kb.db", "one", events, spec)
    results = Results.open(tmp_path / "kb.db", "one")
    written = json.loads(results.write_schedule(tmp_path / "s.json").read_text())
    assert (written["study"], written["seed"], written["trainable"]) == ("one", 7, spec["trainable"])
    assert [(row["trial"], row["phase"], row["score"]) for row in written["phases"]] == [(0, 0, 5)]
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        seen = kb["one"].trial(0).config
    for config in (results.best_config, written["phases"][0]["config"], seen):
        assert json.dumps(config, sort_keys=True) == json.dumps(configs[0], sort_keys=True)


def test_no_two_configurations_read_alike(tmp_path) -> None:
    events = EVENTS[:2]
    for trial, width in enumerate((65540.0, 65536.0)):
        events += [runs(0.0, trial, {"width": width}), begun(0.0, trial, 0), ended(1.0, trial, 0, 0, 5 - trial)]
        events += [judged(1.0, trial, 0, "stop", "finished")]
    write_log(tmp_path / "kb.db", "one", events, Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    assert re.search(r"best config +width = 65540\n", str(Results.open(tmp_path / "kb.db", "one")))
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        told = [repr(kb["one"].trial(trial)) for trial in (0, 1)]
    assert ["width = 65540;" in told[0], "width = 65536;" in told[1]] == [True, True]


def test_a_report_outlives_a_reason_of_which_too_little_was_logged(tmp_path) -> None:
    log = StudyLog(tmp_path / "kb.db", "one", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    why = {"verdict": "continue", "mode": "collecting", "reported": 3}
    ended = Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0, "metrics": {}})
    log.append([*EVENTS[:4], ended, Event(Kind.DECISION, 1.0, 0, 0, data=why)])
    log.close()
    report = Results.open(tmp_path / "kb.db", "one").write_report(tmp_path / "r.html")
    assert "collecting: reported 3" in report.read_text()


def test_a_second_objective_that_no_phase_returns_is_told(tmp_path) -> None:
    aim = {"aim": {"second": "flops"}}
    log = StudyLog(tmp_path / "kb.db", "one", Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    log.append([Event(Kind.STUDY_STARTED, 0.0, data=aim), *EVENTS[1:4]])
    assert Results.open(tmp_path / "kb.db", "one").front.empty  # not yet
    log.append([ended(1.0, 0, 0, 0, 1.0, loss=2.0)])
    log.close()
    results, said = Results.open(tmp_path / "kb.db", "one"), "no phase has returned the metric 'flops', only loss"
    with warnings.catch_warnings():  # one row tells it, and no warning from inside beside it
        warnings.simplefilter("error")
        assert re.search(rf"front +{said}\n", str(results))
        assert said in unescape(results.write_report(tmp_path / "r.html").read_text())
    with pytest.warns(UserWarning, match=f"^study 'one' has no front: {said}$") as told:
        assert results.front.empty
    assert [warning.filename for warning in told] == [__file__]


def test_the_front_is_of_both_aims(tmp_path) -> None:
    """Both are minimised: the first trial, with 1 and 5, leaves nothing to the second, with 2 and 9."""
    aim = {"aim": {"mode": "min", "second": "flops", "second_mode": "min"}}
    events = [Event(Kind.STUDY_STARTED, 0.0, data=aim), EVENTS[1]]
    for trial, (score, flops) in enumerate([(1.0, 5.0), (2.0, 9.0)]):
        events += [runs(0.0, trial, {"learning_rate": 1e-3}), begun(0.0, trial, 0)]
        events += [ended(1.0, trial, 0, 0, score, flops=flops)]
    write_log(tmp_path / "kb.db", "one", events, Study("one", SCHEDULER, Deterministic, tmp_path / "kb.db").spec)
    front = Results.open(tmp_path / "kb.db", "one").front
    assert front.loc[front["on_front"], "trial"].tolist() == [0]


@pytest.fixture(scope="module")
def confirmed_population(tmp_path_factory) -> Results:
    """Two members, one of which goes on with the other's weights; a fresh seed of the first is better than either."""
    db, events = tmp_path_factory.mktemp("population") / "kb.db", EVENTS[:2]
    for trial, score in enumerate((3.0, 1.0)):
        events += [runs(trial, trial, {"learning_rate": 1e-3 * (1 + trial), "gamma": 0.9}), begun(trial, trial, 0)]
        events += [ended(trial + 1.0, trial, 0, 0, score, "c")]
    events += [judged(2.0, 1, 0, "stop", "exploited", member=1, donor=0)]
    events += [runs(2.0, 2, {"learning_rate": 3e-3, "gamma": 0.9}, phase=1, parent=0)]
    events += [begun(2.0, 2, 1), ended(3.0, 2, 1, 0, 4.0)]
    events += [runs(3.0, 3, {"learning_rate": 1e-3, "gamma": 0.9}, candidate=0, confirms=True, by="person", clone_of=0)]
    events += [begun(3.0, 3, 0), ended(4.0, 3, 0, 0, 9.0)]
    write_log(db, "one", events, Study("one", SCHEDULER, Deterministic, db).spec)
    return Results.open(db, "one")


@pytest.fixture(scope="module")
def figures(confirmed_population):
    return confirmed_population.figures()


def test_a_trial_that_confirms_another_is_no_member_of_the_population(confirmed_population, figures) -> None:
    assert confirmed_population.best_schedule()["trial"].tolist() == [0, 2]
    best = next(line for line in figures["population"].data if line.name == "best")
    assert list(best.y) == [3.0, 4.0]
    schedule = next(line for line in figures["hyperparameters over time"].data if line.name == "of the best weights")
    assert list(schedule.y[:-1]) == [1e-3, 3e-3]


def test_what_is_drawn_of_a_search_leaves_out_trials_that_confirm_others(confirmed_population, figures) -> None:
    counts = [note.text for note in figures["scores by phase"].layout.annotations if note.text.isdigit()]
    assert counts == ["2", "1"]
    own = Explorer(confirmed_population.db).figures()["parallel coordinates: one"]
    for figure in (own, *map(figures.get, ("parallel coordinates", "score by hyperparameter", "search space"))):
        lines = [line.customdata for line in figure.data if line.customdata is not None]
        assert {trial for line in lines for trial in line.tolist()} == {0, 1, 2}
