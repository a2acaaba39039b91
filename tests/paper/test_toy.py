"""The reconstructed toy problem fits all that the HyperTrick paper tells of its own, under the real schedulers."""

import json

import pytest

from workbench.cli import main
from workbench.paper import toy
from workbench.scenario import DATA, preset

FACTS = toy.facts(toy.table())


@pytest.mark.parametrize("fact", FACTS)
def test_what_the_paper_tells_holds(fact) -> None:
    assert FACTS[fact]


def test_a_table_that_fits_less_well_is_caught() -> None:
    table = toy.table()
    slower = [[2 * d for d in row] for row in table.durations]
    facts = toy.facts(type(table)(slower, table.scores))
    assert not facts["hypertrick takes 10"]
    assert facts["the fifth trial to report the third phase is the first judged there"]


@pytest.mark.parametrize(("name", "makespan"), toy.MAKESPANS.items())
def test_the_presets_play_the_same_schedules(capsys, name, makespan) -> None:
    assert main(["simulate", "--preset", f"toy-{name}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["makespan"] == makespan
    assert (found["simulated"], found["nodes"]) == (True, 6)
    assert found["completion_rate"] == pytest.approx(
        preset(f"toy-{name}").repetition().run(found["scheduler"]).completion_rate
    )


def test_successive_halving_keeps_the_same_trials_with_either_allocation() -> None:
    table = toy.table()
    ends = [toy.play(toy.schedulers(table)[name], table).finished() for name in ("sh-dynamic", "sh-static")]
    assert sorted(ends[0]) == sorted(ends[1])


def test_the_table_says_that_it_is_reconstructed_and_how() -> None:
    told = json.loads((DATA / "toy_problem.json").read_text())
    assert told["status"] == "RECONSTRUCTED"
    assert told["found_by"].startswith("python benchmarks/find_toy_problem.py --seed")
