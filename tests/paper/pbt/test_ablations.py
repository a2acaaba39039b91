"""The toy problem of PBT's Fig. 2: the ablations come in the paper's order, and other readings of it do not."""

from itertools import pairwise

import numpy as np
import pytest

from workbench.core.errors import InvalidInput
from workbench.paper.catalogue import recorded
from workbench.paper.pbt import ablations
from workbench.viz.figures import toy_problem

SEEDS = range(4)
GRID_ENDS_AT = 0.39  # 1.2 - 0.9²: one of the two coordinates stays where it began. The paper: near 0.4.


@pytest.fixture(scope="module")
def finals():
    return ablations.finals(SEEDS)


def test_pbt_reaches_the_optimum_that_neither_member_can_alone(finals) -> None:
    assert finals["PBT"][:, 0].min() > 1.15
    assert finals["grid"][:, 0] == pytest.approx(GRID_ENDS_AT, abs=0.01)


def test_the_ablations_come_in_the_paper_s_order_and_most_is_gained_by_copying(finals) -> None:
    intervals = [ablations.intervals(finals[variant])["final"] for variant in ablations.VARIANTS]
    for better, worse in pairwise(intervals):
        assert better.low > worse.high
    pbt, exploit, _, grid = (interval.value for interval in intervals)
    assert exploit - grid > 0.9 * (pbt - grid)


def test_factors_leave_a_hyperparameter_of_zero_where_it_is() -> None:
    moved = ablations.play("explore only", noise=0.0).final
    assert moved == pytest.approx(GRID_ENDS_AT, abs=0.02)
    assert ablations.play("explore only").final > 0.5


def test_copying_the_direction_too_ends_where_grid_search_does() -> None:
    assert ablations.play("exploit only", copy_config=True).final == pytest.approx(GRID_ENDS_AT, abs=0.01)


def test_members_out_of_step_copy_all_the_same() -> None:
    assert min(ablations.play("PBT", seed, spread=0.1).final for seed in SEEDS) > 1.15


def test_paths_hold_every_step_of_both_members_and_go_on_from_the_donor_s_theta() -> None:
    run = ablations.play("exploit only")
    paths = ablations.paths([run])
    assert len(paths) == 2 * 200
    assert sorted(paths["step"].unique()) == list(range(1, 201))
    assert paths["q"].to_numpy() == pytest.approx(1.2 - paths["theta0"] ** 2 - paths["theta1"] ** 2)
    one = paths[paths["member"] == 0].set_index("step")
    assert one.loc[4, "theta0"] == pytest.approx(0.9 * 0.96**4)
    assert one.loc[4, "theta1"] == 0.9
    other = paths[paths["member"] == 1].set_index("step")
    assert other.loc[8, "theta0"] == pytest.approx(0.9 * 0.96**4)  # member 1 copied member 0 after 4 steps,
    assert other.loc[8, "theta1"] == pytest.approx(0.9 * 0.96**4)  # and went on along its own axis


@pytest.mark.parametrize("variant", ablations.VARIANTS)
def test_the_recording_s_first_seed_which_the_docs_draw_is_what_is_played(variant) -> None:
    kept = recorded("pbt-toy").frame.query("seed == 0 and variant == @variant")
    run = ablations.play(variant, 0)
    assert kept[["final", "over_time"]].to_numpy().tolist() == [pytest.approx([run.final, run.mean], abs=1e-5)]


def test_the_same_seed_gives_the_same_run() -> None:
    assert ablations.play("PBT", 3).outcome.scores.tolist() == ablations.play("PBT", 3).outcome.scores.tolist()


def test_the_figure_has_a_column_a_variant() -> None:
    paths = ablations.paths([ablations.play(variant) for variant in ("PBT", "grid")])
    fig = toy_problem(paths)
    assert [note.text for note in fig.layout.annotations[:2]] == ["<b>PBT</b>", "<b>grid</b>"]
    assert len(fig.data) == 2 * 2 * 2
    dots = fig.data[0]
    assert np.diff(dots.marker.size).max() < 0  # dots shrink with iteration
    assert toy_problem(paths.iloc[:0]).layout.annotations[0].text == "nothing has been run yet"


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'grid'"):
        ablations.play("gird")
