"""The scoreboard: every published number once, ours beside it, nothing typed in."""

from pathlib import Path

import pytest

from workbench.cli import main
from workbench.paper.experiments import _keep
from workbench.paper.published import ALL, GA3C_TABLE_2
from workbench.paper.scoreboard import page, scoreboard
from workbench.scenario import DATA


def of(rows, where: str) -> dict[str, tuple]:
    return {r.number.what: (r.verdict, r.ours.value if r.ours else None) for r in rows if r.number.where == where}


def test_every_published_number_has_one_row() -> None:
    assert [row.number for row in scoreboard()] == ALL


def test_formulas_and_the_toy_problem_need_no_recording(tmp_path) -> None:
    rows = scoreboard(tmp_path)
    assert {verdict for verdict, _ in of(rows, "Table 2").values()} >= {"agrees", "not run"}
    assert of(rows, "Sec. 5.2.4")["Hyperband, R = 27, eta = 3"] == ("agrees", 46)
    assert of(rows, "Figs 2, 3, 8, 9")["makespan, HyperTrick"] == ("agrees", pytest.approx(10))
    assert not [row for row in rows if row.ours is not None and row.ours.source == "measured"]


def test_measured_numbers_are_read_off_the_recording_and_may_differ(tmp_path) -> None:
    rows = [
        {"network": name, "ga3c_pps": ga3c * (1.1 if name == "small" else 0.1), "a3c_pps": a3c, "ratio": 1.0}
        for name, (a3c, ga3c) in GA3C_TABLE_2.items()
    ]
    about = {"source": "measured", "scale": "minutes", "cores": 2, "date": "2026-01-01T00:00:00"}
    _keep(tmp_path / "ga3c-networks", rows, about)
    found = of(scoreboard(tmp_path), "Table 2")
    assert found["GA3C, small"] == ("agrees", pytest.approx(1361 * 1.1))
    assert found["GA3C, large-1"][0] == "differs"
    assert found["A3C, large-1"][0] == "agrees"
    assert found["GA3C over A3C, large-1"] == ("differs", 1.0)
    assert "measured at scale 'minutes' on 2 cores, 2026-01-01" in page(scoreboard(tmp_path))


def test_the_committed_page_is_what_the_recordings_say(capsys, tmp_path) -> None:
    assert main(["scoreboard", "--write", str(tmp_path / "page.md")]) == 0
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert written == Path(DATA.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")
