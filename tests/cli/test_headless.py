"""A notebook without a browser: what fails in it is named."""

import json
from pathlib import Path

import nbformat
import pytest

from workbench.cli.headless import NotebookError, execute


def outputs(path: Path) -> str:
    return json.dumps([c.get("outputs", []) for c in nbformat.read(path, as_version=4).cells])


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
