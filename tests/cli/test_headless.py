"""A notebook without a browser: what fails in it is named."""

import base64
import json
import struct
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from tests.browser.lab import MISSING, chromium
from workbench.cli.headless import _FIGURE, NotebookError, execute
from workbench.cli.main import main


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


@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_figures_have_pictures_beside_them_for_pages_that_do_not_know_plotly(tmp_path, capsys) -> None:
    cell = nbformat.v4.new_code_cell("fig")
    figures = [{"data": [{"y": [1, 3]}], "layout": {"height": 300}}, {"data": [{"y": [3, 1]}], "layout": {}}]
    cell.outputs = [nbformat.v4.new_output("display_data", {_FIGURE: figure}) for figure in figures]
    path = tmp_path / "seen.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    assert main(["pictures", str(path)]) == 0
    assert capsys.readouterr().out.startswith("2 pictures")
    saved = nbformat.read(path, as_version=4).cells[0].outputs
    shown = [base64.b64decode(output.data["image/png"]) for output in saved]
    assert [struct.unpack(">II", png[16:24]) for png in shown] == [(1350, 450), (1350, 600)]
    page, _ = HTMLExporter().from_filename(str(path))
    assert [page.count(output.data["image/png"]) for output in saved] == [1, 1]
    assert main(["pictures", str(path)]) == 0  # once is enough
    assert capsys.readouterr().out.startswith("0 pictures")
    assert main(["pictures", str(tmp_path / "none.ipynb")]) == 2


def test_without_a_browser_a_notebook_is_kept_and_that_is_said(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    source = f"from IPython.display import display\ndisplay({{{_FIGURE!r}: {{'data': [], 'layout': {{}}}}}}, raw=True)"
    execute(_notebook(tmp_path / "one.ipynb", source), tmp_path / "out.ipynb")
    assert _FIGURE in outputs(tmp_path / "out.ipynb")
    assert "install chromium" in capsys.readouterr().err
