"""Scenarios, paired comparisons, and the command ``workbench simulate``."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.test_cli import refused
from workbench.algos.search import FullRuns, GridSearcher, HyperTrick, RandomSearcher
from workbench.cli import main
from workbench.compare import arrival_bias, compare, regrets, wins_and_losses
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Kind
from workbench.registry import SCHEDULERS
from workbench.results import Results
from workbench.scenario import preset, presets, scenario_from
from workbench.simulation import simulate
from workbench.study_file import parse
from workbench.study_file import presets as study_presets

FILE = """
[simulation]
name = "small"
[space]
learning_rate = {log_uniform = [1e-5, 1e-2]}
t_max = {log_uniform = [2, 100], step = 1}
[curves]
kind = "synthetic"
family = "crossing"
n_phases = 4
[cluster]
nodes = 3
speed_spread = 0.3
crash_rate = 0.02
[schedulers.hypertrick]
kind = "hypertrick"
n_trials = 12
[schedulers.all]
kind = "full"
n_trials = 12
"""


@pytest.fixture
def small():
    return scenario_from(parse(FILE.encode(), "small"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)
    frame = pd.DataFrame(
        [(c, s, n, c + n) for c in range(6) for s in (0, 1) for n in (1, 2, 3)],
        columns=["config_id", "seed", "step", "r"],
    )
    frame.to_csv(tmp_path / "curves.csv", index=False)
    pd.DataFrame({"config_id": range(6), "lr": np.arange(6) / 10}).to_csv(tmp_path / "configs.csv", index=False)
    return tmp_path


def told(capsys, *argv) -> dict:
    assert main(["simulate", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# -- outcomes ---------------------------------------------------------------------------------------------------


class Counting:
    """Phases take 1 s, 2 s, … by trial; a score is the trial's number plus the phase's."""

    def phase(self, trial, phase, config, seed):
        return 1.0 + trial, float(trial + phase)


def test_an_outcome_is_what_the_log_says(small) -> None:
    from workbench.cluster.virtual import VirtualCluster

    scheduler = FullRuns(RandomSearcher(small.space), 3, 2)
    outcome = simulate(scheduler, Counting(), VirtualCluster(2))
    # node 0: trial 0 until 2, trial 2 until 8; node 1: trial 1 until 4
    assert outcome.makespan == 8
    assert outcome.occupancy == 12 / 16
    assert outcome.completion_rate == 1
    assert (outcome.best_score, outcome.best_trial, outcome.time_to_best) == (3, 2, 8)
    assert outcome.best_by(np.array([0.5, 1.0, 2.0, 4.0, 5.0, 9.0])).tolist() == [-np.inf, 0, 1, 2, 2, 3]
    assert outcome.busy_slots(np.array([0.0, 4.0, 8.0])).tolist() == [2, 1]
    assert scheduler.ask().trial == 0  # it was a copy that ran


def test_a_completion_rate_counts_the_configurations_there_are(small) -> None:
    scheduler = FullRuns(GridSearcher(small.space, 2), 100, 2)
    assert simulate(scheduler, Counting()).completion_rate == 1


# -- scenarios and comparisons ----------------------------------------------------------------------------------


def test_schedulers_of_a_repetition_meet_the_same_configurations_curves_and_speeds(small) -> None:
    repetition = small.repetition(5)
    logs = {label: [] for label in small.schedulers}
    for label, log in logs.items():
        repetition.run(label, log)
    configs = [[e.data["config"] for e in log if e.kind is Kind.RUN] for log in logs.values()]
    assert configs[0] == configs[1]
    scores = [{(e.trial, e.phase): e.data["score"] for e in log if e.kind is Kind.PHASE_ENDED} for log in logs.values()]
    assert scores[0].items() <= scores[1].items()
    assert small.repetition(5).cluster.node_speeds() == repetition.cluster.node_speeds()
    assert small.repetition(6).cluster.node_speeds() != repetition.cluster.node_speeds()


def test_a_comparison_is_the_same_whatever_the_processes_and_pairs_its_numbers(small) -> None:
    one, two = compare(small, 30), compare(small, 30, processes=2)
    for key, values in one.values.items():
        assert (values == two.values[key]).all()
    gap = one.difference("makespan", "hypertrick", "all")
    assert gap.low <= gap.value <= gap.high < 0
    assert one.wins("makespan", "hypertrick", "all") == 1
    assert (one.values["all", "completion_rate"] <= 1).all()
    for label in ("hypertrick", "all"):
        assert (np.diff(one.regret[label], axis=1) <= 1e-12).all()
        assert (one.regret[label] >= -1e-12).all()
        assert ((one.busy[label] >= 0) & (one.busy[label] <= 1 + 1e-9)).all()
    occupancy = one.over_time("occupancy")
    assert list(occupancy.columns) == ["scheduler", "share_of_time", "at", "median", "low", "high"]
    assert set(one.over_time("regret", ["all"])["scheduler"]) == {"all"}
    assert one.regret_at("all", 1.0).value <= one.regret_at("hypertrick", 1.0).value
    with pytest.raises(InvalidInput, match="unknown scheduler of this comparison 'asha'"):
        one.medians("asha")


def test_hyperband_goes_round_as_often_as_there_are_configurations_for() -> None:
    toy = replace(
        preset("toy-grid"), schedulers={"once": {"kind": "hyperband", "rounds": 1}, "all": {"kind": "hyperband"}}
    )
    once, everything = (toy.scheduler(label, 0).n_configs for label in toy.schedulers)
    assert once <= everything <= len(toy.source.configs) < everything + once


def test_a_scheduler_may_have_a_searcher_of_its_own(small) -> None:
    schedulers = {
        "drawn": {"kind": "full", "n_trials": 9},
        "grid": {"kind": "full", "n_trials": 9, "searcher": {"kind": "grid", "per_axis": 3}},
        "bred": {"kind": "hypertrick", "n_trials": 20, "searcher": {"kind": "evolution", "warmup": 4}},
    }
    scenario = replace(small, schedulers=schedulers)
    made = [scenario.scheduler(label, 5) for label in schedulers]
    assert [type(scheduler.searcher).__name__ for scheduler in made] == [
        "RandomSearcher",
        "GridSearcher",
        "EvolutionSearcher",
    ]
    assert made[2].searcher.seed == 5
    assert [scenario.learns(label) for label in schedulers] == [False, False, True]
    found = compare(scenario, 6)
    assert (found.regret["drawn"] >= -1e-12).all()
    with pytest.raises(InvalidInput, match="a searcher is a table with a kind"):
        replace(small, schedulers={"x": {"kind": "full", "searcher": "grid"}}).scheduler("x", 0)


def test_what_could_be_found_is_looked_for_among_all_configurations_that_may_be_tried(small) -> None:
    """Nobody's learning or luck: the best of what the two plain searchers would give, in full."""
    schedulers = {
        "few": {"kind": "hypertrick", "n_trials": 5},
        "more": {"kind": "full", "n_trials": 9},
        "grid": {"kind": "hypertrick", "n_trials": 4, "searcher": {"kind": "grid", "per_axis": 2}},
    }
    repetition = replace(small, schedulers=schedulers).repetition(1)
    full = replace(small, schedulers={label: {**d, "kind": "full"} for label, d in schedulers.items()}).repetition(1)
    assert repetition.best_possible() == max(full.run(label).best_score for label in schedulers)


def test_schedulers_are_set_side_by_side(small) -> None:
    comparisons = {name: compare(small.with_curves(family=name), 20) for name in ("steady", "crossing")}
    table = regrets(comparisons, 0.25)
    assert list(table.columns) == ["steady", "crossing"]
    assert list(table.index) == ["hypertrick", "all"]
    value, low, high = comparisons["steady"].regret_at("all", 0.25)
    assert table.loc["all", "steady"] == f"{value:.3f} [{low:.3f}, {high:.3f}]"
    told = wins_and_losses(comparisons, "hypertrick", 0.25)
    assert "makespan against all" in told.partition("hypertrick wins")[2]
    assert "makespan" not in wins_and_losses(comparisons, "hypertrick", 0.25, only="regret")


def test_the_bias_towards_the_early_is_the_same_whatever_the_processes(small) -> None:
    unrelated = small.with_curves(family="unrelated")
    one, two = (arrival_bias(unrelated, "hypertrick", 30, 3, processes=n) for n in (1, 2))
    assert one.equals(two)
    assert one["share_run"].iloc[0] > one["share_run"].iloc[-1]


def run_first(table) -> None:
    scenario = scenario_from(parse(table.encode(), "file"))
    scenario.repetition().run(next(iter(scenario.schedulers)))


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("", r"needs a table \[curves\]"),
        ('[curves]\nkind = "synthetic"\nn_phases = 3', "needs a scheduler"),
        ('[curves]\nkind = "synthetc"\n[scheduler]\nkind = "full"', "did you mean 'synthetic'"),
        ('[curves]\nkind = "synthetic"\n[scheduler]\nkind = "full"', "synthetic curves need n_phases"),
        ('[curves]\nkind = "phases"\npaht = "x"\n[scheduler]\nkind = "full"', "did you mean 'path'"),
        ('[curves]\nkind = "phases"\npath = "absent.csv"\n[scheduler]\nkind = "full"', "cannot read the table"),
        ("[cluster]\nnodse = 3\n[curves]", "did you mean 'nodes'"),
        ("[simulation]\nrepeat = 3\n[curves]", "did you mean 'repeats'"),
        ('[simulation]\nrepeats = 0\n[curves]\n[scheduler]\nkind = "full"', "repeats is a whole number >= 1"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(table, error) -> None:
    with pytest.raises(InvalidInput, match=error) as caught:
        run_first(table)
    assert "\n" not in str(caught.value)


def test_a_drawn_study_can_be_replayed_under_another_scheduler(small, tmp_path, capsys) -> None:
    db = str(tmp_path / "kb.db")
    (tmp_path / "s.toml").write_text(FILE)
    told(
        capsys,
        str(tmp_path / "s.toml"),
        "--scheduler",
        "full",
        "--set",
        "n_trials=12",
        "--db",
        db,
        "--name",
        "everything",
    )
    curves = {"kind": "study", "db": db, "name": "everything"}
    replayed = scenario_from({"curves": curves, "searcher": {"kind": "list"}, "scheduler": {"kind": "hypertrick"}})
    outcome = replayed.repetition().run("hypertrick")
    assert outcome.trials == 12
    assert 0.4 < outcome.completion_rate < 1


# -- the command ------------------------------------------------------------------------------------------------


def test_one_run_prints_numbers_and_repetitions_print_intervals(folder, capsys) -> None:
    found = told(capsys, "small.toml")
    assert found["simulated"] is True
    assert found["scheduler"] == "hypertrick"
    assert {"makespan", "occupancy", "completion_rate", "time_to_best"} < set(found)
    assert found["schedulers"]["all"]["makespan"] > found["makespan"]
    several = told(capsys, "small.toml", "--repeats", "5", "--seed", "0")
    assert several["makespan"].keys() == {"median", "low", "high"}
    gap = several["differences"]["hypertrick - all"]["makespan"]
    assert gap["low"] <= gap["median"] <= gap["high"] < 0
    assert told(capsys, "small.toml", "--nodes", "1")["makespan"] > found["makespan"]
    assert main(["simulate", "small.toml"]) == 0
    assert "small: simulated, 3 nodes, seed 0" in capsys.readouterr().out


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_table_of_curves_under_a_scheduler(folder, capsys, kind) -> None:
    table = ["--table", "curves.csv", "--configs", "configs.csv", "--column", "score=r"]
    found = told(capsys, *table, "--scheduler", kind, "--nodes", "2")
    assert found["makespan"] > 0
    assert 5 <= found["best_score"] <= 8
    if kind == "hyperband":  # brackets of 3 and 2 trials: 3 phases and 2 more of the best, 2 · 3 phases
        assert found["completion_rate"] == pytest.approx((3 + 2 + 6) / 15)
    if kind == "full":
        assert (found["best_score"], found["completion_rate"], found["occupancy"]) == (8, 1, 1)
    assert told(capsys, *table, "--scheduler", kind, "--nodes", "2") == found


def test_a_simulated_study_is_kept_marked_and_reported(folder, capsys) -> None:
    assert main(["simulate", "small.toml", "--db", "kb.db"]) == 0
    capsys.readouterr()
    results = Results.open("kb.db", "small hypertrick")
    assert results.spec["simulated"] is True
    assert results.spec["trainable"]["kind"] == "simulated"
    assert results.frames.state == "ended"
    assert "simulated" in str(results)
    assert {"occupancy", "survival", "learning curves"} <= set(results.figures())
    assert main(["report", "small all", "--db", "kb.db"]) == 0
    capsys.readouterr()
    assert "simulated: nothing was trained" in (folder / "small all.html").read_text()
    assert "exists" in refused(capsys, "simulate", "small.toml", "--db", "kb.db")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "say what to simulate"),
        (["small.toml", "--preset", "toy-grid"], "one of them"),
        (["--preset", "toy-gird"], "did you mean 'toy-grid'"),
        (["--table", "curves.csv"], "needs --scheduler"),
        (["--table", "curves.csv", "--scheduler", "full"], "no column 'score'"),
        (["--table", "curves.csv", "--column", "score=x", "--scheduler", "full"], "unknown column of curves.csv 'x'"),
        (["--table", "curves.csv", "--column", "score=r", "--scheduler", "hypertrik"], "did you mean 'hypertrick'"),
        (["small.toml", "--set", "eta=3", "--scheduler", "full"], "no scheduler here has a setting 'eta'"),
        (["small.toml", "--configs", "configs.csv"], "go with --table"),
        (["small.toml", "--nodes", "0"], "nodes >= 1"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_in_one_line(folder, capsys, argv, error) -> None:
    assert error in refused(capsys, "simulate", *argv)


def test_presets_are_listed_apart_from_those_of_studies(capsys) -> None:
    assert main(["simulate", "--preset", "list"]) == 0
    assert capsys.readouterr().out.split() == presets()
    assert not set(presets()) & set(study_presets())
    for name in presets():
        assert preset(name).name == name


def test_hypertrick_is_faster_than_running_everything_and_finds_less(small) -> None:
    scenario = replace(small, curves={"kind": "synthetic", "family": "steady", "n_phases": 6})
    found = compare(scenario, 40)
    assert found.difference("makespan", "hypertrick", "all").high < 0
    assert found.difference("best_score", "hypertrick", "all").high <= 0
    assert isinstance(scenario.scheduler("hypertrick", 0), HyperTrick)
