"""What the layers compute in where nobody says: bfloat16 if the processor has units for it and is faster so."""

import time
import warnings
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Literal

import numpy as np
import torch

from workbench.algos.rl.games import Game
from workbench.algos.rl.learner import Learner, Precision
from workbench.algos.rl.model import make_model
from workbench.algos.rl.optim import SharedRMSProp
from workbench.algos.rl.rollout import Rollout

UPDATES = 10  # of each precision, in turn; the first ones, in which layers are prepared, come before
BATCH = 40  # experiences an update


def choose_precision(
    asked: Precision | Literal["auto"], game: Game, network: str, device: torch.device, *, repeatable: bool
) -> Precision:
    """Resolve ``auto``: the faster one for pixels; float32 for vectors, and where the same seed must give the same.

    Warns where bfloat16 is asked of a processor without instructions for it, which emulates each product.
    """
    if asked == "bfloat16" and not has_bfloat16_units(device):
        warnings.warn(
            "precision is bfloat16, for which this processor has no instructions: an update may take several times as "
            "long as in float32, which precision='auto' takes here",
            stacklevel=2,
        )
    if asked != "auto":
        return asked
    if repeatable or len(game.obs_shape) < 3 or not has_bfloat16_units(device):
        return "float32"
    return faster_precision(replace(game, recipe=None), network, device)  # how it is made is no key of a cache


def has_bfloat16_units(device: torch.device) -> bool:
    """Tell whether a GPU computes in bfloat16, or this processor has AMX or AVX-512 instructions for it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


@cache
def faster_precision(game: Game, network: str, device: torch.device) -> Precision:
    """Train on made-up experiences in both, in turn, and return that of the shorter median update; once a process."""
    precisions: tuple[Precision, Precision] = ("float32", "bfloat16")
    learners = {precision: _learner(game, network, device, precision) for precision in precisions}
    rng = np.random.default_rng(0)
    obs = game.room(BATCH)
    obs[...] = rng.integers(0, 256, obs.shape)
    actions = rng.integers(0, game.n_actions, BATCH)
    rollout = Rollout(obs, actions, rng.normal(size=BATCH).astype(np.float32), np.zeros(BATCH, np.int64))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for learner in learners.values():
            update_seconds(learner, rollout)
        took = [{p: update_seconds(learner, rollout) for p, learner in learners.items()} for _ in range(UPDATES)]
    finally:
        torch.set_num_threads(threads)
    return min(precisions, key=lambda precision: median(seconds[precision] for seconds in took))


def update_seconds(learner: Learner, rollout: Rollout) -> float:
    """Measure one update: of this thread's processor time, which a busy neighbour changes little, or of a GPU's."""
    clock = time.perf_counter if learner.device.type == "cuda" else time.thread_time
    began = clock()
    learner.train(rollout)  # it reads the losses, so a GPU is waited for
    return clock() - began


def _learner(game: Game, network: str, device: torch.device, precision: Precision) -> Learner:
    model = make_model(game, network).to(device)
    optimizer = SharedRMSProp(model.parameters(), 1e-6)
    return Learner(model, optimizer, device, entropy_beta=0.01, value_weight=0.5, reduction="mean", precision=precision)
