"""Agent steps a second of GA3C on Pong, beside Stable-Baselines3's A2C, A3C and the machine's own roofline.

Prints one JSON object. The measurements alternate, so that a busy neighbour slows all of them alike; each key
is a median over the repeats:

- ``pps``: GA3C, t_max 5, small network, predictions a second in a running trial
- ``sb3_pps``: Stable-Baselines3 A2C, 16 environments, n_steps 5, the same network, the same emulators in as
  many threads; run with one thread a tensor operation and with one a core, the faster counts
- ``sb3_as_shipped_pps``: the same A2C and network as its users run it, on Gymnasium's Atari wrappers, one environment
  after another; a sentence instead of a number where OpenCV, which these wrappers need, is missing
- ``a3c_pps``: the project's A3C, the same network and environments, an agent a core
- ``emulator_pps``: the library's vector environment, 32 emulators on all cores, its own 84 × 84 × 4 frames
- ``prediction_pps, training_pps``: each part alone, on all cores
- ``roofline_pps``: 1 / (emulator + prediction + training seconds a step); ``bound_emulator`` is its ratio to
  ``emulator_pps``, the most that ``ratio_emulator`` could be
- ``ratio_emulator, ratio_sb3, ratio_sb3_as_shipped, ratio_a3c, ratio_roofline``: medians of ratios within a repeat
- ``ranges``: lowest and highest of each key over the repeats
- ``precision``: what GA3C chose to compute in
- ``rss_mib``: most memory the process held until the first GA3C trial had ended, before its peer was loaded
- ``cpu_us``: core microseconds an agent step, over all threads, which a busy neighbour changes little
- ``play_us, predict_us, train_us, emulator_us``: what of it each kind of thread takes but the main one, which does all
  but the emulators' part in lockstep; theirs is what is left, torch's among it where an operation may use several
- ``base_cpu_us, ratio_cpu``: with ``--base`` settings, what they take in the same run, and how much of it ``cpu_us`` is
- ``against_pps, against_cpu_us`` and the ratios to them, ``ratio_pps_against, ratio_cpu_us_against``: with ``--against
  CHECKOUT``, what the default of that older checkout does in turn with this one's, each in a process of its own

Freed memory is kept, as on a worker of a study, for the peers too.

Run with ``python benchmarks/ga3c_throughput.py``, some five minutes; needs the extra ``bench``.
"""

import argparse
import importlib.util
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import torch
from ale_py.vector_env import AtariVectorEnv

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.meter import play_for
from workbench.algos.rl.rollout import Rollout
from workbench.algos.rl.settings import Settings
from workbench.cluster.memory import keep_freed_memory
from workbench.core import machine
from workbench.core.describe import build
from workbench.core.registry import TRAINABLES

GAME, T_MAX, SB3_ENVS, SB3_STEPS = "Pong", 5, 16, 5
PREDICT_BATCH = 32
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ON_CPU: dict[str, Any] = {"game": GAME, "device": "cpu", "phase": {"seconds": 1}}
SHIPPED = {"frameskip": 1, "repeat_action_probability": 0.0}  # its wrapper skips frames itself
NO_OPENCV = "skipped: Stable-Baselines3's Atari wrappers need OpenCV, which is not installed (opencv-python-headless)"

AGAINST = """
import inspect, json, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/benchmarks"]
from workbench import Budget
try:
    from workbench.cluster.memory import keep_freed_memory
except ImportError:  # where it stood before 0.2.0
    from workbench.cluster.worker import keep_freed_memory
keep_freed_memory()
import ga3c_throughput as there
settings = json.loads(sys.argv[2])
settings["phase"] = Budget(**settings["phase"])
given = there.GA3C(**settings), float(sys.argv[3]), set()
print(json.dumps(there.trial_pps(*given[: len(inspect.signature(there.trial_pps).parameters)])))
"""


class ThreadTimes:
    """Processor seconds of Python's threads by name, of those that have ended too: read every 50 ms until `stop`.

    Reading costs `own_s` itself, which is none of what is measured.
    """

    def __init__(self) -> None:
        self.seconds: dict[int, tuple[str, float]] = {}
        self.own_s = 0.0
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        process = psutil.Process()
        while not self._over.wait(0.05):
            names = {thread.native_id: thread.name for thread in threading.enumerate()}
            times = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
            self.seconds |= {number: (names[number], times[number]) for number in names.keys() & times.keys()}
        self.own_s = time.thread_time()

    def stop(self) -> dict[str, float]:
        """Sum up by name."""
        self._over.set()
        self._reader.join()
        return {name: sum(s for n, s in self.seconds.values() if n == name) for name, _ in self.seconds.values()}


def trial_pps(settings: Settings, seconds: float, precisions: set[str]) -> dict[str, float]:
    """Warm up, then measure."""
    trial: Any = settings({"t_max": T_MAX}, 0)  # type: ignore[operator]
    play_for(trial, min(2.0, seconds))
    threads, main = ThreadTimes(), time.thread_time()
    steps, cpu = trial.steps, time.process_time()
    metrics = play_for(trial, seconds)
    spent = threads.stop()
    cpu, main = time.process_time() - cpu - threads.own_s, time.thread_time() - main
    steps = trial.steps - steps
    precisions.add(trial.learner.precision)
    trial.close()
    row = {f"{part}_us": spent.get(part, 0.0) for part in ("play", "predict", "train")}
    row["emulator_us"] = cpu - main - sum(row.values())
    return {"pps": metrics["pps"]} | {name: s / steps * 1e6 for name, s in {"cpu_us": cpu, **row}.items()}


def checkout_pps(checkout: str, seconds: float) -> dict[str, float]:
    """Measure the default of another checkout, by its own benchmark."""
    words = [sys.executable, "-c", AGAINST, os.path.abspath(checkout), json.dumps(ON_CPU), str(seconds)]
    told = subprocess.run(words, env=os.environ | {"PYTHONPATH": ""}, stdout=subprocess.PIPE, text=True, check=True)
    rates: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return rates


def sb3_pps(seconds: float, cores: int, torch_threads: int, as_shipped: bool = False) -> float:
    """Run Stable-Baselines3's A2C with that many threads a tensor operation, on ours or its own environments."""
    from stable_baselines3 import A2C
    from stable_baselines3.common.callbacks import BaseCallback

    from workbench.paper.ga3c.sb3_peer import AtariVecEnv, SmallNetwork

    class Clock(BaseCallback):
        steps = 0

        def _on_training_start(self) -> None:
            self.began = None

        def _on_step(self) -> bool:
            now = time.perf_counter()
            if self.began is None and self.num_timesteps > 20 * SB3_ENVS:
                self.began, self.before = now, self.num_timesteps
            if self.began is not None and now - self.began > seconds:
                self.rate = (self.num_timesteps - self.before) / (now - self.began)
                return False
            return True

    torch.set_num_threads(torch_threads)
    env = as_shipped_env() if as_shipped else AtariVecEnv("pong", SB3_ENVS, cores)
    policy = {"features_extractor_class": SmallNetwork, "net_arch": [], "share_features_extractor": True}
    model = A2C("CnnPolicy", env, n_steps=SB3_STEPS, policy_kwargs=policy, device="cpu", seed=0)
    clock = Clock()
    model.learn(10**9, callback=clock)
    env.close()
    return clock.rate


def as_shipped_env() -> Any:
    """Return Stable-Baselines3's Atari environments as its own training script makes them."""
    import ale_py
    import gymnasium
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    return VecFrameStack(make_atari_env(f"ALE/{GAME}-v5", n_envs=SB3_ENVS, env_kwargs=SHIPPED), n_stack=4)


def emulator_pps(seconds: float, cores: int) -> float:
    """Step the emulators alone, with random actions."""
    game = find_game(GAME)
    env = AtariVectorEnv(game.name, 32, num_threads=min(32, cores), use_fire_reset=False, reward_clipping=False)
    actions = np.random.default_rng(0).integers(0, game.n_actions, (256, 32))
    env.reset(seed=np.arange(32))
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        env.send(actions[steps % 256])
        env.recv()
        steps += 1
    return steps * 32 / (time.perf_counter() - began)


def network_pps(settings: GA3C, seconds: float, cores: int, train: bool) -> float:
    """Predict, or train, alone: one single-threaded stream a core, each on weights of its own."""
    torch.set_num_threads(1)
    batch = settings.min_training_batch if train else PREDICT_BATCH
    rng = np.random.default_rng(0)
    obs = find_game(GAME).room(batch)
    obs[...] = rng.integers(0, 256, obs.shape)
    zeros = np.zeros(batch, np.int64)
    rollout = Rollout(obs, zeros, rng.normal(size=batch).astype(np.float32), zeros)
    learners = [settings({}, number).learner for number in range(cores)]
    counts = [0] * cores
    began = time.perf_counter()

    def stream(number: int) -> None:
        learner = learners[number]
        work: Callable[[], object] = (lambda: learner.train(rollout)) if train else (lambda: learner.predict(obs))
        while not counts[number] or time.perf_counter() - began < seconds:  # once, however busy the machine is
            work()
            counts[number] += batch

    threads = [threading.Thread(target=stream, args=(n,)) for n in range(cores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def measure(given: argparse.Namespace, cores: int, precisions: set[str], repeat: int) -> dict[str, float]:
    """Measure everything once; the order is that in which a slow machine does least harm to the ratios."""
    settings, base = (
        build("trainable", {"kind": "ga3c"} | ON_CPU | changed, TRAINABLES)
        for changed in (given.settings, given.base or {})
    )
    part = max(1.0, given.seconds / 4)
    row = trial_pps(settings, given.seconds, precisions)
    row["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row["emulator_pps"] = emulator_pps(part, cores)
    if given.against:
        found = {where: checkout_pps(where, given.seconds) for where in (HERE, given.against)[:: 1 - repeat % 2 * 2]}
        here, there = found[HERE], found[given.against]
        row |= {f"against_{key}": there[key] for key in ("pps", "cpu_us")}
        row |= {f"ratio_{key}_against": here[key] / there[key] for key in ("pps", "cpu_us")}
    if given.base is not None:
        row["base_cpu_us"] = trial_pps(base, given.seconds, set())["cpu_us"]
        row["ratio_cpu"] = row["cpu_us"] / row["base_cpu_us"]
    if not given.no_sb3:
        row["sb3_pps"] = max(sb3_pps(given.seconds, cores, threads) for threads in {1, cores})
        if importlib.util.find_spec("cv2"):
            shipped = (sb3_pps(given.seconds, cores, threads, as_shipped=True) for threads in {1, cores})
            row["sb3_as_shipped_pps"] = max(shipped)
    a3c = build("trainable", {"kind": "a3c", "n_agents": cores} | ON_CPU, TRAINABLES)
    row["a3c_pps"] = trial_pps(a3c, given.seconds, set())["pps"]
    row["prediction_pps"] = network_pps(settings, part, cores, train=False)
    row["training_pps"] = network_pps(settings, part, cores, train=True)
    row["roofline_pps"] = 1 / sum(1 / row[f"{name}_pps"] for name in ("emulator", "prediction", "training"))
    row["bound_emulator"] = row["roofline_pps"] / row["emulator_pps"]
    for name in ("emulator", "sb3", "sb3_as_shipped", "a3c", "roofline"):
        if f"{name}_pps" in row:
            row[f"ratio_{name}"] = row["pps"] / row[f"{name}_pps"]
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of GA3C and of Stable-Baselines3, each repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-sb3", action="store_true", help="leave the peer out")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON of GA3C settings to override")
    parser.add_argument("--base", type=json.loads, help="JSON of GA3C settings to compare with in the same run")
    parser.add_argument("--against", metavar="CHECKOUT", help="an older checkout to compare the defaults with in turn")
    given = parser.parse_args()
    keep_freed_memory()
    cores, precisions = machine.cores(), set[str]()
    rows = [measure(given, cores, precisions, repeat) for repeat in range(given.repeats)]
    result: dict[str, object] = {k: round(statistics.median(row[k] for row in rows), 3) for k in rows[0]}
    if "sb3_pps" in result:
        result.setdefault("sb3_as_shipped_pps", NO_OPENCV)
    result["ranges"] = {k: [round(pick(row[k] for row in rows), 3) for pick in (min, max)] for k in rows[0]}
    result |= {"cores": cores, "repeats": given.repeats, "seconds": given.seconds, "torch": torch.__version__}
    result |= {"rss_mib": int(rows[0]["rss_mib"]), "load_1m": round(os.getloadavg()[0], 1)}
    result |= {"machine": platform.machine(), "settings": given.settings, "precision": "/".join(sorted(precisions))}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
