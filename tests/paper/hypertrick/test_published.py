"""The HyperTrick paper's numbers agree with one another where it derives them."""

import pytest

from workbench.core.budget import Budget
from workbench.paper.hypertrick.published import CLAIMS, NUMBERS
from workbench.paper.numbers import find
from workbench.study.file import read_file, study_from


def test_hyperbands_completion_rate_follows_from_its_brackets() -> None:
    # Table 2: 27, 9, 6 and 4 configurations, each worth 27 units
    shares = [find(NUMBERS, "Table 2", f"alpha, s = {s}").value for s in (3, 2, 1, 0)]
    together = sum(n * share for n, share in zip((27, 9, 6, 4), shares, strict=True)) / 46
    assert together == pytest.approx(find(NUMBERS, "Table 2", "alpha").value, abs=0.01)


def test_importances_are_shares() -> None:
    for game in ("boxing", "centipede", "ms_pacman", "pong"):
        shares = [n.value for n in NUMBERS if n.where == "Table 4" and n.what.endswith(f", {game}")]
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(100, abs=1)


def test_presets_are_named_where_they_give_the_number_alone(tmp_path) -> None:
    named = {of: {n.where for n in (*NUMBERS, *CLAIMS) if of in n.why_not} for of in ("GAME-paper", "ms-pacman-SCH")}
    assert named == {"GAME-paper": {"Table 1", "Sec. 5.2.1"}, "ms-pacman-SCH": {"Table 3"}}
    file = tmp_path / "study.toml"
    for scheduler in ("hypertrick", "hyperband"):
        sizes = 'study.nodes = 46\ntrainable = {game = "Centipede", phase = {episodes = 500}}\n'
        file.write_text(f'base = "ms-pacman-{scheduler}"\n{sizes}')
        study = study_from(read_file(file), name="table-3")
        assert study.nodes == 46
        assert study.scheduler.n_phases == 27
        assert study.trainable.phase == Budget(episodes=500)


def test_a_number_that_the_paper_does_not_have() -> None:
    with pytest.raises(KeyError, match="after one day"):
        find(NUMBERS, "Table 3", "after one day, tetris")
