"""Every notebook runs from its first cell to its last, at a toy size, and is kept thin and stripped."""

import ast
import json
from pathlib import Path

import nbformat
import pytest

from workbench.cli.headless import NotebookError, execute
from workbench.knowledge import KnowledgeBase

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def outputs(path: Path) -> str:
    return json.dumps([c.get("outputs", []) for c in nbformat.read(path, as_version=4).cells])


def test_the_first_study_runs_at_a_toy_size(tmp_path) -> None:
    db = tmp_path / "kb.db"
    done = execute(
        NOTEBOOKS / "01_first_study.ipynb",
        tmp_path / "out.ipynb",
        {
            "DB": str(db),
            "CARTPOLE": '{"n_trials": 3, "n_phases": 2, "frames": 2000}',
            "PONG": '{"n_trials": 2, "n_phases": 2, "frames": 2000, "longest_game": 200}',
        },
    )
    with KnowledgeBase(db) as kb:
        assert kb.studies["name"].tolist() == ["cartpole", "pong"]
        assert kb.studies["state"].tolist() == ["ended", "ended"]
    shown = outputs(done)
    for word in (
        "completion rate",
        "expected 87.5% by Eq. 9",
        "report:",
        "application/vnd.plotly.v1+json",
        "widget-view",
    ):
        assert word in shown
    for name in ("cartpole.html", "pong.html"):
        assert "plotly" in (tmp_path / name).read_text()


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_are_thin_and_stripped(path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    code = [c for c in cells if c.cell_type == "code"]
    assert all(not c.outputs and c.execution_count is None for c in code)
    assert cells[0].cell_type == "markdown"
    assert sum("parameters" in c.metadata.get("tags", []) for c in code) == 1
    for cell in code:
        tree = ast.parse(cell.source)
        assert not any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(tree))
        assert len(cell.source.splitlines()) <= 25


def _notebook(path: Path, *sources: str) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, path)
    return path


def test_a_failing_cell_is_named_and_the_copy_kept(tmp_path, capsys) -> None:
    path = _notebook(tmp_path / "bad.ipynb", "print('before')", "1 / 0")
    with pytest.raises(NotebookError, match="ZeroDivisionError"):
        execute(path, tmp_path / "out.ipynb")
    assert capsys.readouterr().out == "before\n"
    assert "before" in outputs(tmp_path / "out.ipynb")


def test_a_kernel_that_dies_is_said_so(tmp_path) -> None:
    path = _notebook(tmp_path / "dies.ipynb", "import os; os._exit(1)")
    with pytest.raises(NotebookError, match=r"kernel of .* died"):
        execute(path, tmp_path / "out.ipynb")


def test_the_live_dashboard_runs_at_a_toy_size(tmp_path, capsys) -> None:
    db = tmp_path / "kb.db"
    size = '{"n_trials": 3, "n_phases": 2, "frames": 2000}'
    shown = outputs(
        execute(NOTEBOOKS / "02_live_dashboard.ipynb", tmp_path / "out.ipynb", {"DB": str(db), "SIZE": size})
    )
    with KnowledgeBase(db) as kb:
        assert kb.studies["state"].tolist() == ["ended"]
        assert kb["live"].frames().interventions["accepted"].tolist() == [True, True]
    for word in ("widget-view", "trials begun", "<svg", "pause study", "<progress", "3 started, 3 ended"):
        assert word in shown
    assert "3 started, 3 ended" in capsys.readouterr().out  # how far it is, where there is no page to show it


def test_the_schedulers_are_compared_at_a_toy_size(tmp_path) -> None:
    size = {"REPEATS": "2", "SEARCHER_REPEATS": "1", "SEARCHERS_ON": '["steady"]'}
    shown = outputs(execute(NOTEBOOKS / "03_schedulers_in_virtual_time.ipynb", tmp_path / "out.ipynb", size))
    for figure in ("(Fig. 2)", "(Fig. 3)", "(Fig. 8)", "(Fig. 9)", "Occupancy over time", "Regret where ranks cross"):
        assert figure in shown
    for scheduler in (
        "hypertrick-evolution",
        "portfolio",
        "hyperband",
        "asha-stopping",
        "median",
        "pbt",
        "grid",
        "tpe",
    ):
        assert scheduler in shown
    assert "hypertrick loses" in shown
    assert "the first tenth of the trials runs" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["04_watch_an_agent", "10_hypertrick", "11_ga3c", "12_ba3c", "13_pbt", "14_hts_rl"])
def test_what_is_drawn_from_recorded_data_runs_as_it_is(tmp_path, name) -> None:
    shown = outputs(execute(NOTEBOOKS / f"{name}.ipynb", tmp_path / "out.ipynb"))
    assert ("image/" if name.startswith("04") else "application/vnd.plotly.v1+json") in shown
