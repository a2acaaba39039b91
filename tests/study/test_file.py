"""Bad input of any kind: one readable line, exit code 2, nothing half-written."""

import contextlib
import io
import json
import os
import tomllib
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import own
from tests.cli.conftest import QUICK as QUICK_STUDY
from tests.cli.conftest import STUDY
from tests.events import write_log
from tests.simulated import kept
from workbench import HyperTrick, Study, Uniform
from workbench.algos.quadratic import Quadratic
from workbench.cli.main import main
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.places import DATA
from workbench.core.protocols import Event, Kind
from workbench.core.resume import refuse_another
from workbench.study.file import presets, presets_told, read_preset, recorded_study, study_from

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
COMMANDS = settings(QUICK, max_examples=25)  # each makes the parser of every command anew

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["random", "ga3c", "Pong"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=12), inner, max_size=3)),
    max_leaves=6,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*argv: str) -> str | None:
    """Run a command that must not start a study; return its one line if it is refused."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as left:  # argparse: its own message, the same exit code
            assert left.code in (0, 2)  # noqa: PT017  either is right
            return None
    if code != 2:
        return None
    (line,) = err.getvalue().splitlines()
    assert line.startswith("workbench: ")
    assert len(line) > 20
    return line


def paths(table, at=()) -> list[tuple[str, ...]]:
    """Every place in a table where a value stands."""
    found = []
    for key, value in table.items():
        found.append((*at, key))
        if isinstance(value, dict):
            found += paths(value, (*at, key))
    return found


PLACES = paths(tomllib.loads(STUDY))


@QUICK
@given(place=st.sampled_from(PLACES), value=values)
def test_a_wrong_value_anywhere_in_a_study_file_is_refused_in_one_line(folder, place, value) -> None:
    table = tomllib.loads(STUDY)
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    try:
        study_from(table)  # some values are right
    except WorkbenchError as err:
        assert len(str(err).splitlines()) == 1  # noqa: PT017  either outcome is right
    assert list(folder.iterdir()) == []


def test_a_file_names_no_client(folder) -> None:
    table = tomllib.loads(STUDY)
    table["study"]["client"] = "tcp://127.0.0.1:8786"
    with pytest.raises(InvalidInput, match=r"unknown setting of \[study\] 'client'"):
        study_from(table)
    assert list(folder.iterdir()) == []


def test_what_a_file_says_of_a_study_holds_for_its_searcher_and_scheduler_unless_they_say_otherwise() -> None:
    table = tomllib.loads(QUICK_STUDY)
    table["study"] |= {"seed": 3, "weight": 2.0, "gpus_per_slot": 0.5}
    study = study_from(table)
    assert (study.nodes, study.weight, study.gpus_per_slot) == (2, 2.0, 0.5)
    assert (study.seed, study.scheduler.seed, study.scheduler.searcher.seed) == (3, 3, 3)
    given = study_from(table, seed=7, nodes=4, name=None)
    assert (given.name, given.nodes) == ("tiny", 4)
    assert (given.seed, given.scheduler.seed, given.scheduler.searcher.seed) == (7, 7, 7)
    own = study_from({**table, "searcher": {"seed": 2}, "scheduler": {**table["scheduler"], "seed": 1}})
    assert (own.seed, own.scheduler.seed, own.scheduler.searcher.seed) == (3, 1, 2)


def test_a_scheduler_that_counts_nodes_is_told_how_many_trials_run_at_once() -> None:
    table = tomllib.loads(STUDY)
    table["study"]["nodes"] = 4
    table["scheduler"] = {"kind": "halving", "n_trials": 4, "n_phases": 2, "eta": 2, "allocation": "static"}
    assert study_from(table).scheduler.n_nodes == 4
    table["trainable"] |= {"kind": "ba3c", "n_ranks": 2}
    assert study_from(table).scheduler.n_nodes == 2


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "hyperband", "n_phases": 3},
        {"kind": "halving", "n_trials": 4, "n_phases": 2, "eta": 2, "allocation": "none", "restart": True},
    ],
)
def test_a_rule_that_rests_on_no_number_of_nodes_is_resumed_on_another(rule) -> None:
    """So is one whose record has the number, as those of before have."""
    table = tomllib.loads(QUICK_STUDY) | {"scheduler": rule}
    one, two = (study_from(table, nodes=nodes).spec["scheduler"] for nodes in (1, 2))
    assert one == two
    assert one["n_nodes"] is None
    for more in ({}, {"searcher": {"kind": "mine:Searcher"}}):  # a record alone does not make that again
        refuse_another("tiny", {"scheduler": two | more}, {"scheduler": one | more | {"n_nodes": 1}})


def test_a_file_without_a_space_is_told_of_the_table(folder) -> None:
    table = tomllib.loads(STUDY)
    del table["space"]
    with pytest.raises(InvalidInput, match=r"^searcher 'random' draws from a space: add a table \[space\]"):
        study_from(table)


@QUICK
@given(
    place=st.sampled_from(PLACES),
    key=st.text(min_size=1, max_size=12),
    value=values,
    drop=st.booleans(),
)
def test_a_missing_or_unknown_setting_is_refused_in_one_line(folder, place, key, value, drop) -> None:
    table = tomllib.loads(STUDY)
    inner = table
    for step in place[:-1]:
        inner = inner[step]
    if drop:
        del inner[place[-1]]
    else:
        inner[key] = value
    try:
        study_from(table)
    except WorkbenchError as err:
        assert len(str(err).splitlines()) == 1  # noqa: PT017  either outcome is right
    assert list(folder.iterdir()) == []


@COMMANDS
@given(raw=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)), at=st.integers(0, len(STUDY)))
def test_a_damaged_study_file_is_refused_in_one_line(folder, raw, at) -> None:
    Path("study.toml").write_bytes(STUDY[:at].encode() + raw)
    before = sorted(os.listdir())
    assert refusal("run", "study.toml", "--db", "kb.db", "--nodes", "-1") is not None  # never starts, for -1 nodes
    assert sorted(os.listdir()) == before


words = st.one_of(
    st.text(max_size=20).filter(lambda t: "\0" not in t),
    st.sampled_from(
        ["run", "studies", "report", "check", "repair", "--db", "--name", "--nodes", "--seed", "--resume", "--out", "x"]
    ),
)


@COMMANDS
@given(
    command=st.sampled_from(["run", "studies", "report", "check", "repair", "nonsense"]),
    rest=st.lists(words, max_size=5),
)
def test_any_arguments_are_refused_in_one_line(folder, command, rest) -> None:
    refusal(command, *rest)
    assert list(folder.iterdir()) == []


QUADRATIC = {"h0": Uniform(0, 1), "h1": Uniform(0, 1)}


def test_a_study_goes_on_by_its_name_with_the_settings_of_its_last_driver(folder, client, one_cluster) -> None:
    set_by_hand = {"stall_s": 3600.0, "max_retries": 0, "fail_fast": False, "weight": 3.0, "nodes": 1}
    Study("s", HyperTrick(QUADRATIC, 2, 1), Quadratic(), db="x.db", **set_by_hand).run()
    again = recorded_study("x.db", "s", max_retries=1)
    assert {name: getattr(again, name) for name in set_by_hand} == set_by_hand | {"max_retries": 1}
    assert recorded_study("x.db", "s", client=client).nodes is None
    again.run(resume=True)
    assert recorded_study("x.db", "s").max_retries == 1


def test_a_study_that_had_gpus_goes_on_by_its_name_where_there_are_none(folder, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    study = Study("s", HyperTrick(QUADRATIC, 3, 2), Quadratic(), db="x.db", nodes=1)
    told = {"nodes": 1, "settings": {"gpus_per_slot": 1.0}}
    write_log(study.db, "s", [Event(Kind.STUDY_STARTED, 0.0, data=told)], study.spec)
    with pytest.raises(InvalidInput, match="no GPU can be seen here: leave it out, or make it 0 where a study has it"):
        recorded_study("x.db", "s").start(resume=True)
    assert recorded_study("x.db", "s", gpus_per_slot=0).gpus_per_slot is None
    table = tomllib.loads(QUICK_STUDY)
    del table["study"]["nodes"]
    assert study_from(table, gpus_per_slot=0).gpus_per_slot is None


def test_a_study_whose_log_is_older_than_its_settings_goes_on_with_the_defaults(folder) -> None:
    study = Study("old", HyperTrick(QUADRATIC, 3, 2), Quadratic(), db="x.db", nodes=1, stall_s=3600.0)
    kept(study.db, study)
    again = recorded_study("x.db", "old")
    usual = Study("usual", study.scheduler, study.trainable)
    assert (again.stall_s, again.nodes) == (usual.stall_s, usual.nodes)


def test_settings_of_one_s_own_code_come_back_as_they_were_or_are_refused(folder) -> None:
    for name, step in (("p", np.float32(0.5)), ("q", Decimal("0.5"))):
        kept("x.db", Study(name, HyperTrick(QUADRATIC, 3, 2), partial(own.climb, step=step), "x.db", nodes=1))
    again = recorded_study("x.db", "p", trainable="tests.own:climb")
    assert again.trainable.function.keywords == {"step": 0.5}
    with pytest.raises(
        InvalidInput, match=r"step of study 'q' was an object .* resume it with its file, or from Python"
    ):
        recorded_study("x.db", "q", trainable="tests.own:climb")
    with pytest.raises(InvalidInput, match="makes none import: resume it with its file"):  # naming it would not do
        recorded_study("x.db", "q")


def test_every_preset_says_in_a_sentence_what_it_is() -> None:
    told = dict(line.split(maxsplit=1) for line in presets_told().splitlines())
    assert list(told) == presets()
    assert all(words.endswith(".") and len(words.split()) > 3 for words in told.values())
    assert told["seaquest-agent"].endswith("its rate falling to 0.")  # the comment goes on


@pytest.mark.parametrize("name", [name for name in presets() if (DATA / name).is_dir()])
def test_a_preset_that_was_recorded_trains_what_was_recorded(tmp_path, name) -> None:
    recorded = json.loads((DATA / name / "provenance.json").read_text())["spec"]["trainable"]
    now = study_from(read_preset(name), db=tmp_path / "kb.db").spec["trainable"]
    for told, where_missing in ((recorded, 0.0), (now, None)):  # 0, before it was a setting
        square = told.get("initial_square", where_missing)
        told["initial_square"] = 1.0 if square is None else square  # as networks of pictures have it
        told["device"] = "auto"  # where, not what
    assert json.loads(json.dumps({key: now[key] for key in recorded})) == recorded
