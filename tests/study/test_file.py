"""Bad input of any kind: one readable line, exit code 2, nothing half-written."""

import contextlib
import io
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.test_main import STUDY
from workbench.cli.main import main
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.study.file import study_from

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

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


@QUICK
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


@QUICK
@given(
    command=st.sampled_from(["run", "studies", "report", "check", "repair", "nonsense"]),
    rest=st.lists(words, max_size=5),
)
def test_any_arguments_are_refused_in_one_line(folder, command, rest) -> None:
    refusal(command, *rest)
    assert list(folder.iterdir()) == []
