"""The reconstructed toy problem fits all that the HyperTrick paper tells of its own, under the real schedulers."""

import json
from dataclasses import replace

import pytest

from data import toy_problem as toy_search
from workbench.cli.main import main
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.places import DATA
from workbench.core.protocols import Kind
from workbench.paper.hypertrick import toy_problem as toy
from workbench.paper.hypertrick.published import MAKESPANS
from workbench.simulation import preset
from workbench.simulation.curve_table import read_table

FACTS = toy_search.facts(toy.table())


@pytest.mark.parametrize("fact", FACTS)
def test_what_the_paper_tells_holds(fact) -> None:
    assert FACTS[fact]


def test_a_table_that_fits_less_well_is_caught() -> None:
    table = toy.table()
    facts = toy_search.facts(replace(table, durations=2 * table.durations))
    assert not facts["hypertrick takes 10"]
    assert facts["the fifth trial to report the third phase is the first judged there"]


@pytest.mark.parametrize(("name", "makespan"), MAKESPANS.items())
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
    ends = [toy_search.finished(toy.play(toy.schedulers(table)[name], table)) for name in ("sh-dynamic", "sh-static")]
    assert sorted(ends[0]) == sorted(ends[1])


@pytest.mark.parametrize("name", toy.FIGURES)
def test_the_paper_s_figures_show_the_simulated_schedules(name) -> None:
    """Figs 2, 3, 8 and 9: every phase of the log is a bar on its node, as long as the table says."""
    table = toy.table()
    events = toy.play(toy.schedulers(table)[name], table).events
    figure = toy.figure(name)
    bars = [
        (int(trial), int(trace.name.removeprefix("phase ")), round(base, 6), round(length, 6), y)
        for trace in figure.data
        if trace.customdata is not None
        for trial, base, length, y in zip(trace.customdata, trace.base, trace.x, trace.y, strict=True)
    ]
    began = [
        (e.trial, e.phase, round(e.at, 6), table.durations[e.trial, 0, e.phase], float(e.slot))
        for e in events
        if e.kind is Kind.PHASE_STARTED
    ]
    assert sorted(bars) == sorted(began)
    assert len(figure.layout.yaxis.tickvals) == toy.NODES
    assert round(figure.layout.xaxis.range[1], 6) == MAKESPANS[name]
    assert toy.FIGURES[name] in figure.layout.title.text
    assert "reconstructed" in figure.layout.title.text


def test_a_figure_the_paper_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'grid'"):
        toy.figure("gird")


def test_the_table_says_that_it_is_reconstructed_and_how() -> None:
    told = json.loads((DATA / "toy_problem.json").read_text())
    assert told["status"] == "RECONSTRUCTED"
    assert told["found_by"] == "python data/toy_problem.py 0"


def test_the_search_counts_on_the_table_what_the_real_schedulers_do() -> None:
    """Where the search stopped nothing is wrong; it had to go on where the slow learner ends lower."""
    table = toy.table()
    durations = [round(10 * duration) for duration in table.durations[:, 0, 0]]
    scores = table.scores[:, 0].astype(int).tolist()
    assert toy_search.penalty((durations, scores)) == 0
    slow = next(trial for trial, row in enumerate(scores) if row[-1] == toy_search.SLOW_LEARNER_SCORE)
    scores[slow][-1] -= 1
    assert toy_search.penalty((durations, scores)) > 0


def test_a_table_that_is_written_is_read_again(tmp_path) -> None:
    durations, scores = [12, 15], [[1, 2, 3, 4], [2, 4, 6, 8]]
    toy_search.write((durations, scores), tmp_path, seed=7)
    table = read_table(tmp_path / "toy_problem.csv")
    assert table.durations[:, 0].tolist() == [[1.2] * 4, [1.5] * 4]
    assert table.scores[:, 0].tolist() == scores
    assert "toy_problem.py 7" in json.loads((tmp_path / "toy_problem.json").read_text())["found_by"]


def test_a_search_that_finds_nothing_says_so(tmp_path) -> None:
    with pytest.raises(WorkbenchError, match="no table fits after 0 restarts"):
        toy_search.reconstruct(0, restarts=0, folder=tmp_path)
    assert not list(tmp_path.iterdir())
