"""What several tests share: a deterministic trial, spaces, a log in memory."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.domains import Choice, LogUniform, Uniform
from workbench.core.drive import drive
from workbench.core.protocols import Config, Event, Kind, Scheduler, Trainable
from workbench.core.space import Space

FROM_HERE = {"PYTHONPATH": str(Path(__file__).parents[1])}
"""What the environment of another process needs besides, so that it imports the workbench and the tests of this one."""
SPACE = Space({"lr": LogUniform(1e-5, 1e-2), "gamma": Choice([0.9, 0.99])})
NETWORK = Space(  # with conditions and a constraint
    {
        "optimizer": Choice(["sgd", "adam", "none"]),
        "momentum": Uniform(0.5, 0.99),
        "nesterov": Choice([True, False]),
        "width": Uniform(1, 8, step=1),
    },
    only_if={"momentum": {"optimizer": "sgd"}, "nesterov": {"optimizer": ["sgd", "adam"]}},
    constraint=lambda config: config["width"] * (2 if config["optimizer"] == "adam" else 1) <= 8,
)
KEYS = {  # what applies in it, by optimizer
    "sgd": ["optimizer", "momentum", "nesterov", "width"],
    "adam": ["optimizer", "nesterov", "width"],
    "none": ["optimizer", "width"],
}


def names_what_applies(config: Config) -> bool:
    NETWORK.validate(config)
    return list(config) == KEYS[config["optimizer"]] and NETWORK.constraint(config)


def score_of(config: Config, seed: int, phase: int) -> float:
    """A score that depends on config, seed and phase alone."""
    noise = np.random.default_rng([seed, phase]).normal()
    return float(np.log10(config["lr"]) + 0.3 * phase + 0.5 * noise)


def free_port() -> int:
    """Give a port of loopback that nobody listens at now; who can say which one it has chosen does without."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def breaking(said: str) -> Callable[..., object]:
    """Give a function that fails, whatever it is given."""

    def fail(*given):
        raise OSError(said)

    return fail


def silent(metrics) -> None:
    """A progress that nobody listens to."""


class Deterministic:
    """A trial that trains nothing: its score is `score_of`, and it keeps count of its phases."""

    def __init__(self, config: Config, seed: int) -> None:
        self.config, self.seed, self.phase = config, seed, 0

    def train_phase(self, progress) -> dict[str, float]:
        progress({"frames": float(self.phase)})
        self.phase += 1
        return {"score": score_of(self.config, self.seed, self.phase - 1), "phases_run": float(self.phase)}

    def save(self, path: Path) -> None:
        (path / "phase.txt").write_text(str(self.phase))

    def load(self, path: Path) -> None:
        self.phase = int((path / "phase.txt").read_text())

    def close(self) -> None:
        pass


class Plays(Deterministic):
    """Deterministic, with twelve episodes a phase."""

    def train_phase(self, progress) -> dict:
        return {**super().train_phase(progress), "returns": np.arange(12) + 100 * self.phase}


def assert_returns_logged(log: Sequence[Event]) -> None:
    """Assert that a log has the returns of the two phases of `Plays`."""
    ended = [e for e in log if e.kind is Kind.PHASE_ENDED]
    assert len(ended) == 2
    for event in ended:
        wanted = tuple(100.0 * (event.phase + 1) + i for i in range(2, 12))
        assert event.report().returns == wanted
        assert "returns" not in event.data["metrics"]
        assert json.loads(json.dumps(event.data))["returns"] == list(wanted)


@dataclass(frozen=True)
class Waits:
    """Trials that show progress until a file is there, in one phase or in every."""

    until: str
    phase: int | None = None

    def __call__(self, config: Config, seed: int) -> Deterministic:
        trial = Deterministic(config, seed)
        train, pause = trial.train_phase, threading.Event()

        def train_phase(progress) -> dict[str, float]:
            while self.phase in (None, trial.phase) and not Path(self.until).exists():
                progress({"waiting": 1.0})
                pause.wait(0.02)  # without it the trial would take a whole core
            return train(progress)

        trial.train_phase = train_phase  # type: ignore[method-assign]
        return trial


@dataclass(frozen=True)
class Asleep:
    """Trials that take four seconds a phase and no processor, until a file is there: then none at all."""

    enough: str

    def __call__(self, config: Config, seed: int) -> "Sleeper":
        return Sleeper(config, seed, Path(self.enough))


class Sleeper(Deterministic):
    """Sleeps, but for a word ten times a second."""

    def __init__(self, config: Config, seed: int, enough: Path) -> None:
        super().__init__(config, seed)
        self.enough = enough

    def train_phase(self, progress) -> dict[str, float]:
        for step in range(40 * self.phase, 40 * (self.phase + 1)):
            if not self.enough.exists():
                time.sleep(0.1)
            told = {"score": float(np.log10(self.config["learning_rate"])) + step / 40, "frames": 100.0 * step}
            progress(told)
        self.phase += 1
        return told


class RandomTimes:
    """A phase model: durations and scores drawn per trial and phase, from a seed."""

    def __init__(self, seed: int = 0, spread: float = 0.5) -> None:
        self.seed, self.spread = seed, spread

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        rng = np.random.default_rng([self.seed, trial, phase])
        return float(np.exp(self.spread * rng.normal())), float(rng.normal())


class MemoryLog(list):
    """A log that is a list."""

    def append(self, events: Sequence[Event]) -> None:
        self.extend(e for e in events if e.kind is not Kind.PROGRESS)


def virtual_executor(model, cluster, at: float = 0.0, kind=None):
    """Give an executor in virtual time, with its slots: of a `VirtualCluster`, or so many of one that is as usual."""
    from workbench.simulation.cluster import VirtualCluster  # here, for every worker imports this file for its trials
    from workbench.simulation.executor import SimulatedExecutor

    executor = (kind or SimulatedExecutor)(model, VirtualCluster(cluster) if isinstance(cluster, int) else cluster)
    executor.open(at)
    return executor


def simulate(scheduler: Scheduler, model=None, slots: int = 4, seed: int = 0) -> MemoryLog:
    """Drive a scheduler to the end in virtual time and return its log."""
    log = MemoryLog()
    assert drive(scheduler, virtual_executor(model or RandomTimes(seed), slots), log, seed=seed)
    return log


def until(executor, kind: Kind, n: int = 1) -> list[Event]:
    """Collect events up to the n-th of a kind."""
    events: list[Event] = []
    while sum(e.kind is kind for e in events) < n:
        events += executor.wait(60)
    return events


def saved(store: CheckpointStore, trainable: Trainable, trial: int, phase: int, score: float | None = None) -> str:
    """Write a checkpoint as a worker does, also to a URL, and give its name."""
    name = store.set_down(trainable, trial, phase, score)
    store.send(name)
    return name


def files(folder: Path) -> list[Path]:
    """What is there, but for what SQLite keeps beside a file while it is read."""
    return sorted(path for path in folder.rglob("*") if not path.name.endswith(("-shm", "-wal")))


def without_semaphores(option: str = "ro") -> list[str]:
    """Begin a command that finds /dev/shm read-only, or, with ``size=4k``, full; skip the test if not allowed to."""
    there = f"mount -t tmpfs -o {option} none /dev/shm && {{ (cat /dev/zero > /dev/shm/full) 2> /dev/null || true; }}"
    if subprocess.run(["unshare", "-m", "sh", "-c", there], capture_output=True).returncode:
        pytest.skip("mounting a disk needs root")
    return ["unshare", "-m", "sh", "-c", f'{there}; exec "$@"', "sh"]


@contextmanager
def small_disk(path: Path, size: str = "2m") -> Iterator[Path]:
    """Mount a small disk; skip the test where this is not allowed."""
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a disk needs root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
