"""Score against frames of GA3C beside Stable-Baselines3's A2C: the same emulators, trunk, batch and optimiser settings.

Prints one JSON object: ``rows`` of (system, seed, frames, score, games), where a score is the mean raw return of the
last 100 finished games, read in the same way from every system; ``finals`` by seed, their ``median``, and
``difference``: the mean of each system's finals less A2C's, with its 95 % interval over the seeds drawn again.

The systems (``--systems``):

- ``default``: GA3C as it comes, its threads running freely in two groups
- ``before``: with the network, start and RMSProp of 0.1.0: one trunk, uniform, epsilon inside the root, squares from 0
- ``a2c``: Stable-Baselines3's, as many experiences an update (``min_training_batch / t_max`` environments, ``t_max``
  steps of each), with GA3C's learning rate, discount, entropy bonus, value weight, clipping and RMSProp

Policy and value have the same layers in ``default`` and ``a2c``; only `CRITIC_SCALE`, on vectors, is GA3C's alone.

Run with ``python benchmarks/ga3c_against_sb3.py --game MsPacman --frames 1200000``; needs the extra ``bench``. Several
trials at once change seconds, which are not reported, and the policy lag a little.
"""

import argparse
import json
import statistics
from collections import deque
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.analysis import bootstrap_difference
from workbench.core.budget import Budget
from workbench.core.describe import build
from workbench.core.errors import DatabaseError
from workbench.core.registry import TRAINABLES
from workbench.paper.experiment import RecordedTable

WINDOW = 100  # games
RECORDINGS = ("ga3c-against-sb3", "ga3c-against-sb3-atari", "ga3c-defaults-atari")
SYSTEMS = ("default", "before", "a2c")
BEFORE = {"init": "uniform", "eps_inside_root": True, "initial_square": 0.0}
Curve = list[tuple[int, float, int]]  # frames, score, games the score is the mean of


def settings_of(system: str, game: str, changed: dict[str, Any]) -> GA3C:
    """Return a system's settings; A2C reads the default's."""
    before = BEFORE | ({} if find_game(game).atari else {"network": "mlp"}) if system == "before" else {}
    base = {"game": game, "device": "cpu", "learning_rate": 7e-4, "t_max": 5, "score_window": WINDOW}
    settings: GA3C = build("trainable", {"kind": "ga3c"} | base | before | changed, TRAINABLES)
    return settings


def ga3c_curve(settings: GA3C, seed: int, frames: int, points: int) -> Curve:
    """Train GA3C once."""
    trial = replace(settings, phase=Budget(frames=frames // points))({}, seed)
    curve: Curve = []
    for _ in range(points):
        trial.train_phase(lambda metrics: None)
        curve.append(point(trial.steps * trial.game.frames_per_step, trial.episodes.returns))
    trial.close()
    return curve


def a2c_curve(settings: GA3C, seed: int, frames: int, points: int) -> Curve:
    """Train Stable-Baselines3's A2C once."""
    from ga3c_sb3 import AtariVecEnv, SmallNetwork
    from stable_baselines3 import A2C
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecEnv

    game, s = find_game(settings.game), settings
    returns: deque[float] = deque(maxlen=WINDOW)
    curve: Curve = []

    class Reader(BaseCallback):
        def _on_step(self) -> bool:
            returns.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
            if self.num_timesteps * game.frames_per_step >= (len(curve) + 1) * (frames // points):
                curve.append(point(self.num_timesteps * game.frames_per_step, returns))
            return len(curve) < points

    torch.set_num_threads(s.torch_threads)
    n_envs = s.min_training_batch // s.t_max
    env: VecEnv = (
        AtariVecEnv(game.name, n_envs, seed=seed) if game.atari else make_vec_env(game.name, n_envs, seed=seed)
    )
    network: dict[str, Any] = {"features_extractor_class": SmallNetwork, "net_arch": []} if game.atari else {}
    model = A2C(
        "CnnPolicy" if game.atari else "MlpPolicy", env, seed=seed, device="cpu", policy_kwargs=network or None,
        learning_rate=s.learning_rate, gamma=s.gamma, n_steps=s.t_max, ent_coef=s.entropy_beta, vf_coef=s.value_weight,
        max_grad_norm=s.max_grad_norm or float("inf"), rms_prop_eps=s.rmsprop_eps,
    )  # fmt: skip
    model.learn(10**9, callback=Reader())
    env.close()
    return curve


def point(frames: int, returns: deque[float]) -> tuple[int, float, int]:
    """Return a point of a curve; the score is 0 before any game has finished."""
    return frames, round(float(np.mean(returns or [0])), 1), len(returns)


def curve_of(system: str, settings: GA3C, seed: int, frames: int, points: int) -> Curve:
    """Train once."""
    return (a2c_curve if system == "a2c" else ga3c_curve)(settings, seed, frames, points)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last scores of every system, their median, and how far their mean is from A2C's."""
    finals: dict[str, list[float]] = {}
    for system, seed in sorted({(row["system"], row["seed"]) for row in rows}):
        own = [row for row in rows if (row["system"], row["seed"]) == (system, seed)]
        finals.setdefault(system, []).append(max(own, key=lambda row: row["frames"])["score"])
    found: dict[str, Any] = {
        "finals": finals,
        "median": {system: statistics.median(scores) for system, scores in finals.items()},
    }
    if "a2c" in finals:
        found["difference"] = {
            system: bootstrap_difference(scores, finals["a2c"])._asdict()
            for system, scores in finals.items()
            if system != "a2c"
        }
    return found


def recorded() -> dict[str, Any]:
    """Summarise what data/ holds, by recording."""
    found = {}
    for name in RECORDINGS:
        with suppress(DatabaseError):  # not recorded yet
            found[name] = summary(RecordedTable.open(name).frame.to_dict("records"))
    return found


def trained(given: argparse.Namespace) -> dict[str, Any]:
    """Train every system with every seed."""
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    jobs = [(system, seed) for seed in seeds for system in given.systems]
    work = [
        (system, settings_of(system, given.game, given.settings), seed, given.frames, given.points)
        for system, seed in jobs
    ]
    with get_context("spawn").Pool(given.processes) as pool:
        curves = pool.starmap(curve_of, work, chunksize=1)
    rows = [
        {"game": given.game, "system": system, "seed": seed, "frames": frames, "score": score, "games": games}
        for (system, seed), curve in zip(jobs, curves, strict=True)
        for frames, score, games in curve
    ]
    return {"game": given.game, "settings": given.settings, "rows": rows} | summary(rows)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", action="store_true", help="print the summary of what data/ holds, train nothing")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--frames", type=int, default=150_000, help="of each trial")
    parser.add_argument("--points", type=int, default=15, help="of each curve")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2, help="trials at once")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON of GA3C settings to override, A2C's too")
    given = parser.parse_args()
    print(json.dumps(recorded() if given.recorded else trained(given)))


if __name__ == "__main__":
    main()
