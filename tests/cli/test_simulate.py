"""The command ``workbench simulate``."""

import json
import pickle
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import refused
from tests.simulation.conftest import FILE
from workbench.cli.main import main
from workbench.core.aim import Aim
from workbench.core.protocols import Event, Kind
from workbench.core.registry import SCHEDULERS
from workbench.knowledge import KnowledgeBase, StudyLog
from workbench.simulation import preset, presets, scenario_from
from workbench.study.file import presets as study_presets
from workbench.study.results import Results


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


def test_a_drawn_study_can_be_replayed_under_another_scheduler(tmp_path, capsys) -> None:
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
    elsewhere = pickle.loads(pickle.dumps(replayed))  # as the processes of a comparison get it, its curves read
    assert elsewhere.repetition().run("hypertrick").makespan == outcome.makespan


def test_a_study_that_minimises_is_replayed_with_its_scores_turned(tmp_path) -> None:
    db, (name, low) = tmp_path / "kb.db", ("loss", 0.25)
    with closing(StudyLog(db, name, {"scheduler": {"kind": "full"}, "seed": 0})) as log:
        log.append(
            [
                Event(Kind.STUDY_STARTED, 0.0, data={"aim": Aim(mode="min").to_json()}),
                Event(Kind.RUN, 0.0, 0, 0, data={"config": {"learning_rate": 1e-3}, "parent": None, "seed": 0}),
                Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
                Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": low, "metrics": {}, "checkpoint": "", "wall_s": 1.0}),
            ]
        )
    curves = {"kind": "study", "db": str(db), "name": name}
    replayed = scenario_from({"curves": curves, "searcher": {"kind": "list"}, "scheduler": {"kind": "full"}})
    assert replayed.repetition().run("full").best_score == -low


def test_one_run_prints_numbers_and_repetitions_print_intervals(folder, capsys) -> None:
    found = told(capsys, "small.toml")
    assert found["simulated"] is True
    assert found["scheduler"] == "hypertrick"
    assert {"makespan", "occupancy", "completion_rate", "time_to_best"} < set(found)
    assert found["schedulers"]["all"]["makespan"] > found["makespan"]
    several = told(capsys, "small.toml", "--repeats", "6", "--seed", "0")
    assert several["makespan"].keys() == {"median", "low", "high"}
    gap = several["differences"]["hypertrick - all"]["makespan"]
    assert gap["low"] <= gap["median"] <= gap["high"] < 0
    assert told(capsys, "small.toml", "--nodes", "1")["makespan"] > found["makespan"]
    assert main(["simulate", "small.toml"]) == 0
    assert "small: simulated, 3 nodes, seed 0" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [kind for kind in SCHEDULERS if kind != "seeded"])  # it runs another's trials
def test_a_table_of_curves_under_a_scheduler(folder, capsys, kind) -> None:
    table = ["--table", "curves.csv", "--configs", "configs.csv", "--column", "score=r"]
    if kind == "mfpbt":  # two members a sub-population at least
        table += ["--set", "intervals=[1, 2]"]
    found = told(capsys, *table, "--scheduler", kind, "--nodes", "2")
    assert found["makespan"] > 0
    assert 5 <= found["best_score"] <= 8
    if kind == "hyperband":  # brackets of 3 and 2 trials: 3 phases and 2 more of the best, 2 · 3 phases
        assert found["completion_rate"] == pytest.approx((3 + 2 + 6) / 15)
    if kind == "full":
        assert (found["best_score"], found["completion_rate"], found["occupancy"]) == (8, 1, 1)
    assert told(capsys, *table, "--scheduler", kind, "--nodes", "2") == found


def test_a_study_on_a_table_in_another_folder_is_kept_under_the_table_s_name(folder, capsys) -> None:
    (folder / "kept").mkdir()
    (folder / "curves.csv").rename(folder / "kept" / "curves.csv")
    table = ["--table", "kept/curves.csv", "--column", "score=r", "--nodes", "2", "--db", "kb.db"]
    assert told(capsys, *table, "--scheduler", "full")["name"] == "kept/curves.csv"
    told(capsys, *table, "--scheduler", "full,hypertrick")
    with KnowledgeBase("kb.db") as kb:
        assert list(kb) == ["curves", "curves full", "curves hypertrick"]


def test_a_kept_study_of_a_scheduler_of_one_s_own_knows_its_size(folder, capsys) -> None:
    (folder / "own_rule.py").write_text("from workbench import HyperTrick\n\n\nclass Mine(HyperTrick):\n    pass\n")
    (folder / "own.toml").write_text(FILE.replace('"hypertrick"', '"own_rule:Mine"'))
    assert main(["simulate", "own.toml", "--db", "kb.db"]) == 0
    capsys.readouterr()
    results = Results.open("kb.db", "small hypertrick")
    assert (results.size.n_trials, results.size.n_phases) == (12, 4)
    assert "completion rate unknown" not in str(results)


def test_a_simulated_study_is_kept_marked_and_reported(folder, capsys, monkeypatch) -> None:
    assert main(["simulate", "small.toml", "--db", "kb.db"]) == 0
    capsys.readouterr()
    results = Results.open("kb.db", "small hypertrick")
    assert results.spec["simulated"] is True
    assert results.spec["trainable"]["kind"] == "simulated"
    assert results.frames.state == "ended"
    assert "simulated" in str(results)
    assert {"occupancy", "survival", "learning curves"} <= set(results.figures())
    monkeypatch.setattr(Results, "figures", lambda self: {})
    assert main(["report", "small all", "--db", "kb.db"]) == 0
    capsys.readouterr()
    assert "simulated: nothing was trained" in (folder / "small all.html").read_text()
    assert "was simulated" in refused(capsys, "run", "--resume", "--name", "small all", "--db", "kb.db")
    assert "was simulated" in refused(capsys, "pack", "small all", "small.pack", "--db", "kb.db")
    monkeypatch.setattr("workbench.simulation.compare", None)  # nothing is computed that could not be kept
    several = ["simulate", "small.toml", "--repeats", "9", "--db", "kb.db"]
    assert refused(capsys, *several).endswith("exists in kb.db: choose another name, --name …, or another --db …")
    assert "a study's name is" in refused(capsys, *several, "--name", "a/b")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "say what to simulate"),
        (["small.toml", "--preset", "toy-grid"], "one of them"),
        (["missing.toml"], "cannot read the simulation file missing.toml"),
        (["--preset", "toy-gird"], "did you mean 'toy-grid'"),
        (["--preset", "cartpole"], "is of a study: workbench run takes it"),
        (["--table", "curves.csv"], "needs --scheduler"),
        (["--table", "curves.csv", "--scheduler", "full"], "no column 'score'"),
        (["--table", "curves.csv", "--column", "score=x", "--scheduler", "full"], "unknown column of curves.csv 'x'"),
        (["--table", "curves.csv", "--column", "score=r", "--scheduler", "hypertrik"], "did you mean 'hypertrick'"),
        (
            ["small.toml", "--set", "eta=3", "--scheduler", "full"],
            "has a setting 'eta', only n_phases, n_trials",
        ),
        (["small.toml", "--scheduler", "full,nowhere:Mine"], "there is no module 'nowhere'"),
        (["small.toml", "--configs", "configs.csv"], "go with --table"),
        (
            ["small.toml", "--name", "kept"],
            "--name is of the study that is kept: say in which knowledge base, --db FILE",
        ),
        (["small.toml", "--nodes", "0"], "nodes a whole number from 1 to 1000000"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_in_one_line(folder, capsys, argv, error) -> None:
    assert error in refused(capsys, "simulate", *argv)


def test_presets_are_listed_apart_from_those_of_studies(capsys) -> None:
    assert main(["simulate", "--preset", "list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == presets()
    assert all(line.endswith(".") and len(line.split()) > 3 for line in told)  # what each is, in a sentence
    assert not set(presets()) & set(study_presets())
    for name in presets():
        assert preset(name).name == name
