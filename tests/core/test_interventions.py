"""People's requests: judged, carried out, logged; the study ends as it should, and its log replays."""

import copy
from collections import Counter

import pytest

from tests.simulated import Clocked
from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench.algos.search import (
    PBT,
    FullRuns,
    HyperTrick,
    InformedSearcher,
    ListSearcher,
    RandomSearcher,
    Seeded,
    SuccessiveHalving,
)
from workbench.core.domains import Choice, LogUniform, Uniform
from workbench.core.drive import drive, replay
from workbench.core.interventions import Request, judge, possible
from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Event, Kind
from workbench.core.seeds import trial_seed
from workbench.core.space import Space
from workbench.knowledge.check import out_of_order
from workbench.simulation.executor import SimulatedExecutor


class Person:
    """Sends requests when the log has grown to certain lengths."""

    def __init__(self, log: MemoryLog, *wishes: tuple) -> None:
        self.log, self.wishes, self.n = log, list(wishes), 0

    def __call__(self):
        due = []
        while self.wishes and self.wishes[0][0](self.log):
            _, action, trial, *data = self.wishes.pop(0)
            self.n += 1
            due.append(Request(f"r{self.n}", action, trial, data[0] if data else {}))
        return due


def ended(n):
    """When n phases have ended."""
    return lambda log: sum(e.kind is Kind.PHASE_ENDED for e in log) >= n


def run(scheduler, *wishes, slots=2):
    log = MemoryLog()
    executor = virtual_executor(RandomTimes(3), slots)
    fresh = copy.deepcopy(scheduler)
    assert drive(scheduler, executor, log, inbox=Person(log, *wishes))
    assert list(out_of_order(log)) == []
    replay(fresh, log)
    assert fresh.ask() is None
    return log


def phases(log, trial) -> list[int]:
    return [e.phase for e in log if e.kind is Kind.PHASE_ENDED and e.trial == trial]


def answers(log) -> list[tuple]:
    return [(e.data["action"], e.data["accepted"]) for e in log if e.kind is Kind.INTERVENTION]


FULL = FullRuns(RandomSearcher(SPACE), 4, 4)


def test_a_stopped_trial_is_heard_of_no_more_and_its_slot_is_used_at_once() -> None:
    log = run(copy.deepcopy(FULL), (ended(1), "stop", 0))
    assert answers(log) == [("stop", True)]
    stopped = next(e for e in log if e.kind is Kind.TRIAL_STOPPED)
    assert [e for e in log[log.index(stopped) :] if e.trial == 0 and e.kind is not Kind.DECISION] == [stopped]
    assert next(e for e in log if e.kind is Kind.RUN and e.trial == 2).at == stopped.at
    assert len(phases(log, 0)) < 4
    assert [phases(log, t) for t in (1, 2, 3)] == [[0, 1, 2, 3]] * 3


def test_a_request_that_is_seen_again_is_answered_once() -> None:
    log = MemoryLog()
    executor = virtual_executor(RandomTimes(3), 2)
    wish = Request("r1", "clone", 0, {"phases": 1})
    assert drive(copy.deepcopy(FULL), executor, log, inbox=lambda: [wish, wish] if ended(1)(log) else [])
    assert answers(log) == [("clone", True)]


def test_a_paused_trial_ends_its_phase_and_waits_until_it_is_resumed() -> None:
    log = run(copy.deepcopy(FULL), (ended(1), "pause", 0), (ended(13), "resume", 0))
    assert answers(log) == [("pause", True), ("resume", True)]
    resumed = next(e for e in log if e.kind is Kind.INTERVENTION and e.data["action"] == "resume")
    before = [e for e in log[: log.index(resumed)] if e.trial == 0 and e.kind is Kind.PHASE_ENDED]
    assert 1 <= len(before) <= 2
    assert phases(log, 0) == [0, 1, 2, 3]


THREE_SEEDS = Seeded(FullRuns(RandomSearcher(SPACE), 1, 3), 3)  # trials 1 and 2 end the first phase before 0


def test_a_paused_trial_waits_for_the_person_also_where_its_scheduler_pauses_it() -> None:
    turns = []
    later = lambda log: turns.append(len(log)) or len(turns) > 50  # noqa: E731
    log = run(copy.deepcopy(THREE_SEEDS), (ended(1), "pause", 2), (later, "resume", 2), slots=3)
    assert answers(log) == [("pause", True), ("resume", True)]
    paused, resumed = (log.index(e) for e in log if e.kind is Kind.INTERVENTION)
    meanwhile = log[paused:resumed]
    assert [e.data["verdict"] for e in meanwhile if e.kind is Kind.DECISION and e.trial == 2] == ["pause"]
    assert [e.kind for e in meanwhile if e.trial == 2][-1] is Kind.RUN
    assert phases(log, 2) == [0, 1, 2]


def test_a_wish_to_pause_can_be_taken_back_while_the_scheduler_has_paused_the_trial() -> None:
    log = run(copy.deepcopy(THREE_SEEDS), (ended(1), "pause", 2), (ended(2), "resume", 2), slots=3)
    assert answers(log) == [("pause", True), ("resume", True)]
    assert phases(log, 2) == [0, 1, 2]


def test_what_a_person_may_ask_of_a_trial_is_what_is_accepted() -> None:
    """In every standing: as it runs, is to be paused, is set aside, is paused by its scheduler besides, and is over."""
    decided = {
        v: Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": v, "mode": "m"}) for v in ("continue", "pause", "stop")
    }
    paused = Event(Kind.INTERVENTION, 0.5, 0, data={"action": "pause", "accepted": True})
    failed = Event(Kind.TRIAL_FAILED, 1.0, 0, 0, data={"error": "diverged"})
    standings = {
        "running": ([], ["stop", "pause"]),
        "to be paused": ([paused], ["stop", "resume"]),
        "set aside": ([paused, decided["continue"]], ["stop", "resume"]),
        "paused twice": ([paused, decided["pause"]], ["stop", "resume"]),
        "paused": ([decided["pause"]], ["stop"]),
        "stopped": ([paused, decided["stop"]], ["extend"]),
        "failed": ([failed], []),
    }
    run = Event(Kind.RUN, 0.0, 0, 0, data={"config": {"lr": 0.1}, "parent": None, "seed": 0})
    how = {"at": 2.0, "first_clone": 5, "n_phases": 3, "study_seed": 7, "scale": lambda nodes: None}
    for name, (events, may) in standings.items():
        ledger = Ledger([run, *events])
        assert possible(ledger.trials[0]) == may, name
        requests = [Request("r", action, 0, {"phases": 1}) for action in ("stop", "pause", "resume", "extend")]
        answers = {request.action: judge(request, ledger, **how)[0].data for request in requests}
        assert [action for action, answer in answers.items() if answer["accepted"]] == may, name
        assert all(": only a " in answer["why"] for answer in answers.values() if not answer["accepted"])


def test_a_trial_that_is_over_can_be_extended_without_the_scheduler_hearing_of_it() -> None:
    over = lambda log: any(e.kind is Kind.DECISION and e.trial == 1 and e.data["verdict"] == "stop" for e in log)  # noqa: E731
    log = run(HyperTrick(RandomSearcher(SPACE), 6, 3), (over, "extend", 1, {"phases": 2}))
    before = [
        e.phase
        for e in log[: log.index(next(e for e in log if e.kind is Kind.INTERVENTION))]
        if e.trial == 1 and e.kind is Kind.PHASE_ENDED
    ]
    assert phases(log, 1) == [*before, before[-1] + 1, before[-1] + 2]
    reasons = [(e.data["mode"], e.data.get("phases_left")) for e in log if e.kind is Kind.DECISION and e.trial == 1]
    assert reasons[-2:] == [("extended", 1), ("extended", None)]


def test_a_wish_to_pause_ends_with_its_trial() -> None:
    in_its_last = lambda log: [e.phase for e in log if e.trial == 0 and e.kind is Kind.PHASE_STARTED][-1:] == [3]  # noqa: E731
    over = lambda log: any(e.kind is Kind.DECISION and e.trial == 0 and e.data["verdict"] == "stop" for e in log)  # noqa: E731
    log = run(copy.deepcopy(FULL), (in_its_last, "pause", 0), (over, "extend", 0, {"phases": 2}))
    assert answers(log) == [("pause", True), ("extend", True)]
    assert phases(log, 0) == [0, 1, 2, 3, 4, 5]


def test_a_clone_runs_on_its_own_with_the_edited_config() -> None:
    log = run(copy.deepcopy(FULL), (ended(1), "clone", 0, {"config": {"lr": 0.005}, "phases": 2, "confirms": True}))
    clone = next(e for e in log if e.kind is Kind.RUN and e.data.get("by") == "person")
    assert clone.trial == 4
    assert "confirms" not in clone.data  # another configuration, which says nothing of trial 0's score
    assert clone.data["config"] == {**next(e for e in log if e.kind is Kind.RUN).data["config"], "lr": 0.005}
    assert phases(log, 4) == [0, 1]
    assert [phases(log, t) for t in range(4)] == [[0, 1, 2, 3]] * 4


def judged(request: Request) -> list[Event]:
    """Answered in a study of seed 7 and three phases: 0 was stopped after one, 1 repeats it, and 2 has failed."""
    run = {"config": {"lr": 0.1}, "parent": None, "seed": 0}
    events = [Event(Kind.RUN, 0.0, trial, 0, data={**run, "candidate": 2 * (trial == 2)}) for trial in range(3)]
    ended = Event(Kind.PHASE_ENDED, 1.0, 0, 0, data={"score": 1.0, "checkpoint": "trial-00000/phase-000"})
    stopped = Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "stop", "mode": "eviction"})
    ledger = Ledger([*events, ended, stopped, Event(Kind.TRIAL_FAILED, 1.0, 2, 0, data={"error": "diverged"})])
    return judge(request, ledger, at=2.0, first_clone=5, n_phases=3, study_seed=7, scale=lambda nodes: None)


def test_a_confirmation_repeats_its_candidate_with_a_fresh_seed_over_all_phases() -> None:
    answer, clone = judged(Request("r", "clone", 1, {"confirms": True}))
    assert answer.data["accepted"]
    assert (clone.trial, clone.data["seed"], clone.data["own_phases"]) == (5, trial_seed(7, 5), 3)
    assert (clone.data["confirms"], clone.data["candidate"], clone.data["clone_of"]) == (True, 0, 1)


def test_a_confirmation_of_a_trial_that_is_over_runs_as_far_as_it_did() -> None:
    _, clone = judged(Request("r", "clone", 0, {"confirms": True}))
    _, longer = judged(Request("r", "clone", 0, {"confirms": True, "phases": 2}))
    _, clone_of = judged(Request("r", "clone", 0))
    assert [event.data["own_phases"] for event in (clone, longer, clone_of)] == [1, 2, 3]


def test_nothing_is_confirmed_of_a_study_that_hands_weights_on() -> None:
    run, at_end = {"config": {"lr": 0.1}, "seed": 0}, {"score": 1.0, "checkpoint": "trial-00000/phase-000"}
    began, handed = (Event(Kind.RUN, 0.0, n, n, data={**run, "parent": parent}) for n, parent in enumerate((None, 0)))
    ledger = Ledger([began, Event(Kind.PHASE_ENDED, 1.0, 0, 0, data=at_end), handed])
    how = {"at": 2.0, "first_clone": 5, "n_phases": 3, "study_seed": 7, "scale": lambda nodes: None}
    (answer,) = judge(Request("r", "clone", 1, {"confirms": True}), ledger, **how)
    assert "no configuration stands for the best weights" in answer.data["why"]
    assert judge(Request("r", "clone", 1), ledger, **how)[0].data["accepted"]


def test_a_trial_that_has_failed_cannot_be_extended() -> None:
    (answer,) = judged(Request("r", "extend", 2, {"phases": 1}))
    assert answer.data["why"].startswith("trial 2 is failed: only a trial that was stopped or has finished")


def test_a_clone_takes_no_slot_from_those_that_the_scheduler_s_trials_could_use() -> None:
    wanted, log = [], MemoryLog()
    executor = virtual_executor(RandomTimes(3), 1)
    executor.want = wanted.append
    person = Person(log, (ended(1), "clone", 0, {"phases": 1}), (ended(1), "clone", 0, {"phases": 1}))
    drive(copy.deepcopy(FULL), executor, log, inbox=person, stop=lambda: ended(2)(log))
    assert (wanted[0], wanted[-1]) == (4, 6)


def test_no_slot_is_asked_for_to_begin_trials_on_while_a_study_is_paused() -> None:
    wanted, log, turns = [], MemoryLog(), iter(range(20))
    executor = virtual_executor(RandomTimes(3), 1)
    executor.want = wanted.append
    person = Person(log, (ended(1), "pause study", None))
    drive(copy.deepcopy(FULL), executor, log, inbox=person, stop=lambda: next(turns, None) is None)
    assert (wanted[0], wanted[-1]) == (4, 1)


def test_a_clone_has_what_applies_after_the_change_and_no_more() -> None:
    momentum = {"optimizer": ["sgd", "nesterov"]}
    space = Space(
        {**SPACE, "optimizer": Choice(["sgd", "nesterov", "adam"]), "momentum": Uniform(0, 1)}, {"momentum": momentum}
    )
    first = [
        {"lr": 1e-3, "gamma": 0.9, "optimizer": "sgd", "momentum": 0.5},
        {"lr": 1e-3, "gamma": 0.9, "optimizer": "adam"},
    ]
    searcher = InformedSearcher(RandomSearcher(space), first)
    wishes = [
        (0, {"optimizer": "adam"}),
        (1, {"optimizer": "nesterov", "momentum": 0.25}),
        (1, {"optimizer": "nesterov"}),  # it lacks a momentum
        (0, {"optimizer": "adam", "momentum": 0.25}),  # which adam has not
    ]
    log = run(FullRuns(searcher, 2, 2), *((ended(1), "clone", trial, {"config": config}) for trial, config in wishes))
    assert [accepted for _, accepted in answers(log)] == [True, True, False, False]
    clones = [e.data["config"] for e in log if e.kind is Kind.RUN and e.data.get("by") == "person"]
    assert clones == [first[1], {**first[1], "optimizer": "nesterov", "momentum": 0.25}]


def test_a_clone_of_a_population_s_member_stays_within_the_population_s_space() -> None:
    wider = Space({"lr": LogUniform(1e-5, 1.0), "gamma": SPACE["gamma"]})
    wishes = [(ended(1), "clone", 0, {"config": {"lr": lr}, "phases": 1}) for lr in (0.5, 2.0)]
    log = run(PBT(RandomSearcher(SPACE), 4, 2, share=0.5, space=wider), *wishes)
    assert [accepted for _, accepted in answers(log)] == [True, False]


def test_where_there_is_no_space_a_clone_s_hyperparameters_are_of_the_kind_they_were() -> None:
    wishes = [(ended(1), "clone", 0, {"config": {"lr": lr}}) for lr in (50, 0.5, "0.5", True, [0.5], 10**400)]
    log = run(FullRuns(ListSearcher([{"lr": 0.1, "gamma": 0.9}] * 2), 2, 2), *wishes)
    assert [accepted for _, accepted in answers(log)] == [True] * 2 + [False] * 4
    refused = [e.data["why"] for e in log if e.kind is Kind.INTERVENTION and not e.data["accepted"]]
    assert refused[0] == "lr is 0.1 in trial 0; a clone cannot have '0.5'"


def test_a_paused_study_begins_nothing_until_it_is_resumed() -> None:
    turns = []

    def later(log) -> bool:
        turns.append(len(log))
        return len(turns) > 20

    log = run(copy.deepcopy(FULL), (ended(3), "pause study", None), (later, "resume study", None))
    paused, resumed = [log.index(e) for e in log if e.kind is Kind.INTERVENTION]
    meanwhile = log[paused + 1 : resumed]
    assert not any(e.kind in (Kind.RUN, Kind.PHASE_STARTED) and e.at > log[paused].at for e in meanwhile)
    assert sum(e.kind is Kind.PHASE_ENDED for e in meanwhile) == 2  # what was under way on both slots
    assert Counter(e.kind for e in log)[Kind.PHASE_ENDED] == 16


def test_a_study_that_is_paused_twice_runs_each_phase_once() -> None:
    turns = []

    def after(n):
        return lambda log: turns.append(n) or len(turns) > n

    wishes = [(ended(3), "pause study", None), (after(10), "resume study", None)]
    log = run(copy.deepcopy(FULL), *wishes, (ended(7), "pause study", None), (after(30), "resume study", None))
    assert [accepted for _, accepted in answers(log)] == [True] * 4
    each = [(e.trial, e.phase) for e in log if e.kind is Kind.PHASE_STARTED]
    assert sorted(each) == [(trial, phase) for trial in range(4) for phase in range(4)]


def test_a_paused_study_in_which_nothing_runs_any_more_is_not_over() -> None:
    turns = []
    later = lambda log: turns.append(len(log)) or len(turns) > 10  # noqa: E731
    wishes = [(ended(1), "pause study", None), (later, "resume study", None)]
    log = run(FullRuns(RandomSearcher(SPACE), 5, 1), *wishes)
    assert answers(log) == [("pause study", True), ("resume study", True)]
    assert [phases(log, trial) for trial in range(5)] == [[0]] * 5


def test_a_trial_that_is_stopped_while_the_study_is_paused_does_not_go_on_with_it() -> None:
    turns = []

    def after(n):
        return lambda log: turns.append(n) or len(turns) > n

    wishes = [(ended(3), "pause study", None), (after(10), "stop", 0), (after(20), "resume study", None)]
    log = run(copy.deepcopy(FULL), *wishes)
    assert [accepted for _, accepted in answers(log)] == [True] * 3
    assert len(phases(log, 0)) < 4
    assert [phases(log, trial) for trial in (1, 2, 3)] == [[0, 1, 2, 3]] * 3


def test_a_trial_set_aside_and_resumed_while_the_study_is_paused_runs_each_phase_once() -> None:
    turns = []

    def after(n):
        return lambda log: turns.append(n) or len(turns) > n

    wishes = (
        (ended(3), "pause study", None),
        (ended(3), "pause", 0),
        (after(10), "resume", 0),
        (after(20), "resume study", None),
    )
    log = run(copy.deepcopy(FULL), *wishes)
    assert [accepted for _, accepted in answers(log)] == [True] * 4
    assert Counter((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED) == dict.fromkeys(
        ((t, p) for t in range(4) for p in range(4)), 1
    )


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (("stop", 9), "there is no trial 9"),
        (("stop", None), "there is no trial None"),
        (("resume study", None), "the study is not paused"),
        (("extend", 0, {"phases": 2}), "trial 0 is running"),
        (("clone", 0, {"config": {"lrr": 1}}), "did you mean 'lr'"),
        (("clone", 0, {"config": 3}), "hyperparameters by name"),
        (
            ("clone", 0, {"config": {"lr": 0.5}}),
            "lr=0.5 lies outside LogUniform(low=1e-05, high=0.01, step=None): a clone stays within its study's space",
        ),
        (("clone", 0, {"phases": 0}), "whole number of phases"),
        (("scale", None, {"nodes": 3}), "keeps its 2 slots"),
        (("scale", None, {"nodes": "many"}), "whole number of nodes"),
        (("explode", 0), "unknown action 'explode'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason_and_changes_nothing(wish, says) -> None:
    log = run(copy.deepcopy(FULL), (ended(1), *wish))
    (answer,) = [e for e in log if e.kind is Kind.INTERVENTION]
    assert not answer.data["accepted"]
    assert says in answer.data["why"]
    calm = run(copy.deepcopy(FULL))
    assert [e for e in log if e.kind is not Kind.INTERVENTION] == list(calm)


@pytest.mark.parametrize(
    ("action", "trial"), [("pause", 0), ("pause", 1), ("stop", 1), ("extend", 0), ("pause study", None)]
)
@pytest.mark.parametrize("n", range(1, 9))
def test_what_was_begun_before_an_answer_is_logged_before_it(action, trial, n) -> None:
    log, turns = MemoryLog(), iter(range(100))  # what is paused would be waited for
    executor = virtual_executor(RandomTimes(3), 2, kind=Clocked)
    wishes = [(ended(n), action, trial, {"phases": 1} if action == "extend" else {})]
    if action == "pause study":
        wishes += [(ended(n), "resume study", None), (ended(n), "pause", 1)]
    inbox = Person(log, *wishes)
    drive(copy.deepcopy(FULL), executor, log, inbox=inbox, stop=lambda: next(turns, None) is None)
    assert not inbox.wishes
    assert list(out_of_order(log)) == []


def test_interventions_survive_the_death_of_the_driver_at_every_event() -> None:
    wishes = (
        (ended(1), "pause", 0),
        (ended(3), "stop", 1),
        (ended(5), "clone", 2, {"phases": 1}),
        (ended(9), "resume", 0),
    )
    whole = run(copy.deepcopy(FULL), *wishes, slots=1)
    for cut in range(len(whole) + 1):
        last = whole[cut - 1] if cut else None
        if last and (
            last.kind in (Kind.PHASE_ENDED, Kind.TRIAL_STOPPED) or last.data.get("action") in ("stop", "clone")
        ):
            continue  # logged in one piece with what follows
        log = MemoryLog(whole[:cut])
        scheduler = copy.deepcopy(FULL)
        ledger = replay(scheduler, log)
        executor = virtual_executor(RandomTimes(3), 1, ledger.at)
        assert drive(scheduler, executor, log, ledger=ledger, inbox=Person(log, *wishes))
        assert list(out_of_order(log)) == []
        final = Ledger(log)
        assert not final.in_state(TrialState.SET_ASIDE)
        assert sorted(phases(log, 0)) == [0, 1, 2, 3]
        assert answers(log).count(("stop", True)) == 1


def test_notes_and_tags_are_written_down_and_change_nothing() -> None:
    wishes = [(ended(1), "tag", 0, {"tag": "good"}), (ended(1), "note", None, {"text": "late"}),
              (ended(1), "tag", 0, {"tag": "not good"}), (ended(1), "note", 77, {"text": "x"})]  # fmt: skip
    log = run(copy.deepcopy(FULL), *wishes)
    assert answers(log) == [("tag", True), ("note", True), ("tag", False), ("note", False)]
    assert [phases(log, trial) for trial in range(4)] == [[0, 1, 2, 3]] * 4


def test_a_paused_study_is_confirmed_over_several_phases() -> None:
    log, turns = MemoryLog(), iter(range(60))
    executor = virtual_executor(RandomTimes(3), 2)
    person = Person(log, (ended(4), "pause study", None))
    drive(copy.deepcopy(FULL), executor, log, inbox=person, stop=lambda: next(turns, None) is None)
    scheduler, turns = copy.deepcopy(FULL), iter(range(200))
    ledger, searched = replay(scheduler, log), [phases(log, trial) for trial in range(4)]
    assert ledger.in_state(TrialState.RUNNING)
    executor = virtual_executor(RandomTimes(3), 2, ledger.at)
    asked = Person(log, (ended(4), "clone", 0, {"confirms": True, "phases": 3}))
    asked.n = 1
    over = drive(
        scheduler,
        executor,
        log,
        ledger=ledger,
        inbox=asked,
        only_confirm=True,
        stop=lambda: next(turns, None) is None,
    )
    assert over
    (confirming,) = (trial for trial, record in ledger.trials.items() if record.confirms)
    assert phases(log, confirming) == [0, 1, 2]
    assert ledger.paused
    assert [phases(log, trial) for trial in range(4)] == searched


def test_trials_let_go_on_while_others_are_confirmed_stay_where_they_are() -> None:
    """Four trials of which three are held: a person stops the last that runs, and two of the held may go on."""
    log, executor = MemoryLog(), virtual_executor(RandomTimes(3), 4)
    scheduler = SuccessiveHalving(RandomSearcher(SPACE), 4, 4, eta=2, allocation="none", n_nodes=4)
    drive(copy.deepcopy(scheduler), executor, log, stop=lambda: ended(3)(log))
    ledger = replay(scheduler, log)
    (running,), held = ledger.in_state(TrialState.RUNNING), ledger.in_state(TrialState.HELD)
    executor = virtual_executor(RandomTimes(3), 4, ledger.at)
    wishes = (ended(3), "stop", running), (ended(3), "clone", held[0], {"confirms": True, "phases": 1})
    assert drive(scheduler, executor, log, ledger=ledger, inbox=Person(log, *wishes), only_confirm=True)
    assert len(ledger.in_state(TrialState.RUNNING)) == 2
    assert [phases(log, trial) for trial in (*held, running)] == [[0], [0], [0], []]
    assert [phases(log, trial) for trial in ledger.trials if ledger.trials[trial].confirms] == [[0]]


def test_no_slot_is_wanted_for_a_search_while_others_are_confirmed() -> None:
    log, wanted = MemoryLog(), []
    executor = virtual_executor(RandomTimes(3), 1)
    drive(copy.deepcopy(FULL), executor, log, stop=lambda: ended(3)(log))
    scheduler = copy.deepcopy(FULL)
    ledger = replay(scheduler, log)
    executor = virtual_executor(RandomTimes(3), 1, ledger.at)
    executor.want = wanted.append
    wishes = Person(log, (ended(3), "clone", 0, {"confirms": True, "phases": 2}))
    assert drive(scheduler, executor, log, ledger=ledger, inbox=wishes, only_confirm=True)
    assert set(wanted) == {1}


class Noted(SimulatedExecutor):
    """Notes the jobs that are started."""

    def __init__(self, *settings) -> None:
        super().__init__(*settings)
        self.jobs = []

    def start(self, job) -> None:
        self.jobs.append(job)
        super().start(job)


def test_what_a_scheduler_may_copy_is_kept_when_a_person_has_its_trial_go_on() -> None:
    """And what a copy starts from; nothing that a trial of its own goes on from, nor the phases a person added."""
    log, executor = MemoryLog(), virtual_executor(RandomTimes(3), 2, kind=Noted)
    wishes = [(ended(n), "extend", 0, {"phases": 2}) for n in (4, 6)]
    assert drive(FullRuns(RandomSearcher(SPACE), 2, 2), executor, log, inbox=Person(log, *wishes))
    assert [(job.trial, job.phase, job.keep) for job in executor.jobs] == [
        (0, 0, False),
        (1, 0, False),
        (0, 2, True),
        (0, 4, False),
    ]
    executor = virtual_executor(RandomTimes(3), 2, kind=Noted)
    assert drive(PBT(RandomSearcher(SPACE), 4, 4, share=0.5), executor, MemoryLog())
    copies = [job for job in executor.jobs if job.keep]
    assert copies
    assert copies == [job for job in executor.jobs if job.checkpoint and f"trial-{job.trial}/" not in job.checkpoint]


def test_a_copy_takes_the_weights_the_scheduler_knows_of_not_those_of_phases_a_person_added() -> None:
    """Finished members are extended by a person; whoever copies them later goes on from their last own phase."""
    for seed in range(4):
        log = MemoryLog()
        executor = virtual_executor(RandomTimes(seed), 3)
        population = PBT(RandomSearcher(SPACE, seed=seed), 6, 4, share=0.5, seed=seed)
        wishes = [(ended(8 + n), "extend", trial, {"phases": 3}) for n, trial in enumerate(range(6))]
        assert drive(population, executor, log, inbox=Person(log, *wishes))
        known = Ledger(log)
        copies = [record for record in known.trials.values() if record.parent is not None]
        assert copies
        assert all(record.parent_phase < 4 for record in copies)
