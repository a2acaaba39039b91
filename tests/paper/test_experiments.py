"""Recorded experiments: run again, kept whole with their provenance, or not at all."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from workbench.cli import main
from workbench.core.errors import DatabaseError, InvalidInput, WorkbenchError
from workbench.paper.catalogue import EXPERIMENTS
from workbench.paper.experiments import SCALES, Kept, recorded, reproduce
from workbench.scenario import DATA

NAME = "hyperband-against-hypertrick"
TINY = "-m workbench simulate --json --preset paper-46 --repeats 3"


@pytest.fixture
def tiny(monkeypatch):
    """The comparison, three repetitions of it."""
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": TINY}))


def test_a_tiny_one_is_run_and_kept_with_its_provenance(tiny, tmp_path, capsys) -> None:
    assert main(["reproduce", NAME, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / NAME)
    kept = Kept.open(NAME, tmp_path)
    assert kept.frame["scheduler"].tolist() == ["hypertrick", "hyperband"]
    assert (kept.frame["makespan_low"] <= kept.frame["makespan"]).all()
    assert kept.about["command"] == f"python {TINY}"
    assert kept.about["source"] == "simulated"
    assert {"date", "seconds", "cores", "machine", "python", "versions", "scale"} <= set(kept.about)
    assert str(tmp_path) not in json.dumps(kept.about)
    assert kept.scale.startswith("simulated at scale 'minutes' on ")


def test_a_reader_may_run_it_again_beside_what_comes_with_the_project(tiny, tmp_path) -> None:
    reproduce(NAME, root=tmp_path)
    before = Kept.open(NAME, tmp_path).about
    again = recorded(NAME, "minutes", tmp_path)
    assert again.frame["repeats"].tolist() == [3, 3]
    assert recorded(NAME, root=tmp_path).about == before
    assert (tmp_path / "runs" / "reproduced" / NAME / "table.parquet").is_file()


def test_the_same_again_gives_the_same_table(tiny, tmp_path) -> None:
    first = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    again = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if (path / "table.parquet").is_file()))
def test_what_is_recorded_has_the_schema_of_its_experiment(name) -> None:
    kept = Kept.open(name)
    assert name in EXPERIMENTS
    assert kept.about["shows"] == EXPERIMENTS[name].shows
    assert kept.about["command"] == "; ".join(f"python {part}" for part in EXPERIMENTS[name].parts(kept.about["scale"]))
    assert len(kept.frame)


def test_every_experiment_names_a_script_that_is_there() -> None:
    for experiment in EXPERIMENTS.values():
        assert set(experiment.commands) <= set(SCALES)
        for command in (part for scale in experiment.commands for part in experiment.parts(scale)):
            script = command.split()[0]
            assert script == "-m" or (DATA.parent / script).is_file()


def test_a_script_that_fails_leaves_the_earlier_recording(tiny, monkeypatch, tmp_path) -> None:
    reproduce(NAME, root=tmp_path)
    before = Kept.open(NAME, tmp_path)
    for command, says in (("-c 'raise SystemExit(3)'", "exit code 3"), ("-c 'print(1, 2)'", "one JSON object")):
        monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": command}))
        with pytest.raises(WorkbenchError, match=says):
            reproduce(NAME, root=tmp_path)
    pd.testing.assert_frame_equal(Kept.open(NAME, tmp_path).frame, before.frame)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_long_one_runs_in_parts_and_goes_on_where_it_was_interrupted(monkeypatch, tmp_path, capsys) -> None:
    parts = tuple(f"{TINY} --seed {seed}" for seed in (1, 2, 3))
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": parts}))
    for _ in range(2):
        assert main(["reproduce", NAME, "--out", str(tmp_path), "--parts", "1"]) == 0
        assert not (tmp_path / NAME).exists()
    kept = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent)
    assert kept.frame["scheduler"].tolist() == ["hypertrick", "hyperband"] * 3
    assert [part["command"] for part in kept.about["parts"]] == [f"python {part}" for part in parts]
    assert kept.about["seconds"] == pytest.approx(sum(part["seconds"] for part in kept.about["parts"]), abs=0.1)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert capsys.readouterr().out.count(".parts") == 2


def test_what_does_not_exist_is_said(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="unknown experiment 'ga3c-network': did you mean 'ga3c-networks'"):
        reproduce("ga3c-network")
    with pytest.raises(InvalidInput, match="unknown scale 'days'"):
        reproduce("ga3c-networks", "days")
    with pytest.raises(InvalidInput, match="has no scale 'paper', only minutes, hours"):
        reproduce(NAME, "paper")
    with pytest.raises(DatabaseError, match="run workbench reproduce ga3c-networks"):
        Kept.open("ga3c-networks", tmp_path)
