"""Whatever a scheduler asks for or answers that makes no sense is refused, by the loop and by races alike."""

import json
import math
import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.support import RandomTimes
from workbench import FullRuns, InformedSearcher, Space, SuccessiveHalving, Uniform
from workbench.core.answers import answered, asked, check_scheduler, same_config
from workbench.core.drive import replay
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.ledger import TrialState
from workbench.core.protocols import Decision, Kind, Report, Run, Verdict
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster


class Two:
    """Two trials of one phase."""

    n_trials, n_phases, expected_phases = 2, 1, 2.0

    def __init__(self) -> None:
        self.started = 0

    def ask(self):
        self.started += 1
        return Run(self.started - 1, {"x": 1}) if self.started <= 2 else None

    def tell(self, report):
        return {report.trial: Decision(Verdict.STOP, {"mode": "finished"})}


class Answering(Two):
    """Gives one answer to every report."""

    def __init__(self, answer) -> None:
        super().__init__()
        self.answer = answer

    def tell(self, report):
        return self.answer


def refused(scheduler, events, said) -> None:
    with pytest.raises(SchedulerError, match=said):
        simulate(scheduler, RandomTimes(), VirtualCluster(2), events=events)


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"x": 1}, r"ask\(\) of Mistaken gave {'x': 1}: give Run\(trial, config\)"),
        (Run(0, 0, {"x": 1}), r"ask\(\) of Mistaken gave Run\(trial=0, config=0.*: give Run\(trial, config\)"),
        (Run(0, {"x": 1}), "Mistaken asks for trial 0, which is running: a new one has a number of its own"),
        (Run(1, {"x": 1}, parent=7), "trial 1 to go on from trial 7, which it has not asked for"),
        (
            Run(1, {"x": 1}, phase=2),
            "trial 1 to begin with phase 2: .* a trial without a parent, .* begins with phase 0",
        ),
        (Run(1, {"x": 1}, parent=0, phase=-1), "trial 1 to begin with phase -1: phases are whole numbers from 0"),
        (Run(1, {"x": 1}, parent=0, phase=0.5), "trial 1 to begin with phase 0.5: phases are whole numbers from 0"),
        (Run("b", {"x": 1}), "Mistaken asks for trial 'b': trials are numbered, whole and from 0"),
        (Run(1, {"x": np.ones(2)}), r"trial 1 with x = array\(\[1\., 1\.\]\): a log holds .* look up what the name"),
        (Run(1, {"x": {3: 1}}), "trial 1 with x = {3: 1}: a log holds words as names"),
        (Run(1, {3: 1}), "trial 1 with a hyperparameter called 3: a log holds words as names"),
    ],
)
def test_a_scheduler_that_asks_for_what_is_no_trial_is_told_so(wrong, said, events) -> None:
    class Mistaken(Two):
        def ask(self):
            return super().ask() if not self.started else wrong

    refused(Mistaken(), events, said)


class Sized(Two):
    """Raises, or gives, what it is made with, where its size is asked for."""

    def __init__(self, part, gives) -> None:
        super().__init__()
        self.part, self.gives = part, gives

    def _told(self, part):
        if self.part != part:
            return 2
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives

    n_trials = property(lambda self: self._told("n_trials"))
    n_phases = property(lambda self: self._told("n_phases"))
    expected_phases = property(lambda self: self._told("expected_phases"))

    def expectation(self):
        return self._told("expectation") if self.part == "expectation" else None


@pytest.mark.parametrize("part", ["n_trials", "n_phases", "expected_phases", "expectation"])
@pytest.mark.parametrize("error", [ValueError("no idea"), AttributeError("no attribute 'sizes'")])
def test_a_scheduler_whose_size_cannot_be_asked_is_told_so_with_its_line(part, error) -> None:
    with pytest.raises(SchedulerError, match=rf"^{part} of Sized raised {error!r}".partition("(")[0]) as told:
        check_scheduler(Sized(part, error))
    assert str(told.value).endswith(" in _told)")


@pytest.mark.parametrize(
    ("part", "gives", "says"),
    [
        ("expected_phases", None, "expected_phases of Sized is a number, got None"),
        ("expected_phases", max, "expected_phases of Sized is a number, a property, got <built-in function max>"),
        ("n_trials", "8", "n_trials of Sized is a number, got '8'"),
        ("expectation", 5.0, r"expectation\(\) of Sized gave 5.0: give Expectation\(began, fewest\) or None"),
    ],
)
def test_a_size_that_is_no_number_is_refused(part, gives, says) -> None:
    with pytest.raises(InvalidInput, match=f"^{says}$"):
        check_scheduler(Sized(part, gives))
    check_scheduler(Sized("expected_phases", np.float32(2)))


def test_a_scheduler_that_cannot_be_copied_is_refused_in_one_line() -> None:
    class Locked(Two):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(InvalidInput, match=r"^Locked cannot be copied \(cannot pickle .*, and a study works on copies"):
        simulate(Locked(), RandomTimes())


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
def test_a_trial_that_would_run_more_phases_than_there_are_is_refused(events) -> None:
    class Endless(Two):
        def tell(self, report):
            return {report.trial: Decision(Verdict.CONTINUE)}

    class Returning(Two):
        def ask(self):
            return super().ask() or Run(self.paused, {"x": 1}, parent=self.paused, phase=1)

        def tell(self, report):
            self.paused = report.trial
            return {report.trial: Decision(Verdict.PAUSE)}

    last = "the last of its n_phases = 1 is phase 0, where a trial stops$"
    refused(Endless(), events, rf"^tell\(\) of Endless lets trial \d go on after phase 0: {last}")
    refused(Returning(), events, rf"^Returning asks for trial \d in phase 1: {last}")


@pytest.mark.parametrize("stands", [state for state in TrialState if state is not TrialState.PAUSED])
def test_no_trial_that_is_not_paused_is_asked_for_again(stands) -> None:
    with pytest.raises(SchedulerError, match=f"Two asks for trial 0, which is {stands}: "):
        asked(Two(), lambda _: stands, lambda _: (0, {}))


@pytest.mark.parametrize("logged", [False, True], ids=["raced", "logged"])
@pytest.mark.parametrize(
    ("forgotten", "said"), [("phase", "in phase 0"), ("parent", "without a parent")], ids=["phase", "parent"]
)
def test_a_paused_trial_is_asked_for_with_the_phase_and_the_weights_that_it_goes_on_with(
    forgotten, said, logged
) -> None:
    events = [] if logged else None

    class Forgetful(Two):
        def ask(self):
            if (run := super().ask()) is not None:
                return run
            given = {"parent": self.paused, "phase": 1}
            del given[forgotten]
            return Run(self.paused, {"x": 1}, **given)

        def tell(self, report):
            self.paused = report.trial
            return {report.trial: Decision(Verdict.PAUSE)}

    refused(
        Forgetful(),
        events,
        rf"trial \d {said}, which was paused before phase 1: give Run\(\d, .*, parent=\d, phase=1\)",
    )
    assert len([event for event in events or [] if event.kind is Kind.RUN]) == 2 * logged


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
def test_a_paused_trial_goes_on_with_its_own_configuration(events) -> None:
    class Changing(Two):
        n_phases, expected_phases = 2, 4.0

        def __init__(self, x) -> None:
            super().__init__()
            self.x, self.waiting = x, []

        def ask(self):
            if not self.waiting:
                return super().ask()
            trial = self.waiting.pop()
            return Run(trial, {"x": self.x}, parent=trial, phase=1)

        def tell(self, report):
            if report.phase:
                return super().tell(report)
            self.waiting.append(report.trial)
            return {report.trial: Decision(Verdict.PAUSE)}

    simulate(Changing(1), RandomTimes(), VirtualCluster(2))
    said = r"the paused trial (\d) with {'x': 99}, which runs {'x': 1}: a new configuration .* parent=\1, phase=1\)"
    refused(Changing(99), events, said)
    assert [event.data["config"] for event in events or [] if event.kind is Kind.RUN] in ([], [{"x": 1}] * 2)


@pytest.mark.parametrize("value", [math.nan, [1, math.nan], {"a": math.nan}, 0.1, None, "word"])
def test_a_configuration_that_the_log_gives_back_is_the_same(value) -> None:
    config = {"x": value}
    assert same_config(config, json.loads(json.dumps(config)))
    assert not same_config(config, {"x": 2})


def test_a_failed_trial_needs_no_decision() -> None:
    assert answered(Answering({}), Report(0, 0, math.nan, failed=True), {}.get) == {}


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (None, r"tell\(\) of Answering gave None: give {trial: Decision"),
        (Decision(Verdict.STOP), r"tell\(\) of Answering gave Decision.*: give {trial: Decision"),
        ({0: Verdict.STOP}, r"tell\(\) of Answering gave {0: .*: give {trial: Decision"),
        ({0: Decision("stop")}, r"tell\(\) of Answering gave {0: .*: give {trial: Decision"),
        ({9: Decision(Verdict.STOP)}, "answers for trial 9, which it has not asked for"),
        ({0: Decision(Verdict.STOP), 1: Decision(Verdict.STOP)}, r"answers for trial \d, which is in a phase"),
        ({0: Decision(Verdict.STOP, "finished")}, r"tell\(\) of Answering gave {0: .*: give {trial: Decision"),
        ({}, r"gave no decision for trial \d, whose report it was"),
    ],
)
def test_a_scheduler_whose_answer_is_no_decision_is_told_so(wrong, said, events) -> None:
    refused(Answering(wrong), events, said)


IN_A_PHASE, ON_NO_SLOT = "which is in a phase", "which is on no slot: ask for it instead"


@pytest.mark.parametrize(
    ("stands", "verdicts", "said"),
    [
        (None, [*Verdict], "which it has not asked for"),
        (TrialState.RUNNING, [*Verdict], IN_A_PHASE),
        (TrialState.SET_ASIDE, [*Verdict], IN_A_PHASE),
        (TrialState.PAUSED, [Verdict.CONTINUE, Verdict.HOLD], ON_NO_SLOT),
        (TrialState.PAUSED, [Verdict.STOP, Verdict.PAUSE], None),
        (TrialState.HELD, [*Verdict], None),
        (TrialState.STOPPED, [*Verdict], None),
        (TrialState.FAILED, [*Verdict], None),
    ],
)
def test_who_waits_or_is_over_may_be_answered_for_and_nobody_else(stands, verdicts, said) -> None:
    report, states = Report(0, 0, 1.0), {0: TrialState.RUNNING, 1: stands}
    for verdict in verdicts:
        given = {0: Decision(Verdict.PAUSE), 1: Decision(verdict)}
        if said is None:
            assert answered(Answering(given), report, states.get) == given
        else:
            with pytest.raises(SchedulerError, match=rf"tell\(\) of Answering answers for trial 1, {said}"):
                answered(Answering(given), report, states.get)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            {"mode": "x", "scores": np.ones(2)},
            r"Answering decides on trial 0 with scores = array\(\[1\., 1\.\]\): a log holds",
        ),
        ({(0, 1): 1}, r"Answering decides on trial 0 with a reason called \(0, 1\): a log holds"),
    ],
)
def test_a_reason_that_a_log_cannot_hold_is_refused_by_its_name(reason, said) -> None:
    with pytest.raises(SchedulerError, match=said):
        answered(Answering({0: Decision(Verdict.STOP, reason)}), Report(0, 0, 1.0), {}.get)


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
@pytest.mark.parametrize("method", ["ask", "tell"])
def test_what_a_scheduler_of_ones_own_raises_is_told_with_its_line(method, events) -> None:
    class Failing(Two):
        def tell(self, report):
            return {}[report.trial]

    scheduler = Failing()
    if method == "ask":
        scheduler.ask = lambda: {}[0]
    refused(scheduler, events, rf"^{method}\(\) of Failing raised KeyError: \d \(test_answers\.py:\d+ in \S+\)$")


def test_nothing_of_a_decision_that_is_refused_is_in_the_log() -> None:
    class StopsAll(Two):
        def tell(self, report):
            return {trial: Decision(Verdict.STOP) for trial in range(2)}

    events = []
    refused(StopsAll(), events, IN_A_PHASE)
    assert [event.trial for event in events if event.kind is Kind.RUN] == [0, 1]
    assert not [event for event in events if event.kind in (Kind.PHASE_ENDED, Kind.DECISION)]


def test_what_a_scheduler_counts_in_numpy_and_tuples_of_a_configuration_are_as_the_log_gives_them_back() -> None:
    class Counting(Two):
        def ask(self):
            run = super().ask()
            config = {"x": np.float32(0.1), "n": np.int64(3), "on": np.bool_(True), "net": (64, 32), "no": math.nan}
            return run and Run(np.int64(run.trial), config, phase=np.int64(0))

        def tell(self, report):
            return {np.int64(report.trial): Decision(Verdict.STOP, {"mode": "finished", "rank": np.int64(3)})}

    events = []
    simulate(Counting(), RandomTimes(), VirtualCluster(2), events=events)
    assert {type(number) for event in events for number in (event.trial, event.phase)} <= {int, type(None)}
    read = [replace(event, data=json.loads(json.dumps(event.data))) for event in events]
    configs = [{**run.data["config"], "no": None} for run in read if "config" in run.data]
    assert configs == [{"x": float(np.float32(0.1)), "n": 3, "on": True, "net": [64, 32], "no": None}] * 2
    assert [event.data["rank"] for event in read if event.kind is Kind.DECISION] == [3, 3]
    assert len(replay(Counting(), read)) == 2


class Own:
    """A searcher of one's own, whose suggestions and observations are given."""

    def __init__(self, suggest, observe=lambda report: None) -> None:
        self.suggest, self.observe = suggest, observe


@pytest.mark.parametrize("events", [None, []], ids=["raced", "logged"])
@pytest.mark.parametrize(
    ("searcher", "said"),
    [
        (
            Own(lambda trial: None),
            r"suggest\(0\) of Own gave None: return a configuration, such as {'lr': 0\.1}, and None",
        ),
        (Own(lambda trial: 0.5), r"suggest\(0\) of Own gave 0\.5: return a configuration"),
        (Own(lambda trial: [{"x": 1}, "a"][trial]), r"suggest\(1\) of Own gave 'a': return a configuration"),
        (Own(lambda trial: {}["x"]), r"suggest\(0\) of Own raised KeyError: 'x' \(test_answers\.py:\d+ in <lambda>\)$"),
        (
            Own(lambda trial: {"x": 1}, lambda report: {}["score"]),
            r"observe\(\) of Own raised KeyError: 'score' \(test_answers\.py:\d+ in <lambda>\)$",
        ),
    ],
)
@pytest.mark.parametrize(
    "within", [lambda one: one, lambda one: InformedSearcher(one, [{"x": 0}])], ids=["", "informed"]
)
def test_a_searcher_that_gives_no_configuration_or_fails_is_told_so(within, searcher, said, events) -> None:
    refused(FullRuns(within(searcher), 3, 1), events, said)


def test_a_searcher_may_have_nothing_more_to_give() -> None:
    scheduler = FullRuns(Own(lambda trial: {"x": trial} if trial < 2 else None), 5, 1)
    assert simulate(scheduler, RandomTimes(), VirtualCluster(2)).trials == 2


def test_what_the_workbench_itself_refuses_in_a_searcher_keeps_its_words() -> None:
    space = Space({"x": Uniform(0, 1)}, constraint=lambda config: False)
    with pytest.raises(InvalidInput, match=r"^the constraint held for none"):
        FullRuns(Own(lambda trial: space.sample(np.random.default_rng(0))), 3, 1).ask()


def test_a_searcher_may_give_the_same_dict_again_changed_in_place() -> None:
    class Reusing:
        def __init__(self) -> None:
            self.given: dict = {}

        def suggest(self, number):
            self.given["x"] = number
            return self.given

        def observe(self, report):
            pass

    events = []
    simulate(SuccessiveHalving(Reusing(), 4, 2, eta=2), RandomTimes(), VirtualCluster(1), events=events)
    configs = {event.trial: event.data["config"]["x"] for event in events if event.kind is Kind.RUN}
    assert configs == {0: 0, 1: 1, 2: 2, 3: 3}
