"""What RMSProp's first steps do to a network of pictures: by what its accumulators begin at (`initial_square`).

From 0 a weight's first step is ten learning rates, however small its gradient is. GA3C trains on Pong in the
deterministic mode, otherwise as it comes; then 512 observations of random play pass through its network. *Silent* is
the share of a layer's features that are 0 for all of them. `untrained` is the network before its first step. Prints
JSON, a median of the seeds and their range each.
"""

import argparse
import json
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from workbench import GA3C, Budget
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import ActorCritic

LAYERS = ("first convolution", "second convolution", "fully connected")


def observations(n_agents: int = 16, n_kept: int = 32, every: int = 5) -> Tensor:
    """Play at random, and keep what all agents see every so many steps."""
    envs = make_envs(find_game("Pong"), n_agents, 99, n_threads=1)
    rng, kept = np.random.default_rng(0), []
    for n in range(n_kept * every):
        step = envs.recv()
        envs.send(rng.integers(0, envs.game.n_actions, n_agents))
        if n % every == 0:
            kept.append(step.obs.copy())
    envs.close()
    return torch.from_numpy(np.concatenate(kept))


@torch.no_grad()
def silent(model: ActorCritic, obs: Tensor) -> dict[str, float]:
    """Tell the share of each layer's features that answer to nothing in `obs`."""
    x, shares = obs.float() * model.scale, []
    for layer in model.trunk:
        x = layer(x)
        if isinstance(layer, nn.ReLU):
            shares.append(float((x.flatten(2).amax((0, 2)) if x.dim() == 4 else x.amax(0)).eq(0).float().mean()))
    return dict(zip(LAYERS, shares, strict=True))


def train(initial_square: float | None, frames: int, seed: int, obs: Tensor) -> dict[str, float]:
    """Train for so many frames, if `initial_square` is given, and look at the network."""
    settings = {} if initial_square is None else {"initial_square": initial_square}
    trial = GA3C("Pong", phase=Budget(frames=frames), lockstep=True, emulator_threads=1, **settings)({}, seed)
    told = {} if initial_square is None else trial.train_phase(lambda metrics: None)
    kept = {name: float(told[name]) for name in ("value_loss", "grad_norm", "entropy") if told}
    trial.close()
    return kept | {f"silent, {layer}": share for layer, share in silent(trial.model, obs).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    obs, printed = observations(), {}
    for start in (None, 0.0, 1e-4, 1.0):
        rows = [train(start, arguments.frames, seed, obs) for seed in range(arguments.seeds)]
        printed["untrained" if start is None else f"{start:g}"] = {
            name: [round(of([row[name] for row in rows]), 3) for of in (median, min, max)] for name in rows[0]
        }
    print(json.dumps({"frames": arguments.frames, "seeds": arguments.seeds, "initial_square": printed}, indent=1))


if __name__ == "__main__":
    main()
