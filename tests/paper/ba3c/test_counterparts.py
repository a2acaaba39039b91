"""Ours beside the Distributed BA3C paper's numbers."""

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table
from workbench.paper.scoreboard import scoreboard


def test_our_networks_have_the_published_numbers_of_parameters(tmp_path) -> None:
    rows = verdicts(tmp_path, "BA3C", "Fig. 6")
    assert rows["fully connected width 128"] == ("agrees", 332_295)
    assert {verdict for verdict, _ in rows.values()} == {"agrees"}


def test_scaling_is_a_model_s(tmp_path) -> None:
    scaling = {"kind": "scaling", "link": "10 Gbit/s, 50 us", "way": "4 servers, 90 % awaited"}
    rows = [scaling | {"n_nodes": n, "points_per_s": rate} for n, rate in ((1, 100.0), (64, 1500.0))]
    keep_table(tmp_path / "ba3c-scaling-model", rows, ABOUT | {"source": "model"})
    keep_table(tmp_path / "ba3c-scaling", [{"kind": "ranks", "n_ranks": 1, "points_per_s": 90.0}], ABOUT)
    (row,) = [row for row in scoreboard(tmp_path) if row.number.where == "Fig. 8"]
    assert (row.verdict, row.ours.value, row.ours.source) == ("differs", 15, "model")
