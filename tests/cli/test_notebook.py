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
        "expected 87.5%",
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


AS_IT_IS = {  # what a notebook shows when it runs as it is; the first ones keep their studies where they are told
    "01_first_study": ["completion rate", "expected ", "report:", "application/vnd.plotly.v1+json", "widget-view"],
    "02_live_dashboard": ["widget-view", "trials begun", "<svg", "pause study", "<progress", "24 started, 24 ended"],
    "03_schedulers_in_virtual_time": [
        *("(Fig. 2)", "(Fig. 3)", "(Fig. 8)", "(Fig. 9)", "Occupancy over time", "Regret where ranks cross"),
        *("hypertrick-evolution", "portfolio", "hyperband", "asha-stopping", "median", "pbt", "grid", "tpe"),
        *("hypertrick loses", "the first tenth of the trials runs"),
    ],
    "04_watch_an_agent": ["image/"],
} | {name: ["application/vnd.plotly"] for name in ("10_hypertrick", "11_ga3c", "12_ba3c", "13_pbt", "14_hts_rl")}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_it_runs_as_it_is(tmp_path, capsys, path) -> None:
    db = tmp_path / "kb.db"
    done = execute(path, tmp_path / "out.ipynb", {"DB": str(db)} if path.stem[:2] in ("01", "02") else {})
    shown = outputs(done)
    assert [word for word in AS_IT_IS[path.stem] if word not in shown] == []
    if path.stem.startswith("02"):
        with KnowledgeBase(db) as kb:
            assert kb.studies["state"].tolist() == ["ended"]
            assert kb["live"].frames().interventions["accepted"].tolist() == [True, True]
        assert "24 started, 24 ended" in capsys.readouterr().out  # how far it is, where there is no page to show it
