"""The scoreboard: every published number once, ours beside it, nothing typed in."""

from datetime import UTC, datetime
from pathlib import Path

from tests.knowledge.studies import a_study
from tests.paper.recorded import ABOUT
from workbench.cli.main import main
from workbench.core.places import DATA
from workbench.knowledge import StudyLog, record
from workbench.paper.catalogue import EXPERIMENTS, PUBLISHED
from workbench.paper.experiment import keep_table
from workbench.paper.scoreboard import page, recordings, scoreboard


def test_every_published_number_has_one_row() -> None:
    assert [row.number for row in scoreboard()] == PUBLISHED


def test_without_recordings_nothing_counts_as_measured(tmp_path) -> None:
    assert not [row for row in scoreboard(tmp_path) if row.ours is not None and row.ours.source == "measured"]


def test_what_was_not_run_is_grouped_with_its_reason(tmp_path) -> None:
    rows = scoreboard(tmp_path)  # where nothing is recorded
    assert all(row.why for row in rows if row.ours is None)
    written = page(rows)
    assert "| Table 3 | score | after one day, amidar: 218; after one day, boxing: 92;" in written
    assert "| a day on a GPU for each game |" in written
    assert not any(line.count("|") not in (0, 5, 8) for line in written.splitlines())


def test_recordings_are_listed_with_their_scale(tmp_path) -> None:
    keep_table(tmp_path / "pbt-toy", [{"a": 1}], ABOUT | {"shows": "PBT, Fig. 2", "seconds": 12.4})
    lines = recordings(tmp_path).splitlines()
    assert "| `pbt-toy` | PBT, Fig. 2 | measured at scale 'minutes' on 2 cores, 2026-01-01 | 12 |" in lines
    assert sum(line.endswith("| not recorded yet | |") for line in lines) == len(EXPERIMENTS) - 1


def test_recorded_studies_are_listed_with_what_ran(tmp_path) -> None:
    spec = {"seed": 0, "scheduler": {"kind": "full"}, "trainable": {"kind": "ga3c", "game": "Pong"}}
    log = StudyLog(tmp_path / "kb.db", "night", spec)
    log.append(a_study())
    log.close()
    record(tmp_path / "kb.db", "night", tmp_path / "pong-night")
    *_, line = recordings(tmp_path).splitlines()
    day = datetime.now(UTC).date()
    assert line == f"| `pong-night` | full over ga3c on Pong, 3 trials | 3 | 2 | 0 | {day} |"


def test_the_committed_page_is_what_the_recordings_say(capsys, tmp_path) -> None:
    assert main(["scoreboard", "--write", str(tmp_path / "page.md")]) == 0
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert written == Path(DATA.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")
