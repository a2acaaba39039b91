"""Episode returns travel beside the metrics, from a trainable to the log and the scheduler."""

import math

import numpy as np
import pytest

from tests.support import SPACE, MemoryLog, Plays, assert_returns_logged, virtual_executor
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.core.drive import drive
from workbench.core.errors import WorkbenchError
from workbench.core.measured import carried, number, numbers, parted
from workbench.core.protocols import Event, Kind
from workbench.simulation.trained import TrainedPhases


def test_returns_are_parted_from_the_metrics_and_only_the_last_finite_ones_kept() -> None:
    metrics, returns = parted({"score": np.float32(2), "returns": [math.nan, *range(12), math.inf]})
    assert metrics == {"score": 2.0}
    assert returns == [float(i) for i in range(2, 12)]
    assert parted({"score": 1.0}) == ({"score": 1.0}, [])


def test_a_loss_that_has_its_gradient_is_a_number_without_a_warning(recwarn) -> None:
    torch = pytest.importorskip("torch")
    torch.set_warn_always(True)
    try:
        assert numbers({"loss": torch.ones(1, requires_grad=True)}) == {"loss": 1.0}
    finally:
        torch.set_warn_always(False)
    assert not recwarn.list
    with pytest.raises(WorkbenchError, match=r"every metric is one number, got .*tensor"):
        numbers({"loss": torch.ones(2)})
    with pytest.raises(TypeError):
        number(torch.zeros(2))


def test_a_bare_number_in_place_of_metrics_is_refused_in_one_line() -> None:
    with pytest.raises(WorkbenchError, match=r"metrics are a dict, .'loss': …., got 0.5"):
        numbers(0.5)


def test_a_whole_number_of_any_library_stays_whole_as_far_as_a_message_holds_it() -> None:
    found = numbers({"numpy": np.int64(3), "plain": 3, "long": 2**70, "true": np.bool_(True)})
    assert found == {"numpy": 3, "plain": 3, "long": 2.0**70, "true": 1.0}
    assert [type(value) for value in found.values()] == [int, int, float, float]


def test_a_whole_number_of_torch_stays_whole() -> None:
    assert type(numbers({"updates": pytest.importorskip("torch").tensor(3)})["updates"]) is int


def test_a_phase_has_as_many_metrics_as_may_be_and_names_as_long() -> None:
    many = {"x" * 200: 0.0, **{str(n): 0.0 for n in range(999)}}
    assert numbers(many) == many
    for wrong in ({**many, "more": 0.0}, {"x" * 201: 0.0}, {"": 0.0}, {"a\nb": 0.0}):
        with pytest.raises(WorkbenchError, match=r"at most 1,000 metrics, got 1,001|1 to 200 printable characters"):
            numbers(wrong)


def test_text_that_is_too_long_keeps_its_beginning_and_its_end() -> None:
    assert carried("ab" * 5, 10) == "ab" * 5
    assert carried("begin" + "x" * 90 + "the end", 10) == "begin … (102 characters) … e end"
    assert carried("\ud800", 10) == "\\ud800"


@pytest.mark.parametrize("wrong", [10**400, None, "high", "0.5", b"1", np.array("1"), [1.0, 2.0], np.zeros(2)])
def test_what_is_no_number_is_refused_alike_whatever_it_is(wrong) -> None:
    with pytest.raises(TypeError):
        number(wrong)
    with pytest.raises(WorkbenchError, match="every metric is one number, got"):
        parted({"score": wrong})


def test_a_phase_needs_a_finite_score() -> None:
    with pytest.raises(WorkbenchError, match=r"returned no score, only \['loss'\]: add metrics\['score'\]"):
        parted({"loss": 1.0})
    with pytest.raises(FloatingPointError, match="the score is inf: training has diverged"):
        parted({"score": np.inf})


@pytest.mark.parametrize("wrong", [3.0, "123", ["a"], ["1"], [10**400], [[1.0]], {"a": 1.0}, None])
def test_returns_that_are_no_sequence_of_numbers_are_refused(wrong) -> None:
    with pytest.raises(WorkbenchError, match=r"metrics\['returns'\] holds .*, a sequence of numbers, got"):
        parted({"score": 1.0, "returns": wrong})


@pytest.mark.parametrize("wrong", [None, 1.0, [("score", 1.0)]])
def test_what_is_no_dict_of_metrics_is_refused_in_one_line(wrong) -> None:
    with pytest.raises(WorkbenchError, match=r"train_phase returns a dict of metrics, .* got "):
        parted(wrong)


def test_a_simulated_phase_reports_its_returns(tmp_path) -> None:
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 1, 2), virtual_executor(TrainedPhases(Plays, tmp_path), 1), log)
    assert_returns_logged(log)


def test_a_log_without_returns_is_read_as_before() -> None:
    report = Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0, "metrics": {"score": 1.0}}).report()
    assert report.returns == ()
