import numpy as np
import pytest

from tests.algos.search.arena import play
from tests.support import SPACE
from workbench.algos.search import GridSearcher, Hyperband, RandomSearcher
from workbench.algos.search.hyperband import bracket_completion, bracket_table
from workbench.core.errors import InvalidInput

SEARCHER = RandomSearcher(SPACE)


def pairs(table) -> list[list[tuple[int, int]]]:
    return [[(r.n_trials, r.phases) for r in rungs] for rungs in table]


def test_brackets_of_table_2() -> None:
    assert pairs(bracket_table(27)) == [
        [(27, 1), (9, 3), (3, 9), (1, 27)],
        [(9, 3), (3, 9), (1, 27)],
        [(6, 9), (2, 27)],
        [(4, 27)],
    ]


def test_completion_rates_of_table_2() -> None:
    table = bracket_table(27)
    assert [round(100 * bracket_completion([rungs]), 2) for rungs in table] == [14.81, 33.33, 66.67, 100.0]
    assert bracket_completion(table) == 405 / 1242
    assert round(100 * bracket_completion(table), 2) == 32.61


@pytest.mark.parametrize(("formula", "sizes"), [("hypertrick", [27, 9, 6, 4]), ("journal", [27, 12, 6, 4])])
def test_the_two_formulas_give_46_and_49_configurations(formula, sizes) -> None:
    assert [rungs[0].n_trials for rungs in bracket_table(27, 3, formula)] == sizes
    assert Hyperband(SEARCHER, 27, formula=formula).n_configs == sum(sizes)


def test_brackets_of_the_journal_s_own_example() -> None:
    """R = 81, eta = 3: Hyperband's Table 1 (Li et al., 2018); its printed n_2 = 15 and n_1 = 8 are as here."""
    assert [rungs[0] for rungs in pairs(bracket_table(81, 3, "journal"))] == [
        (81, 1),
        (34, 3),
        (15, 9),
        (8, 27),
        (5, 81),
    ]


def test_the_paper_s_experiment_counted_by_hand() -> None:
    """Restarting: 46 configurations, 65 trials, 405 phases; resuming: 27+18+18+18, 27+18+18, 54+36 and 108."""
    restart, resume = Hyperband(SEARCHER, 27, restart=True), Hyperband(SEARCHER, 27)
    assert (restart.n_configs, restart.n_trials, restart.expected_phases) == (46, 65, 405)
    assert (resume.n_trials, resume.expected_phases) == (46, 81 + 63 + 90 + 108)
    for scheduler, trials, phases in ((restart, 65, 405), (resume, 46, 342)):
        world = play(scheduler, 46)
        assert (len({r.trial for r in world.runs}), len(world.reports)) == (trials, phases)
        assert len(world.ended("finished")) == 1 + 1 + 2 + 4


def best(scheduler, n_slots, seed) -> list[dict]:
    """Configurations that finish when a score depends on the configuration alone."""
    world = play(scheduler, n_slots, seed, score=lambda config, trial, phase: -abs(np.log10(config["lr"]) + 3))
    configs = {r.trial: r.config for r in world.runs}
    return sorted((configs[t] for t in world.ended("finished")), key=str)


@pytest.mark.parametrize("seed", range(10))
def test_order_allocation_restarting_and_nodes_do_not_change_which_configurations_win(seed) -> None:
    def hyperband(**settings):
        return Hyperband(RandomSearcher(SPACE, seed), 9, **settings)

    wanted = best(hyperband(), 15, seed)
    assert len(wanted) == 1 + 1 + 3
    for n_slots in (1, 4):
        assert best(hyperband(), n_slots, seed) == wanted
        assert best(hyperband(order="sequence"), n_slots, seed) == wanted
        assert best(hyperband(restart=True), n_slots, seed) == wanted
    assert best(hyperband(allocation="none", n_nodes=15), 15, seed) == wanted


def test_in_sequence_a_bracket_begins_when_the_one_before_is_over() -> None:
    world = play(Hyperband(SEARCHER, 9, order="sequence"), 4, seed=2)
    brackets = [next(iter(reasons.values()))["bracket"] for reasons in world.reasons]
    assert brackets == sorted(brackets, reverse=True)


def test_further_rounds_run_the_same_brackets_with_other_configurations() -> None:
    """R = 9 twice: brackets of 9, 3 and 3, then again; in sequence the second round begins after the first."""
    twice = Hyperband(SEARCHER, 9, rounds=2, order="sequence")
    assert (twice.n_configs, twice.expected_phases) == (30, 2 * Hyperband(SEARCHER, 9).expected_phases)
    world = play(twice, 4, seed=2)
    told = [next(iter(reasons.values())) for reasons in world.reasons]
    assert sorted({(t["round"], t["bracket"]) for t in told}) == [(r, s) for r in (0, 1) for s in (0, 1, 2)]
    order = [(t["round"], -t["bracket"]) for t in told]
    assert order == sorted(order)
    assert len(world.ended("finished")) == 2 * (1 + 1 + 3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rounds": 0}, "rounds a whole number from 1 to 1000000"),
        ({"allocation": "none", "n_nodes": 45}, r"Hyperband\(allocation='none'\) needs 46 nodes, the cluster has 45"),
        ({"allocation": "none", "n_nodes": 26, "order": "sequence"}, "needs 27 nodes, the cluster has 26"),
        ({"allocation": "static", "n_nodes": 46}, "unknown allocation 'static'; known: dynamic, none"),
        ({"formula": "blog"}, "unknown formula 'blog'; known: hypertrick, journal"),
        ({"eta": 1}, "eta >= 2"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        Hyperband(SEARCHER, 27, **settings)


@pytest.mark.parametrize(("eta", "formula", "says"), [(1, "journal", "eta >= 2"), (3, "paper", "unknown formula")])
def test_a_table_of_no_brackets_is_refused(eta, formula, says) -> None:
    """With eta 1 rungs never came to an end."""
    with pytest.raises(InvalidInput, match=says):
        bracket_table(9, eta, formula)


def test_restarting_without_preemption_needs_no_particular_cluster() -> None:
    assert len(play(Hyperband(SEARCHER, 9, restart=True, allocation="none"), 2).reports) > 0


def test_a_searcher_with_too_few_configurations_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs 46 configurations, the searcher has 4"):
        Hyperband(GridSearcher(SPACE, 2), 27)
