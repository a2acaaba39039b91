from tests.algos.search.arena import play
from tests.support import SPACE
from workbench.algos.search import ListSearcher, TopK


def test_worked_by_hand() -> None:
    """Five configurations, two nodes: all run a phase, the best two of them three more."""
    configs = [{"score": score} for score in (3.0, 9.0, 1.0, 4.0, 5.0)]
    scheduler = TopK(ListSearcher(configs), 5, 4, kept=2)
    assert scheduler.expected_phases == 5 + 2 * 3
    world = play(scheduler, 2, score=lambda config, trial, phase: config["score"])
    assert world.ended("finished") == [1, 4]
    assert world.ended("dropped") == [0, 2, 3]


def test_where_nothing_is_left_to_choose_all_run_whole() -> None:
    assert TopK(SPACE, 5, 4, kept=5).expected_phases == TopK(SPACE, 5, 4, after=4).expected_phases == 20
