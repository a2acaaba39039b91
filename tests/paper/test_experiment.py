"""Experiments: run again, kept whole with their provenance, or not at all."""

import json
import os
from dataclasses import replace

import pandas as pd
import pytest

from tests.paper.endings import Ending, measured
from tests.support import Deterministic
from workbench.cli.main import main
from workbench.core.errors import DatabaseError, InvalidInput, WorkbenchError
from workbench.paper.catalogue import EXPERIMENTS, recorded, reproduce
from workbench.paper.experiment import Experiment, RecordedTable, each, run_and_keep, trained
from workbench.paper.hypertrick.experiments import Repetitions

NAME = "hyperband-against-hypertrick"
SCHEDULERS = ["hypertrick", "hyperband", "hypertrick - hyperband", "hypertrick - hyperband, %"]
TINY = Repetitions("paper-46", 3, processes=1)


@pytest.fixture
def tiny(monkeypatch):
    """The comparison, three repetitions of it."""
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], scales={"minutes": TINY}))


def test_a_tiny_one_is_run_and_kept_with_its_provenance(tiny, tmp_path, capsys) -> None:
    assert main(["reproduce", NAME, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / NAME)
    kept = RecordedTable.open(NAME, tmp_path)
    assert kept.frame["scheduler"].tolist() == SCHEDULERS
    assert (kept.frame["makespan_low"] <= kept.frame["makespan"]).all()
    assert kept.about["command"] == f"workbench reproduce {NAME} --scale minutes"
    assert kept.about["settings"] == [{"preset": "paper-46", "repeats": 3, "processes": 1}]
    assert kept.about["source"] == "simulated"
    assert {"date", "seconds", "cores", "machine", "python", "versions", "commit", "scale"} <= set(kept.about)
    assert str(tmp_path) not in json.dumps(kept.about)
    assert kept.scale.startswith("simulated at scale 'minutes' on ")


def test_a_reader_may_run_it_again_beside_what_comes_with_the_project(tiny, tmp_path) -> None:
    reproduce(NAME, root=tmp_path)
    before = RecordedTable.open(NAME, tmp_path).about
    again = recorded(NAME, "minutes", tmp_path)
    assert again.frame["repeats"].tolist() == [3] * len(SCHEDULERS)
    assert recorded(NAME, root=tmp_path).about == before
    assert (tmp_path / "runs" / "reproduced" / NAME / "table.parquet").is_file()


def test_the_same_again_gives_the_same_table(tiny, tmp_path) -> None:
    first = RecordedTable.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    again = RecordedTable.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    pd.testing.assert_frame_equal(first, again)


def ending(*hows: str) -> Experiment[Ending]:
    return Experiment("ending", "how it ends", "measured", measured, {"minutes": tuple(map(Ending, hows))})


def test_what_is_measured_runs_in_a_process_of_its_own(tmp_path) -> None:
    frame = RecordedTable.open("ending", run_and_keep(ending("well", "well"), "minutes", tmp_path).parent).frame
    assert len({*frame["process"], os.getpid()}) == 3


def test_one_that_fails_leaves_the_earlier_recording(tmp_path) -> None:
    run_and_keep(ending("well"), "minutes", tmp_path)
    before = RecordedTable.open("ending", tmp_path)
    with pytest.raises(FloatingPointError, match="not finite"):
        run_and_keep(ending("error"), "minutes", tmp_path)
    with pytest.raises(WorkbenchError, match="the process of ending was killed"):
        run_and_keep(ending("killed"), "minutes", tmp_path)
    pd.testing.assert_frame_equal(RecordedTable.open("ending", tmp_path).frame, before.frame)
    assert [path.name for path in tmp_path.iterdir()] == ["ending"]


def test_a_long_one_runs_in_parts_and_goes_on_where_it_was_interrupted(monkeypatch, tmp_path, capsys) -> None:
    parts = tuple(replace(TINY, repeats=n) for n in (1, 2, 3))
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], scales={"minutes": parts}))
    for _ in range(2):
        assert main(["reproduce", NAME, "--out", str(tmp_path), "--parts", "1"]) == 0
        assert not (tmp_path / NAME).exists()
    seconds = [json.loads((tmp_path / f".{NAME}.minutes.parts" / f"{n}.json").read_text())["seconds"] for n in (0, 1)]
    kept = RecordedTable.open(NAME, reproduce(NAME, root=tmp_path).parent)
    assert kept.frame["scheduler"].tolist() == SCHEDULERS * 3
    assert kept.frame["repeats"].tolist() == [n for n in (1, 2, 3) for _ in SCHEDULERS]
    assert [settings["repeats"] for settings in kept.about["settings"]] == [1, 2, 3]
    assert [part["seconds"] for part in kept.about["parts"]][:2] == seconds  # the first two were not run again
    assert kept.about["seconds"] == pytest.approx(sum(part["seconds"] for part in kept.about["parts"]), abs=0.1)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert capsys.readouterr().out.count(".parts") == 2


@pytest.mark.parametrize("parts", ["0", "-1"])
def test_no_part_to_run_is_refused_and_replaces_nothing(tmp_path, capsys, parts) -> None:
    assert main(["reproduce", NAME, "--out", str(tmp_path), "--parts", parts]) == 2
    assert f"a whole number from 1, got {parts}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["ga3c-network"], "unknown experiment 'ga3c-network': did you mean 'ga3c-networks'"),
        (["--out", "file/folder"], "nothing can be kept in file/folder, for "),
    ],
)
def test_what_cannot_be_run_or_kept_is_refused_before_the_first_runs(
    tiny, tmp_path, monkeypatch, capsys, more, said
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["reproduce", NAME, *more]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_part_of_other_settings_is_run_again(tmp_path) -> None:
    one, other = (ending(*hows) for hows in (("well", "well"), ("as well", "well")))
    done = run_and_keep(one, "minutes", tmp_path, most_parts=1)
    process = json.loads((done / "0.json").read_text())["rows"][0]["process"]
    frame = RecordedTable.open("ending", run_and_keep(other, "minutes", tmp_path).parent).frame
    assert process not in frame["process"].tolist()


@pytest.mark.parametrize("processes", [1, 2])
def test_jobs_results_come_in_the_jobs_order(processes) -> None:
    assert each(divmod, [(7, 3), (9, 4), (1, 1)], processes) == [(2, 1), (2, 1), (1, 0)]


def test_a_trial_that_diverges_is_closed() -> None:
    class Diverges(Deterministic):
        closed = False

        def train_phase(self, progress):
            raise FloatingPointError("the loss is nan")

        def close(self) -> None:
            type(self).closed = True

    with pytest.raises(FloatingPointError):
        trained(Diverges, {}, 0, 1)
    assert Diverges.closed


def test_what_does_not_exist_is_said(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="unknown experiment 'ga3c-network': did you mean 'ga3c-networks'"):
        reproduce("ga3c-network")
    with pytest.raises(InvalidInput, match="unknown scale 'days'"):
        reproduce("ga3c-networks", "days")
    with pytest.raises(InvalidInput, match="has no scale 'paper', only minutes, hours"):
        reproduce("digits", "paper")
    with pytest.raises(DatabaseError, match="run workbench reproduce ga3c-networks"):
        RecordedTable.open("ga3c-networks", tmp_path)
