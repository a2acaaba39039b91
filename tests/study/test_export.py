"""Studies in other tools, opened with these tools: written once, and kept up to date by callbacks."""

import errno
import json
import math
import os
import sqlite3
import sys
import threading
import warnings
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.algos.search.test_informed import GOOD
from tests.events import begun, ended, judged, runs, write_log
from tests.knowledge.studies import a_study
from tests.simulated import keep
from tests.support import SPACE, Deterministic, files, small_disk
from workbench import FullRuns, HyperTrick, InformedSearcher, KnowledgeBase, RandomSearcher, Space, Study, Uniform
from workbench.algos.search.seeded import Seeded
from workbench.cli.main import main
from workbench.core.describe import describe
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.study.export import FORMATS, export, exporter_of
from workbench.study.export.exporter import writing
from workbench.study.export.mlflow import MLflowExport, name_there


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "kb.db"
    keep(path, "exported", HyperTrick(InformedSearcher(RandomSearcher(SPACE), GOOD), 8, 3), {"mode": "min"})
    return path


def trials_of(db, name="exported"):
    with KnowledgeBase(db) as kb:
        return kb[name].frames()


def test_optuna_opens_it_with_params_states_and_scores(db) -> None:
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{export(db, 'exported', 'optuna')}"
    export(db, "exported", "optuna")  # again: it replaces the first
    study, trials = optuna.load_study(study_name="exported", storage=url), trials_of(db).trials
    assert study.direction.name == "MINIMIZE"
    assert [t.params for t in study.trials] == trials[list(SPACE)].to_dict("records")
    assert [t.state.name for t in study.trials] == [
        {"finished": "COMPLETE", "stopped": "PRUNED"}[state] for state in trials["state"]
    ]
    assert [t.value for t in study.trials] == trials["last_score"].tolist()
    assert [len(t.intermediate_values) for t in study.trials] == trials["phases"].tolist()
    assert study.best_value == trials.loc[trials["state"] == "finished", "last_score"].min()
    optuna.create_study(study_name="mine", storage=url)
    keep(db, "mine", FullRuns(RandomSearcher(SPACE), 2, 1))
    with pytest.raises(InvalidInput, match="holds a study 'mine' of somebody else's"):
        export(db, "mine", "optuna", url)


def test_trials_that_optuna_has_added_to_an_export_are_kept(db) -> None:
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{export(db, 'exported', 'optuna')}"
    optuna.load_study(study_name="exported", storage=url).optimize(lambda trial: trial.suggest_float("x", 0, 1), 2)
    with pytest.raises(InvalidInput, match="has 2 trials of study 'exported' that no export wrote and a new one"):
        export(db, "exported", "optuna")
    assert len(optuna.load_study(study_name="exported", storage=url).trials) == 8 + 2
    export(db, "exported", "optuna", f"sqlite:///{db.parent}/another.db")


@pytest.mark.parametrize("place", ["no/such/folder.db", "none://here"])
def test_a_place_that_optuna_cannot_open_is_told_in_one_line(db, place) -> None:
    pytest.importorskip("optuna")
    with pytest.raises(InvalidInput, match=r"cannot take an export \(.*\): choose another place"):
        export(db, "exported", "optuna", place)


def test_a_database_that_optuna_may_not_write_to_is_told_in_one_line(db) -> None:
    pytest.importorskip("optuna")
    file = export(db, "exported", "optuna")
    with closing(sqlite3.connect(file, isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        with pytest.raises(InvalidInput, match=r"^sqlite:.* cannot take an export \(.*\): choose another place"):
            export(db, "exported", "optuna", f"sqlite:///{file}?timeout=0")


def test_a_place_that_fails_at_the_last_word_is_told_in_one_line(db, monkeypatch) -> None:
    def fails(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workbench.study.export.tensorboard.TensorBoardExport.close", fails)
    with pytest.raises(InvalidInput, match=r"cannot take an export \(OSError: .*No space left on device\)"):
        export(db, "exported", "tensorboard")


def test_an_export_that_fails_leaves_no_thread_behind(db, monkeypatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter.add_hparams", fails)
    before = set(threading.enumerate())
    with pytest.raises(InvalidInput, match=r"cannot take an export \(OSError: .*No space left on device\)"):
        export(db, "exported", "tensorboard")
    assert set(threading.enumerate()) == before


THREADS_TELL = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # TensorBoard's, too


@THREADS_TELL
@pytest.mark.parametrize("to", ["csv", "tensorboard", "optuna"])
def test_a_disk_that_is_full_keeps_no_part_of_an_export(db, tmp_path, to) -> None:
    pytest.importorskip(to)
    place = tmp_path / "small" / "out"
    with small_disk(tmp_path / "small", "16k") as disk:
        with pytest.raises(InvalidInput, match=r"small/out\b.*(No space left on device|disk is full)") as refused:
            export(db, "exported", to, place)
        assert not files(disk)
        assert ".part" not in str(refused.value)


@THREADS_TELL
@pytest.mark.parametrize("to", ["csv", "tensorboard"])
def test_an_export_that_fails_leaves_the_one_before_as_it_was(db, tmp_path, to) -> None:
    with small_disk(tmp_path / "small", "1m") as disk:
        export(db, "exported", to, disk / "out")
        before = {file: file.read_bytes() for file in files(disk) if file.is_file()}
        with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        os.truncate(disk / "ballast", (disk / "ballast").stat().st_size - 8192)
        with pytest.raises(InvalidInput, match="No space left on device"):
            export(db, "exported", to, disk / "out")
        (disk / "ballast").unlink()
        assert {file: file.read_bytes() for file in files(disk) if file.is_file()} == before


def test_a_password_in_a_url_is_not_said_again(db, capsys, monkeypatch) -> None:
    pytest.importorskip("optuna")
    command = ["export", "exported", "--db", str(db), "--to", "optuna", "--out"]
    assert main([*command, "none://me:se@cret@here:5432/db"]) == 2
    err = capsys.readouterr().err
    assert "none://me:***@here:5432/db cannot take an export" in err
    with (
        pytest.raises(
            InvalidInput,
            match=r"^http://me:\*\*\*@there cannot take an export \(ValueError: no http://me:\*\*\*@there\)",
        ),
        writing("http://me:secret@there"),
    ):
        raise ValueError("no http://me:secret@there")
    monkeypatch.setattr("workbench.study.export.export", lambda *_: "postgresql://me:secret@here/db")
    assert main([*command, "postgresql://me:secret@here/db"]) == 0
    assert capsys.readouterr().out == "postgresql://me:***@here/db\n"


@pytest.mark.parametrize("to", ["optuna", "mlflow"])
def test_a_file_whose_url_would_stand_for_another_is_refused(to) -> None:
    with pytest.raises(InvalidInput, match=r"which\.db has a \?, at which .* ends: choose another place"):
        exporter_of(to, "a?b/which.db")
    with pytest.raises(InvalidInput, match=r"which\.db has a %20, which .* for another letter: choose another place"):
        exporter_of(to, "My%20Project/which.db")
    assert exporter_of(to, "20%/which.db").place == "sqlite:///20%/which.db"
    assert exporter_of(to, "sqlite:///which.db?timeout=5")


@pytest.mark.parametrize("to", ["optuna", "mlflow"])
def test_an_export_to_a_place_without_a_name_is_refused(db, capsys, to) -> None:  # as of a shell's variable, not set
    assert main(["export", "exported", "--db", str(db), "--to", to, "--out", ""]) == 2
    assert "goes to a file or a URL, and none is named: name one" in capsys.readouterr().err


def test_a_url_is_no_folder(db, capsys, monkeypatch) -> None:
    """It was made one, of the name ``sqlite:``, below the working directory."""
    monkeypatch.chdir(db.parent)
    place = "postgresql://me:secret@here/db"
    assert main(["export", "exported", "--db", str(db), "--to", "csv", "--out", place]) == 2
    assert "postgresql://me:***@here/db is a URL, and this export is a folder of files" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match=r"^sqlite:///x\.db is a URL"):
        export(db, "exported", "csv", "sqlite:///x.db")
    assert [path.name for path in db.parent.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("to", ["optuna", "mlflow"])
@pytest.mark.parametrize("place", ["{}", "sqlite:///{}", "sqlite:///{}?timeout=5"])
def test_a_file_that_holds_something_else_is_left_as_it_was(db, to, place) -> None:
    pytest.importorskip(to)
    with pytest.raises(InvalidInput, match=r"kb\.db holds something else: choose another place"):
        export(db, "exported", to, place.format(db))
    assert len(trials_of(db).trials) == 8


def test_a_url_is_looked_into_where_the_tool_will_write(db) -> None:
    pytest.importorskip("optuna")
    if pytest.importorskip("sqlalchemy").make_url("sqlite:///%62").database != "b":
        pytest.skip("this version takes a path as it is")
    with pytest.raises(InvalidInput, match=r"kb\.db holds something else: choose another place"):
        export(db, "exported", "optuna", f"sqlite:///{db.parent}/k%62.db")
    assert len(trials_of(db).trials) == 8


def test_optuna_knows_the_space_also_of_a_study_with_several_seeds(tmp_path) -> None:
    optuna = pytest.importorskip("optuna")
    keep(tmp_path / "kb.db", "seeds", Seeded(FullRuns(RandomSearcher(SPACE), 2, 1), seeds=2))
    url = f"sqlite:///{export(tmp_path / 'kb.db', 'seeds', 'optuna')}"
    study = optuna.load_study(study_name="seeds", storage=url)
    assert len(study.trials) == 4
    kinds = optuna.distributions
    told = {"lr": kinds.FloatDistribution(1e-5, 1e-2, log=True), "gamma": kinds.CategoricalDistribution((0.9, 0.99))}
    assert all(trial.distributions == told for trial in study.trials)


def test_a_fresh_seed_of_a_stopped_trial_is_pruned_in_optuna_also_where_a_constraint_is_code(tmp_path) -> None:
    optuna = pytest.importorskip("optuna")
    rule = HyperTrick(RandomSearcher(Space({"lr": Uniform(0, 1)}, constraint=lambda config: config["lr"] < 0.9)), 4, 3)
    lr, again = {"lr": 0.5}, {"own_phases": 1, "by": "person", "confirms": True, "candidate": 0}
    events = [Event(Kind.STUDY_STARTED, 0.0, data={"size": size_of(rule).to_json()})]
    events += [runs(0.0, 0, lr), begun(0.0, 0, 0), ended(1.0, 0, 0, 0, 1.0), judged(1.0, 0, 0, "stop", "selecting")]
    events += [runs(1.0, 4, lr, seed=2, **again), begun(1.0, 4, 0), ended(2.0, 4, 0, 0, 1.0)]
    events += [judged(2.0, 4, 0, "stop", "extended")]
    spec = {"scheduler": describe(rule), "trainable": {"kind": "quadratic"}, "seed": 0}
    write_log(tmp_path / "kb.db", "own", events, spec)
    url = f"sqlite:///{export(tmp_path / 'kb.db', 'own', 'optuna')}"
    trials = optuna.load_study(study_name="own", storage=url).trials
    assert [trial.state.name for trial in trials] == ["PRUNED", "PRUNED"]


@pytest.mark.parametrize("to", ["optuna", "tensorboard"])
def test_values_that_the_other_tool_does_not_take_are_told_in_words(tmp_path, to) -> None:
    pytest.importorskip(to)
    config = {"lr": math.nan, "layers": [64, 32], "clip": None, "x": 0.5, "large": 10**400}
    events = [runs(0.0, 0, config), begun(0.0, 0, 0), ended(1.0, 0, 0, 0, 2.0), judged(1.0, 0, 0, "stop", "finished")]
    write_log(tmp_path / "kb.db", "odd", events, {"scheduler": {"kind": "mine:Rule"}})
    place = export(tmp_path / "kb.db", "odd", to)
    if to == "optuna":
        import optuna

        (trial,) = optuna.load_study(study_name="odd", storage=f"sqlite:///{place}").trials
        assert trial.params == {"x": 0.5}
        assert {name: trial.user_attrs[name] for name in config} == config | {"lr": "nan", "large": str(10**400)}
    else:
        assert [*Path(place).glob("trial-00000/events*")]


def test_optuna_reads_a_trial_whose_second_objective_is_no_number(tmp_path) -> None:
    optuna = pytest.importorskip("optuna")
    events = [Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"second": "loss"}})]
    events += [runs(0.0, 0, {"x": 0.5}), runs(0.0, 1, {"x": 0.6}), begun(0.0, 0, 0), begun(0.0, 1, 0, 1)]
    events += [ended(1.0, 0, 0, 0, 2.0, loss=math.nan), ended(1.0, 1, 0, 1, 3.0, loss=0.5)]
    events += [judged(1.0, trial, 0, "stop", "finished") for trial in (0, 1)]
    write_log(tmp_path / "kb.db", "nan", events)
    place = export(tmp_path / "kb.db", "nan", "optuna")
    trials = optuna.load_study(study_name="nan", storage=f"sqlite:///{place}").trials
    assert [(trial.state.name, trial.values) for trial in trials] == [("PRUNED", None), ("COMPLETE", [3.0, 0.5])]


def test_optuna_dashboard_serves_it(db) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    app = dashboard.wsgi(f"sqlite:///{export(db, 'exported', 'optuna')}")
    answers = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies", "QUERY_STRING": "", "wsgi.input": BytesIO()}
    environ |= {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "wsgi.url_scheme": "http", "wsgi.errors": BytesIO()}
    body = b"".join(app(environ, lambda status, headers, *_: answers.append(status)))
    assert answers == ["200 OK"]
    (told,) = json.loads(body)["study_summaries"]
    assert (told["study_name"], told["directions"]) == ("exported", ["minimize"])


def test_tensorboards_own_reader_finds_every_score(db) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    folder = export(db, "exported", "tensorboard", db.parent / "tb")
    export(db, "exported", "tensorboard", db.parent / "tb")
    phases = trials_of(db).phases
    for trial, rows in phases.groupby("trial"):
        events = reader.EventAccumulator(f"{folder}/trial-{trial:05d}").Reload()
        points = [(point.step, point.value) for point in events.Scalars("score")]
        assert points == [(phase, pytest.approx(s)) for phase, s in zip(rows["phase"], rows["score"], strict=True)]
        assert "_hparams_/session_start_info" in events.PluginTagToContent("hparams")
    (db.parent / "mine").mkdir()
    (db.parent / "mine" / "thesis.tex").touch()
    with pytest.raises(InvalidInput, match="holds something else: choose another folder"):
        export(db, "exported", "tensorboard", db.parent / "mine")


def test_tensorboard_has_no_thread_for_each_of_a_study_s_trials(db) -> None:
    pytest.importorskip("tensorboard")
    before, threads = threading.active_count(), []
    threading.setprofile(lambda *_: threads.append(threading.active_count()))  # called in each that begins
    try:
        export(db, "exported", "tensorboard")
    finally:
        threading.setprofile(None)
    assert max(threads) - before <= 2  # a trial's writer, and that of its hyperparameters


@pytest.mark.parametrize(("to", "says"), [("tensorbord", "did you mean 'tensorboard'"), ("csv", "unknown exporter")])
def test_an_exporter_that_there_is_not_is_refused_with_those_there_are(to, says, tmp_path) -> None:
    with pytest.raises(InvalidInput, match=rf"{says}.*known: mlflow, optuna, tensorboard, wandb"):
        exporter_of(to, "x")
    assert isinstance(exporter_of("mlflow", "x"), MLflowExport)
    assert exporter_of("mlflow", tmp_path / "x.db").place == f"sqlite:///{tmp_path}/x.db"


def test_names_that_mlflow_refuses_are_written_otherwise() -> None:
    names = ["top-5 (%)", "acc@1", "live/loss", "größe", "a b:c.d-e_f", "x\ty"]
    assert [*map(name_there, names)] == ["top-5 ___", "acc_1", "live/loss", "größe", "a b:c.d-e_f", "x_y"]


@pytest.mark.parametrize("to", ["csv", "tensorboard"])
def test_an_export_takes_nothing_that_is_not_its_own(db, to) -> None:
    if to == "tensorboard":
        pytest.importorskip("tensorboard")
    keep(db, "other", FullRuns(RandomSearcher(SPACE), 2, 1))
    mine = db.parent / "mine"
    mine.mkdir()
    (mine / "trials.csv").write_text("by hand")
    with pytest.raises(InvalidInput, match="holds something else: choose another folder"):
        export(db, "exported", to, mine)
    assert [path.name for path in mine.iterdir()] == ["trials.csv"]
    with pytest.raises(InvalidInput, match=r"trials\.csv is a file: choose a folder"):
        export(db, "exported", to, mine / "trials.csv")
    out = db.parent / "out"
    export(db, "exported", to, out)
    before = sorted(out.rglob("*"))
    with pytest.raises(InvalidInput, match="holds an export of study 'exported', not of 'other': choose another"):
        export(db, "other", to, out)
    assert sorted(out.rglob("*")) == before
    (out / "notes.txt").write_text("by hand")
    (out / "trial-00099").mkdir()  # of a time when there were more
    export(db, "exported", to, out)
    assert (out / "notes.txt").read_text() == "by hand"
    assert (out / "trial-00099").exists() == (to == "csv")


@pytest.mark.parametrize("to", ["csv", "tensorboard", "optuna", "mlflow"])
def test_an_export_of_a_study_of_the_same_name_is_another_s(tmp_path, to) -> None:
    if to != "csv":
        pytest.importorskip(to)
    dbs = tmp_path / "one.db", tmp_path / "two.db"  # which have one place for it
    for db in dbs:
        keep(db, "exported", FullRuns(RandomSearcher(SPACE), 2, 1))
    place = export(dbs[0], "exported", to)
    with pytest.raises(InvalidInput, match=rf"{place} holds an export of another study 'exported': choose another"):
        export(dbs[1], "exported", to)
    assert export(dbs[0], "exported", to) == place


def test_mlflow_reads_its_runs(db) -> None:
    mlflow = pytest.importorskip("mlflow")
    place = export(db, "exported", "mlflow")
    export(db, "exported", "mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{place}")
    runs = client.search_runs([client.get_experiment_by_name("exported").experiment_id])
    frames = trials_of(db)
    by_trial = {int(run.data.tags["trial"]): run for run in runs}
    assert sorted(by_trial) == frames.trials["trial"].tolist()
    for row in frames.trials.to_dict("records"):
        run = by_trial[row["trial"]]
        assert run.data.params == {name: str(row[name]) for name in SPACE}
        assert run.data.metrics["score"] == row["last_score"]
        assert len(client.get_metric_history(run.info.run_id, "score")) == row["phases"]
        assert (run.info.status, run.data.tags["state"]) == ("FINISHED", row["state"])


def test_a_remark_on_a_trial_that_is_over_begins_no_second_run_of_it(tmp_path, monkeypatch) -> None:
    begun, ended, projects = [], [], set()

    class Run(SimpleNamespace):
        def finish(self, exit_code=0) -> None:
            ended.append(self.id)

    def init(**given) -> Run:
        begun.append(given["id"])
        projects.add(given["project"])
        return Run(id=given["id"], log=lambda m: None, define_metric=lambda *a, **k: None, summary={})

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=dict))
    exporter = exporter_of("wandb", str(tmp_path / "runs"))
    exporter.open("one #3: lr?", {}, 0.0)
    events = a_study()
    exporter(events)
    exporter([Event(Kind.INTERVENTION, 9.0, 0, data={"action": "note", "accepted": True, "text": "the best one"})])
    exporter.close()
    assert sorted(begun) == sorted(ended)
    assert len(set(begun)) == len(begun)
    assert projects == {"one _3_ lr_"}  # it refuses some characters in a project's name


def test_a_place_that_takes_no_csv_is_told_in_one_line(db) -> None:
    with pytest.raises(InvalidInput, match=r"^/proc/one cannot take an export \(.*\): choose another place$"):
        export(db, "exported", "csv", "/proc/one")


def test_the_command_writes_csv_beside_the_database(db, capsys) -> None:
    assert main(["export", "exported", "--to", "csv", "--db", str(db)]) == 0
    folder = db.parent / "exported.csv"
    assert capsys.readouterr().out.strip() == str(folder)
    assert len((folder / "trials.csv").read_text().splitlines()) == 1 + 8
    assert main(["export", "exported", "--to", "csv", "--db", str(db)]) == 0  # it replaces the first
    assert FORMATS == ("optuna", "tensorboard", "mlflow", "wandb", "csv")


def test_callbacks_keep_exports_up_to_date_and_one_that_raises_is_called_no_more(client, tmp_path) -> None:
    optuna, mlflow = pytest.importorskip("optuna"), pytest.importorskip("mlflow")
    heard, calls = [], []

    def broken(events) -> None:
        calls.append(events)
        raise RuntimeError("a logger of one's own")

    live = [exporter_of(to, str(tmp_path / to)) for to in ("optuna", "tensorboard", "mlflow")]
    scheduler = FullRuns(RandomSearcher(SPACE), 3, 2)
    study = Study("live", scheduler, Deterministic, tmp_path / "kb.db", client=client, target_score=-100.0)
    first = Study(**{**vars(study), "callbacks": [heard.extend, broken, *live]})
    with pytest.warns(UserWarning, match="the callback broken raised RuntimeError"):
        first.run()
    assert len(calls) == 1
    assert [str(event.kind) for event in heard][0 :: len(heard) - 1] == ["study_started", "study_ended"]
    Study(**{**vars(first), "callbacks": live, "target_score": None}).run(resume=True)
    trials = trials_of(tmp_path / "kb.db", "live").trials
    there = optuna.load_study(study_name="live", storage=f"sqlite:///{tmp_path / 'optuna'}")
    assert [(t.state.name, t.value) for t in there.trials] == [("COMPLETE", s) for s in trials["last_score"]]
    tracked = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow'}")
    runs = tracked.search_runs([tracked.get_experiment_by_name("live").experiment_id])
    assert sorted(run.data.metrics["score"] for run in runs) == sorted(trials["last_score"])
    assert "live/frames" in runs[0].data.metrics


class Leaves:
    """A callback that means to end the process, at its first or its last word."""

    def __init__(self, when: str) -> None:
        setattr(self, when, lambda *_: sys.exit(3))

    def __call__(self, events) -> None:
        pass


def test_a_study_is_over_whatever_its_callbacks_make_of_its_begin_and_its_end(client, tmp_path) -> None:
    callbacks = [Leaves("begin"), Leaves("close")]
    scheduler = FullRuns(RandomSearcher(SPACE), 1, 1)
    study = Study("left", scheduler, Deterministic, tmp_path / "kb.db", client=client, callbacks=callbacks)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "study 'left': the callback Leaves")
        run = study.start()
        assert run.wait(300)
    assert run.frames().state == "ended"
