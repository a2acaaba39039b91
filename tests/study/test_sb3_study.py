"""Stable-Baselines3's trials under the schedulers, with an environment that no other process could import."""

import sys
import types

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from workbench import (
    ASHA,
    PBT,
    SB3,
    Budget,
    Hyperband,
    HyperTrick,
    LogUniform,
    MedianStopping,
    Study,
    SuccessiveHalving,
    Uniform,
)
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.trained import TrainedPhases
from workbench.study.results import Results

pytest.importorskip("stable_baselines3")

SPACE = {"learning_rate": LogUniform(1e-4, 1e-2), "gamma": Uniform(0.9, 0.999)}
SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "policy_kwargs": {"net_arch": [8]}}
PATIENT = {"max_retries": 20, "stall_s": 3000.0}  # where much else computes, workers come and go

SCHEDULERS = {
    "hypertrick": HyperTrick(SPACE, n_trials=4, n_phases=3),
    "asha": ASHA(SPACE, n_trials=4, n_phases=4, eta=2),
    "halving": SuccessiveHalving(SPACE, n_trials=4, n_phases=4, eta=2),
    "hyperband": Hyperband(SPACE, n_phases=4, eta=2),
    "median": MedianStopping(SPACE, n_trials=4, n_phases=3),
    "pbt": PBT(SPACE, population=4, n_phases=3, share=0.5),
}


class Near(gymnasium.Env):
    """Continuous actions: the nearer the action to 0.5, the better; three steps."""

    observation_space, action_space = spaces.Discrete(3), spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return self.t % 3, 1 - abs(float(action[0]) - 0.5), self.t == 3, False, {}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_stops_pauses_and_copies_such_trials(name, tmp_path) -> None:
    gymnasium.register("Near-v0", Near)
    trainable = SB3("PPO", "Near-v0", Budget(frames=16), SMALL, min_games=1)
    events: list = []
    outcome = simulate(SCHEDULERS[name], TrainedPhases(trainable, tmp_path), VirtualCluster(2), events=events)
    del gymnasium.registry["Near-v0"]
    assert np.isfinite(outcome.scores).any()
    assert not any(event.kind in ("trial_failed", "phase_failed") for event in events)


def test_weights_are_copied_on_real_workers_in_an_environment_of_a_cell(client, tmp_path) -> None:
    cell = types.ModuleType("cell_of_a_study")
    env = type("Near", (gymnasium.Env,), {**{k: v for k, v in vars(Near).items() if k[:2] != "__"}})
    env.__module__, cell.Near = cell.__name__, env
    sys.modules[cell.__name__] = cell
    for module in (cell, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    gymnasium.register("NearCell-v0", env)
    trainable = SB3("PPO", "NearCell-v0", Budget(frames=32), SMALL, min_games=1)
    try:
        scheduler = PBT(SPACE, population=4, n_phases=3, share=0.5)
        study = Study("copied", scheduler, trainable, db=tmp_path / "kb.db", client=client, **PATIENT)
        results: Results = study.run().results()
    finally:
        for module in (cell, sys.modules[__name__]):
            cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[cell.__name__], gymnasium.registry["NearCell-v0"]
    assert (results.frames.trials["state"] != "failed").all()
    assert results.lineage["copied"].any()
    assert len(results.frames.phases) == 12
    assert results.frames.phases["score"].between(-3, 3).all()
