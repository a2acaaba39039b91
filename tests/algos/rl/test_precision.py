"""What layers compute in where nobody says."""

import warnings
from dataclasses import replace

import pytest
import torch

from tests.algos.rl.test_environment import SPACES
from workbench.algos.rl import precision
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.hts.trial import HTS
from workbench.core.errors import InvalidInput

CPU = torch.device("cpu")


@pytest.fixture
def measured(monkeypatch):
    """A processor with units, on which an update takes what the dictionary says, in seconds."""
    took = {"float32": 2.0, "bfloat16": 1.0}
    monkeypatch.setattr(precision, "has_bfloat16_units", lambda device: True)
    monkeypatch.setattr(precision, "update_seconds", lambda learner, rollout: took[learner.precision])
    precision.faster_precision.cache_clear()
    yield took
    precision.faster_precision.cache_clear()


def test_the_faster_one_is_taken_and_measured_once_a_process(measured):
    assert GA3C("Pong", device="cpu")({}, 0).learner.precision == "bfloat16"
    measured["bfloat16"] = 3.0
    assert GA3C("Pong", device="cpu")({}, 0).learner.precision == "bfloat16"
    precision.faster_precision.cache_clear()
    assert GA3C("Pong", device="cpu")({}, 0).learner.precision == "float32"


def test_so_it_is_with_pictures_and_grids_of_ones_own(measured):
    made = {"space": SPACES["grid"][0]}
    assert GA3C("Sampled-v0", device="cpu", env_kwargs=made)({}, 0).learner.precision == "bfloat16"


def test_without_units_nothing_is_tried(measured, monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16_units", lambda device: False)
    assert GA3C("Pong", device="cpu")({}, 0).learner.precision == "float32"


def test_what_must_be_repeated_does_not_hang_on_a_clock(measured):
    assert GA3C("Pong", device="cpu", lockstep=True)({}, 0).learner.precision == "float32"
    for kind in (GA3C, A3C, HTS):
        assert kind("CartPole-v1", device="cpu", precision="auto")({}, 0).learner.precision == "float32"
    assert HTS(precision="auto").repeatable
    assert not HTS(precision="auto", deterministic=False).repeatable
    assert HTS(precision="auto", deterministic=False, concurrent=False).repeatable
    assert A3C(precision="auto", lockstep=True).repeatable
    assert not A3C(precision="auto").repeatable
    assert BA3C(precision="auto").repeatable
    assert not BA3C(precision="auto", synchronous=False).repeatable
    assert not BA3C(precision="auto", plays_on=True).repeatable


def test_bfloat16_is_taken_where_it_is_slow_but_not_without_a_word(measured, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GA3C("Pong", device="cpu", precision="bfloat16")({}, 0)
    monkeypatch.setattr(precision, "has_bfloat16_units", lambda device: False)
    with pytest.warns(match="this processor has no instructions: an update may take several times as long"):
        assert GA3C("Pong", device="cpu", precision="bfloat16")({}, 0).learner.precision == "bfloat16"


def test_what_is_asked_for_is_taken_and_nonsense_refused(measured):
    assert GA3C("Pong", device="cpu", precision="float32")({}, 0).learner.precision == "float32"
    with pytest.raises(InvalidInput, match="unknown precision 'float16'"):
        GA3C(precision="float16")


def test_a_trial_of_both_gives_one_of_them_and_leaves_torch_as_it_was():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    precision.faster_precision.cache_clear()
    grid = replace(find_game("Sampled-v0", env_kwargs={"space": SPACES["grid"][0]}), recipe=None)
    assert precision.faster_precision(grid, "tiny", CPU) in ("float32", "bfloat16")
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
