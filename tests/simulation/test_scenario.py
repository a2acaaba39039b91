"""Simulations written down: what repetitions share, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests import simulated
from tests.support import SPACE, RandomTimes, simulate
from workbench.algos.search import FullRuns, RandomSearcher, Seeded, SuccessiveHalving
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.core.toml import parsed
from workbench.simulation import compare, keep, preset, scenario_from


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
    first, again, another = (small.repetition(n).model.phase(0, 0, configs[0][0], 0) for n in (5, 5, 6))
    assert first == again != another


def test_a_list_of_configurations_is_shuffled_anew_in_every_repetition() -> None:
    listed = preset("toy-grid")
    toy = replace(listed, searcher={})
    first, again, another = ([c["config_id"] for c in toy.searcher_of("full", n).configs] for n in (5, 5, 6))
    assert first == again != another
    assert sorted(first) == sorted(another) == [c["config_id"] for c in listed.searcher_of("full", 5).configs]


@pytest.mark.parametrize("population", [{"kind": "pbt"}, {"kind": "mfpbt", "intervals": [1]}, {"kind": "pb2"}])
def test_members_begin_with_the_others_configurations_of_a_list(population) -> None:
    toy = replace(preset("toy-grid"), searcher={}, schedulers={"all": {"kind": "full"}, "some": population})

    def begun(scenario, label) -> list[int]:
        events: list[Event] = []
        scenario.repetition(5).run(label, events)
        return [e.data["config"]["config_id"] for e in events if e.kind is Kind.RUN and e.phase == 0]

    n, listed = toy.scheduler("some", 0).population, replace(toy, searcher={"kind": "list"})
    assert begun(toy, "some") == begun(toy, "all")[:n]
    assert begun(listed, "some") == begun(listed, "all")[:n] != begun(toy, "some")


def test_members_of_a_list_come_of_the_list_alone() -> None:
    toy = replace(preset("toy-grid"), searcher={"kind": "random"}, schedulers={"some": {"kind": "pbt"}})
    with pytest.raises(InvalidInput, match="begins with those that the searcher 'shuffled' or 'list' gives"):
        toy.scheduler("some", 0)


def test_a_scheduler_of_one_s_own_is_compared_by_module_and_name(small) -> None:
    kinds = {"ours": "hypertrick", "mine": "workbench.algos.search:HyperTrick"}
    scenario = replace(small, schedulers={label: {"kind": kind, "n_trials": 9} for label, kind in kinds.items()})
    found = compare(scenario, repeats=2, processes=1)
    assert found.table().nunique().max() == 1  # the settings left out are filled in alike
    with pytest.raises(InvalidInput, match="there is no module 'nowhere'"):
        replace(small, schedulers={"mine": {"kind": "nowhere:Mine"}}).scheduler("mine", 0)


def test_hyperband_goes_round_as_often_as_there_are_configurations_for() -> None:
    toy = replace(
        preset("toy-grid"), schedulers={"once": {"kind": "hyperband", "rounds": 1}, "all": {"kind": "hyperband"}}
    )
    once, everything = (toy.scheduler(label, 0).n_configs for label in toy.schedulers)
    assert once < everything <= len(toy.source.configs) < everything + once


def test_a_scheduler_that_is_told_nothing_takes_the_whole_list_and_all_slots(tmp_path) -> None:
    def made(n_configs, kind, **settings):
        curves = "".join(f"{config},0,{step},1\n" for config in range(n_configs) for step in range(1, 10))
        (tmp_path / f"{n_configs}.csv").write_text(f"config_id,seed,step,score\n{curves}")
        table = {"curves": {"kind": "table", "path": str(tmp_path / f"{n_configs}.csv")}}
        cluster = {"nodes": 4, "slots_per_node": 6}
        return scenario_from(table | {"cluster": cluster, "scheduler": {"kind": kind, **settings}}).scheduler(kind, 6)

    assert made(23, "halving", allocation="none").n_nodes == 24
    assert (made(23, "full").n_trials, made(23, "full").n_phases) == (23, 9)
    assert (made(23, "full", n_trials=5, n_phases=3).n_trials, made(23, "full", n_phases=3).n_phases) == (5, 3)
    assert (made(23, "pbt").population, made(3, "pbt").population) == (20, 3)
    assert made(23, "pbt").seed == 6  # the repetition's
    assert (made(23, "portfolio").sizes, made(3, "portfolio").sizes) == ((9, 7, 7), (1, 1, 1))
    with pytest.raises(InvalidInput, match="'portfolio' needs sizes, eviction_rates: add them"):
        made(2, "portfolio")


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


@pytest.mark.parametrize("kind", ["cost-aware", "evolution", "optuna", "smac", "random"])
def test_what_a_searcher_that_learns_might_come_to_is_not_known(small, kind) -> None:
    """Nor that of one that is informed and goes on as it."""
    inner = {"kind": kind, "space": small.space.to_json()}
    searchers = {"alone": {"kind": kind}, "informed": {"kind": "informed", "searcher": inner}}
    schedulers = {label: {"kind": "full", "n_trials": 9, "searcher": one} for label, one in searchers.items()}
    repetition = replace(small, schedulers=schedulers).repetition()
    assert [repetition.scenario.learns(label) for label in schedulers] == [kind != "random"] * 2
    assert (repetition.best_possible() == -math.inf) is (kind != "random")


def test_a_searcher_of_one_s_own_is_named_by_its_module(small) -> None:
    own = "workbench.algos.search:"
    searchers = [{"kind": f"{own}RandomSearcher"}, {"kind": f"{own}GridSearcher", "per_axis": 2}]
    searchers.append({"kind": f"{own}ListSearcher", "configs": [{"learning_rate": 1e-3, "t_max": 5}] * 9})  # no space
    schedulers = {str(k): {"kind": "full", "n_trials": 4, "searcher": one} for k, one in enumerate(searchers)}
    scenario = replace(small, schedulers={"ours": {"kind": "full", "n_trials": 4}, **schedulers})
    made = [scenario.scheduler(label, 5).searcher for label in scenario.schedulers]
    assert [type(searcher).__name__ for searcher in made[1:]] == ["RandomSearcher", "GridSearcher", "ListSearcher"]
    assert made[1] == made[0]  # space and seed are filled in alike
    assert [scenario.learns(label) for label in scenario.schedulers] == [False, True, True, True]  # it is not known
    found = compare(scenario, repeats=2, processes=1).table()
    assert found.loc["ours"].equals(found.loc["0"])
    with pytest.raises(InvalidInput, match="there is no module 'nowhere'"):
        replace(small, searcher={"kind": "nowhere:Mine"}).scheduler("all", 0)
    with pytest.raises(InvalidInput, match="unknown searcher 'grit': did you mean 'grid'"):
        replace(small, searcher={"kind": "grit"}).scheduler("all", 0)
    with pytest.raises(InvalidInput, match=r"a workbench.algos.search:GridSearcher searcher needs a \[space\]"):
        replace(preset("toy-grid"), searcher=searchers[1]).scheduler("full", 0)


def test_a_scheduler_that_the_scenario_lacks_is_refused_by_name(small) -> None:
    with pytest.raises(InvalidInput, match="of the simulation 'hypertrik': did you mean 'hypertrick'"):
        small.repetition().run("hypertrik")


def test_what_could_be_found_is_looked_for_among_all_configurations_that_may_be_tried(small) -> None:
    """Nobody's learning or luck: the best of what the two plain searchers would give, in full."""
    schedulers = {
        "more": {"kind": "full", "n_trials": 9},
        "few": {"kind": "hypertrick", "n_trials": 5},
        "grid": {"kind": "hypertrick", "n_trials": 4, "searcher": {"kind": "grid", "per_axis": 2}},
    }
    repetition = replace(small, schedulers=schedulers).repetition(1)
    full = replace(small, schedulers={label: {**d, "kind": "full"} for label, d in schedulers.items()}).repetition(1)
    assert repetition.best_possible() == max(full.run(label).best_score for label in schedulers)


def recorded(path, scheduler, events=()) -> dict[str, str]:
    """Keep a study's log, and describe its curves."""
    log = simulate(scheduler, RandomTimes(), slots=1)
    log = [*log, *events(log[-1].at)] if events else log
    keep(path, "done", {"scheduler": {}, "trainable": {}}, log, size_of(scheduler))
    return {"kind": "study", "db": str(path), "name": "done"}


def test_a_study_in_which_trials_were_stopped_is_replayed_with_repetitions(tmp_path) -> None:
    curves = recorded(tmp_path / "kb.db", SuccessiveHalving(SPACE, 8, 4, 2))
    described = {"kind": "halving", "eta": 2, "searcher": {"kind": "list"}}
    scenario = scenario_from({"curves": curves, "scheduler": described, "cluster": {"nodes": 1}})
    assert scenario.repetition().best_possible() == scenario.repetition().run("halving").best_score
    assert (compare(scenario, 2).regret["halving"][:, -1] == 0).all()


def test_seeds_and_confirmations_of_a_recorded_study_are_no_configurations(tmp_path) -> None:
    def confirmed(at):
        data = {"config": {"lr": 0.5, "gamma": 0.9}, "parent": None, "seed": 9, "candidate": 0}
        yield Event(Kind.RUN, at, 4, 0, data=data | {"by": "person", "confirms": True, "own_phases": 3})
        for phase in range(3):
            yield Event(Kind.PHASE_STARTED, at, 4, phase, 0)
            yield Event(Kind.PHASE_ENDED, at + 1, 4, phase, 0, {"score": 99.0})
        yield Event(Kind.RUN, at, 5, 0, data=data)  # a seed more, which runs less far
        yield Event(Kind.PHASE_STARTED, at, 5, 0, 0)
        yield Event(Kind.PHASE_ENDED, at + 1, 5, 0, 0, {"score": 98.0})

    curves = recorded(tmp_path / "kb.db", Seeded(FullRuns(SPACE, 2, 2), 2), confirmed)
    scenario = scenario_from({"curves": curves, "scheduler": {"kind": "full"}, "cluster": {"nodes": 1}})
    assert (len(scenario.source.configs), scenario.source.n_phases) == (2, 2)
    model = scenario.source.model(0)
    scores = [model.phase(trial, 1, config, 0)[1] for trial, config in enumerate(scenario.source.configs)]
    assert scores == [RandomTimes().phase(trial, 1, {}, 0)[1] for trial in (0, 2)]


@pytest.mark.parametrize("seeds", [1, 2])
def test_survivors_that_ran_every_rung_anew_are_no_configurations_of_a_recorded_study(tmp_path, seeds) -> None:
    """Theirs are the curves of those that they repeat."""
    restarted = SuccessiveHalving(SPACE, 4, 4, 2, restart=True)
    curves = recorded(tmp_path / "kb.db", restarted if seeds == 1 else Seeded(restarted, seeds))
    source = scenario_from({"curves": curves, "scheduler": {"kind": "full"}}).source
    assert source.configs == [*map(RandomSearcher(SPACE).suggest, range(4))]
    model = source.model(0)
    assert sorted(sum(model.known(config, phase) for phase in range(4)) for config in source.configs) == [1, 1, 2, 4]


def test_phases_that_a_person_added_are_none_of_a_recorded_study(tmp_path) -> None:
    def extended(at):
        asked = {"request": "more", "action": "extend", "by": "person", "phases": 1, "accepted": True}
        yield Event(Kind.INTERVENTION, at, 0, data=asked)
        yield Event(Kind.PHASE_STARTED, at, 0, 2, 0)
        yield Event(Kind.PHASE_ENDED, at + 1, 0, 2, 0, {"score": 99.0})

    curves = recorded(tmp_path / "kb.db", FullRuns(SPACE, 2, 2), extended)
    outcome = scenario_from({"curves": curves, "scheduler": {"kind": "full"}}).repetition().run("full")
    assert (outcome.phases, outcome.completion_rate) == (4, 1)


def test_a_scheduler_that_restarts_survivors_meets_in_its_own_study_what_it_met(tmp_path) -> None:
    curves = recorded(tmp_path / "kb.db", SuccessiveHalving(SPACE, 4, 4, 2, restart=True))
    described = {"kind": "halving", "eta": 2, "restart": True, "searcher": {"kind": "list"}}
    scenario = scenario_from({"curves": curves, "scheduler": described, "cluster": {"nodes": 1}})
    log = simulate(SuccessiveHalving(SPACE, 4, 4, 2, restart=True), slots=1)
    scores = [event.data["score"] for event in log if event.kind is Kind.PHASE_ENDED]
    assert scenario.repetition().run("halving").scores.tolist() == scores


@pytest.mark.parametrize("kind", ["pbt", "mfpbt", "pb2", "workbench.algos.search:PBT"])
def test_a_recorded_study_has_no_curves_of_configurations_that_are_made_up(tmp_path, kind) -> None:
    simulated.keep(tmp_path / "kb.db", "done", FullRuns(RandomSearcher(SPACE), 2, 2))
    curves = {"kind": "study", "db": str(tmp_path / "kb.db"), "name": "done"}
    scenario = scenario_from({"curves": curves, "schedulers": {kind: {"kind": kind, "population": 2}}})
    with pytest.raises(InvalidInput, match="curves of its own alone"):
        scenario.repetition().run(kind)


SYNTHETIC = (
    '[curves]\nkind = "synthetic"\nn_phases = 3\n{}\n[space]\nx = {{uniform = [0, 1]}}\n[scheduler]\nkind = "full"'
)


@pytest.mark.parametrize("seed", [-1, 1.0, True, "a", None])
def test_a_seed_is_a_whole_number_or_numpys(small, seed) -> None:
    with pytest.raises(InvalidInput, match=f"a seed is a whole number from 0, got {seed!r}"):
        replace(small, seed=seed)
    assert type(replace(small, seed=np.int64(3)).seed) is int


@pytest.mark.parametrize("smooth", [0, -1, "a", 1.5])
def test_so_many_latest_scores_are_averaged_as_can_be_counted(small, smooth) -> None:
    label = next(iter(small.schedulers))
    scenario = replace(small, schedulers={label: {"kind": "full", "smooth": smooth}})
    with pytest.raises(InvalidInput, match=f"needs smooth of {label!r} a whole number from 1"):
        scenario.smooth_of(label)


def test_scores_are_averaged_only_where_seeds_are_held_out(small) -> None:
    scenario = replace(small, schedulers={"all": {"kind": "full", "n_trials": 12, "smooth": 5}})
    with pytest.raises(InvalidInput, match="smooth"):
        scenario.scheduler("all", 0)
    assert replace(scenario, seeds=1).scheduler("all", 0) == small.scheduler("all", 0)


def test_halving_starts_as_many_of_the_configurations_there_are_as_it_is_told_to() -> None:
    toy = replace(preset("toy-grid"), searcher={})
    for settings, n in (({}, len(toy.source.configs)), ({"n_trials": 4}, 4), ({"n_configs": 4}, 4)):
        assert replace(toy, schedulers={"sh": {"kind": "halving", **settings}}).scheduler("sh", 0).n_configs == n


def run_first(table) -> None:
    scenario = scenario_from(parsed(table.encode(), "file"))
    scenario.repetition().run(next(iter(scenario.schedulers)))


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("", r"needs a table \[curves\]"),
        ('[curves]\nkind = "synthetic"\nn_phases = 3', "needs a scheduler"),
        ('[curves]\nkind = "synthetc"\n[scheduler]\nkind = "full"', "did you mean 'synthetic'"),
        ('[curves]\nkind = "synthetic"\n[scheduler]\nkind = "full"', "synthetic curves need n_phases"),
        ('[curves]\nkind = "table"\npaht = "x"\n[scheduler]\nkind = "full"', "did you mean 'path'"),
        ('[curves]\nkind = "table"\npath = 3\n[scheduler]\nkind = "full"', r"path of \[curves\] names a file, got 3"),
        ('[curves]\nkind = "table"\npath = "absent.csv"\n[scheduler]\nkind = "full"', "cannot read the table"),
        ("[cluster]\nnodse = 3\n[curves]", "did you mean 'nodes'"),
        ("[simulation]\nrepeat = 3\n[curves]", "did you mean 'repeats'"),
        ("[curves]\n[scheduler]\n[schedulers.a]", r"give \[scheduler\] or \[schedulers.NAME\], not both"),
        ("scheduler = 3\n[curves]", r"scheduler in a simulation file is a table, got 3: write \[scheduler\]"),
        ('[curves]\nkind = "synthetic"\nn_phases = 3\n[schedulers]\na = "full"', "'a' is a table with a kind"),
        ('[cluster]\nstall_s = "300"\n[curves]', "Hazards needs stall_s a number above 0, got '300'"),
        ('[cluster]\nnodes = 2\nspeeds = ["a", "b"]\n[curves]', "needs speeds a number above 0, got 'a'"),
        ("[cluster]\nspeeds = 2\n[curves]", r"\[cluster\] cannot be made of"),
        (SYNTHETIC.format('phase_s = "1"'), "needs phase_s a number above 0, got '1'"),
        (SYNTHETIC.format("cost_of_quality = 'x'"), "needs cost_of_quality a number, got 'x'"),
        (
            '[curves]\nkind = "table"\npath = "x"\nonly = 3\n[scheduler]\nkind = "full"',
            r"only of \[curves\] is a table",
        ),
        (
            '[simulation]\nrepeats = 0\n[curves]\n[scheduler]\nkind = "full"',
            "repeats a whole number from 1 to 1000000, got 0",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(table, error) -> None:
    with pytest.raises(InvalidInput, match=error) as caught:
        run_first(table)
    assert "\n" not in str(caught.value)


def test_a_table_in_memory_is_told_to_be_written_first() -> None:
    curves = {"kind": "table", "path": pd.DataFrame({"config_id": [0]})}
    with pytest.raises(
        InvalidInput, match=r"^path of \[curves\] names a file, got a DataFrame: df.to_parquet\('curves"
    ):
        scenario_from({"curves": curves, "scheduler": {"kind": "full"}}).repetition()
