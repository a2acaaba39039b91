"""Ours beside the HTS-RL paper's numbers."""

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table


def test_speedups_at_the_least_and_the_most_variance_stand_beside_the_published(tmp_path) -> None:
    shown = {"law": "gamma", "n_agents": 4, "sync_interval": 5, "mean_ms": 10.0, "synchronous_learning_s": 0.0}
    rows = [
        shown | {"cv": cv, "seed": 0, "speedup": found, "hts_return": 1.0, "synchronous_return": 1.0}
        for cv, found in ((1.0, 3.0), (0.1, 1.4), (3.0, 4.5))
    ]
    keep_table(tmp_path / "hts-speedup", [*rows, rows[0] | {"law": "pareto", "cv": 4.0, "speedup": 9.0}], ABOUT)
    assert verdicts(tmp_path, "HTS-RL", "Fig. 4 (left)") == {
        "speed-up at low step-time variance, about": ("agrees", 1.4),
        "speed-up at high step-time variance, above": ("differs", 4.5),
    }
