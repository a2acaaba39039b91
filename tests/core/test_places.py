"""Where a knowledge base is."""

from pathlib import Path

import pytest

from tests.support import SPACE, Deterministic
from workbench import AttachedStudy, FullRuns, KnowledgeBase, RandomSearcher, Study
from workbench.core.errors import InvalidInput
from workbench.core.places import db_path
from workbench.study.results import Results

TAKES_DB = {
    "path": db_path,
    "study": lambda db: Study("one", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, db),
    "knowledge base": KnowledgeBase,
    "results": lambda db: Results.open(db, "one"),
    "attached": lambda db: AttachedStudy(db, "one"),
}


@pytest.mark.parametrize("bad", [None, 3, b"kb.db"])
@pytest.mark.parametrize("name", TAKES_DB)
def test_a_knowledge_base_that_is_no_path_is_refused_in_one_line(name, bad) -> None:
    with pytest.raises(InvalidInput, match=f"^a knowledge base is a file, named by its path, got {bad!r}: write for "):
        TAKES_DB[name](bad)


def test_a_knowledge_base_is_named_by_a_word_or_a_path_and_may_begin_at_home(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert db_path("~/kb.db") == db_path(Path("~/kb.db")) == Path("/somewhere/kb.db")
