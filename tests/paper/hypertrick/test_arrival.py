"""When the best configuration is scheduled, by tables small enough to read it off."""

from dataclasses import replace

import pandas as pd

from workbench.paper.hypertrick import arrival
from workbench.paper.hypertrick.arrival import Arrivals, arrivals
from workbench.simulation import preset


def test_it_came_after_as_many_as_stand_before_it_in_the_order_of_its_repetition(tmp_path, monkeypatch) -> None:
    scores = {0: [1, 5], 1: [9, 2], 2: [3, 4], 3: [3, 3]}  # the second's first score is the highest of all
    rows = [
        {"config_id": n, "seed": 0, "step": step, "score": score}
        for n, of in scores.items()
        for step, score in enumerate(of, 1)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "table.csv", index=False)
    scenario = replace(
        preset("ga3c-curves"),
        curves={"kind": "table", "path": str(tmp_path / "table.csv")},
        schedulers={"hypertrick": {"kind": "hypertrick", "eviction_rate": 0.25}},
    )
    monkeypatch.setattr(arrival, "preset", lambda name: scenario)
    found = arrivals(Arrivals(nodes=1, repeats=6, draws=0))
    orders = [scenario.searcher_of("hypertrick", scenario.seed + n).configs for n in range(6)]
    assert [row["came"] for row in found] == [[c["config_id"] for c in order].index(1) / 4 for order in orders]
    assert len({row["came"] for row in found}) > 1
    assert {row["best_score"] for row in found} == {9}  # every trial runs its first phase
