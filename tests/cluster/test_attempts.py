"""The book of attempts, told of losses and recoveries without a cluster."""

from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.cluster.attempts import Attempt, Attempts, Cancel, Restart, Submit
from workbench.cluster.seats import Release
from workbench.cluster.slots import Slot
from workbench.core.errors import SchedulerError
from workbench.core.protocols import Event, Job, Kind, Verdict

ENDED = {"score": 1.0, "metrics": {"score": 1.0}, "checkpoint": "c", "wall_s": 1.0}


def job(trial: int, phase: int = 0, slot: int | None = None) -> Job:
    return Job(trial, phase, {"lr": 0.1}, 0, None, slot)


def book_of(n_slots: int, *, n_ranks: int = 1, **settings) -> tuple[Attempts, list[Slot]]:
    """A book with all slots up; slot 0 is on a0 (and b0, …), its joining taken as read."""
    settings = {"max_retries": 2, "stall_s": 10.0, "cause_s": 5.0, **settings}
    book = Attempts(**settings)
    ranks = tuple("abcdefgh"[:n_ranks])
    slots = [Slot(n, tuple(f"{r}{n}" for r in ranks), tuple(f"{r}{n}" for r in ranks)) for n in range(n_slots)]
    for slot in slots:
        book.slot_joined(slot, 0.0)
    book.seats.release()
    book.take_events()
    return book, slots


def begun(book: Attempts, *trials: int, now: float = 0.0) -> list[Attempt]:
    return [submit.attempt for trial in trials for submit in book.start(job(trial), now)]


def book_with(n_slots: int, *trials: int, **settings) -> tuple[Attempts, list[Slot], list[Attempt]]:
    """Such a book, with the first attempts of these trials begun."""
    book, slots = book_of(n_slots, **settings)
    return book, slots, begun(book, *trials)


def told(book: Attempts) -> list[tuple]:
    """The events since the last look: kind, trial or slot, and in a failure its reason and its attempt's number."""
    lines = []
    for event in book.take_events():
        about = event.slot if event.trial is None else event.trial
        failure = (event.data["why"], event.data["attempt"]) if "why" in event.data else ()
        lines.append((str(event.kind), about, *failure))
    return lines


def test_a_trial_goes_from_phase_to_phase_on_its_slot() -> None:
    book, (first, second) = book_of(2)
    (submit,) = book.start(job(7), 1.0)
    attempt = submit.attempt
    assert (attempt.slot, attempt.number, attempt.alive, book.n_free) == (first, 0, False, 1)
    book.sign(attempt, 1.5, data={"metrics": {"frames": 3.0}})
    assert book.rank_ended(attempt, 2.0, 0, {k: v for k, v in ENDED.items() if k != "score"}) == []
    assert book.take_events() == [
        Event(Kind.PHASE_STARTED, 1.0, 7, 0, 0),
        Event(Kind.PROGRESS, 1.5, 7, 0, 0, {"metrics": {"frames": 3.0}}),
        Event(Kind.PHASE_ENDED, 2.0, 7, 0, 0, ENDED),
    ]
    assert book.verdict(7, Verdict.HOLD, 2.0) == []
    (submit,) = book.verdict(7, Verdict.CONTINUE, 3.0)
    again = submit.attempt
    assert (again.slot, again.alive, again.job.phase, again.job.checkpoint) == (first, True, 1, "c")
    book.phase_ended(again, 4.0, ENDED)
    assert book.verdict(7, Verdict.STOP, 4.0) == []
    assert (book.n_free, book.seats.n_up, second.trial) == (2, 2, None)


def test_a_lost_attempt_is_tried_again_on_another_slot_at_once() -> None:
    book, (first, second), (attempt,) = book_with(2, 0)
    assert book.slot_lost(first, 1.0) == [Cancel(attempt, stop=False)]
    assert (book.seats.n_up, book.n_free) == (1, 0)  # the free slot is spoken for
    (submit,) = book.seat_waiting(1.0)
    assert (submit.attempt.slot, submit.attempt.number) == (second, 1)
    started, lost, failed, again = book.take_events()
    assert failed.data == {"why": "crash", "error": "the worker on a0 died", "place": "", "traceback": "", "attempt": 0}
    assert (lost.kind, lost.data, failed.kind) == (Kind.SLOT_LOST, {"node": "a0"}, Kind.PHASE_FAILED)
    assert (started.slot, again.kind, again.slot) == (0, Kind.PHASE_STARTED, 1)


def test_with_no_other_slot_the_trial_waits_until_its_own_is_back() -> None:
    book, (slot,) = book_of(1)
    begun(book, 0)
    book.slot_lost(slot, 1.0)
    assert book.time_passed(2.0) == []
    book.slot_joined(slot, 3.0)
    assert (book.seats.n_up, book.n_free) == (1, 0)
    (submit,) = book.time_passed(3.0)
    assert (submit.attempt.slot, submit.attempt.number, submit.attempt.alive) == (slot, 1, False)
    assert told(book) == [
        ("phase_started", 0),
        ("slot_lost", 0),
        ("phase_failed", 0, "crash", 0),
        ("slot_joined", 0),
        ("phase_started", 0),
    ]


def failing_twice(book: Attempts, trial: int, why: str = "exception") -> None:
    (first,) = begun(book, trial)
    lose(book, first, why)
    (submit,) = book.seat_waiting(1.0)
    assert submit.attempt.slot is first.slot
    lose(book, submit.attempt, why)


def lose(book: Attempts, attempt: Attempt, why: str) -> None:
    """Lose an attempt to an exception, or with its worker, which is replaced at once."""
    if why == "exception":
        book.attempt_lost(attempt, why, "ModuleNotFoundError: no", 1.0)
        return
    book.slot_lost(attempt.slot, 1.0, silent_s=300.0 if why == "stall" else None)
    book.slot_joined(attempt.slot, 1.0)


@pytest.mark.parametrize("why", ["exception", "crash", "stall"])
def test_after_two_failures_a_trial_goes_on_elsewhere_while_others_are_at_work(why) -> None:
    """A worker that lacks a module would have every trial that comes to it fail, and is always the first free one."""
    book, (good, bad), (other,) = book_with(2, 0)
    failing_twice(book, 1, why)
    assert (book.time_passed(2.0), book.n_free) == ([], 1)  # it may take another trial meanwhile
    failing_twice(book, 2, why)
    assert (book.time_passed(2.0), book.n_free, len(book.waiting)) == ([], 1, 2)
    book.phase_ended(other, 3.0, ENDED)
    book.verdict(0, Verdict.STOP, 3.0)
    assert book.n_free == 0  # spoken for
    (submit,) = book.time_passed(3.0)
    assert (submit.attempt.job.trial, submit.attempt.slot, submit.attempt.number) == (1, good, 2)
    assert (book.n_free, bad.trial) == (1, None)
    assert not [line for line in told(book) if line[0] == "trial_failed"]


def test_after_two_failures_a_trial_stays_on_its_slot_where_no_other_is_at_work() -> None:
    book, (slot,) = book_of(1)
    failing_twice(book, 0)
    (submit,) = book.time_passed(2.0)
    assert (submit.attempt.slot, submit.attempt.number) == (slot, 2)
    book, (_, same), (held,) = book_with(2, 0)
    failing_twice(book, 1)
    book.phase_ended(held, 2.0, ENDED)  # it waits at a barrier, perhaps for this one
    assert book.n_free == 0
    (submit,) = book.time_passed(2.0)
    assert (submit.attempt.slot, submit.attempt.number) == (same, 2)


def test_after_the_last_retry_the_trial_fails_alone() -> None:
    book, _, (attempt, other) = book_with(2, 0, 1, max_retries=1)
    book.attempt_lost(attempt, "exception", "OSError: no", 1.0, "the traceback")
    (submit,) = book.seat_waiting(1.0)
    book.attempt_lost(submit.attempt, "exception", "OSError: no", 2.0, "the traceback")
    assert told(book)[2:] == [
        ("phase_failed", 0, "exception", 0),
        ("phase_started", 0),
        ("trial_failed", 0, "exception", 1),
    ]
    assert book.seat_waiting(3.0) == []
    assert (book.n_free, other.under_way) == (1, True)


def test_what_comes_out_the_same_a_second_time_is_not_tried_again() -> None:
    book, _, (attempt,) = book_with(1, 0)
    result = {
        "error": "FloatingPointError: loss is nan",
        "place": "mine.py:3 in train",
        "traceback": "…",
        "retry": False,
        "peer_lost": False,
    }
    book.rank_ended(attempt, 1.0, 0, result)
    (_, failed) = book.take_events()
    said = {key: result[key] for key in ("error", "place", "traceback")}
    assert (failed.kind, failed.data) == (Kind.TRIAL_FAILED, {"why": "exception", **said, "attempt": 0})


def test_a_slot_lost_while_its_trial_is_held_costs_no_attempt() -> None:
    book, (slot,), (attempt,) = book_with(1, 0)
    book.phase_ended(attempt, 1.0, ENDED)
    book.verdict(0, Verdict.HOLD, 1.0)
    assert book.slot_lost(slot, 2.0) == []
    assert book.verdict(0, Verdict.CONTINUE, 3.0) == []
    book.slot_joined(slot, 4.0)
    (submit,) = book.time_passed(4.0)
    assert (submit.attempt.job.phase, submit.attempt.number, submit.attempt.alive) == (1, 0, False)
    assert submit.attempt.job.checkpoint == "c"


def test_a_slot_that_another_study_has_costs_no_attempt_and_the_phase_ends_there() -> None:
    book, (first, second), (at_work, held) = book_with(2, 0, 1, max_retries=0)
    book.phase_ended(held, 1.0, ENDED)
    book.take_events()
    assert book.out_of_reach(2.0, taken=first) == [Cancel(at_work, stop=True)]
    assert book.out_of_reach(2.0, taken=second) == []
    assert told(book) == [("phase_failed", 0, "left", 0), ("slot_lost", 0), ("slot_lost", 1)]
    assert book.waiting == deque([(at_work.job, 0)])
    assert not book.verdict(1, Verdict.CONTINUE, 3.0)
    assert len(book.waiting) == 2


def test_a_slot_that_is_back_before_the_verdict_is_still_the_held_trials() -> None:
    book, (slot,), (attempt,) = book_with(1, 0)
    book.phase_ended(attempt, 1.0, ENDED)
    book.slot_lost(slot, 2.0)
    book.slot_joined(slot, 3.0)
    assert book.n_free == 0
    (submit,) = book.verdict(0, Verdict.CONTINUE, 4.0)
    assert (submit.attempt.slot, submit.attempt.alive) == (slot, False)  # to be brought up from its checkpoint


def test_a_trial_dropped_in_mid_phase_is_stopped_there_and_nothing_more_is_heard_of_it() -> None:
    book, (slot,), (attempt,) = book_with(1, 0)
    assert book.drop(0) == [Cancel(attempt, stop=True)]
    assert (book.n_free, book.seats.release()) == (1, [Release(slot)])
    book.sign(attempt, 1.0, data={"metrics": {}})
    book.phase_ended(attempt, 1.0, ENDED)
    assert told(book) == []


def test_a_trial_dropped_while_it_waits_or_is_held_leaves_nothing_behind() -> None:
    book, (first, second), (waiting, held) = book_with(2, 0, 1)
    book.slot_lost(first, 1.0)
    book.phase_ended(held, 1.0, ENDED)
    assert book.drop(0) == []
    assert not book.waiting
    assert book.drop(1) == []
    assert told(book) == [("slot_lost", 0)]
    assert (book.n_free, book.seat_waiting(2.0), waiting.under_way) == (1, [], False)
    assert begun(book, 2)[0].slot is second


def test_the_late_result_of_an_abandoned_attempt_is_ignored() -> None:
    book, _, (attempt,) = book_with(1, 0)
    book.attempt_lost(attempt, "crash", "the worker died: lost", 1.0)
    (submit,) = book.seat_waiting(1.0)
    book.take_events()
    assert book.rank_ended(attempt, 2.0, 0, ENDED) == []
    assert book.attempt_lost(attempt, "crash", "again", 2.0) == []
    assert told(book) == []
    book.rank_ended(submit.attempt, 3.0, 0, ENDED)
    assert told(book) == [("phase_ended", 0)]
    assert book.rank_ended(submit.attempt, 3.0, 0, ENDED) == []  # its message and its future tell the same
    assert told(book) == []


def test_a_restart_of_the_cluster_by_somebody_else_costs_no_attempt() -> None:
    book, (first, second), (attempt, held) = book_with(2, 0, 1, max_retries=0)
    book.phase_ended(held, 0.5, ENDED)
    book.attempt_lost(attempt, "left", "the worker died: cancelled", 1.0, rank=0)
    (submit,) = book.seat_waiting(1.0)
    assert submit.attempt.number == 0
    assert book.out_of_reach(2.0) == [Cancel(submit.attempt, stop=True)]
    assert (book.seats.n_up, book.n_free) == (0, 0)
    assert told(book)[3:] == [
        ("phase_failed", 0, "left", 0),
        ("phase_started", 0),
        ("phase_failed", 0, "left", 0),
        ("slot_lost", 0),
        ("slot_lost", 1),
    ]
    book.slot_joined(second, 3.0)
    assert book.time_passed(3.0) == []  # slot 1 is the held trial's
    book.slot_joined(first, 4.0)
    assert [(s.attempt.slot, s.attempt.number) for s in book.time_passed(4.0)] == [(first, 0)]


def test_no_two_attempts_bear_the_same_mark_though_they_may_bear_the_same_number() -> None:
    book, _, (first,) = book_with(1, 0)
    book.attempt_lost(first, "left", "the worker died: cancelled", 1.0, rank=0)
    ((second,),) = book.seat_waiting(1.0)
    assert book.drop(0) == [Cancel(second, stop=True)]
    (third,) = begun(book, 0)  # stopped by a person, and given more phases
    book.phase_ended(third, 2.0, ENDED)
    ((fourth,),) = book.verdict(0, Verdict.CONTINUE, 2.0)
    assert [(a.job.phase, a.number) for a in (first, second, third, fourth)] == [(0, 0), (0, 0), (0, 0), (1, 0)]
    assert [a.mark for a in (first, second, third, fourth)] == [0, 1, 2, 3]


def test_the_next_phase_is_the_same_trials_on_its_slot_and_has_all_its_retries() -> None:
    book, slots = book_of(3, max_retries=1)
    ((first,),) = book.start(Job(0, 0, {"lr": 0.1}, 41, "s", 2, True, "s", 0), 0.0)
    book.attempt_lost(first, "crash", "lost", 1.0)
    ((again,),) = book.seat_waiting(1.0)
    book.phase_ended(again, 2.0, ENDED)
    ((second,),) = book.verdict(0, Verdict.CONTINUE, 2.0)
    assert (second.job, second.number) == (Job(0, 1, {"lr": 0.1}, 41, "c", 2, False, "s", 0), 0)
    book.attempt_lost(second, "crash", "lost", 3.0)
    ((again,),) = book.seat_waiting(3.0)
    assert (again.slot, again.number) == (slots[2], 1)
    book.phase_ended(again, 4.0, ENDED)
    book.slot_lost(slots[2], 4.0)
    assert book.verdict(0, Verdict.CONTINUE, 4.0) == []
    assert list(book.waiting) == [(Job(0, 2, {"lr": 0.1}, 41, "c", 2, False, "s", 0), 0)]


def test_the_ranks_that_are_left_are_stopped_when_one_leaves() -> None:
    book, _, (attempt,) = book_with(2, 0, n_ranks=2)
    book.sign(attempt, 0.0, rank=1)
    left = {"error": "", "traceback": "", "place": "", "retry": True, "left": False}
    assert book.rank_ended(attempt, 1.0, 1, left) == [Cancel(attempt, stop=True)]
    ((again,),) = book.seat_waiting(1.0)
    assert (again.number, again.mark) == (0, 1)


def test_a_suspicion_gives_way_to_the_true_cause() -> None:
    book, (slot,), (attempt,) = book_with(1, 0, n_ranks=2)
    book.sign(attempt, 0.0, rank=1)
    suspects = {"error": "PeerLost: rank 1 is gone", "place": "", "traceback": "…", "retry": True, "peer_lost": True}
    assert book.rank_ended(attempt, 1.0, 0, suspects) == []
    assert book.time_passed(6.0) == []
    assert book.slot_lost(slot, 6.0, rank=1) == [Cancel(attempt, stop=True)]
    assert book.time_passed(20.0) == []
    (failed,) = (event for event in book.take_events() if event.kind is Kind.PHASE_FAILED)
    assert (failed.data["why"], failed.data["error"]) == ("crash", "rank 1 of 2: the worker on b0 died")


def test_a_suspicion_is_believed_after_its_time() -> None:
    book, (slot,), (attempt,) = book_with(1, 0, n_ranks=2, stall_s=100.0)
    book.sign(attempt, 0.0, rank=1)
    for rank, at in ((1, 1.0), (0, 2.0)):  # the first word counts
        peer_lost = {
            "error": "PeerLost: the other",
            "place": "",
            "traceback": f"of {rank}",
            "retry": True,
            "peer_lost": True,
        }
        book.rank_ended(attempt, at, rank, peer_lost)
    assert book.time_passed(6.0) == []
    cancel, submit = book.time_passed(6.5)
    assert cancel == Cancel(attempt, stop=True)
    assert isinstance(submit, Submit)
    assert (submit.attempt.slot, submit.attempt.number) == (slot, 1)
    (failed,) = (event for event in book.take_events() if event.kind is Kind.PHASE_FAILED)
    assert failed.data == {
        "why": "crash",
        "error": "rank 1 of 2: PeerLost: the other",
        "place": "",
        "traceback": "of 1",
        "attempt": 0,
    }


def test_silence_costs_the_attempt_and_the_silent_worker_is_restarted() -> None:
    book, (slot,), (attempt,) = book_with(1, 0, n_ranks=2)
    book.sign(attempt, 1.0, rank=1)
    book.sign(attempt, 9.0)
    assert book.time_passed(11.0) == []
    assert book.time_passed(12.0) == [Cancel(attempt, stop=True), Restart(slot, 1)]
    _, lost, failed = book.take_events()
    assert (lost.kind, lost.data) == (Kind.SLOT_LOST, {"node": "a0+b0", "workers": 2})
    error = "rank 1 of 2: no sign of progress for 11 s on b0; the worker was given up"
    assert (failed.data["why"], failed.data["error"]) == ("stall", error)


def test_of_several_silent_ranks_each_is_restarted_and_the_one_longest_silent_is_named() -> None:
    book, (slot,), (attempt,) = book_with(1, 0, n_ranks=3)
    book.sign(attempt, 3.0)
    book.sign(attempt, 1.0, rank=1)
    book.sign(attempt, 9.0, rank=2)
    assert book.time_passed(14.0) == [Cancel(attempt, stop=True), Restart(slot, 0), Restart(slot, 1)]
    assert book.take_events()[-1].data["error"].startswith("rank 1 of 3: no sign of progress for 13 s on b0")


def test_a_time_in_which_nobody_listened_is_no_silence_and_makes_no_suspicion_older() -> None:
    book, _, (silent, suspected) = book_with(2, 0, 1, n_ranks=2)
    book.sign(suspected, 0.0, rank=1)
    suspects = {"error": "PeerLost", "place": "", "traceback": "", "retry": True, "peer_lost": True}
    book.rank_ended(suspected, 1.0, 0, suspects)
    book.driver_was_away(100.0, 104.0)
    assert book.time_passed(106.0) == []
    assert [cancel.attempt for cancel in book.time_passed(106.5) if isinstance(cancel, Cancel)] == [suspected]
    assert [cancel.attempt for cancel in book.time_passed(110.5) if isinstance(cancel, Cancel)] == [silent]


def test_a_sign_that_came_while_nobody_listened_is_of_when_it_was_heard() -> None:
    book, _, (attempt,) = book_with(1, 0)
    book.sign(attempt, 100.0)  # it lay in the driver's inbox
    book.driver_was_away(99.0, 100.0)
    assert book.time_passed(109.9) == []
    assert [cancel.attempt for cancel in book.time_passed(110.5) if isinstance(cancel, Cancel)] == [attempt]


def test_so_are_a_suspicion_and_the_word_that_a_worker_leaves() -> None:
    book, _, (suspected, left) = book_with(2, 0, 1, n_ranks=2, stall_s=1000.0, leave_s=5.0)
    suspects = {"error": "PeerLost", "place": "", "traceback": "", "retry": True, "peer_lost": True}
    book.rank_ended(suspected, 100.0, 0, suspects)
    book.slot_lost(left.slot, 100.0, 0, left=True)
    book.driver_was_away(99.0, 100.0)
    assert book.time_passed(104.9) == []
    assert [cancel.attempt for cancel in book.time_passed(105.5) if isinstance(cancel, Cancel)] == [suspected, left]


def test_a_held_trial_of_which_a_rank_was_not_heard_again_is_not_silent() -> None:
    book, (slot,), (attempt,) = book_with(1, 0, n_ranks=2)
    book.sign(attempt, 0.0, rank=1)
    book.phase_ended(attempt, 1.0, ENDED)
    assert book.time_passed(100.0) == []
    assert slot.up


def test_a_rank_that_has_ended_is_not_silent_and_ends_no_phase() -> None:
    book, _, (attempt,) = book_with(1, 0, n_ranks=2)
    book.sign(attempt, 0.0, rank=1)
    book.rank_ended(attempt, 1.0, 1, {})
    book.sign(attempt, 14.0)
    assert book.time_passed(15.0) == []
    book.rank_ended(attempt, 16.0, 0, ENDED)
    assert told(book) == [("phase_started", 0), ("phase_ended", 0)]


def test_what_waits_comes_before_anything_new_and_first_come_first_served() -> None:
    book, (first, second, third) = book_of(3)
    begun(book, 0, 1)
    book.slot_lost(second, 1.0)
    book.slot_lost(first, 1.0)
    assert (book.seats.n_up, book.n_free) == (1, 0)
    book.slot_joined(first, 2.0)
    assert book.n_free == 0
    book.slot_joined(second, 2.0)
    assert book.n_free == 1
    assert [(s.attempt.job.trial, s.attempt.slot) for s in book.seat_waiting(2.0)] == [(1, first), (0, second)]
    assert begun(book, 2)[0].slot is third


def test_a_bound_trial_takes_its_slot_if_that_is_free_also_when_it_is_tried_again() -> None:
    book, slots = book_of(3)
    (bound,) = book.start(job(0, slot=2), 0.0)
    (other,) = book.start(job(1, slot=2), 0.0)
    assert (bound.attempt.slot, other.attempt.slot) == (slots[2], slots[0])
    book.attempt_lost(bound.attempt, "exception", "no", 1.0)
    (again,) = book.seat_waiting(1.0)
    assert again.attempt.slot is slots[2]
    book.slot_lost(slots[2], 2.0)
    (elsewhere,) = book.seat_waiting(2.0)
    assert elsewhere.attempt.slot is slots[1]


def test_slots_are_cleared_once_and_only_when_nobody_has_taken_them() -> None:
    book, (first, second), attempts = book_with(2, 0, 1)
    for attempt in attempts:
        book.phase_ended(attempt, 1.0, ENDED)
        book.verdict(attempt.job.trial, Verdict.PAUSE, 1.0)
    begun(book, 2)
    assert book.seats.release() == [Release(second)]
    assert book.seats.release() == []
    assert book.seats.release(everything=True) == [Release(first)]


def test_a_slot_is_cleared_of_what_an_earlier_driver_may_have_left_there() -> None:
    book, slot = Attempts(max_retries=0), Slot(0, ("a0",), ("a0",))
    book.slot_joined(slot, 0.0)
    assert book.seats.release() == [Release(slot)]


def test_at_the_end_slots_that_hold_a_trial_are_cleared_and_none_that_is_down() -> None:
    book, (first, second) = book_of(2)
    begun(book, 0, 1)
    book.slot_lost(second, 1.0)
    assert book.seats.release(everything=True) == [Release(first)]


def test_the_lowest_free_slot_comes_first_whatever_was_taken_by_its_number() -> None:
    book, _ = book_of(6)
    seats = book.seats
    seats.leave(seats.take(0, None))
    seats.take(1, wish=1)
    seats.leave(seats.take(2, wish=5))
    assert [seats.take(trial, None).index for trial in range(2, 7)] == [0, 2, 3, 4, 5]


def test_a_study_is_stuck_while_trials_are_held_on_all_its_slots() -> None:
    book, _ = book_of(2)
    assert not book.stuck  # a slot is free
    first, second = begun(book, 0, 1)
    book.phase_ended(first, 1.0, ENDED)
    book.take_events()
    assert not book.stuck  # the other is at work
    book.phase_ended(second, 2.0, ENDED)
    assert not book.stuck  # a verdict is due
    book.take_events()
    assert book.stuck


def test_what_cannot_be_is_refused_in_one_line() -> None:
    book, _, (attempt,) = book_with(1, 0)
    with pytest.raises(SchedulerError, match="trial 1 cannot start: no slot of 1 is free"):
        book.start(job(1), 0.0)
    with pytest.raises(SchedulerError, match="trial 0 cannot start: it holds slot 0 already"):
        book.start(job(0), 0.0)
    for trial in (0, 5):
        with pytest.raises(SchedulerError, match=f"verdict continue on trial {trial}, which is not waiting for one"):
            book.verdict(trial, Verdict.CONTINUE, 1.0)
    assert attempt.under_way


STIMULI = ("start", "end", "fail", "lose", "join", "verdict", "drop", "reach", "sign", "suspect", "late", "tick")


@settings(max_examples=150, deadline=None)
@given(
    n_slots=st.integers(1, 4),
    n_ranks=st.integers(1, 2),
    max_retries=st.integers(0, 2),
    stimuli=st.lists(st.tuples(st.sampled_from(STIMULI), st.integers(0, 11)), max_size=60),
)
def test_whatever_happens_in_whatever_order_nothing_is_lost_or_held_twice(
    n_slots, n_ranks, max_retries, stimuli
) -> None:
    cluster = _Cluster(n_slots, n_ranks, max_retries)
    for name, pick in stimuli:
        cluster.now += 0.5
        getattr(cluster, name)(pick)
        cluster.check()


class _Cluster:
    """Tells a book of what happens, and keeps its own record of who is where, from instructions and events alone."""

    def __init__(self, n_slots: int, n_ranks: int, max_retries: int) -> None:
        self.book, self.slots = book_of(n_slots, n_ranks=n_ranks, max_retries=max_retries, stall_s=3.0, cause_s=1.0)
        self.now, self.next_trial = 0.0, 0
        self.running: dict[int, Attempt] = {}  # what has been submitted and neither ended nor been cancelled
        self.past: list[Attempt] = []
        self.held: set[int] = set()
        self.waiting: set[int] = set()
        self.open_phases: dict[int, bool] = {}  # trial → whether a phase has started, and neither ended nor failed

    def carry_out(self, instructions) -> None:
        for instruction in instructions:
            if isinstance(instruction, Submit):
                attempt, trial = instruction.attempt, instruction.attempt.job.trial
                assert trial not in self.running  # nothing is run twice
                assert attempt.slot.up
                self.running[trial] = attempt
                self.held.discard(trial)
                self.waiting.discard(trial)
            elif isinstance(instruction, Cancel):
                self.past.append(self.running.pop(instruction.attempt.job.trial))
            elif isinstance(instruction, Restart):
                assert not instruction.slot.up

    def lost(self, instructions) -> None:
        """Take in what a loss has led to: who has another attempt waits."""
        self.carry_out(i for i in instructions if isinstance(i, Cancel))
        for event in self.book.events:
            if event.kind is Kind.PHASE_FAILED:
                self.waiting.add(event.trial)
        self.carry_out(i for i in instructions if not isinstance(i, Cancel))
        self.hear()

    def hear(self) -> None:
        """Between its start and its end or failure a phase of a trial is never started again."""
        for event in self.book.take_events():
            if event.trial is None:
                continue
            open_now = self.open_phases.setdefault(event.trial, False)
            if event.kind is Kind.PHASE_STARTED:
                assert not open_now
                self.open_phases[event.trial] = True
            elif event.kind is not Kind.PROGRESS:
                assert open_now
                self.open_phases[event.trial] = False

    def pick(self, trials, number: int):
        ordered = sorted(trials)
        return ordered[number % len(ordered)] if ordered else None

    def start(self, number: int) -> None:
        if self.book.n_free:
            self.carry_out(self.book.start(job(self.next_trial, slot=number if number % 2 else None), self.now))
            self.next_trial += 1
        self.hear()

    def end(self, number: int) -> None:
        trial = self.pick(self.running, number)
        if trial is not None:
            attempt = self.running[trial]
            assert self.book.rank_ended(attempt, self.now, 0, ENDED) == []
            if not attempt.under_way:  # else rank 0 has had its last word before: it suspects another
                self.past.append(self.running.pop(trial))
                self.held.add(trial)
        self.hear()

    def fail(self, number: int) -> None:
        trial = self.pick(self.running, number)
        if trial is not None:
            why = "crash" if number % 3 else "left"
            self.lost(self.book.attempt_lost(self.running[trial], why, "x", self.now, retry=number > 0))

    def lose(self, number: int) -> None:
        self.lost(self.book.slot_lost(self.slots[number % len(self.slots)], self.now, 0))

    def join(self, number: int) -> None:
        slot = self.slots[number % len(self.slots)]
        if not slot.up:
            self.book.slot_joined(slot, self.now)
        self.hear()

    def verdict(self, number: int) -> None:
        trial = self.pick(self.held, number)
        if trial is not None:
            verdict = list(Verdict)[number % 4]
            if verdict is not Verdict.HOLD:
                self.held.discard(trial)
            submits = self.book.verdict(trial, verdict, self.now)
            if verdict is Verdict.CONTINUE and not submits:
                self.waiting.add(trial)
            self.carry_out(submits)
        self.hear()

    def drop(self, number: int) -> None:
        trial = self.pick({*self.running, *self.held, *self.waiting}, number)
        if trial is not None:
            self.carry_out(self.book.drop(trial))
            self.held.discard(trial)
            self.waiting.discard(trial)
        self.hear()

    def reach(self, number: int) -> None:
        if number == 0:
            self.lost(self.book.out_of_reach(self.now))

    def sign(self, number: int) -> None:
        trial = self.pick(self.running, number)
        if trial is not None:
            self.book.sign(self.running[trial], self.now, data={"metrics": {}})
        self.hear()

    def suspect(self, number: int) -> None:
        trial = self.pick(self.running, number)
        if trial is not None:
            result = {"error": "PeerLost", "place": "", "traceback": "", "retry": True, "peer_lost": True}
            self.lost(self.book.rank_ended(self.running[trial], self.now, 0, result))

    def late(self, number: int) -> None:
        if self.past:
            attempt = self.past[number % len(self.past)]
            assert self.book.attempt_lost(attempt, "crash", "late", self.now) == []
            assert self.book.rank_ended(attempt, self.now, 0, ENDED) == []
            assert self.book.events == []

    def tick(self, _: int) -> None:
        self.lost(self.book.time_passed(self.now))

    def check(self) -> None:
        book, slots = self.book, self.slots
        holders = Counter(slot.trial for slot in slots if slot.trial is not None)
        assert set(holders) == {*self.running, *self.held}  # every trial is somewhere
        assert max(holders.values(), default=1) == 1
        assert {trial: attempt.slot.trial for trial, attempt in self.running.items()} == {t: t for t in self.running}
        assert Counter(waits.trial for waits, _ in book.waiting) == Counter(self.waiting)
        free = sum(slot.up and slot.trial is None for slot in slots)
        held = sum(slot.up and slot.trial is not None for slot in slots)
        down = sum(not slot.up for slot in slots)
        assert free + held + down == len(slots)
        assert (book.seats.n_up, book.n_free) == (free + held, max(free - len(self.waiting), 0))
        assert {trial for trial, is_open in self.open_phases.items() if is_open} >= set(self.running)


def test_a_worker_that_is_told_to_leave_costs_no_attempt_and_its_slot_is_not_used_again() -> None:
    book, (first, _), (attempt,) = book_with(2, 7, max_retries=0)
    book.take_events()
    book.rank_ended(attempt, 1.0, 0, LEFT)
    assert told(book) == [("slot_lost", 0), ("phase_failed", 7, "left", 0)]
    ((again,),) = book.seat_waiting(1.0)
    assert (again.number, again.slot.index, first.up) == (0, 1, False)


def test_the_last_word_of_a_worker_that_has_left_is_waited_for() -> None:
    book, (first,), (attempt,) = book_with(1, 7, max_retries=0, leave_s=30.0)
    book.take_events()
    assert book.slot_lost(first, 1.0, 0, left=True) == []
    assert book.time_passed(20.0) == []  # silent for longer than stall_s, but not looked at any more
    assert told(book) == [("slot_lost", 0)]
    book.driver_was_away(100.0, 120.0)
    assert book.time_passed(120.0) == []
    assert [type(told) for told in book.time_passed(132.0)] == [Cancel]
    assert told(book) == [("phase_failed", 7, "left", 0)]
    assert not attempt.under_way


def test_the_last_word_of_a_worker_is_not_waited_for_once_the_connection_broke() -> None:
    book, (first,), (attempt,) = book_with(1, 7, leave_s=30.0)
    book.slot_lost(first, 1.0, 0, left=True)
    assert book.out_of_reach(2.0) == [Cancel(attempt, stop=True)]
    assert [number for _, number in book.waiting] == [0]


@pytest.mark.parametrize("noticed", [True, False])
def test_what_a_worker_that_has_left_had_not_begun_begins_elsewhere_at_once(noticed) -> None:
    book, (first, second), (attempt,) = book_with(2, 7, max_retries=0, leave_s=30.0)
    if noticed:
        book.slot_lost(first, 1.0, 0, left=True)
        book.slot_joined(first, 1.0)  # its successor is there before its last word
    book.take_events()
    assert [type(given) for given in book.worker_left(attempt, 0, 2.0)] == [Cancel]
    assert told(book) == [*([] if noticed else [("slot_lost", 0)]), ("phase_failed", 7, "left", 0)]
    ((again,),) = book.seat_waiting(2.0)
    assert (again.number, again.slot) == (0, first if noticed else second)


def test_a_phase_that_ends_after_its_worker_was_struck_off_has_ended() -> None:
    book, (first,), (attempt,) = book_with(1, 7, leave_s=30.0)
    book.slot_lost(first, 1.0, 0, left=True)
    book.take_events()
    book.rank_ended(attempt, 2.0, 0, {k: v for k, v in ENDED.items() if k != "score"})
    assert told(book) == [("phase_ended", 7)]
    assert book.verdict(7, Verdict.CONTINUE, 2.0) == []
    assert [waiting.phase for waiting, _ in book.waiting] == [1]


LEFT = {"error": "", "traceback": "", "place": "", "retry": True, "left": True}


def left_and_followed() -> tuple[Attempts, Slot, Attempt]:
    """A worker was told to leave, and its successor is there before its last word has come."""
    book, (slot,), (attempt,) = book_with(1, 7, max_retries=0, leave_s=30.0)
    book.slot_lost(slot, 1.0, 0, left=True)
    book.slot_joined(slot, 1.0)
    book.take_events()
    return book, slot, attempt


def test_the_last_word_of_a_worker_takes_no_successor_out_of_service() -> None:
    book, slot, attempt = left_and_followed()
    book.rank_ended(attempt, 2.0, 0, LEFT)
    assert told(book) == [("phase_failed", 7, "left", 0)]
    assert slot.up


def test_a_phase_that_ended_on_a_worker_that_left_does_not_live_on_its_successor() -> None:
    book, slot, attempt = left_and_followed()
    book.rank_ended(attempt, 2.0, 0, {k: v for k, v in ENDED.items() if k != "score"})
    ((following,),) = book.verdict(7, Verdict.CONTINUE, 2.0)
    assert (following.slot, following.alive) == (slot, False)


def test_the_death_of_a_successor_costs_no_attempt_of_the_worker_that_left() -> None:
    book, slot, attempt = left_and_followed()
    assert book.slot_lost(slot, 2.0, 0) == []
    assert told(book) == [("slot_lost", 0)]
    book.rank_ended(attempt, 3.0, 0, {k: v for k, v in ENDED.items() if k != "score"})
    assert told(book) == [("phase_ended", 7)]


def test_the_highest_of_the_free_slots_is_given_back_first() -> None:
    book, slots = book_of(3)
    begun(book, 7)
    assert book.give_back(1, 1.0) == [Release(slots[2])]


def test_that_a_successor_is_told_to_leave_too_makes_nobody_wait_longer() -> None:
    book, slot, _ = left_and_followed()
    book.slot_lost(slot, 20.0, 0, left=True)
    assert book.time_passed(31.0) == []
    assert [type(told) for told in book.time_passed(31.5)] == [Cancel]


def test_slots_are_given_back_free_ones_at_once_and_others_as_phases_end() -> None:
    book, slots, (first, second) = book_with(3, 7, 8, max_retries=0)
    book.take_events()
    assert book.give_back(2, 1.0) == [Release(slots[2])]
    assert (book.seats.n_up, book.surplus, told(book)) == (2, 1, [("slot_lost", 2)])
    for attempt in (first, second):
        book.rank_ended(attempt, 2.0, 0, {k: v for k, v in ENDED.items() if k != "score"})
    assert book.verdict(7, Verdict.CONTINUE, 2.0) == [Release(slots[0])]
    ((other,),) = book.verdict(8, Verdict.CONTINUE, 2.0)  # one was asked for, no more
    assert other.slot is slots[1]
    assert told(book)[2:] == [("slot_lost", 0), ("phase_started", 8)]
    book.rank_ended(other, 3.0, 0, {k: v for k, v in ENDED.items() if k != "score"})
    book.verdict(8, Verdict.STOP, 3.0)
    ((again,),) = book.seat_waiting(3.0)
    assert (again.job.trial, again.job.phase, again.number) == (7, 1, 0)


@pytest.mark.parametrize("verdict", [Verdict.STOP, Verdict.PAUSE])
def test_a_slot_is_given_back_before_the_next_trial_is_seated_on_it(verdict) -> None:
    book, (slot,), (attempt,) = book_with(1, 7)
    assert book.give_back(1, 1.0) == []
    book.phase_ended(attempt, 2.0, ENDED)
    assert book.verdict(7, verdict, 2.0) == [Release(slot)]
    assert (book.n_free, book.surplus) == (0, 0)


def test_slots_of_trials_that_are_held_are_given_back_at_once_and_the_trials_wait_for_others() -> None:
    """At a barrier they may be held until another of the study has had a slot."""
    book, slots, (first, second) = book_with(3, 7, 8)
    for attempt in (first, second):
        book.phase_ended(attempt, 1.0, ENDED)
        book.verdict(attempt.job.trial, Verdict.HOLD, 1.0)
    book.take_events()
    assert book.give_back(2, 2.0) == [Release(slots[2]), Release(slots[1])]
    assert (book.seats.n_up, book.surplus, book.stuck) == (1, 0, False)
    book.take_events()
    assert book.stuck
    assert book.give_back(1, 3.0) == [Release(slots[0])]
    book.take_events()
    assert not book.stuck  # it has nothing that another study might wait for
    book.verdict(8, Verdict.CONTINUE, 4.0)
    book.slot_joined(slots[2], 5.0)
    ((again,),) = book.seat_waiting(5.0)
    assert (again.job.trial, again.job.phase, again.alive) == (8, 1, False)


def test_a_slot_whose_attempt_failed_is_given_back_and_its_trial_waits() -> None:
    book, (slot,), (attempt,) = book_with(1, 7)
    book.give_back(1, 1.0)
    book.attempt_lost(attempt, "exception", "ValueError: no", 2.0)
    assert book.time_passed(2.0) == [Release(slot)]
    assert book.waiting == deque([(attempt.job, 1)])
