"""`benchmarks/compare_schedulers.py tables` on this project's recorded curves: the check of docs/comparisons.md."""

import re
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.compare_schedulers import (
    BUDGETS,
    RIVALS,
    against_the_best,
    against_whole,
    main,
    pair,
    settings,
    tables,
    whole,
    with_slow,
)
from workbench.core.places import DATA
from workbench.simulation import preset, scenario_from
from workbench.simulation.held_out import table_of as table_of_curves

ONE = {"nodes": 8, "processes": 1, "by_table": False, "sure": []}
GIVEN = {"table": None, "configs": None, "column": [], "only": [], **ONE}
NUMBER = re.compile(r"(-?[0-9.]+) \[(-?[0-9.]+), (-?[0-9.]+)\]")


def table_of(schedulers, seeds, repeats) -> tuple[str, dict[str, list[tuple[float, float, float]]]]:
    """Give the line of words, and the intervals of each row by its label."""
    lines = tables(Namespace(**GIVEN, schedulers=schedulers, seeds=seeds), repeats).splitlines()
    rows = {line.split(" | ")[0].strip("| "): NUMBER.findall(line) for line in lines[4:]}
    return lines[0], {label: [tuple(map(float, cell)) for cell in cells] for label, cells in rows.items()}


def test_sure_is_held_against_the_best_of_the_others() -> None:
    words, rows = table_of(["random", "hypertrick", "pbt", "sure"], [1], 5)
    assert words.startswith("Simulated: 5 paired repetitions on each of 1 tables, 8 nodes")
    assert words.endswith("4 seeds to choose by, judged by 6 others.")
    at = BUDGETS.index(0.15)
    mean, low, high = rows["sure × 4"][at]
    assert low <= mean <= high
    best = next(cells for label, cells in rows.items() if label.startswith("sure × 4, less"))
    assert best[at][0] == pytest.approx(mean - min(cells[at][0] for n, cells in rows.items() if "× 1" in n), abs=0.0011)


def test_a_number_of_seeds_that_leaves_none_held_out_is_left_out() -> None:
    _, rows = table_of(["asha"], [1, 9, 10], 2)
    assert [label for label in rows if rows[label]] == ["asha × 1", "asha × 9", "asha × 9, less that"]


def test_of_tables_with_unlike_seeds_the_fewest_say_what_is_compared(tmp_path) -> None:
    seeds = {"few": 3, "many": 5}
    rows = [
        (env, n, s, step, n + s)
        for env, most in seeds.items()
        for n in range(4)
        for s in range(most)
        for step in (1, 2)
    ]
    frame = pd.DataFrame(rows, columns=["env", "config_id", "seed", "step", "score"])
    frame.to_parquet(tmp_path / "curves.parquet")
    given = GIVEN | {"table": str(tmp_path / "curves.parquet"), "only": [("env", env) for env in reversed(seeds)]}
    lines = tables(Namespace(**given, schedulers=["random"], seeds=[1, 2, 4]), 2).splitlines()
    assert lines[0].endswith("2 seeds to choose by, judged by 1 or 3 others.")
    assert [line.split(" | ")[0].strip("| ") for line in lines[4:6]] == ["random × 1", "random × 2"]
    assert lines[7].startswith("| random × 2, less that")


def test_sure_alone_is_told_table_by_table() -> None:
    given = GIVEN | {"schedulers": ["sure"], "seeds": [1], "by_table": True}
    lines = tables(Namespace(**given), 1).splitlines()
    whole = ["all whole, with all seeds", "sure × 4 at the end, less that"]
    rows = [line.split(" | ")[0].strip("| ") for line in lines[4:]]
    assert rows == ["sure × 4", *whole, "**the table**", "sure × 4", *whole]
    assert lines[4].rpartition(" | ")[0] == lines[8].rpartition(" | ")[0]
    assert lines[5:7] == lines[9:]


def test_sure_is_tried_with_other_settings_too() -> None:
    words = ["finalists=2, seeds=1", "rungs=[0.2]"]
    given = GIVEN | {"schedulers": ["sure"], "seeds": [1], "sure": [settings(text) for text in words]}
    lines = tables(Namespace(**given), 1).splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines[4:]}
    assert list(rows)[:3] == ["sure × 4", "sure, finalists=2, seeds=1", "sure, rungs=[0.2]"]
    all_seeds, one_seed = (int(re.search(r"(\d+)% \|$", row)[1]) for row in list(rows.values())[:2])
    assert one_seed < all_seeds


def test_the_best_of_the_others_is_sought_at_every_budget() -> None:
    flat = {"sure × 4": 0.2, "a": 0.3, "b": 0.1}
    regrets = {label: np.full((5, len(BUDGETS)), value) for label, value in flat.items()}
    regrets["a"][:, 0] = 0.0
    names, less = against_the_best(regrets)
    assert names.split(" | ")[1:4] == ["a", "b", "b"]
    assert [float(cell[0]) for cell in NUMBER.findall(less)] == pytest.approx([0.2] + [0.1] * (len(BUDGETS) - 1))
    del regrets["sure × 4"]
    names, less = against_the_best(regrets)  # the last, where `sure` is not among them
    assert names.split(" | ")[1:3] == ["a", "a"]
    assert less.startswith("| b, less that | 0.1")


def test_what_no_stopping_rule_could_know_is_told_on_the_same_draws() -> None:
    """Nine of ten seeds choose, by the best mean over the last half of every curve; the tenth judges."""
    scenario = scenario_from(
        {
            "curves": {"kind": "table", "path": str(DATA / "ga3c-curves" / "table.parquet")},
            "schedulers": {"sure": {"kind": "sure", "seeds": 9}},
            "simulation": {"seeds": 9},
        }
    )
    scores = table_of_curves(scenario).scores
    possible = []
    for judge in range(10):
        chosen = np.delete(scores, judge, axis=1)[:, :, -14:].mean(axis=(1, 2)).argmax()
        worth = scores[:, judge, -1]
        possible.append((worth.max() - worth[chosen]) / (worth.max() - np.median(worth)))
    found = whole(scenario, 12)
    assert set(found.round(6)) <= set(np.round(possible, 6))
    assert len(set(found)) > 1
    gap = against_whole({"sure × 2": np.full((12, 6), 0.5), "asha × 1": np.zeros((12, 6))}, np.full(12, 0.2))
    assert [NUMBER.findall(line)[0] for line in gap] == [("0.200",) * 3, ("0.300",) * 3]


def test_every_sub_population_evolves_on_tables_of_ten_evaluations() -> None:
    assert max(RIVALS["mfpbt"]["intervals"]) < 10


def test_slow_searchers_are_added_by_name_and_nothing_without() -> None:
    families = preset("families")
    assert with_slow(families, []).schedulers == families.schedulers
    added = with_slow(preset("searchers"), ["smac"]).schedulers
    assert added["smac"] == {**added["tpe"], "searcher": {"kind": "smac"}}


@pytest.mark.parametrize("words", ["families tables", "tables --only env", "tabels", "tables --sure eta"])
def test_a_command_that_makes_no_sense_is_refused_with_what_to_write(words, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["compare_schedulers.py", *words.split()])
    with pytest.raises(SystemExit):
        main()
    assert re.search("or tables alone$|write NAME=VALUE, got 'env'$|got 'eta': ", capsys.readouterr().err)
    assert pair("score=a=b") == ("score", "a=b")
