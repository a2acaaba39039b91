"""GA3C beside Stable-Baselines3's A2C: what its page says is what was recorded."""

import pytest

from workbench.core.errors import WorkbenchError
from workbench.core.places import DATA
from workbench.paper.experiment import RecordedTable
from workbench.paper.ga3c import against_sb3
from workbench.paper.ga3c.against_sb3 import Against

LAST = [
    ("ga3c-against-sb3", "| {default} | 500 |"),
    ("ga3c-against-sb3", "| {before} | 86 |"),
    ("ga3c-against-sb3", "| {a2c} | 365 |"),
    ("ga3c-against-sb3-atari", "| {default} | 565 |"),
    ("ga3c-against-sb3-atari", "| {a2c} | 627 |"),
    ("ga3c-defaults-atari", "| {default}; {before} | 592; 342 |"),
]


@pytest.mark.parametrize(("name", "words"), LAST)
def test_the_page_has_the_last_scores_that_were_recorded(name, words) -> None:
    last = RecordedTable.open(name).frame.groupby(["system", "seed"]).last()["score"]
    told = {str(system): ", ".join(f"{score:.0f}" for score in scores) for system, scores in last.groupby("system")}
    page = (DATA.parent / "docs" / "ga3c-results.md").read_text(encoding="utf-8")
    assert words.format(**told) in page


def test_without_its_rival_nothing_is_trained(monkeypatch) -> None:
    monkeypatch.setattr(against_sb3, "find_spec", lambda name: None)
    monkeypatch.setattr(against_sb3, "each", None)
    with pytest.raises(WorkbenchError, match=r"pip install 'rl-workbench\[sb3\]'$"):
        against_sb3.against_sb3(Against())
