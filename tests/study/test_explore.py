"""Studies side by side, hostile names and a population among them."""

import json

import pandas as pd
import pytest

from tests.events import begun, ended, judged, runs, write_log
from tests.viz.figures.conftest import EVENTS, POINTS
from workbench import Explorer
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import record

HOSTILE = "<script>alert(1)<script>"  # a study's name has no slash
POPULATION = [
    Event(Kind.STUDY_STARTED, 0.0),
    Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "n"}),
    runs(0.0, 0, {"lr": 0.1}),
    begun(0.0, 0, 0),
    ended(4.0, 0, 0, 0, 1.0),
    judged(4.0, 0, 0, "stop", "exploit"),
    runs(4.0, 1, {"lr": 0.2}, parent=0),
    begun(4.0, 1, 0),
    ended(9.0, 1, 0, 0, 2.0),
    judged(9.0, 1, 0, "stop", "finished"),
    Event(Kind.STUDY_ENDED, 9.0),
]
SPEC = {"scheduler": {"kind": "full", "n_trials": 4, "n_phases": 2}, "seed": 0}
COMPARED = ["best so far", "time to best", "learning curves", "survival", "importance"]


def two_studies(db) -> Explorer:
    points = [Event(Kind.PROGRESS, at, trial, phase, data={"metrics": {name: value}})
              for _, trial, phase, at, name, value in POINTS]  # fmt: skip
    for name, events in ((HOSTILE, sorted([*EVENTS, *points], key=lambda e: e.at)), ("bred", POPULATION)):
        write_log(db, name, events, SPEC)
    return Explorer(db)


@pytest.fixture
def explorer(tmp_path) -> Explorer:
    return two_studies(tmp_path / "kb.db")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The figures of such an explorer, which take longer than all else."""
    return two_studies(tmp_path_factory.mktemp("drawn") / "kb.db").figures()


def test_a_row_a_study(explorer) -> None:
    table = explorer.table.set_index("study")
    assert table["best_score"].to_dict() == {HOSTILE: 5.0, "bred": 2.0}
    assert table["time_to_best_s"].to_dict() == {HOSTILE: 20.0, "bred": 9.0}
    assert repr(explorer).splitlines()[0].split()[:2] == ["study", "state"]
    assert HOSTILE not in explorer._repr_html_()


def test_the_best_score_of_any_phase_is_not_shown_as_that_of_the_configuration_to_take(explorer) -> None:
    for shown in (repr(explorer), explorer._repr_html_()):
        assert "luckiest_phase" in shown
        assert "best_score" not in shown


def test_a_simulated_study_is_marked_wherever_people_look(tmp_path, monkeypatch) -> None:
    for name, more in (("bred", {}), ("played", {"simulated": True})):
        write_log(tmp_path / "kb.db", name, POPULATION, {**SPEC, **more})
    explorer = Explorer(tmp_path / "kb.db")
    assert explorer.table["study"].tolist() == ["bred", "played"]  # what code looks for
    for shown in (repr(explorer), explorer._repr_html_()):
        assert "played (simulated)" in shown
        assert "bred (simulated)" not in shown
    drawn = explorer.figures()
    monkeypatch.setattr(Explorer, "figures", lambda self: drawn)  # they need not be drawn again
    assert "played (simulated)" in {trace.name for trace in drawn["best so far"].data}
    assert drawn["parallel coordinates: played (simulated)"].layout.title.text.endswith(": played (simulated)")
    assert "played (simulated)" in explorer.write(tmp_path / "out", [])[0].read_text()


def test_recorded_studies_compare_as_those_of_the_log(explorer, tmp_path) -> None:
    folders = [record(tmp_path / "kb.db", name, tmp_path / f"{n}") for n, name in enumerate(explorer.results)]
    pd.testing.assert_frame_equal(Explorer.of_recordings(*folders).table, explorer.table)


def test_recordings_of_one_name_stand_beside_each_other(explorer, tmp_path) -> None:
    folders = [str(record(tmp_path / "kb.db", "bred", tmp_path / name)) for name in ("first", "second")]
    assert Explorer.of_recordings(*folders).table["study"].tolist() == folders


def test_studies_in_one_figure_and_each_by_itself(drawn) -> None:
    of_all = {f"parallel coordinates: {name}" for name in (HOSTILE, "bred")}
    bred = {"population", "hyperparameters over time", "lineage", "phylogenetic tree"}
    assert set(drawn) == {*COMPARED, *of_all, *(f"{name}: bred" for name in bred)}
    assert drawn["lineage: bred"].layout.title.text.endswith(": bred")
    for figure in drawn.values():
        assert HOSTILE not in json.dumps(figure.to_plotly_json(), default=lambda array: array.tolist())


def test_long_curves_are_thinned_as_in_a_report(tmp_path, monkeypatch) -> None:
    """Both studies share the points of one figure; extremes and ends of phases stay."""
    monkeypatch.setattr("workbench.study.drawn._POINTS", 60)
    points = [(0.01 + k / 100, 7.0 if k == 123 else 2.0 + k % 3) for k in range(398)]
    told = [Event(Kind.PROGRESS, at, 0, 0, data={"metrics": {"score": score}}) for at, score in points]
    for name in ("one", "two"):
        write_log(tmp_path / "kb.db", name, sorted([*POPULATION[:6], *told], key=lambda event: event.at), SPEC)
    drawn = Explorer(tmp_path / "kb.db").figures()["learning curves"].data
    for line in drawn:
        assert len(line.y) <= 60 // 2
        assert {7.0, 1.0} <= set(line.y)


def test_everything_goes_to_files(explorer, tmp_path, drawn, monkeypatch) -> None:
    monkeypatch.setattr(Explorer, "figures", lambda self: drawn)
    files = explorer.write(tmp_path / "out")
    assert len(files) == len(set(files)) == 1 + len(drawn)
    assert pd.read_csv(files[0])["study"].tolist() == [HOSTILE, "bred"]
    assert all(path.stat().st_size > 1_000_000 for path in files[1:])


def test_kinds_that_cannot_be_written_are_refused_before_anything_is(explorer, tmp_path, monkeypatch) -> None:
    with pytest.raises(InvalidInput, match="unknown kind of file 'pdf'; known: html, png, svg"):
        explorer.write(tmp_path / "out", ("html", "pdf"))
    monkeypatch.setattr("workbench.viz.figures.export.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InvalidInput, match="a picture needs a browser"):
        explorer.write(tmp_path / "out", ("html", "png"))
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(Explorer, "figures", lambda self: {})
    assert len(explorer.write(tmp_path / "out", "html")) == 1  # a word is one kind


def test_studies_called_nearly_alike_keep_a_file_each(tmp_path, monkeypatch) -> None:
    for name in ("a b", "a-b", "A:b", "a-b-2"):
        write_log(tmp_path / "kb.db", name, EVENTS, SPEC)
    monkeypatch.setattr("workbench.viz.figures.write_figure", lambda figure, path: path)
    drawn = Explorer(tmp_path / "kb.db").write(tmp_path / "out")[1:]
    assert len({str(file).casefold() for file in drawn}) == len(drawn)
    alone = [file.stem for file in drawn if file.stem.startswith("parallel")]
    names = ["a-b", "a-b-2", "A-b-3", "a-b-2-2"]
    assert alone == [f"parallel-coordinates-{name}" for name in names]


def test_studies_that_minimise_stand_beside_none_that_maximise(explorer, tmp_path) -> None:
    least = [Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}}), *POPULATION[1:]]
    write_log(tmp_path / "kb.db", "least", least, SPEC)
    refusal = r"studies that minimise \(least\) cannot stand beside studies that maximise \(bred\): compare those of"
    with pytest.raises(InvalidInput, match=refusal):
        Explorer(tmp_path / "kb.db", "bred", "least")
    folders = [record(tmp_path / "kb.db", name, tmp_path / name) for name in ("bred", "least")]
    with pytest.raises(InvalidInput, match=refusal):
        Explorer.of_recordings(*folders)
    with pytest.warns(UserWarning, match="left out, as the others are maximised: least; name them") as said:
        assert [*Explorer(tmp_path / "kb.db").results] == [*explorer.results]
    assert said[0].filename == __file__
    assert Explorer(tmp_path / "kb.db", "least").table["best_score"].tolist() == [1.0]


def test_a_study_that_is_not_there(explorer, tmp_path) -> None:
    with pytest.raises(StudyError, match="unknown study"):
        Explorer(tmp_path / "kb.db", "none")
