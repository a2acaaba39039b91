"""What is run for the HyperTrick paper's figures, on few repetitions whose values are reckoned again."""

import numpy as np
import pytest

from workbench.paper.hypertrick.experiments import MEASURES, Redrawn, Repetitions, redrawn_schedulers, schedulers
from workbench.simulation import compare, preset


def _shares(comparison, measure):
    ours, rivals = (comparison.values[name, measure] for name in ("hypertrick", "hyperband"))
    return 100 * (ours - rivals) / rivals


def test_a_gap_in_per_cent_is_of_what_the_rival_had_in_the_same_repetition() -> None:
    row = schedulers(Repetitions("paper-46", 3, processes=1))[-1]
    assert row["scheduler"] == "hypertrick - hyperband, %"
    comparison = compare(preset("paper-46"), 3)
    assert [row[m] for m in MEASURES] == pytest.approx([np.median(_shares(comparison, m)) for m in MEASURES])


def test_each_draw_of_the_configurations_has_a_rival_of_its_own() -> None:
    row = redrawn_schedulers(Redrawn("ga3c-curves", 2, draws=2, each=2, processes=1))[-1]
    drawn = [
        np.median(_shares(compare(preset("ga3c-curves").with_curves(redraw=draw), 2), "makespan")) for draw in (0, 1)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert (row["makespan_low"], row["makespan_high"]) == pytest.approx((low, high))
