"""What a checkpoint in an object store costs a phase: sent while the next phase runs, and waited for.

moto's server on loopback, behind a proxy that holds every answer back; trials that sleep for a phase and save so many
bytes; the same study with checkpoints in a folder, in the store as a study has them there, and in the store with every
checkpoint waited for. Needs the extra `clusters-test`.
"""

import argparse
import importlib.util
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from tests.cluster.misbehaving import object_store
from workbench import Choice, FullRuns, RandomSearcher, Space
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Kind
from workbench.knowledge import StudyLog


@dataclass(frozen=True)
class Sleepers:
    """Trials that sleep, a little at a time, and save bytes that cannot be compressed."""

    phase_s: float
    n_bytes: int

    def __call__(self, config, seed) -> "_Sleeper":
        return _Sleeper(self)


class _Sleeper:
    def __init__(self, settings: Sleepers) -> None:
        self.settings, self.phases = settings, 0

    def train_phase(self, progress) -> dict[str, float]:
        until = time.monotonic() + self.settings.phase_s
        while (left := until - time.monotonic()) > 0:
            progress({})
            time.sleep(min(left, 0.05))
        self.phases += 1
        return {"score": float(self.phases)}

    def save(self, path: Path) -> None:
        (path / "weights").write_bytes(os.urandom(self.settings.n_bytes))
        (path / "phases").write_text(str(self.phases))

    def load(self, path: Path) -> None:
        self.phases = int((path / "phases").read_text())

    def close(self) -> None:
        pass


class Awaited(CheckpointStore):
    """A store whose checkpoints have arrived before a phase's score is told."""

    def set_down(self, trainable, trial, phase, score=None) -> str:
        return self.send(super().set_down(trainable, trial, phase, score))


def measure(client: Client, store: CheckpointStore, trials: Sleepers, n_phases: int) -> dict[str, float]:
    """Drive two trials to their end; what a phase took beyond its training, seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log = StudyLog(Path(folder) / "kb.db", "upload", {})
        executor = DaskExecutor(client, trials, store)
        executor.open(0.0)
        began = time.perf_counter()
        drive(FullRuns(RandomSearcher(Space({"x": Choice([0, 1])})), 2, n_phases), executor, log)
        driven = time.perf_counter() - began
        executor.close()
        closed = time.perf_counter() - began
        ended = [e.data for e in log.events() if e.kind is Kind.PHASE_ENDED and e.phase]  # the first is waited for
        log.close()
    return {
        "save_s_a_phase": round(statistics.median(data["save_s"] for data in ended), 3),
        "phase_s": round(statistics.median(data["wall_s"] for data in ended), 3),
        "study_s": round(driven, 2),
        "until_all_has_arrived_s": round(closed, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--phases", type=int, default=8)
    parser.add_argument("--phase-s", type=float, default=2.0, help="what a phase trains")
    parser.add_argument("--mib", type=float, default=8.0, help="of a checkpoint")
    parser.add_argument("--delay-s", type=float, default=0.05, help="how long every answer of the store is held back")
    arguments = parser.parse_args()
    if importlib.util.find_spec("moto") is None:
        print(json.dumps({"skipped": "needs moto and s3fs: pip install -e '.[clusters-test]'"}))
        return
    trials = Sleepers(arguments.phase_s, int(arguments.mib * 2**20))
    with object_store() as proxy, tempfile.TemporaryDirectory() as folder:
        proxy.delay_s = arguments.delay_s
        os.environ |= {f"FSSPEC_S3_{k}": v for k, v in {"ENDPOINT_URL": proxy.url, "KEY": "a", "SECRET": "b"}.items()}
        with local_client(2) as client:
            measure(client, CheckpointStore("s3://bucket/warm"), trials, 2)  # each worker's first is waited for
            found = {
                "folder": measure(client, CheckpointStore(f"{folder}/checkpoints"), trials, arguments.phases),
                "hidden": measure(client, CheckpointStore("s3://bucket/hidden"), trials, arguments.phases),
                "awaited": measure(client, Awaited("s3://bucket/awaited"), trials, arguments.phases),
            }
    print(json.dumps({**vars(arguments), "load": round(os.getloadavg()[0], 1), **found}, indent=1))


if __name__ == "__main__":
    main()
