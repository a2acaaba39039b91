"""Commands on recorded studies: what they show, what they delete, what a shell completes, what they leave alone."""

import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.events import begun, ended, runs
from tests.support import files
from workbench.cli.main import main
from workbench.cluster.place import Place
from workbench.core.errors import StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Controls, KnowledgeBase, StudyLog, check, delete
from workbench.knowledge.inbox import inbox_path
from workbench.knowledge.lock import output_path
from workbench.study.attached import AttachedStudy
from workbench.study.saved import checkpoint_store, hold_place

SPEC = {"scheduler": {"kind": "full"}, "trainable": {"kind": "my_module:train"}, "seed": 0}
CONFIGS = [{"lr": 1e-05, "act fn": 'ta"nh', "wide": True}, {"lr": 0.5, "act fn": "relu", "wide": False}]


def recorded(db: Path, name: str, place: str | None = None, *, saved: bool = True) -> None:
    log = StudyLog(db, name, SPEC)
    began = Event(Kind.STUDY_STARTED, 0.0, data={} if place is None else {"checkpoints": place})
    log.append([began, Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a", "worker": "a"})])
    for trial, config in enumerate([*CONFIGS, CONFIGS[0]]):
        run = {"config": config, "seed": 1, "parent": None}
        said = {"score": -trial, "metrics": {"score": -trial}}
        said |= {"checkpoint": f"trial-{trial:05d}/phase-000"} if saved else {}
        ended = Event(Kind.PHASE_ENDED, 2.0 + trial, trial, 0, 0, said)
        failed = {"why": "exception", "error": "ValueError: bad", "place": "own.py:3 in train", "attempt": 0}
        log.append(
            [
                Event(Kind.RUN, 1.0 + trial, trial, 0, data=run),
                Event(Kind.PHASE_STARTED, 1.0 + trial, trial, 0, 0),
                ended if trial < 2 else Event(Kind.TRIAL_FAILED, 2.0 + trial, trial, 0, 0, failed),
            ]
        )
    log.append([Event(Kind.STUDY_ENDED, 9.0)])
    log.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "other"):
        recorded(tmp_path / "kb.db", name)
        place = Path(checkpoint_store("kb.db", name).root) / "trial-00000" / "phase-000"
        place.mkdir(parents=True)
        (place / "state.pt").write_bytes(bytes(1000))
    return tmp_path


def test_show_gives_the_best_configuration_and_the_failures_as_toml_and_as_json(folder, capsys) -> None:
    shown = {
        "study": "mine",
        "state": "ended",
        "trials": 3,
        "best": {
            "trial": 0,
            "score": 0.0,
            "config": CONFIGS[0],
            "checkpoint": f"{folder}/kb.checkpoints/mine/trial-00000/phase-000",
        },
        "failures": [{"error": "ValueError: bad (own.py:3 in train)", "trials": 1}],
    }
    assert main(["show", "mine", "--db", "kb.db"]) == 0
    assert tomllib.loads(capsys.readouterr().out) == shown
    assert main(["show", "mine", "--db", "kb.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown


def test_a_schedule_is_told_in_digits_that_tell_its_values_apart(folder, capsys) -> None:
    log = StudyLog(folder / "kb.db", "small", SPEC)
    config = {"lr": 1.49e-6, "gamma": 0.9999999, "batch": 1048576.0}
    log.append([runs(0.0, 0, config), begun(0.0, 0, 0), ended(1.0, 0, 0, 0, 5e-9)])
    log.close()
    assert main(["schedule", "small", "--db", "kb.db"]) == 0
    names, values = (line.split() for line in capsys.readouterr().out.splitlines())
    told = dict(zip(names, values, strict=True))
    assert told.items() >= {"lr": "1.49e-06", "gamma": "0.9999999", "batch": "1048576", "score": "5e-09"}.items()


def test_show_writes_null_for_a_number_that_json_does_not_have(folder, capsys) -> None:
    log = StudyLog(folder / "kb.db", "mine", SPEC, resume=True)
    best = {"score": float("inf"), "metrics": {}}
    log.append([Event(Kind.STUDY_RESUMED, 9.0), Event(Kind.PHASE_ENDED, 9.0, 1, 0, 0, best)])
    log.close()
    assert main(["show", "mine", "--db", "kb.db", "--json"]) == 0

    def refused(word: str) -> None:
        raise ValueError(word)

    shown = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert shown["best"] == {"trial": 1, "score": None, "config": CONFIGS[1]}


def test_the_list_of_studies_calls_the_best_score_of_any_phase_the_luckiest(folder, capsys) -> None:
    assert main(["studies", "--db", "kb.db"]) == 0
    head = capsys.readouterr().out.splitlines()[0].split()
    assert head == ["name", "created", "state", "trials", "phases", "luckiest_phase", "wall_s", "checkpoints_mib"]


def test_a_simulated_study_is_marked(folder, capsys) -> None:
    StudyLog("kb.db", "played", {**SPEC, "simulated": True}).close()
    assert main(["studies", "--db", "kb.db"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()][3] == ["played", "(simulated)"]
    assert main(["show", "played", "--db", "kb.db"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["simulated"] is True


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [("", False), ("closed", False), ("n\n", False), ("y\n", True), ("Yes\n", True), (None, True)],
)
def test_delete_asks_first_and_takes_all_of_the_study_and_nothing_else(
    folder, monkeypatch, capsys, answer, agreed
) -> None:
    Controls("kb.db", "mine").stop(0)
    output_path(folder / "kb.db", "mine").write_text("said by a driver of its own process")
    before = files(folder)
    options = ["--yes"] if answer is None else []
    if answer is not None:
        monkeypatch.setattr("sys.stdin", None if answer == "closed" else io.StringIO(answer))
    assert main(["delete", "mine", "--db", "kb.db", *options]) == (0 if agreed else 1)
    said = capsys.readouterr().out
    beside = folder / "kb.checkpoints" / "mine"
    assert f"study 'mine': ended, 3 trials, 2 phases ended; checkpoints of 0.0 MiB in {beside}\n" in said
    if not agreed:
        assert "nothing was deleted" in said
        assert files(folder) == before
        return
    with KnowledgeBase("kb.db") as kb:
        assert list(kb) == ["other"]
        assert len(kb["other"].frames().trials) == 3
        assert len(kb["other"].metrics())
    assert check("kb.db") == []
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert not [name for name in left if "mine" in name]
    assert "kb.checkpoints/other/trial-00000/phase-000/state.pt" in left
    recorded(folder / "kb.db", "mine")  # the name is free again


class MeanwhileDeleted(io.StringIO):
    """Says yes, once the study was deleted by somebody else, and perhaps another begun under its name."""

    def __init__(self, *, anew: bool) -> None:
        super().__init__("y\n")
        self.anew = anew

    def readline(self, *given) -> str:
        delete("kb.db", "mine")
        if self.anew:
            recorded(Path("kb.db"), "mine")
        return super().readline(*given)


@pytest.mark.parametrize(("anew", "said"), [(True, "study 'mine' is not what was looked at"), (False, "known: other")])
def test_who_agrees_to_delete_a_study_deletes_no_other_of_its_name(folder, monkeypatch, capsys, anew, said) -> None:
    monkeypatch.setattr("sys.stdin", MeanwhileDeleted(anew=anew))
    assert main(["delete", "mine", "--db", "kb.db"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    with KnowledgeBase("kb.db") as kb:
        assert list(kb) == (["other", "mine"] if anew else ["other"])
    assert (folder / "kb.checkpoints" / "mine" / "trial-00000").exists()


def test_a_study_that_is_being_driven_is_not_deleted(folder, capsys) -> None:
    driver = StudyLog(folder / "kb.db", "mine", SPEC, resume=True)
    assert main(["delete", "mine", "--db", "kb.db", "--yes"]) == 2
    assert "is being driven by process" in capsys.readouterr().err
    driver.close()
    assert (folder / "kb.checkpoints" / "mine" / "trial-00000").exists()
    with KnowledgeBase("kb.db") as kb:
        assert list(kb) == ["mine", "other"]


def test_a_study_is_not_deleted_from_a_copy_while_it_is_driven_with_the_same_checkpoints(folder, capsys) -> None:
    """Its driver would wait for them ever after."""
    place = checkpoint_store("kb.db", "mine").root
    shutil.copy("kb.db", "kb.sqlite")
    with hold_place(place):
        assert main(["delete", "mine", "--db", "kb.sqlite", "--yes"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"the study that has its checkpoints at {place} is driven by process {os.getpid()} on" in line
        assert Path(place, "trial-00000", "phase-000", "state.pt").is_file()
    with KnowledgeBase("kb.sqlite") as kb:
        assert list(kb) == ["mine", "other"]
    assert main(["delete", "mine", "--db", "kb.sqlite", "--yes"]) == 0
    assert not Path(place).exists()


@pytest.mark.parametrize("simulated", [True, False])
def test_a_study_without_checkpoints_is_not_deleted_with_those_of_its_name_beside_it(folder, capsys, simulated) -> None:
    """kb.db and kb.sqlite have one place: a real study may have begun in one after another in the other."""
    if simulated:
        StudyLog("kb.sqlite", "mine", {**SPEC, "simulated": True}).close()
    else:
        recorded(folder / "kb.sqlite", "mine", saved=False)
    before = files(folder / "kb.checkpoints")
    assert main(["studies", "--db", "kb.sqlite"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == ("none" if simulated else "0.0")
    assert main(["delete", "mine", "--db", "kb.sqlite", "--yes"]) == 0
    stays = f"it has no checkpoints: those in {folder}/kb.checkpoints/mine, which its log does not name, stay\n"
    assert stays in capsys.readouterr().out
    assert files(folder / "kb.checkpoints") == before
    with KnowledgeBase("kb.sqlite") as kb:
        assert list(kb) == []


def test_checkpoints_are_not_deleted_with_a_simulated_study_for_which_they_are_named(folder, capsys) -> None:
    StudyLog("other.db", "played", {**SPEC, "simulated": True}).close()
    (folder / "loose" / "trial-00000" / "phase-000").mkdir(parents=True)
    assert main(["delete", "played", "--db", "other.db", "--yes", "--checkpoints", "loose"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("study 'played' was simulated, and has no checkpoints: delete it without naming a place")
    assert (folder / "loose" / "trial-00000" / "phase-000").is_dir()


def test_a_study_whose_checkpoints_cannot_be_removed_is_deleted_once_they_can(folder, monkeypatch, capsys) -> None:
    def refuses(_, path, **how) -> None:
        raise PermissionError(f"{path} is another's")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "rm", refuses)
        assert main(["delete", "mine", "--db", "kb.db", "--yes"]) == 2
        assert "out of reach" in capsys.readouterr().err
    assert main(["delete", "mine", "--db", "kb.db", "--yes"]) == 0
    assert not (folder / "kb.checkpoints" / "mine").exists()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1/study", "none://study"])
def test_delete_leaves_a_study_whose_checkpoints_are_out_of_reach(folder, capsys, url) -> None:
    recorded(folder / "kb.db", "far", url)
    before = files(folder)
    assert main(["delete", "far", "--db", "kb.db", "--yes"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("workbench: ")
    assert url in line
    assert files(folder) == before


def test_the_checkpoints_of_another_study_are_neither_deleted_nor_packed_with_one(folder, capsys) -> None:
    recorded(folder / "kb.db", "far", str(folder / "shared"))
    with KnowledgeBase("kb.db") as kb:
        Place(str(folder / "shared")).claim(kb["far"].identity)
    before = files(folder)
    for command in (["delete", "mine", "--yes"], ["pack", "mine", "mine.pack"]):
        assert main([*command, "--db", "kb.db", "--checkpoints", str(folder / "shared")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(
            f"is another study's place of checkpoints, as {folder / 'shared'}/.study says: name that of study 'mine'"
        )
    assert files(folder) == before
    assert main(["delete", "far", "--db", "kb.db", "--yes"]) == 0
    assert not (folder / "shared").exists()


@pytest.mark.parametrize("link", [False, True])
def test_the_place_of_another_beside_its_knowledge_base_is_neither_deleted_nor_packed_with_one(
    folder, capsys, link
) -> None:
    """It has no mark, and the study's own may be gone."""
    place = folder / "kb.checkpoints" / "other"
    (folder / "kb.checkpoints" / "mine").rename(folder / "gone")
    if link:
        (folder / "link").symlink_to(place)
    before = files(folder)
    for command in (["delete", "mine", "--yes"], ["pack", "mine", "mine.pack"]):
        assert main([*command, "--db", "kb.db", "--checkpoints", str(folder / "link" if link else place)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is where study 'other' of kb, the knowledge base beside it, has its checkpoints: name that of" in line
    assert files(folder) == before


def test_a_study_is_not_deleted_without_its_checkpoints_for_some_that_are_named(folder, capsys) -> None:
    before = files(folder)
    assert main(["delete", "mine", "--db", "kb.db", "--yes", "--checkpoints", str(folder / "elsewhere")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"has its checkpoints at {folder}/kb.checkpoints/mine: delete it without naming a place")
    assert files(folder) == before
    (folder / "kb.checkpoints" / "mine").rename(folder / "elsewhere")
    assert main(["delete", "mine", "--db", "kb.db", "--yes", "--checkpoints", str(folder / "elsewhere")]) == 0
    assert not (folder / "elsewhere").exists()


def test_the_report_of_a_study_of_its_name_in_a_second_knowledge_base_is_not_replaced(
    folder, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("workbench.study.results.Results.figures", lambda _: {})
    recorded(folder / "second.db", "mine")
    assert main(["report", "mine", "--db", "kb.db"]) == 0
    assert capsys.readouterr().out == f"{folder}/mine.html\n"
    page = (folder / "mine.html").read_bytes()
    assert main(["report", "mine", "--db", "second.db"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"{folder}/mine.html is the report of another study: choose another name, or remove that one")
    assert (folder / "mine.html").read_bytes() == page
    assert AttachedStudy("second.db", "mine").report(folder / "second.html") == folder / "second.html"
    assert AttachedStudy("kb.db", "mine").report() == folder / "mine.html"


def test_checkpoints_that_were_put_elsewhere_are_counted_and_deleted_with_their_study(folder, capsys) -> None:
    shared = folder / "shared"
    recorded(folder / "kb.db", "far", str(shared))
    recorded(folder / "kb.db", "at a url", "ftp://127.0.0.1:1/study")
    phase = shared / "trial-00000" / "phase-000"
    phase.mkdir(parents=True)
    (phase / "state.pt").write_bytes(bytes(3 << 20))
    assert main(["studies", "--db", "kb.db"]) == 0
    assert [row.split()[-1] for row in capsys.readouterr().out.splitlines()[1:]] == ["0.0", "0.0", "3.0", "remote"]
    shared.rename(folder / "away")
    for name, says in (("far", f"at {shared}, which is not there: bring it back"), ("at a url", "out of reach")):
        assert main(["delete", name, "--db", "kb.db", "--yes"]) == 2
        assert says in capsys.readouterr().err
    (folder / "away").rename(shared)
    assert main(["delete", "far", "--db", "kb.db", "--yes"]) == 0
    shown = f"checkpoints of 3.0 MiB in {shared}, which are also those of any copy of this knowledge base\n"
    assert shown in capsys.readouterr().out
    assert not shared.exists()
    recorded(folder / "kb.db", "far", str(shared))
    assert main(["delete", "far", "--db", "kb.db", "--yes", "--checkpoints", str(shared)]) == 0  # they are gone
    with KnowledgeBase("kb.db") as kb:
        assert list(kb) == ["mine", "other", "at a url"]


def test_what_is_written_of_a_study_stands_beside_the_file_and_not_beside_a_link_to_it(folder, monkeypatch) -> None:
    monkeypatch.setattr("workbench.study.results.Results.figures", lambda _: {})
    (folder / "links").mkdir()
    link = folder / "links" / "kb.db"
    link.symlink_to(folder / "kb.db")
    assert main(["report", "mine", "--db", str(link)]) == 0
    assert main(["export", "mine", "--to", "csv", "--db", str(link)]) == 0
    assert AttachedStudy(link, "other").report() == folder / "other.html"
    assert (folder / "mine.html").is_file()
    assert (folder / "mine.csv").is_dir()
    assert list((folder / "links").iterdir()) == [link]


@pytest.mark.parametrize("command", ["show", "delete", "report", "schedule", "record"])
def test_a_name_that_is_mistaken_makes_nothing(folder, capsys, command) -> None:
    before = files(folder)
    more = ["out"] if command == "record" else []
    assert main([command, "mina", *more, "--db", "kb.db"]) == 2
    assert "did you mean 'mine'" in capsys.readouterr().err
    assert main([command, "mine", *more, "--db", "no/such.db"]) == 2
    assert "no knowledge base at no/such.db" in capsys.readouterr().err
    assert files(folder) == before


def test_what_is_asked_or_resumed_by_a_mistaken_name_makes_nothing(folder) -> None:
    before = files(folder)
    with pytest.raises(StudyError, match="did you mean 'mine'"):
        Controls("kb.db", "mina").stop(0)
    with pytest.raises(
        StudyError, match=r"no study 'mine' to resume, for there is no .*: start it without resume=True"
    ):
        StudyLog(folder / "new" / "kb.db", "mine", SPEC, resume=True)
    assert files(folder) == before
    assert not inbox_path(folder / "kb.db", "mina").exists()


COMPLETED = {
    "workbench sh": ["show"],
    "workbench show --db kb.db ": ["mine", "other"],
    "workbench delete --db kb.db o": ["other"],
    "workbench export --db kb.db m": ["mine"],
    "workbench run --preset cartpole": ["cartpole", "cartpole-pbt"],
    "workbench simulate --preset toy-g": ["toy-grid"],
    "workbench run --resume --db kb.db --name m": ["mine"],
    "workbench show --db none.db m": [],
}
SHELL = """
import os, sys
from workbench.cli.main import main
for number, typed in enumerate(sys.argv[1:]):
    if os.fork() == 0:  # it ends the process that it answers in
        os.environ |= {"_ARGCOMPLETE_STDOUT_FILENAME": f"{number}.txt", "COMP_LINE": typed}
        os.environ |= {"_ARGCOMPLETE": "1", "COMP_POINT": str(len(typed)), "_ARGCOMPLETE_IFS": "|"}
        main()
    os.wait()
"""


def test_a_shell_completes_commands_studies_and_presets(folder) -> None:
    subprocess.run([sys.executable, "-c", SHELL, *COMPLETED], check=True)
    for number, (typed, offered) in enumerate(COMPLETED.items()):
        words = [word.strip() for word in Path(f"{number}.txt").read_text().split("|")]
        assert [word for word in words if word and not word.startswith("-")] == offered, typed
