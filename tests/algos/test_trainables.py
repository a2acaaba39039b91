"""The contract of every trainable that study files can name (`Trainable` in workbench/core/protocols.py).

Functions and classes of one's own are among them.
"""

import json
import math
import pickle

import pytest

from tests.support import silent
from workbench.core.describe import describe
from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.registry import TRAINABLES
from workbench.study.own import trainable_from

SMALL = {
    "a3c": {"game": "CartPole-v1", "phase": {"updates": 10}, "n_agents": 2, "lockstep": True, "min_games": 1},
    "ba3c": {"game": "CartPole-v1", "phase": {"updates": 5}, "n_ranks": 1, "n_agents": 2, "batch": 8, "min_games": 1}
    | {"evaluate_every": None},
    "digits": {"phase": {"updates": 10}},
    "digits-gan": {"phase": {"updates": 5}},
    "ga3c": {"game": "CartPole-v1", "phase": {"updates": 5}, "n_agents": 2, "lockstep": True, "min_games": 1}
    | {"min_training_batch": 10},
    "games": {
        "agents": {
            "one": {"kind": "quadratic", "phase": {"updates": 4}},
            "two": {"kind": "digits", "phase": {"updates": 5}},
        },
        "between": {"one": [0, 1.2], "two": [0.1, 1]},
    },
    "hts": {"game": "CartPole-v1", "phase": {"updates": 5}, "n_agents": 2, "sync_interval": 5, "min_games": 1}
    | {"n_actors": 1},
    "quadratic": {"phase": {"updates": 4}},
    "tests.own:climb": {},
    "tests.own:Climber": {"step": 2.0},
    "sb3": {
        "algorithm": "PPO",
        "env": "CartPole-v1",
        "phase": {"frames": 64},
        "hyperparameters": {"n_steps": 32, "batch_size": 32, "n_epochs": 1},
        "min_games": 1,
    },
    "replay": {"schedule": [{"h0": 1.0, "h1": 0.0}, {"h0": 0.5, "h1": 0.5}], "trainable": {"kind": "quadratic"}},
}
"""Every kind, and settings under which a phase takes a moment."""
MIDWAY = ["a3c", "ba3c", "ga3c", "hts"]
"""Those that are saved within a phase."""


def test_no_kind_is_missing_here() -> None:
    assert TRAINABLES.keys() - {"sb3"} <= SMALL.keys()  # of an extra; its own tests hold it


@pytest.fixture(params=SMALL)
def factory(request):
    return trainable_from({"kind": request.param, **SMALL[request.param]})


def test_a_phase_returns_finite_numbers_and_a_score(factory) -> None:
    trial = factory({}, 0)
    for _ in range(2):
        metrics = trial.train_phase(silent)
        assert math.isfinite(metrics["score"])
        assert all(isinstance(value, int | float) for name, value in metrics.items() if name != "returns")
        assert all(math.isfinite(value) for value in metrics.get("returns", ()))
    trial.close()
    trial.close()


def test_a_trial_goes_on_from_a_checkpoint_into_the_next_phase(factory, tmp_path) -> None:
    first, second = factory({}, 0), factory({}, 0)
    before = first.train_phase(silent)
    first.save(tmp_path)
    assert any(tmp_path.iterdir())
    second.load(tmp_path)
    gone_on, loaded = first.train_phase(silent), second.train_phase(silent)
    assert min(loaded["updates"], gone_on["updates"]) > before["updates"]
    first.close()
    second.close()


def test_a_trial_under_way_goes_back_to_its_checkpoint_and_saves_into_it_again(factory, tmp_path) -> None:
    trial, fresh = factory({}, 0), factory({}, 0)
    trial.train_phase(silent)
    trial.save(tmp_path)
    fresh.load(tmp_path)
    trial.train_phase(silent)
    trial.load(tmp_path)
    trial.save(tmp_path)
    for one in (trial, fresh):
        one.train_phase(silent)
    assert trial.train_phase(silent)["updates"] == fresh.train_phase(silent)["updates"]
    trial.close()
    fresh.close()


@pytest.mark.parametrize("kind", SMALL)
def test_whether_it_goes_on_within_a_phase_is_said(kind) -> None:
    trial = trainable_from({"kind": kind, **SMALL[kind]})({}, 0)
    assert getattr(trial, "resumes_midway", False) == (kind in MIDWAY)
    trial.close()


@pytest.mark.parametrize("kind", MIDWAY)
def test_a_phase_that_was_cut_spends_the_rest_of_its_budget_elsewhere(kind, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.0)
    settings = SMALL[kind] | {"phase": {"updates": 16}, "max_episode_frames": 9}  # games end, cut or not
    first, second = (trainable_from({"kind": kind, **settings})({}, 0) for _ in range(2))

    def cut(metrics) -> None:
        if metrics["updates"] >= 5:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        first.train_phase(cut)
    first.save(tmp_path)
    second.load(tmp_path)
    assert first.learner.updates < 16
    assert [second.train_phase(silent)["updates"] for _ in range(2)] == [16, 32]
    first.close()
    second.close()


def test_another_trial_may_go_on_from_it_with_a_seed_of_its_own(factory, tmp_path) -> None:
    donor, copy = factory({}, 0), factory({}, 1)
    before = donor.train_phase(silent)
    donor.save(tmp_path)
    copy.load(tmp_path)
    assert copy.train_phase(silent)["updates"] > before["updates"]
    donor.close()
    copy.close()


def test_what_is_no_checkpoint_is_refused(factory, tmp_path) -> None:
    trial = factory({}, 0)
    with pytest.raises((InvalidInput, CheckpointError, OSError)):
        trial.load(tmp_path)
    trial.close()


def test_a_factory_travels_and_is_described_in_json_and_built_again(factory) -> None:
    described = json.loads(json.dumps(describe(factory)))
    for again in (pickle.loads(pickle.dumps(factory)), trainable_from(described)):
        if ":" in described["kind"]:  # what has keywords bound is equal to itself alone
            assert describe(again) == described
        else:
            assert again == factory


def test_a_hyperparameter_it_does_not_have_is_refused(factory) -> None:
    if ":" in describe(factory)["kind"]:
        pytest.skip("what a function takes from its configuration is its own affair")
    with pytest.raises(InvalidInput, match="hyperparameter"):
        factory.check(["no_such_thing"])
    with pytest.raises(InvalidInput, match="hyperparameter"):
        factory({"no_such_thing": 1.0}, 0)


def test_every_hyperparameter_it_names_can_be_left_out(factory) -> None:
    if hasattr(factory, "check"):
        names = set(getattr(type(factory), "tunable", ())) - set(getattr(factory, "idle", ()))
        factory.check(sorted(names))
    factory({}, 0).close()
