"""JupyterLab on the studies of a knowledge base: alive without a cell being run."""

import subprocess
import sys

import pytest

from tests.browser.lab import MISSING, address_in, browser_page, chromium, isolated
from tests.browser.standing import write_studies
from workbench.cli.lab import _notebook_of
from workbench.cli.main import main


@pytest.mark.slow
def test_the_page_is_begun_once_and_what_people_write_in_it_stays(tmp_path) -> None:
    import nbformat

    path = tmp_path / "home.ipynb"
    notebook, k = _notebook_of(path, "a'b.db")
    assert 'home("a\'b.db")' in notebook.cells[k].source
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell("# My studies"))
    notebook.cells[1].source = "mine = home('other.db')\nmine"
    nbformat.write(notebook, path)
    again, k = _notebook_of(path, "a'b.db")
    assert k == 1
    assert again.cells[1].source.startswith("mine")
    assert len(again.cells) == 2


def test_of_two_knowledge_bases_in_a_folder_the_page_shows_the_one_that_was_named(tmp_path) -> None:
    import nbformat

    path = tmp_path / "home.ipynb"
    for db in ("one.db", "it's.db", "a\"'b.db", "two.db"):
        notebook, k = _notebook_of(path, db)
        assert notebook.cells[k].source == f"from workbench import home\n\nhome({db!r})"
        nbformat.write(notebook, path)
    assert len(notebook.cells) == 1


def test_a_page_that_is_damaged_is_told_before_anything_runs(tmp_path, monkeypatch, capsys) -> None:
    launched = []
    monkeypatch.setattr("jupyterlab.labapp.LabApp.launch_instance", launched.append)
    (tmp_path / "home.ipynb").write_text("{")
    assert main(["lab", "--db", str(tmp_path / "kb.db")]) == 2
    assert f"{tmp_path / 'home.ipynb'} cannot be read as a notebook" in capsys.readouterr().err
    assert launched == []


def test_what_is_no_knowledge_base_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys) -> None:
    launched = []
    monkeypatch.setattr("jupyterlab.labapp.LabApp.launch_instance", launched.append)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["lab", "--db", str(tmp_path / "folder")]) == 2
    assert "is a folder, and a knowledge base is a file" in capsys.readouterr().err
    assert main(["lab", "--db", str(tmp_path / "notes.txt")]) == 2
    assert "notes.txt cannot be read as a knowledge base" in capsys.readouterr().err
    assert launched == []


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_it_opens_on_the_studies_which_are_opened_and_compared_by_clicks(tmp_path) -> None:
    folder = tmp_path / "work"
    (folder / "runs").mkdir(parents=True)
    write_studies(folder / "runs" / "kb.db", monday=1.0, tuesday=1.0)
    command = [sys.executable, "-m", "workbench", "lab", "--db", "runs/kb.db", "--no-browser", "--", "--allow-root"]
    command += ["--ServerApp.port=0", "--IdentityProvider.token=lab-test"]
    (tmp_path / "own").mkdir()
    with open(tmp_path / "said", "w") as said:
        server = subprocess.Popen(command, cwd=folder, env=isolated(tmp_path / "own"), stderr=said, stdout=said)
    try:
        with browser_page() as page:
            while not (folder / "runs" / "home.ipynb").exists():  # written once the studies are shown
                assert server.poll() is None, (tmp_path / "said").read_text()
                page.wait_for_timeout(200)
            address = address_in((tmp_path / "said").read_text())
            page.goto(f"{address}/tree/runs/home.ipynb?token=lab-test")
            page.wait_for_selector(".jp-OutputArea .wb-studies tbody tr")
            page.get_by_role("button", name="monday", exact=True).click()
            page.wait_for_selector(".wb-open .wb-leader")
            page.get_by_role("checkbox", name="compare tuesday").check()
            page.wait_for_selector(".wb-open .wb-sides tbody tr")
            assert page.complaints == []
    finally:
        server.terminate()
        server.wait(60)
