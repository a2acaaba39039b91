"""A notebook without a browser: what fails in it is named."""

import asyncio
import base64
import errno
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.lab import MISSING, chromium
from tests.notebooks import execute, outputs, read, written
from workbench.cli.main import main
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.places import NOTEBOOKS

_FIGURE = "application/vnd.plotly.v1+json"

FAILING = """
def fail():
    raise ValueError("pass resume=True")
fail()
"""


def test_a_failing_cell_is_named_and_the_copy_kept(tmp_path, capsys) -> None:
    path, out = written(tmp_path / "bad.ipynb", "print('before')", FAILING), tmp_path / "out.ipynb"
    assert main(["notebook", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == "before\n"
    assert said.err == (  # in Python's words, for it is Python that has to be mended, and its last line alone
        f"workbench: cell [2] of {path} failed: ValueError: pass resume=True; {out} has it as far as it came\n"
    )
    assert "before" in outputs(out)
    assert "pass resume=True" in "".join(read(out).cells[1].outputs[0].traceback)


def test_a_kernel_that_dies_is_said_so(tmp_path) -> None:
    path = written(tmp_path / "dies.ipynb", "import os; os._exit(1)")
    with pytest.raises(WorkbenchError, match=r"kernel of .* died"):
        execute(path, tmp_path / "out.ipynb")


LOGGING = """
import logging
for name in ("tornado.general", "tornado.application"):
    logging.getLogger(name).error("heard of " + name)
"""
BARS = """
from IPython.display import display
one, other = display("one begins", display_id=True), display("other begins", display_id=True)
for bar, state in ((one, "half"), (other, "half"), (one, "over"), (other, "over")):
    bar.update(f"{'one' if bar is one else 'other'} is {state}")
"""
FIGURE = f"display({{{_FIGURE!r}: {{'data': [], 'layout': {{}}}}}}, raw=True)"


def test_what_cells_tell_is_told_but_for_jupyter_s_own_sockets_and_kept_without_a_browser(
    tmp_path, monkeypatch, capfd
) -> None:
    """Of two bars the last word of each, though they were faster than they are told."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    execute(written(tmp_path / "one.ipynb", LOGGING, BARS, FIGURE), tmp_path / "out.ipynb")
    out, err = capfd.readouterr()
    assert "heard of tornado.application" in err
    assert "heard of tornado.general" not in err
    assert "one is over" in out
    assert "other is over" in out
    assert _FIGURE in outputs(tmp_path / "out.ipynb")
    assert "install chromium" in err


INTERRUPTS = """
import os, signal, time
print("under way", flush=True)
os.kill(os.getppid(), signal.SIGINT)
time.sleep(600)
"""


def test_an_interrupt_ends_the_cell_that_runs_and_none_follows(tmp_path, capsys) -> None:
    path, out = written(tmp_path / "long.ipynb", INTERRUPTS, "print('never')"), tmp_path / "out.ipynb"
    assert main(["notebook", str(path), "--out", str(out)]) == 130
    said = capsys.readouterr()
    assert said.out == "under way\n"
    assert said.err == f"workbench: {path} was interrupted: {out} has it as far as it came\n"
    assert "under way" in outputs(out)
    assert "KeyboardInterrupt" in outputs(out)
    assert "never" not in outputs(out)


STUBBORN = """
import time
try:
    print("under way", flush=True)
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    print("it took notice", flush=True)
    while {again}: time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "cell", "signals"),
    [
        (signal.SIGINT, "print('under way', flush=True)\nimport time; time.sleep(600)", 1),
        (signal.SIGTERM, STUBBORN.format(again=False), 1),  # the next cell does not run
        (signal.SIGINT, STUBBORN.format(again=True), 2),
    ],
)
def test_who_interrupts_it_is_told_in_a_line_and_the_copy_is_kept(tmp_path, how, cell, signals) -> None:
    path = written(tmp_path / "long.ipynb", cell, "print('never')")
    command = [sys.executable, "-m", "workbench", "notebook", str(path), "--out", str(tmp_path / "out.ipynb")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for _ in range(signals):
            assert running.stdout.readline() in ("under way\n", "it took notice\n")
            running.send_signal(how)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert err == f"workbench: {path} was interrupted: {tmp_path / 'out.ipynb'} has it as far as it came\n"
    kept = outputs(tmp_path / "out.ipynb")
    assert "under way" in kept
    assert "never" not in kept + out


def test_a_signal_while_the_library_ends_the_kernel_does_not_end_it_once_more() -> None:
    """Two at once stumble over one another, with pages of tracebacks, if the second is through first."""
    import nbformat

    from workbench.cli.headless import _Talking

    client = _Talking(nbformat.v4.new_notebook())
    client.interrupted = True
    asyncio.run(client._fail(None, 0, None))
    client._interrupt()  # without a kernel: nothing is asked of one


@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_figures_have_pictures_beside_them_for_pages_that_do_not_know_plotly(tmp_path, capsys) -> None:
    import nbformat
    from nbconvert import HTMLExporter

    cell = nbformat.v4.new_code_cell("fig")
    figures = [{"data": [{"y": [1, 3]}], "layout": {"height": 300}}, {"data": [{"y": [3, 1]}], "layout": {}}]
    cell.outputs = [nbformat.v4.new_output("display_data", {_FIGURE: figure}) for figure in figures]
    path = tmp_path / "seen.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    assert main(["pictures", str(path)]) == 0
    assert capsys.readouterr().out.startswith("2 pictures")
    saved = read(path).cells[0].outputs
    shown = [base64.b64decode(output.data["image/png"]) for output in saved]
    assert [struct.unpack(">II", png[16:24]) for png in shown] == [(1350, 450), (1350, 600)]
    page, _ = HTMLExporter().from_filename(str(path))
    assert [page.count(output.data["image/png"]) for output in saved] == [1, 1]
    assert main(["pictures", str(path)]) == 0  # once is enough
    assert capsys.readouterr().out.startswith("0 pictures")
    assert main(["pictures", str(tmp_path / "none.ipynb")]) == 2


@pytest.mark.parametrize("text", ["", "[study]", "{}", "[]", "\xff"])
def test_what_is_no_notebook_is_told_in_one_line(tmp_path, capsys, text) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(text.encode("latin-1"))
    for command in ("notebook", "pictures"):
        assert main([command, str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{path} cannot be read as a notebook (" in line
    assert path.read_bytes() == text.encode("latin-1")


def test_a_folder_is_no_place_for_a_copy_and_nothing_runs(tmp_path, capsys) -> None:
    path = written(tmp_path / "one.ipynb", "open('ran', 'w')")
    assert main(["notebook", str(path), "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} is no file to write the executed copy to: name another place" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_parameters_may_stand_beside_lines_of_ipython_s_own() -> None:
    from workbench.cli.headless import _assigned

    assert _assigned("%matplotlib inline\n!ls\nhours: float = 1\nname = 'a'\na.b = 2") == ["hours", "name"]
    with pytest.raises(InvalidInput, match=r"the cell tagged 'parameters' is no Python \("):
        _assigned("hours =")


def test_a_name_that_is_assigned_beside_others_is_a_parameter_too() -> None:
    import nbformat

    from workbench.cli.headless import _assigned, _set_parameters

    assert _assigned("a, (b, *c) = 1, (2, 3)\nknown[a], d.e = 0, 0") == ["a", "b", "c"]
    cell = nbformat.v4.new_code_cell("N_TRIALS, SEEDS = 4, 3", metadata={"tags": ["parameters"]})
    _set_parameters(nbformat.v4.new_notebook(cells=[cell]), {"SEEDS": "2"})
    exec(cell.source, assigned := {})
    assert (assigned["N_TRIALS"], assigned["SEEDS"]) == (4, 2)


def test_a_notebook_stays_whole_where_its_pictures_find_no_space(tmp_path, monkeypatch, capsys) -> None:
    path = written(tmp_path / "mine.ipynb", "1")
    path.write_text(path.read_text().replace("\n ", "\n   "))  # as somebody else writes it
    before = path.read_bytes()
    assert main(["pictures", str(path)]) == 0  # nothing was drawn, nothing is written
    assert path.read_bytes() == before

    def full(notebook, file) -> None:
        Path(file).write_text("{")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workbench.cli.headless.add_pictures", lambda notebook: 1)
    with monkeypatch.context() as patch:
        patch.setattr("nbformat.write", full)
        assert main(["pictures", str(path)]) == 2
    assert "make space" in capsys.readouterr().err
    assert path.read_bytes() == before
    path.chmod(0o640)
    assert main(["pictures", str(path)]) == 0
    assert capsys.readouterr().out.startswith("1 picture put into ")
    assert path.read_bytes() != before
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["mine.ipynb"]


def test_a_copy_goes_to_the_working_directory_or_beside_the_notebooks_of_the_project(tmp_path, monkeypatch) -> None:
    from workbench.cli.headless import default_place

    for folder in (Path("/"), tmp_path):
        monkeypatch.chdir(folder)
        assert default_place(Path("my.ipynb")) == default_place(Path("work/my.ipynb")) == Path("data/runs/my.ipynb")
    assert default_place(NOTEBOOKS / "01.ipynb") == NOTEBOOKS.parent / "data" / "runs" / "01.ipynb"
    with pytest.raises(InvalidInput, match="would be replaced by its executed copy: name another place, --out"):
        default_place(Path("data/runs/my.ipynb"))
