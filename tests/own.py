"""Trials as a user writes them: a function and a class in a module of one's own."""

import json

import numpy as np


def climb(config, seed, state=None, step=1.0):
    """Climbs for ever; a state lets it go on."""
    state = state or {"updates": 0, "weights": np.random.default_rng(seed).normal(size=3), "by": seed}
    while True:
        state["updates"] += 1
        state["weights"] = state["weights"] + step * config.get("lr", 0.1)
        yield {"score": state["weights"].sum(), "updates": state["updates"], "by": state["by"]}, state


def forgetful(config):
    """Climbs for nine phases; it cannot be taken up anywhere but at its start."""
    for phase in range(9):
        yield (phase + 1) * config["lr"]


class Climber:
    """The same as a class."""

    def __init__(self, config, seed, step=1.0):
        self.rate, self.updates = step * config.get("lr", 0.1), 0

    def train_phase(self, progress):
        self.updates += 1
        progress({"updates": self.updates})
        return {"score": self.updates * self.rate, "updates": self.updates}

    def save(self, path):
        (path / "state.json").write_text(json.dumps(self.updates))

    def load(self, path):
        self.updates = json.loads((path / "state.json").read_text())

    def close(self):
        pass
