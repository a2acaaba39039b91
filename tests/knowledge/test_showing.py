"""What studies and trials show of themselves, and what they write to files."""

import json

import pandas as pd
import pytest

from tests.viz.figures.conftest import EVENTS, HOSTILE
from workbench.core.errors import InvalidInput
from workbench.knowledge import KnowledgeBase, StudyLog, frames_of
from workbench.knowledge.frames import FRAMES

NAME = HOSTILE.replace("/", "")  # a study of that name could not be


@pytest.fixture
def kb(tmp_path):
    log = StudyLog(tmp_path / "kb.db", NAME, {})
    log.append(EVENTS)
    log.close()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        yield kb


def test_a_trial_says_what_became_of_it(kb):
    trial = kb[NAME].trial(0)
    assert "finished" in repr(trial)
    assert "lr = 0.0001, net = small" in repr(trial)
    assert repr(trial).endswith("scores 1, 5")
    assert len(trial.decisions) == 2
    with pytest.raises(InvalidInput, match="has no trial 9: it has begun 4"):
        kb[NAME].trial(9)


def test_what_the_log_says_is_escaped(kb):
    for shown in (kb, kb[NAME], kb[NAME].trial(1)):
        page = shown._repr_html_()
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
    assert kb._ipython_key_completions_() == [NAME]  # what a tab offers after kb["
    assert repr(kb[NAME]) == f"study {NAME!r}: abandoned, 4 trials, 4 phases ended"


def test_a_simulated_study_is_marked(tmp_path):
    StudyLog(tmp_path / "kb.db", "played", {"simulated": True}).close()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert repr(kb["played"]).startswith("study 'played' (simulated): ")
        assert "played (simulated)" in kb._repr_html_()
        assert kb.studies["name"].tolist() == ["played"]  # what code looks for


@pytest.mark.parametrize(("kind", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_frames_go_to_files_and_come_back(tmp_path, kind, read):
    frames = frames_of(EVENTS)
    written = frames.export(tmp_path / "out", kind)
    assert [path.name for path in written] == [f"{name}.{kind}" for name in (*FRAMES, "tags", "notes")]
    assert read(written[0])["trial"].tolist() == [0, 1, 2, 3]
    assert json.loads(read(written[3])["reason"][0]) == {"rank": 0.25}
    assert read(written[1])["score"].tolist() == pytest.approx(frames.phases["score"].tolist(), nan_ok=True)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="parquet"):
        frames_of([]).export(tmp_path, "xlsx")
