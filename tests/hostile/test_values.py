"""Values that the wire or the log cannot carry: a trial fails of them alone, at once, and is told what was wrong."""

import json
from dataclasses import dataclass

import pytest

from tests.support import Deterministic, until
from workbench.core.protocols import Job, Kind

SURROGATE = "\ud800"


class Nameless(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")


def attack(kind: str, progress) -> dict:
    match kind:
        case "an integer beyond 64 bits":
            return {"score": 1.0, "frames": 2**70}
        case "an integer beyond a float":
            return {"score": 1.0, "frames": 10**400}
        case "an integer beyond 64 bits in mid-phase":
            progress({"frames": 2**70})
        case "half a surrogate pair in an error":
            raise ValueError(f"half {SURROGATE}")
        case "half a surrogate pair in a metric's name":
            return {"score": 1.0, SURROGATE: 1.0}
        case "30 MB of exception text":
            raise ValueError("x" * 30_000_000)
        case "an exception that cannot be shown":
            raise Nameless
        case "a metric's name of 1 MB":
            return {"score": 1.0, "x" * 1_000_000: 1.0}
        case "a million metrics":
            progress({str(n): 0.0 for n in range(1_000_000)})
    return {"score": 1.0}


REFUSED = {
    "an integer beyond a float": "every metric is one number",
    "half a surrogate pair in an error": r"half \ud800",
    "half a surrogate pair in a metric's name": "a metric's name is",
    "30 MB of exception text": "xxx … (30,000,000 characters)",
    "an exception that cannot be shown": "Nameless",
    "a metric's name of 1 MB": "a metric's name is",
    "a million metrics": "at most 1,000 metrics",
}


@dataclass(frozen=True)
class Attacks:
    kind: str

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        trial.train_phase = lambda progress: attack(self.kind, progress)  # type: ignore[method-assign]
        return trial


@pytest.mark.parametrize("kind", REFUSED)
def test_a_value_that_cannot_be_sent_fails_its_trial_and_costs_no_worker(executor_of, kind) -> None:
    executor = executor_of(Attacks(kind), max_retries=0)
    executor.start(Job(0, 0, {}, 0))
    events = until(executor, Kind.TRIAL_FAILED)
    failed = events[-1].data
    assert failed["why"] == "exception"
    assert REFUSED[kind] in failed["error"]
    assert len(json.dumps(dict(failed), ensure_ascii=False).encode()) < 100_000
    assert not any(e.kind is Kind.SLOT_LOST for e in events)


@pytest.mark.parametrize("kind", ["an integer beyond 64 bits", "an integer beyond 64 bits in mid-phase"])
def test_a_large_integer_becomes_a_float(executor_of, kind) -> None:
    executor = executor_of(Attacks(kind), max_retries=0)
    executor.start(Job(0, 0, {}, 0))
    events = until(executor, Kind.PHASE_ENDED)
    told = [e.data["metrics"] for e in events if e.kind in (Kind.PHASE_ENDED, Kind.PROGRESS)]
    assert any(metrics.get("frames") == float(2**70) for metrics in told)
