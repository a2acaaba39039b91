"""Odd endings are told as they were, and odd values never reach a record that could not be resumed."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support import Deterministic, until
from workbench.algos.search import FullRuns, GridSearcher, RandomSearcher
from workbench.core.describe import build, describe
from workbench.core.domains import Choice
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job, Kind
from workbench.core.registry import SEARCHERS
from workbench.core.space import Space
from workbench.study.study import Study


class Enough(BaseException):
    """An ending of somebody's own."""


@dataclass(frozen=True)
class Ends:
    how: str

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        trial.train_phase = self.end  # type: ignore[method-assign]
        return trial

    def end(self, progress) -> dict:
        match self.how:
            case "KeyboardInterrupt":
                raise KeyboardInterrupt
            case "SystemExit: 3":
                raise SystemExit(3)
            case "Enough: of it":
                raise Enough("of it")
            case ": its process ended with exit code 7":
                os._exit(7)
            case ": killed by SIGSEGV":
                os.kill(os.getpid(), signal.SIGSEGV)
        return {}


@pytest.mark.parametrize("how", ["KeyboardInterrupt", "SystemExit: 3", "Enough: of it"])
def test_what_is_no_ordinary_exception_fails_its_trial_alone(executor_of, how) -> None:
    executor = executor_of(Ends(how), max_retries=0)
    executor.start(Job(0, 0, {}, 0))
    events = until(executor, Kind.TRIAL_FAILED)
    failed = events[-1].data
    assert (failed["why"], failed["error"]) == ("exception", how)
    assert failed["place"].startswith("test_endings.py:")
    assert not any(e.kind is Kind.SLOT_LOST for e in events)


@pytest.mark.parametrize("how", [": its process ended with exit code 7", ": killed by SIGSEGV"])
def test_how_a_worker_died_is_told(executor_of, how) -> None:
    executor = executor_of(Ends(how), max_retries=0)
    executor.start(Job(0, 0, {}, 0))
    failed = until(executor, Kind.TRIAL_FAILED)[-1].data
    assert failed["why"] == "crash"
    assert failed["error"].endswith(f" died{how}")


REFUSED = [(1, 2), [1], float("nan"), None, object(), b"bytes", Path("a"), "half \ud800", np.array([1, 2]), 1j]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: ascii(value)[:20])
def test_a_choice_that_no_record_can_give_back_is_refused(value) -> None:
    with pytest.raises(InvalidInput) as refused:
        Choice([0, value])
    assert str(refused.value).isprintable()


def test_a_hyperparameter_with_a_name_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a hyperparameter's name is a word"):
        Space({"half \ud800": Choice([0, 1])})


def test_the_scalars_of_numpy_are_taken_as_pythons_and_the_record_can_be_built_again() -> None:
    values = [np.float32(0.5), np.int64(3), np.bool_(True), np.str_("word"), 2**70, float("inf")]
    space = Space({"x": Choice(values)})
    assert [type(value) for value in space["x"].values] == [float, int, bool, str, int, float]  # type: ignore[attr-defined]
    searcher = GridSearcher(space, 6)
    again = build("searcher", describe(searcher), SEARCHERS)
    assert again.space["x"].values == space["x"].values


def test_nothing_is_written_when_a_study_is_refused(tmp_path) -> None:
    for name, space in [("half \ud800", {"lr": Choice([0, 1])}), ("one", {"trial": Choice([0, 1])})]:
        with pytest.raises(InvalidInput):
            Study(name, FullRuns(RandomSearcher(Space(space)), 1, 1), Deterministic, db=tmp_path / "kb.db").start()
    assert not list(tmp_path.iterdir())
