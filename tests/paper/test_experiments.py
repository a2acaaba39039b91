"""Recorded experiments: run again, kept whole with their provenance, or not at all."""

import argparse
import json
import runpy
import shlex
import sys
from dataclasses import replace

import pandas as pd
import pytest

from workbench.cli.main import main
from workbench.core.errors import DatabaseError, InvalidInput, WorkbenchError
from workbench.core.places import DATA
from workbench.paper.catalogue import EXPERIMENTS
from workbench.paper.experiments import SCALES, Kept, recorded, reproduce

NAME = "hyperband-against-hypertrick"
TINY = "-m workbench simulate --json --preset paper-46 --repeats 3"
_LEARNING = "benchmarks/ga3c_learning.py --seeds 1 --frames 2000 --processes 1 --variants"
_GA3C = "benchmarks/ga3c_scaling.py --seconds 0.3 --parts"
_BA3C = "benchmarks/ba3c_scaling.py --seconds 0.3 --parts"
_SPEED = "benchmarks/ga3c_learning.py --seeds 1 --seconds 1 --phases 2 --processes 1 --variants speed"
SMALLEST = {  # every experiment, as small as it goes; those of `FAST` within seconds
    NAME: TINY,
    "curves-hyperband-against-hypertrick": "-m workbench simulate --json --preset ga3c-curves --repeats 2",
    "ga3c-curves": "benchmarks/ga3c_curves.py --configs 2 --units 2 --seeds 1 --unit-frames 500 --processes 1",
    "ga3c-networks": f"{_GA3C} networks --repeats 1",
    "ga3c-sweeps": f"{_GA3C} agents threads batches",
    "ga3c-adjustment": f"{_GA3C} adjustment --adjust-every 0.5 --adjust-seconds 3",
    "ga3c-epsilon": f"{_LEARNING} epsilon",
    "ga3c-training-batch": f"{_LEARNING} training-batch",
    "ga3c-learning-rate": f"{_LEARNING} learning-rate",
    "ga3c-speed": _SPEED,
    "ga3c-speed-atari": f"{_SPEED} --game MsPacman",
    "ga3c-against-sb3": "benchmarks/ga3c_against_sb3.py --seeds 1 --frames 4000 --points 2 --processes 1",
    "ga3c-against-sb3-atari": "benchmarks/ga3c_against_sb3.py --game MsPacman --seeds 1 --frames 8000 --points 2",
    "hts-speedup": "benchmarks/hts_speedup.py --laws gamma:1 --seeds 1 --updates 2 --mean-ms 1 --epochs 1 --games 1",
    "hts-return": "benchmarks/hts_return.py --seeds 1 --frames 4096 --phases 2 --mean-ms 0.5",
    "ba3c-scaling": f"{_BA3C} ranks straggler --updates 5",
    "ba3c-scaling-model": f"{_BA3C} model",
    "ba3c-width": f"{_BA3C} widths",
    "ba3c-stability": f"{_BA3C} stability --seeds 1 --frames 4000 --stability-ranks 2",
    "ba3c-epsilon": "benchmarks/ba3c_epsilon.py --seeds 1 --frames 4000 --phases 2 --processes 1",
    "pbt-toy": "benchmarks/pbt_toy.py --seeds 1",
    "pbt-design": "benchmarks/pbt_design.py --repeats 1 --phases 2 --frames 300 --processes 1",
    "pbt-cartpole": "benchmarks/pbt_cartpole.py --repeats 1 --phases 2 --frames 300 --population 5",
    "digits": "benchmarks/digits.py --seeds 1 --phases 1",
}
FAST = ("curves-hyperband-against-hypertrick", "ga3c-curves", "pbt-toy")


@pytest.fixture
def tiny(monkeypatch):
    """The comparison, three repetitions of it."""
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": TINY}))


def test_a_tiny_one_is_run_and_kept_with_its_provenance(tiny, tmp_path, capsys) -> None:
    assert main(["reproduce", NAME, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / NAME)
    kept = Kept.open(NAME, tmp_path)
    assert kept.frame["scheduler"].tolist() == ["hypertrick", "hyperband", "hypertrick - hyperband"]
    assert (kept.frame["makespan_low"] <= kept.frame["makespan"]).all()
    assert kept.about["command"] == f"python {TINY}"
    assert kept.about["source"] == "simulated"
    assert {"date", "seconds", "cores", "machine", "python", "versions", "scale"} <= set(kept.about)
    assert str(tmp_path) not in json.dumps(kept.about)
    assert kept.scale.startswith("simulated at scale 'minutes' on ")


def test_a_reader_may_run_it_again_beside_what_comes_with_the_project(tiny, tmp_path) -> None:
    reproduce(NAME, root=tmp_path)
    before = Kept.open(NAME, tmp_path).about
    again = recorded(NAME, "minutes", tmp_path)
    assert again.frame["repeats"].tolist() == [3, 3, 3]
    assert recorded(NAME, root=tmp_path).about == before
    assert (tmp_path / "runs" / "reproduced" / NAME / "table.parquet").is_file()


def test_the_same_again_gives_the_same_table(tiny, tmp_path) -> None:
    first = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    again = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent).frame
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if (path / "table.parquet").is_file()))
def test_what_is_recorded_has_the_schema_of_its_experiment(name) -> None:
    kept = Kept.open(name)
    assert name in EXPERIMENTS
    assert kept.about["shows"] == EXPERIMENTS[name].shows
    assert kept.about["command"] == "; ".join(f"python {part}" for part in EXPERIMENTS[name].parts(kept.about["scale"]))
    assert len(kept.frame)


def test_every_experiment_can_be_run_small() -> None:
    assert set(SMALLEST) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in SMALLEST])
def test_run_small_it_has_the_columns_and_the_provenance_of_what_is_recorded(monkeypatch, tmp_path, name) -> None:
    monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], commands={"minutes": SMALLEST[name]}))
    kept = Kept.open(name, reproduce(name, root=tmp_path).parent)
    before = Kept.open(name)
    assert list(kept.frame.columns) == list(before.frame.columns)
    assert kept.frame.dtypes.map(lambda kind: kind.kind).equals(before.frame.dtypes.map(lambda kind: kind.kind))
    assert kept.about.keys() - {"parts"} == before.about.keys() - {"parts"}
    assert kept.about["source"] == before.about["source"]


def test_what_comes_with_the_project_is_small() -> None:
    files = [path for path in DATA.rglob("*") if path.is_file() and path.relative_to(DATA).parts[0] != "runs"]
    assert sum(path.stat().st_size for path in files) < 40 * 2**20


def all_commands() -> list[str]:
    return sorted({part for e in EXPERIMENTS.values() for scale in e.commands for part in e.parts(scale)})


def test_the_scales_are_known_and_most_go_up_to_the_papers() -> None:
    assert all(set(experiment.commands) <= set(SCALES) for experiment in EXPERIMENTS.values())
    # the paper's GANs are out of reach
    without = {name for name, experiment in EXPERIMENTS.items() if "paper" not in experiment.commands}
    assert without == {"digits"}


@pytest.mark.parametrize("command", all_commands())
def test_every_command_is_one_that_its_script_understands(monkeypatch, command) -> None:
    """Run each up to where it has read its arguments."""
    read = argparse.ArgumentParser.parse_args

    def read_only(parser, *args):
        read(parser, *args)
        raise SystemExit("understood")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", read_only)
    script, *arguments = shlex.split(command)
    monkeypatch.setattr(sys, "argv", [script, *(arguments[1:] if script == "-m" else arguments)])
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit, match="understood"):
        main(arguments[1:]) if script == "-m" else runpy.run_path(str(DATA.parent / script), run_name="__main__")


def test_a_script_that_fails_leaves_the_earlier_recording(tiny, monkeypatch, tmp_path) -> None:
    reproduce(NAME, root=tmp_path)
    before = Kept.open(NAME, tmp_path)
    for command, says in (
        ("-c 'raise SystemExit(3)'", "exit code 3"),
        ("-c 'print(1, 2)'", "one JSON object"),
        ("benchmarks/none.py", "no benchmarks/none.py in .*: experiments are run from a checkout"),
    ):
        monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": command}))
        with pytest.raises(WorkbenchError, match=says):
            reproduce(NAME, root=tmp_path)
    pd.testing.assert_frame_equal(Kept.open(NAME, tmp_path).frame, before.frame)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_long_one_runs_in_parts_and_goes_on_where_it_was_interrupted(monkeypatch, tmp_path, capsys) -> None:
    parts = tuple(f"{TINY} --seed {seed}" for seed in (1, 2, 3))
    monkeypatch.setitem(EXPERIMENTS, NAME, replace(EXPERIMENTS[NAME], commands={"minutes": parts}))
    for _ in range(2):
        assert main(["reproduce", NAME, "--out", str(tmp_path), "--parts", "1"]) == 0
        assert not (tmp_path / NAME).exists()
    kept = Kept.open(NAME, reproduce(NAME, root=tmp_path).parent)
    assert kept.frame["scheduler"].tolist() == ["hypertrick", "hyperband", "hypertrick - hyperband"] * 3
    assert [part["command"] for part in kept.about["parts"]] == [f"python {part}" for part in parts]
    assert kept.about["seconds"] == pytest.approx(sum(part["seconds"] for part in kept.about["parts"]), abs=0.1)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert capsys.readouterr().out.count(".parts") == 2


def test_what_does_not_exist_is_said(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="unknown experiment 'ga3c-network': did you mean 'ga3c-networks'"):
        reproduce("ga3c-network")
    with pytest.raises(InvalidInput, match="unknown scale 'days'"):
        reproduce("ga3c-networks", "days")
    with pytest.raises(InvalidInput, match="has no scale 'paper', only minutes, hours"):
        reproduce("digits", "paper")
    with pytest.raises(DatabaseError, match="run workbench reproduce ga3c-networks"):
        Kept.open("ga3c-networks", tmp_path)
