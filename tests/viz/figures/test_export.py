import shutil
import struct

import plotly.graph_objects as go
import pytest

from tests.browser.lab import chromium
from workbench.core.errors import InvalidInput
from workbench.viz.figures import export, write_figure

FIGURE = go.Figure(go.Scatter(x=[0, 1], y=[0, 1]), layout={"title": {"text": "</script><b>one</b>"}})


def test_a_page_loads_nothing(tmp_path):
    page = write_figure(FIGURE, tmp_path / "new" / "one.html").read_text()
    assert "Plotly.newPlot" in page
    assert '<script src="' not in page


@pytest.mark.skipif(chromium() is None, reason="no browser")
def test_a_browser_draws_pictures(tmp_path, monkeypatch):
    """Asked for one by one, and drawn by one start of it."""
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(export, "find_spec", lambda _: None)
        patch.setattr(export, "_drawn", lambda figures: asked.extend(figures) or [b"drawn"])
        for kind in ("png", "svg"):
            assert write_figure(FIGURE, tmp_path / f"one.{kind}", width=300, height=200).read_bytes() == b"drawn"
    png, svg = export._drawn(asked)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (600, 400)
    assert svg.startswith(b"<svg")
    assert svg.rstrip().endswith(b"</svg>")


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(InvalidInput, match=r"install chromium .* or pip install kaleido; .* \.html"):
        write_figure(FIGURE, tmp_path / "one.png")
    with pytest.raises(InvalidInput, match="unknown kind of file 'gif'"):
        write_figure(FIGURE, tmp_path / "one.gif")


def test_a_browser_that_is_named_and_cannot_be_run_is_told_and_no_other_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", lambda _: None)
    installed = tmp_path / "chromium"
    installed.write_text("#!/bin/sh\necho drawn by another\n")
    installed.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "chromum"))
    with pytest.raises(InvalidInput, match=r"^CHROMIUM=.*/chromum in the environment is no program .*: correct it, or"):
        write_figure(FIGURE, tmp_path / "one.png")
    monkeypatch.setenv("CHROMIUM", "")
    with pytest.raises(InvalidInput, match=f"^{installed} could not draw the figure"):
        write_figure(FIGURE, tmp_path / "one.png")
