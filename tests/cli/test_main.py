"""The command line, as a user meets it: in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from argparse import Namespace
from contextlib import suppress
from importlib.metadata import version
from io import BytesIO, TextIOWrapper
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from tests import events
from tests.cli.conftest import QUICK, STUDY, refused
from tests.simulated import kept
from tests.support import simulate
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.cli.main import _is_unread, _parser, main
from workbench.cli.run import _study, _watch
from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.budget import Budget
from workbench.core.domains import Choice
from workbench.core.errors import DatabaseError
from workbench.core.protocols import Event, Kind
from workbench.core.record import provenance
from workbench.knowledge import KnowledgeBase, Recording, StudyLog
from workbench.study.attached import AttachedStudy
from workbench.study.file import read_file, read_preset, study_from


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_the_version_is_the_package_s(capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"workbench {version('rl-workbench')}\n"


def test_a_study_from_a_file_then_its_report(folder, capfd, drawn_once, one_cluster) -> None:
    (folder / "study.toml").write_text(QUICK)
    assert main(["run", "study.toml", "--db", "kb.db", "--seed", "5", "--record", "recorded"]) == 0
    out, err = capfd.readouterr()
    assert re.search(r"best config\s+h0 = ", out)
    assert re.search(r"completion rate\s+\d+\.\d% \(expected 87.5%, minimum 83.3%\)", out)
    assert re.search(r"trials: 3, 3 started, 3 ended", err)
    assert (Path(re.search(r"best checkpoint  (.+)", out)[1]) / "manifest.json").exists()
    report = (folder / "tiny.html").read_text()
    assert "Study tiny" in report

    with KnowledgeBase("kb.db") as kb:
        assert [e.kind for e in Recording.open("recorded").events()] == [e.kind for e in kb["tiny"].events()]

    assert main(["studies", "--db", "kb.db"]) == 0
    head, row = capfd.readouterr().out.splitlines()
    assert row.split()[head.split().index("name")] == "tiny"
    on_disk = sum(f.stat().st_size for f in Path("kb.checkpoints/tiny").rglob("*") if f.is_file())
    assert float(row.split()[-1]) == pytest.approx(on_disk / 2**20, abs=0.06)
    assert head.split()[-1] == "checkpoints_mib"
    assert main(["report", "tiny", "--db", "kb.db", "--out", "r.html"]) == 0
    assert 1e4 < Path("r.html").stat().st_size < 1e6
    assert "exists" in refused_text(capfd, "run", "study.toml", "--db", "kb.db", "--seed", "5")
    assert main(["run", "--resume", "--name", "tiny", "--db", "kb.db", "--quiet"]) == 0
    with KnowledgeBase("kb.db") as kb:
        assert kb["tiny"].spec["seed"] == 5


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_report_that_cannot_be_written_costs_nothing_else(folder, capsys, monkeypatch, interrupted) -> None:
    log = StudyLog("kb.db", "tiny", {"scheduler": {"kind": "full"}, "trainable": {"kind": "own"}, "seed": 0})
    trial = [events.runs(0.0, 0, {"h0": 0.5}), events.begun(0.0, 0, 0), events.ended(1.0, 0, 0, 0, 5.0)]
    log.append([Event(Kind.STUDY_STARTED, 0.0), *trial])
    log.close()
    study = Namespace(db="kb.db", name="tiny", start=lambda resume: AttachedStudy("kb.db", "tiny"))
    monkeypatch.setattr("workbench.study.results.Results.figures", lambda _: {})
    monkeypatch.setattr("workbench.cli.run._study", lambda *_: study)
    monkeypatch.setattr("workbench.cli.run._watch", lambda run, quiet: interrupted)
    page = folder / "tiny.html"
    page.mkdir()
    command = ["run", "study.toml", "--db", "kb.db", "--record", "recorded"]
    assert main(command) == (130 if interrupted else 0)
    out, err = capsys.readouterr()
    if interrupted:
        assert out.endswith(
            "\ninterrupted; go on with: workbench run --resume study.toml --db kb.db --record recorded\n"
        )
    else:
        assert out.endswith("\n  recorded         recorded\n")
    assert (folder / "recorded").is_dir() != interrupted
    do = "give a name in it: workbench report --db kb.db --out FILE tiny"
    assert err == f"workbench: no report was written, a report is one file, and {page} is a folder: {do}\n"


def test_a_study_on_a_cluster_that_is_there_already(folder) -> None:
    (folder / "study.toml").write_text(QUICK)
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        where = ["--cluster", cluster.scheduler_address, "--checkpoints", str(folder / "shared")]
        assert main(["run", "study.toml", "--db", "kb.db", "--quiet", *where]) == 0
        assert len(client.scheduler_info()["workers"]) == 2  # it is left running
    with KnowledgeBase("kb.db") as kb:
        assert kb["tiny"].frames().state == "ended"
        assert len(kb["tiny"].frames().slots) == 2
    assert list((folder / "shared").rglob("*"))
    assert not (folder / "kb.checkpoints").exists()


def test_no_cluster_answers(folder, capsys, monkeypatch) -> None:
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in refused(
            capsys, "run", "study.toml", "--cluster", "tcp://127.0.0.1:9"
        )
    for where in ("nowhere://x", "localhost"):
        assert "name no cluster" in refused(capsys, "run", "study.toml", "--cluster", where)
    monkeypatch.setattr("workbench.cluster.launchers._FILE_S", 0.1)
    assert main(["run", "study.toml", "--cluster", "none.json"]) == 2
    waiting, refusal = capsys.readouterr().err.splitlines()
    assert waiting == "workbench: waiting for a Dask scheduler to write none.json"
    assert "no scheduler file none.json" in refusal
    assert sorted(p.name for p in folder.iterdir()) == ["study.toml"]


def refused_text(capfd, *argv) -> str:
    assert main(argv) == 2
    return capfd.readouterr().err


ENDLESS = STUDY.replace("frames = 1000", "frames = 3_000_000")
OWN = (
    QUICK.replace("quadratic", "waiting:train")
    .replace("n_trials = 3\nn_phases = 2", "n_trials = 2\nn_phases = 2_000")
    .replace("nodes = 2", "nodes = 1")
)
WAITING = """
import time

def train(config):
    while True:
        time.sleep(0.1)
        yield 0.0
"""


def test_ctrl_c_is_one_line_wherever_it_comes(capsys, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.knowledge.check", interrupted)
    assert main(["check"]) == 130
    assert capsys.readouterr().err == "workbench: interrupted\n"


INTERRUPTED_AT = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from workbench.cli.main import main
sys.exit(main(["check"]))
"""


@pytest.mark.parametrize("module", ["workbench.core.errors", "workbench.cli.run"])
def test_ctrl_c_is_one_line_while_modules_are_imported(module) -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED_AT, module], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "workbench: interrupted\n")


def test_a_file_the_system_does_not_give_is_one_line(capsys, monkeypatch, tmp_path) -> None:
    def refused(*_: object) -> None:
        (tmp_path / "none" / "kb.db").write_text("")

    monkeypatch.setattr("workbench.knowledge.check", refused)
    assert main(["check"]) == 2
    assert capsys.readouterr().err == f"workbench: {tmp_path / 'none' / 'kb.db'}: No such file or directory\n"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no file that is always full")
def test_a_full_disk_is_one_line_wherever_it_is_met(capsys, monkeypatch) -> None:
    def written(*_: object) -> None:
        with open("/dev/full", "w") as file:
            file.write("all of it")

    monkeypatch.setattr("workbench.knowledge.check", written)
    assert main(["check"]) == 2
    assert capsys.readouterr().err == "workbench: No space left on device: make space\n"
    command = [sys.executable, "-m", "workbench", "run", "--preset", "list"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (2, "workbench: No space left on device: make space\n")


def test_a_limit_on_memory_below_what_is_needed_is_one_line(tmp_path) -> None:
    command = [sys.executable, "-m", "workbench", "run", "--preset", "cartpole", "--db", str(tmp_path / "kb.db")]
    ended = subprocess.run(
        ["sh", "-c", 'ulimit -v 460800; exec "$@"', "sh", *command],  # PyTorch alone takes more
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert re.fullmatch(r"workbench: this process may have 450 MiB of memory .*: raise that limit\n", ended.stderr)
    assert ended.returncode == 2
    assert not list(tmp_path.iterdir())


def test_letters_that_a_terminal_lacks_are_printed_escaped(tmp_path, monkeypatch) -> None:
    name, db = "größe \N{PARTY POPPER}", str(tmp_path / "kb.db")
    StudyLog(db, name, {}).close()
    printed = []
    for command in (["studies"], ["show", name], ["show", name, "--json"]):
        out = TextIOWrapper(BytesIO(), "latin-1")
        monkeypatch.setattr(sys, "stdout", out)
        assert main([*command, "--db", db]) == 0
        printed.append(out.buffer.getvalue().decode("latin-1"))
    assert all("größe \\U0001f389" in text for text in printed[:2])
    assert json.loads(printed[2])["study"] == name


def test_a_command_is_done_though_nothing_can_be_printed(tmp_path) -> None:
    command = f"exec {sys.executable} -m workbench run --preset list >&-"
    ended = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_who_stops_reading_what_is_printed_ends_it_without_a_word(tmp_path) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "workbench", "studies", "--db", str(tmp_path / "kb.db")]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_progress_that_nobody_reads_is_given_up(monkeypatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as nobody:  # closed without an error in the end
        monkeypatch.setattr(sys, "stderr", nobody)
        assert main(["run", "--preset", "list"]) == 0
        with pytest.raises(BrokenPipeError):
            print("lost", file=nobody)
        assert _is_unread()
        assert main(["run", "--preset", "list"]) == 0


@pytest.fixture
def signals():
    kept = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


class Watched:
    """A study as `_watch` meets it, which hears signals while it is waited for."""

    def __init__(self, *heard: signal.Signals) -> None:
        self.heard, self.stopped = [*heard], False

    def wait(self) -> None:
        while self.heard:
            signal.raise_signal(self.heard.pop(0))

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("heard", [signal.SIGTERM, signal.SIGHUP])
def test_a_study_is_ended_cleanly_with_its_terminal_or_its_batch_job(signals, heard) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may be what nohup runs
    twice = [heard, signal.SIGHUP] if heard == signal.SIGHUP else [heard]  # of the shell and of the terminal
    assert _watch(Watched(*twice), quiet=True)


def test_a_study_that_was_begun_with_nohup_outlives_its_terminal(signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert not _watch(Watched(signal.SIGHUP), quiet=True)


def n_begun(db: str) -> int:
    with suppress(DatabaseError), KnowledgeBase(db) as kb:  # it may be there and have no tables yet
        return sum(e.kind is Kind.PHASE_STARTED for name in kb for e in kb[name].events())
    return 0


def ended(command: list[str], how: signal.Signals | None, begun: int) -> str:
    """Run a command, end it once so many phases have begun, and give what it has printed."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    while not (Path("kb.db").exists() and n_begun("kb.db") >= begun):
        assert running.poll() is None
        time.sleep(0.1)
    if how is None:
        AttachedStudy("kb.db", "tiny").stop()
    else:
        os.killpg(running.pid, how) if how is signal.SIGINT else running.send_signal(how)  # as a terminal's Ctrl-C does
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "Traceback" not in err
    return out


@pytest.mark.parametrize(
    ("how", "study"),
    [
        (signal.SIGINT, OWN),
        pytest.param(signal.SIGTERM, ENDLESS, marks=pytest.mark.slow),
        pytest.param(None, ENDLESS, marks=pytest.mark.slow),
    ],
)
def test_a_study_is_ended_cleanly_and_resume_goes_on(folder, how, study) -> None:
    (folder / "study.toml").write_text(study)
    (folder / "waiting.py").write_text(WAITING)
    places = ["--db", "kb.db", "--checkpoints", str(folder / "shared")]
    command = [sys.executable, "-m", "workbench", "run", "study.toml", *places]
    out = ended(command, how, 1)
    assert f"go on with: workbench run --resume study.toml {' '.join(places)}\n" in out
    with KnowledgeBase("kb.db") as kb:
        assert kb["tiny"].frames().state == "interrupted"


def searched(module: str, n_phases: int = 1) -> list[str]:
    """Write a study of a function of this module that has ended, and give the arguments that have it confirmed."""
    table = tomllib.loads(OWN.replace("waiting:", f"{module}:").replace("2_000", f"{n_phases}"))
    study = study_from(table, db="kb.db")
    events = simulate(study.scheduler, slots=1)
    log = StudyLog(study.db, study.name, study.spec)
    began = Event(Kind.STUDY_STARTED, 0.0, data=provenance(1, scheduler=study.scheduler))
    log.append([began, *events, Event(Kind.STUDY_ENDED, events[-1].at)])
    log.close()
    return ["--top", "1", "--seeds", "2", "--nodes", "1", "--trainable", f"{module}:train", "--db", "kb.db", "tiny"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_confirmation_is_ended_cleanly_and_leaves_the_study_as_it_was(folder, monkeypatch, how) -> None:
    (folder / "waits_again.py").write_text(WAITING)
    monkeypatch.syspath_prepend(folder)
    given = searched("waits_again")
    out = ended([sys.executable, "-m", "workbench", "confirm", *given], how, n_begun("kb.db") + 1)
    assert f"interrupted; go on with: workbench confirm {' '.join(given)}\n" in out
    with KnowledgeBase("kb.db") as kb:
        assert kb["tiny"].frames().state == "ended"


def test_a_confirmation_that_was_told_to_end_says_how_it_goes_on_and_the_search_stays_ended(
    folder, capsys, monkeypatch, one_cluster
) -> None:
    (folder / "waits_here.py").write_text(WAITING)
    monkeypatch.syspath_prepend(folder)
    one_cluster.run(sys.path.append, str(folder))
    given = searched("waits_here", 50)
    before = n_begun("kb.db")

    def told(run, quiet: bool) -> bool:
        while n_begun("kb.db") == before:
            assert not run.wait(0.05)
        run.stop()
        return run.wait(300)

    monkeypatch.setattr("workbench.cli.run._watch", told)
    try:
        assert main(["confirm", *given]) == 130
    finally:
        one_cluster.run(sys.path.remove, str(folder))
    assert f"interrupted; go on with: workbench confirm {' '.join(given)}\n" in capsys.readouterr().out
    with KnowledgeBase("kb.db") as kb:
        assert kb["tiny"].frames().state == "ended"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"CartPole-v1"', '"Pogn"'), "did you mean 'pong'"),
        (("[1e-4, 1e-2]", "[1e-2, 1e-4]"), "inverted"),
        (("n_trials = 3", "n_trials = 0"), "n_trials a whole number from 1 to 1000000"),
        (("n_phases = 2", "n_phases = 2\neviction_rate = 1.5"), "between 0 and 1"),
        (("nodes = 2", "nodes = 0"), "nodes >= 1"),
        (("learning_rate =", "lerning_rate ="), "did you mean 'learning_rate'"),
        (("frames = 1000", "frame = 1000"), "episodes, frames, updates or seconds"),
        (("frames = 1000", "frames = -1"), "one positive number"),
        (('kind = "ga3c"', 'kind = "ga4c"'), "did you mean 'ga3c'"),
        (("[scheduler]", "[schedular]"), "did you mean 'scheduler'"),
        (("[space]", "[space"), "not a valid TOML file"),
        (("CartPole-v1", "Pendulum-v1"), "discrete"),
    ],
)
def test_a_bad_study_file_is_one_line_and_exit_code_2(folder, capsys, change, says) -> None:
    (folder / "study.toml").write_text(STUDY.replace(*change))
    line = refused(capsys, "run", "study.toml", "--db", "kb.db")
    assert line.startswith("workbench: ")
    assert says in line
    assert not Path("kb.db").exists()


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["run"], "say what to run"),
        (["run", "study.toml", "--preset", "cartpole"], "not both"),
        (["run", "missing.toml"], "cannot read the study file missing.toml"),
        (["run", "--preset", "cartpol"], "did you mean 'cartpole'"),
        (["run", "--preset", "paper-46"], "is of a simulation: workbench simulate takes it"),
        (["run", "study.toml", "--nodes", "-1"], "nodes >= 1, got -1"),
        (["run", "study.toml", "--seed", "-1"], "a seed is"),
        (["run", "study.toml", "--cluster", "tcp://127.0.0.1:9", "--nodes", "2"], "--nodes is of the local cluster"),
        (["run", "study.toml", "--cluster", "tcp://127.0.0.1:9", "--gpus-per-slot", "1"], "--gpus-per-slot is of the"),
        (["confirm", "tiny", "--cluster", "tcp://127.0.0.1:9", "--nodes", "7"], "--nodes is of the local cluster"),
        (["run", "study.toml", "--record", "."], "--record wants a folder that does not"),
        (["run", "--resume", "--name", "tiny", "--db", "none.db"], "no knowledge base at none.db"),
        (["run", "--resume", "--name", "tiny", "--seed", "1"], "a resumed study keeps its seed: leave --seed out"),
        (["run", "--name", "tiny", "--trials", "5"], "--trials is of a study that is resumed by its name"),
        (["run", "study.toml", "--trainable", "mine:train"], "--trainable goes with --resume --name"),
        (["studies", "--db", "study.toml"], "cannot be read as a knowledge base"),
        (["report", "tiny", "--db", "none.db"], "no knowledge base at none.db"),
        (["notebook", "none.ipynb"], "no notebook at none.ipynb"),
        (["scoreboard", "--write", "study.toml/page.md"], "study.toml"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(folder, capsys, argv, says) -> None:
    assert says in refused(capsys, *argv)
    assert sorted(p.name for p in folder.iterdir()) == ["study.toml"]


GIVEN = {"nodes": 3, "mode": "min", "max_hours": 2.0, "target_score": 0.5, "weight": 4.0, "gpus_per_slot": 0.5}


def options(command: str) -> Namespace:
    """Parse a command with all of them."""
    return _parser().parse_args([*command.split(), *(f"--{k.replace('_', '-')}={v}" for k, v in GIVEN.items())])


def test_options_win_over_a_study_file(folder) -> None:
    (folder / "study.toml").write_text(QUICK)
    more = {"name": "mine", "seed": 5, "checkpoints": "there", "db": Path("my.db"), "fail_fast": False}
    study = _study(options("run study.toml --name mine --seed 5 --checkpoints there --db my.db --no-fail-fast"), None)
    assert {name: getattr(study, name) for name in GIVEN | more} == GIVEN | more
    assert study.checkpoint_store == CheckpointStore("there", mode="min")
    as_it_is = _study(_parser().parse_args(["run", "study.toml"]), None)
    assert as_it_is == study_from(read_file("study.toml"))


def test_options_win_over_what_a_study_was_run_with(folder) -> None:
    kept(folder / "kb.db", study_from(tomllib.loads(QUICK), db=folder / "kb.db", seed=5))
    study = _study(options("run --resume --name tiny --db kb.db --trials 9"), None)
    assert {name: getattr(study, name) for name in GIVEN} == GIVEN
    assert (study.scheduler.n_trials, study.db, study.seed) == (9, Path("kb.db"), 5)


def test_a_file_may_say_only_what_differs_from_a_preset(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    changes = "[scheduler]\nn_trials = 5\n[space]\nt_max = {choice = [5]}"
    file.write_text(f'base = "pong-hour"\n[study]\nname = "mine"\n{changes}')
    mine, base = study_from(read_file(file)), study_from(read_preset("pong-hour"))
    assert (mine.name, mine.scheduler.n_trials, mine.trainable) == ("mine", 5, base.trainable)
    assert mine.scheduler.n_phases == base.scheduler.n_phases
    assert dict(mine.scheduler.searcher.space) == dict(base.scheduler.searcher.space) | {"t_max": Choice([5])}


def test_a_table_with_a_kind_takes_nothing_from_the_base(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    full = '[scheduler]\nkind = "full"\nn_trials = 5\nn_phases = 2'
    file.write_text(f'base = "pong-hour"\n[study]\nname = "mine"\n{full}')
    assert study_from(read_file(file)).scheduler.n_phases == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('base = "pong-huor"', "did you mean 'pong-hour'"),
        ("base = 3", "unknown preset '3'"),
        ('base = "pong-hour"', 'the study has no name: add name = "…"'),
        ('base = "pong-hour"\nspace = 3\n[study]\nname = "mine"', "a search space is a table"),
    ],
)
def test_a_file_with_a_bad_base_is_refused_in_one_line(folder, capsys, text, says) -> None:
    (folder / "study.toml").write_text(text)
    assert says in refused(capsys, "run", "study.toml")


def test_an_option_that_a_command_does_not_have_shows_that_command_s_usage(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["studies", "--name", "x"])
    assert capsys.readouterr().err.startswith("usage: workbench studies [-h]")


def test_the_examples_in_the_help_are_studies(tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    examples = re.split(r"a study file:\n|or what differs from .*:\n", capsys.readouterr().out)[1:]
    for example in examples:
        (tmp_path / "study.toml").write_text(example)
        assert study_from(read_file(tmp_path / "study.toml")).name == "my-pong"
    assert len(examples) == 2


def test_a_checkpoint_is_evaluated_by_a_protocol(tmp_path, capsys) -> None:
    trial = GA3C("CartPole-v1", Budget(updates=2), lockstep=True)({}, 1)
    trial.train_phase(lambda metrics: None)
    trial.save(tmp_path)
    trial.close()
    played = []
    for seed in ("1", "1", "2"):
        assert main(["evaluate", str(tmp_path), "--protocol", "ba3c", "--seed", seed]) == 0
        played.append(json.loads(capsys.readouterr().out))
    assert played[0] == played[1] != played[2]
    assert played[0]["n_episodes"] == 50
    assert 8 <= played[0]["lowest"] <= played[0]["mean"] <= played[0]["highest"] <= 500
    assert main(["evaluate", str(tmp_path), str(tmp_path), "--protocol", "ba3c", "--seed", "2"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [played[2]] * 2


def test_evaluating_what_is_no_checkpoint(tmp_path, capsys) -> None:
    GA3C("CartPole-v1")({}, 1).save(tmp_path)
    missing = f"{tmp_path}/none"
    assert f"there is no checkpoint in {missing}" in refused(capsys, "evaluate", str(tmp_path), missing)


def test_more_trials_are_of_a_study_that_is_resumed_by_its_name(capsys) -> None:
    said = "--trials is of a study that is resumed by its name; of a new one, write n_trials under [scheduler] in "
    for what, where in (
        (["mine.toml"], "its file"),
        (["--preset", "pong-short"], 'a file that begins with base = "pong-short"'),
    ):
        assert main(["run", *what, "--trials", "5"]) == 2
        assert said + where in capsys.readouterr().err
