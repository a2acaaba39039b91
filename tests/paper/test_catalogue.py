"""What the papers' packages list: every number once, every experiment run small, every recording of one of them."""

import json
import os
import shutil
from dataclasses import asdict, replace

import pandas as pd
import pytest

from workbench.core.errors import InvalidInput
from workbench.core.places import DATA
from workbench.paper.catalogue import EXPERIMENTS, PUBLISHED, recorded
from workbench.paper.experiment import SCALES, RecordedTable

_LEARNING = {"seeds": 1, "frames": 500, "processes": 1}
_SPEED = {"seeds": 1, "seconds": 1.0, "phases": 2}
SMALLEST = {  # every experiment, as small as it goes: what is changed in the first part of its minutes
    "hyperband-against-hypertrick": {"repeats": 3},
    "curves-hyperband-against-hypertrick": {"repeats": 2, "draws": 2, "each": 2, "processes": 1},
    "curves-hyperband-against-hypertrick-atari": {"repeats": 2, "draws": 2, "each": 2, "processes": 1},
    "curves-evictions": {"repeats": 2, "draws": 2, "each": 2},
    "curves-evictions-atari": {"repeats": 2, "draws": 2, "each": 2},
    "curves-arrival": {"repeats": 2, "draws": 2, "each": 2},
    "curves-importance": {"forests": 2, "resamples": 2},
    "ms-pacman-importance": {"forests": 2, "resamples": 2},
    "ga3c-curves": {"configs": 2, "units": 2, "seeds": 1, "unit_frames": 500, "processes": 1},
    "ga3c-curves-atari": {"configs": 2, "units": 2, "unit_frames": 500, "processes": 1},
    "ga3c-networks": {"seconds": 0.3, "repeats": 1},
    "ga3c-gpu": {"seconds": 0.3, "device": "cpu", "agents": (4,), "batches": (0,), "threads": (1,), "trials": (2,)},
    "ga3c-sweeps": {"seconds": 0.3},
    "ga3c-adjustment": {"seconds": 0.3, "every_s": 0.5, "walk_s": 3.0},
    "ga3c-epsilon": _LEARNING,
    "ga3c-log-epsilon": _LEARNING,
    "ga3c-training-batch": _LEARNING,
    "ga3c-training-batch-atari": {"seeds": 1, "frames": 8000, "phases": 2, "processes": 1},
    "ga3c-learning-rate": _LEARNING,
    "ga3c-learning-rate-atari": {"seeds": 1, "frames": 8000, "phases": 2, "processes": 1},
    "ga3c-speed": _SPEED,
    "ga3c-speed-atari": _SPEED,
    "ga3c-against-sb3": {"seeds": 1, "frames": 4000, "points": 2, "processes": 1},
    "ga3c-against-sb3-atari": {"frames": 8000, "points": 2, "systems": ("default", "a2c")},
    "ga3c-defaults-atari": {"frames": 8000, "points": 2, "seeds": 1},
    "hts-speedup": {"laws": ("gamma:1",), "seeds": 1, "updates": 2, "mean_ms": 1.0, "epochs": 1, "games": 1}
    | {"processes": 1},
    "hts-sweeps": {"seeds": 1, "actors": (1, 2), "steps": 256, "mean_ms": 0.1, "games": 1} | {"processes": 1},
    "hts-asynchronous": {"seeds": 1, "frames": 1000, "phases": 2, "processes": 1},
    "hts-return": {"seeds": 1, "frames": 4096, "phases": 2, "mean_ms": 0.5, "processes": 1},
    "ba3c-scaling": {"seconds": 0.3, "updates": 5},
    "ba3c-scaling-model": {},
    "ba3c-links": {"updates": 2, "repeats": 1, "mbit_per_s": (1000,), "ranks": (1, 2), "servers": (1, 2)},
    "ba3c-width": {"seconds": 0.3},
    "ba3c-stability": {"frames": 4000, "n_ranks": 2},
    "ba3c-epsilon": {"seeds": 1, "frames": 4000, "phases": 2, "processes": 1},
    "ba3c-adam": {"seeds": 1, "frames": 4000, "phases": 2, "processes": 1},
    "pbt-toy": {"seeds": 1},
    "pbt-design": {"repeats": 1, "phases": 2, "frames": 300, "processes": 1},
    "pbt-population": {"repeats": 1, "phases": 2, "frames": 300, "sizes": (4, 5), "processes": 1},
    "pbt-cartpole": {"repeats": 1, "phases": 2, "frames": 300, "members": 5, "processes": 1},
    "pbt-ms-pacman": {"repeats": 1, "phases": 1, "frames": 400, "members": 5, "processes": 1},
    "pbt-digits-gan": {"repeats": 1, "phases": 2, "updates": 2, "members": 3, "processes": 1},
    "digits": {"seeds": 1, "phases": 1},
}
FAST = (  # within 2 s; of the experiments that train GA3C over a setting, one
    "hyperband-against-hypertrick",
    "curves-hyperband-against-hypertrick",
    "curves-evictions",
    "curves-arrival",
    "ga3c-curves",
    "ga3c-epsilon",
    "pbt-toy",
)


def test_every_number_and_claim_has_one_name() -> None:
    names = [(number.paper, number.where, number.what) for number in PUBLISHED]
    assert len(names) == len(set(names))
    assert {number.paper for number in PUBLISHED} == {"HyperTrick", "GA3C", "BA3C", "PBT", "HTS-RL"}


def test_every_experiment_can_be_run_small() -> None:
    assert set(SMALLEST) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in SMALLEST])
def test_run_small_it_has_the_columns_of_what_is_recorded(name) -> None:
    if "sb3" in name:
        pytest.importorskip("stable_baselines3", reason="compared with a peer of the extra bench")
    if name == "ba3c-links" and (os.geteuid() or not shutil.which("tc")):
        pytest.skip("virtual hosts need root and iproute2")
    experiment = EXPERIMENTS[name]
    frame = pd.DataFrame(experiment.run(replace(experiment.parts("minutes")[0], **SMALLEST[name])))
    assert len(frame)
    if not (DATA / name).is_dir():
        return  # not recorded yet
    before = RecordedTable.open(name).frame
    assert list(frame.columns) == list(before.columns)
    assert frame.dtypes.map(lambda kind: kind.kind).equals(before.dtypes.map(lambda kind: kind.kind))


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if (path / "table.parquet").is_file()))
def test_what_is_recorded_is_of_an_experiment(name) -> None:
    kept = RecordedTable.open(name)
    experiment, about = EXPERIMENTS[name], kept.about
    assert (about["shows"], about["source"]) == (experiment.shows, experiment.source)
    assert about["command"] == f"workbench reproduce {name} --scale {about['scale']}"
    parts = json.loads(json.dumps([asdict(part) for part in experiment.parts(about["scale"])]))
    # a setting that came later has what was run before as its default
    assert all(before.items() <= now.items() for before, now in zip(about["settings"], parts, strict=True))
    assert len(kept.frame)


def test_what_is_asked_for_by_another_name_is_told_the_ones_there_are() -> None:
    with pytest.raises(InvalidInput, match="unknown experiment 'ga3c-gpuu': did you mean 'ga3c-gpu'"):
        recorded("ga3c-gpuu")


def test_the_scales_are_known_and_most_go_up_to_the_papers() -> None:
    assert all(set(experiment.scales) <= set(SCALES) for experiment in EXPERIMENTS.values())
    # the paper's GANs are out of reach
    without = {name for name, experiment in EXPERIMENTS.items() if "paper" not in experiment.scales}
    assert without == {"digits", "pbt-digits-gan"}


def test_a_scale_s_parts_take_settings_of_one_kind_that_json_can_tell() -> None:
    for experiment in EXPERIMENTS.values():
        parts = [part for scale in experiment.scales for part in experiment.parts(scale)]
        assert len({type(part) for part in parts}) == 1
        json.dumps([asdict(part) for part in parts])


def test_what_comes_with_the_project_is_small() -> None:
    files = [path for path in DATA.rglob("*") if path.is_file() and path.relative_to(DATA).parts[0] != "runs"]
    assert sum(path.stat().st_size for path in files) < 60 * 2**20
