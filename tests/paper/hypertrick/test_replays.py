"""What is simulated again and again: the configurations as they were recorded first, then draws of them."""

from workbench.paper.hypertrick.replays import Draws, repetitions, whole_curves
from workbench.simulation import preset


def test_repetitions_are_of_the_recorded_configurations_first_and_then_of_each_draw() -> None:
    found = [*repetitions(preset("ga3c-curves"), Draws(repeats=2, draws=2, each=1))]
    assert [(at["draw"], at["repeat"]) for at, _ in found] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert [one.scenario.curves.get("redraw") for _, one in found] == [None, None, 0, 1]
    assert [one.seed for _, one in found] == [0, 1, 0, 0]


def test_whole_curves_are_those_of_the_trials_in_the_order_that_they_are_scheduled_in() -> None:
    repetition = preset("ga3c-curves").repetition(3)
    table, configs = repetition.scenario.source.table, repetition.scenario.searcher_of("hypertrick", 3).configs
    curves = whole_curves(repetition, 5)
    assert curves.shape == (5, 27, 2)
    for curve, config in zip(curves, configs, strict=False):
        assert curve[:, 1].tolist() in table.scores[table.row(config)].tolist()
