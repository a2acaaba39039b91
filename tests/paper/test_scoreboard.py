"""The scoreboard: every published number once, ours beside it, nothing typed in."""

import math
import re
import shutil
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from tests.knowledge.studies import a_study
from tests.paper.recorded import ABOUT
from tests.support import breaking
from workbench.cli.main import main
from workbench.core.errors import InvalidInput
from workbench.core.places import DATA
from workbench.knowledge import StudyLog, record
from workbench.paper.catalogue import EXPERIMENTS, PUBLISHED
from workbench.paper.experiment import RecordedTable, keep_table
from workbench.paper.hypertrick.atari import GAMES, preset_of, recorded_games
from workbench.paper.hypertrick.published import COLUMNS
from workbench.paper.learned import page_of_what_was_learned
from workbench.paper.numbers import Verdict
from workbench.paper.scoreboard import Row, is_claim, page, recordings, scoreboard
from workbench.paper.verdicts import CHANCE

PRESETS = DATA.parent / "workbench" / "presets"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> SimpleNamespace:
    """What the command makes of the committed recordings: the ``page``, with the ``board`` and what was ``learned``."""
    path, told = tmp_path_factory.mktemp("made") / "new" / "page.md", SimpleNamespace()
    studies = cache(recorded_games)

    def kept(name: str, make):
        return lambda *given: vars(told).setdefault(name, make(*given))

    with pytest.MonkeyPatch.context() as patch:
        for module in ("hypertrick.atari", "learned"):  # both parts of the page ask for the studies
            patch.setattr(f"workbench.paper.{module}.recorded_games", studies)
        patch.setattr("workbench.paper.scoreboard.scoreboard", kept("board", scoreboard))
        patch.setattr("workbench.paper.learned.page_of_what_was_learned", kept("learned", page_of_what_was_learned))
        assert main(["scoreboard", "--write", str(path)]) == 0
    told.page = path.read_text(encoding="utf-8")
    return told


@pytest.fixture(scope="module")
def board(made) -> list[Row]:
    """What the committed recordings say."""
    return made.board


def test_every_published_number_has_one_row_and_every_claim_one_or_more(board) -> None:
    assert list(dict.fromkeys(row.number for row in board)) == PUBLISHED
    numbers = [row.number for row in board if not is_claim(row)]
    assert len(numbers) == len(set(numbers))


def test_without_recordings_nothing_counts_as_measured(tmp_path) -> None:
    rows = scoreboard(tmp_path)
    assert not [row for row in rows if row.ours is not None and row.ours.origin.source == "measured"]
    assert not [row for row in rows if row.verdict in ("agrees", "undecided", "not comparable")]


def test_no_row_agrees_without_an_interval_or_a_false_positive_rate(board) -> None:
    agreeing = [row.ours for row in board if row.verdict == "agrees"]
    assert agreeing
    for ours in agreeing:
        assert ours.interval is not None or (ours.chance is not None and ours.chance <= CHANCE)
        assert ours.interval is None or any(map(math.isfinite, ours.interval))
    # what has neither is a formula, or was fitted
    sure = {row.verdict for row in board if row.ours and row.ours.interval is None and row.ours.chance is None}
    assert sure <= {"exact", "by construction", "not comparable", "differs"}
    assert {row.ours.origin.source for row in board if row.verdict == "exact"} <= {"computed", "measured"}


def test_every_row_tells_the_recipe_that_makes_it_and_the_recipe_is_one(board) -> None:
    for origin in {row.ours.origin for row in board if row.ours}:
        words = origin.recipe.split()
        if words[:2] == ["workbench", "reproduce"]:
            assert words[2] in EXPERIMENTS
            assert origin.scale in EXPERIMENTS[words[2]].scales
        elif words[:2] == ["workbench", "run"]:
            several = any(kind in words[3] for kind in ("GAME", "SCHEDULER", "PRESET"))
            assert several or (PRESETS / f"{words[3]}.toml").is_file()
        else:
            assert (origin.source, origin.scale) in {("computed", ""), ("simulated", "")}


def test_what_whole_games_came_to_is_made_by_a_command_that_plays_them(board) -> None:
    whats = ("after one day", "gamma changes")
    of_games = [row.ours for row in board if row.ours and row.number.what.startswith(whats)]
    assert len(of_games) == 10
    assert all("; workbench evaluate CHECKPOINTS > data/" in ours.origin.recipe for ours in of_games)


def test_no_number_of_a_game_stands_on_another(board) -> None:
    simulated = [row for row in board if row.ours and row.ours.origin.source in ("simulated", "model")]
    assert {row.number.where for row in simulated if not is_claim(row)} == {"Figs 2, 3, 8, 9", "Fig. 2"}  # the toys
    ratios = {row.number.what: row for row in board if "HyperTrick over Hyperband" in row.number.what}
    assert {what.rsplit(", ", 1)[1] for what in ratios} == set(GAMES)
    assert {row.verdict for row in ratios.values()} == {"not comparable"}
    for what, row in ratios.items():
        assert f"--preset {preset_of(what.rsplit(', ', 1)[1], 'SCHEDULER')} " in row.ours.origin.recipe


def test_what_the_text_lost_of_table_4_is_told_in_every_row_of_it(board) -> None:
    rows = [row for row in board if (row.number.paper, row.number.where) == ("HyperTrick", "Table 4")]
    assert len(rows) == 12
    assert all(COLUMNS in row.why for row in rows)


def test_what_was_learned_is_told_from_recordings_alone_with_pictures_that_are_there(made, tmp_path) -> None:
    written = made.learned
    rows = [line for line in written.splitlines() if line.startswith("| ")][1:]
    assert 5 <= len(rows) <= 10
    assert len(re.findall(r"!\[", written)) == 3
    for picture in re.findall(r"\((pictures/[^)]*)\)", written):
        assert (DATA.parent / "docs" / picture).is_file()
    curves = RecordedTable.open("ga3c-against-sb3").frame
    last = curves[(curves["system"] == "default") & (curves["frames"] == curves["frames"].max())]
    assert f"{last['score'].iloc[0]:.0f}" in next(row for row in rows if "`ga3c-against-sb3`" in row)
    assert "| `" not in page_of_what_was_learned(tmp_path)


def test_the_page_begins_with_counts_and_with_what_differs_claims_first(board) -> None:
    written = page(board)
    head, differing, *_ = written.split("\n## ")
    for verdict in get_args(Verdict):
        n = [sum(row.verdict == verdict and is_claim(row) == claim for row in board) for claim in (False, True)]
        assert f"| {verdict} | {n[0]} | {n[1]} |" in head
    assert differing.startswith("What differs")
    lines = [line for line in differing.splitlines() if " | differs | " in line]
    assert len(lines) == sum(row.verdict == "differs" for row in board)
    claims = {row.number.what for row in board if is_claim(row)}
    kinds = [line.split(" | ")[2] in claims for line in lines]
    assert kinds == sorted(kinds, reverse=True)


def test_one_paper_s_board_and_no_other(tmp_path) -> None:
    assert {row.number.paper for row in scoreboard(tmp_path, "PBT")} == {"PBT"}
    with pytest.raises(InvalidInput, match="unknown paper 'PTB': did you mean 'PBT'"):
        scoreboard(tmp_path, "PTB")


def test_what_was_not_run_is_grouped_with_its_reason(tmp_path) -> None:
    rows = scoreboard(tmp_path)  # where nothing is recorded
    assert all(row.why for row in rows if row.ours is None)
    written = page(rows)
    assert "| Table 3 | score | after one day, amidar: 218; after one day, boxing: 92;" in written
    assert "| a day on a GPU for each game |" in written
    assert "FuN, 80 members, amidar: 2055 ± 113" in written
    assert not any(line.count("|") not in (0, 4, 5, 7, 8, 9) for line in written.splitlines())


def test_recordings_are_listed_with_their_scale(tmp_path) -> None:
    keep_table(tmp_path / "pbt-toy", [{"a": 1}], ABOUT | {"shows": "PBT, Fig. 2", "seconds": 12.4})
    lines = recordings(tmp_path).splitlines()
    assert "| `pbt-toy` | PBT, Fig. 2 | measured at scale 'minutes' on 2 cores, 2026-01-01 | 12 |" in lines
    assert sum(line.endswith("| not recorded yet | |") for line in lines) == len(EXPERIMENTS) - 1


def test_recorded_studies_are_listed_with_what_ran(tmp_path) -> None:
    spec = {"seed": 0, "scheduler": {"kind": "full"}, "trainable": {"kind": "ga3c", "game": "Pong"}}
    day = datetime.now(UTC).date()
    log = StudyLog(tmp_path / "kb.db", "night", spec)
    log.append(a_study())
    log.close()
    record(tmp_path / "kb.db", "night", tmp_path / "pong-night")
    *_, line = recordings(tmp_path).splitlines()
    days = {day, datetime.now(UTC).date()}  # it may be midnight
    assert line in {f"| `pong-night` | full over ga3c on Pong, 3 trials | 3 | 2 | 0 | {day} |" for day in days}


def test_the_committed_page_is_what_the_recordings_say(made) -> None:
    assert made.page == Path(DATA.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_a_reader_s_own_recordings_stand_beside_the_papers_alone(tmp_path, capsys) -> None:
    shutil.copytree(DATA / "pbt-toy", tmp_path / "own" / "pbt-toy")
    assert main(["scoreboard", "--recordings", str(tmp_path / "own")]) == 0
    written = capsys.readouterr().out
    assert written.startswith(f"# The papers' numbers and claims, beside the recordings in {tmp_path / 'own'}\n")
    assert set(re.findall(r"\| `workbench reproduce ([\w-]+)", written)) == {"pbt-toy"}
    assert "pictures/" not in written
    assert main(["scoreboard", "--recordings", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no recordings, each in a folder of its own" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("workbench.paper.scoreboard.scoreboard", breaking("it was read"))
    (tmp_path / "file").touch()
    assert main(["scoreboard", "--write", str(tmp_path / "file" / "page.md")]) == 2
    assert f"{tmp_path / 'file' / 'page.md'} cannot be written" in capsys.readouterr().err
