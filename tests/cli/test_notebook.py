"""Every notebook runs from its first cell to its last, and is kept thin and stripped."""

import ast
from pathlib import Path

import pytest

from tests.notebooks import execute, outputs, read
from tests.support import small_disk
from workbench.cli.main import main
from workbench.knowledge import KnowledgeBase

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_are_thin_and_stripped(path) -> None:
    cells = read(path).cells
    code = [c for c in cells if c.cell_type == "code"]
    assert all(not c.outputs and c.execution_count is None for c in code)
    assert cells[0].cell_type == "markdown"
    assert sum("parameters" in c.metadata.get("tags", []) for c in code) == 1
    for cell in code:
        tree = ast.parse(cell.source)
        if path.stem != "05_your_own_problem":  # the reader's own code is what it is of
            assert not any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(tree))
        assert len(cell.source.splitlines()) <= 25
        # a click into a dashboard selects its cell: Shift+Enter must not start another study
        assert not (".start()" in cell.source and "dashboard()" in cell.source)


SMALLER = {  # of what would take half an hour: the same studies, their trials trained for less long
    "01_first_study": {
        "CARTPOLE": '{"n_trials": 16, "n_phases": 4, "frames": 6000}',
        "PONG": '{"n_trials": 4, "n_phases": 2, "frames": 6000, "longest_game": 1000}',
    },
    "02_live_dashboard": {"SIZE": '{"n_trials": 24, "n_phases": 4, "frames": 6000}'},
}
SHOWN = {  # the first ones keep their studies where they are told
    "01_first_study": ["completion rate", "expected ", "report:", "application/vnd.plotly.v1+json", "widget-view"],
    "02_live_dashboard": [
        "widget-view",
        "trials begun",
        "slots over time",
        "pause study",
        "<progress",
        "24 started, 24 ended",
    ],
    "03_schedulers_in_virtual_time": [
        *("(Fig. 2)", "(Fig. 3)", "(Fig. 8)", "(Fig. 9)", "Occupancy over time", "Regret where ranks cross"),
        *("hypertrick-evolution", "portfolio", "hyperband", "asha-stopping", "median", "pbt", "grid", "tpe"),
        *("hypertrick loses", "the first tenth of the trials runs"),
    ],
    "04_watch_an_agent": ["image/"],
    "05_your_own_problem": ["best config", "own-function", "own-environment", "application/vnd.plotly.v1+json"],
    "06_claimed_and_confirmed": ["claimed on mean", "confirmed score", "beaten_by_first", "application/vnd.plotly"],
} | {name: ["application/vnd.plotly"] for name in ("10_hypertrick", "11_ga3c", "12_ba3c", "13_pbt", "14_hts_rl")}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_it_runs(tmp_path, capsys, path) -> None:
    db = tmp_path / "kb.db"
    small = {"DB": str(db), **SMALLER[path.stem]} if path.stem in SMALLER else {}
    done = execute(path, tmp_path / "out.ipynb", small)
    shown = outputs(done)
    assert [word for word in SHOWN[path.stem] if word not in shown] == []
    if path.stem.startswith("01"):
        with KnowledgeBase(db) as kb:
            assert kb.studies["name"].tolist() == ["cartpole", "pong"]
            assert kb.studies["state"].tolist() == ["ended", "ended"]
        assert all("plotly" in (tmp_path / name).read_text() for name in ("cartpole.html", "pong.html"))
    if path.stem.startswith("02"):
        with KnowledgeBase(db) as kb:
            assert kb.studies["state"].tolist() == ["ended"]
            assert kb["live"].frames().interventions["accepted"].tolist() == [True, True]
        assert "24 started, 24 ended" in capsys.readouterr().out  # how far it is, where there is no page to show it


def test_notebooks_are_copied_into_a_folder_and_never_over_others(tmp_path, capsys) -> None:
    assert main(["notebooks", str(tmp_path / "mine")]) == 0
    copied = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert copied == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    assert main(["notebooks", str(tmp_path / "mine")]) == 2
    assert f"holds {copied[0]} already" in capsys.readouterr().err


def test_of_a_notebook_that_finds_no_space_nothing_is_left(tmp_path, capsys) -> None:
    with small_disk(tmp_path / "disk", "8k") as disk:  # a page for the folder's names, and one for a part of the first
        assert main(["notebooks", str(disk / "mine")]) == 2
        assert capsys.readouterr().err.endswith(".ipynb cannot be written: No space left on device: make space\n")
        assert list((disk / "mine").iterdir()) == []
