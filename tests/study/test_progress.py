"""How far a study is, as its events tell it."""

import sys
import threading

import pytest

from tests.events import begun, ended, judged, runs
from workbench.core.failures import Hopeless
from workbench.core.living import NO_SLOT
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge import DiskFull, LogHeld, StudyLog
from workbench.study.attached import AttachedStudy
from workbench.study.progress import Progress, WatchedLog
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import Feed, News


def test_what_is_left_is_never_more_than_the_time_a_study_may_take():
    progress = Progress(Size(1000, expected_phases=1000.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"max_hours": 0.01}}))
    assert progress.eta_s == 36.0
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data={"config": {"lr": 0.1}, "seed": 0, "parent": None}))
    progress.see(Event(Kind.PHASE_ENDED, 9.0, 0, 0, 0, {"score": 1.0}))
    assert (progress.eta_s, progress.share) == (27.0, 0.25)
    assert "about 0:27 left" in str(progress)
    progress.see(Event(Kind.INTERVENTION, 10.0, data={"action": "pause study", "accepted": True}))
    assert (progress.state, progress.eta_s) == ("paused", None)
    progress.see(Event(Kind.STUDY_INTERRUPTED, 10.0, data={}))
    assert "paused" not in str(progress)
    progress.see(Event(Kind.STUDY_RESUMED, 10.0, data={}))
    assert str(progress).endswith(" · paused by a person: controls.resume_study(), or the dashboard, lets it go on")


def test_the_clock_does_not_step_back_to_an_event_that_is_heard_late():
    progress = Progress(Size(1))
    progress.see(Event(Kind.SLOT_JOINED, 10.0, slot=0, data={"node": "n"}))
    while progress.at <= 10.0:
        progress.go_on(driven=True)
    shown = progress.at
    progress.see(Event(Kind.RUN, 10.0, 0, 0, data={"config": {}, "seed": 0, "parent": None}))
    assert progress.at == shown
    progress.pass_to(10.0)
    assert progress.at == shown
    progress.see(Event(Kind.STUDY_ENDED, 10.0))
    assert progress.at == 10.0  # the study took no longer


def _slots_with_phases(slots, phases):
    """Tell of so many slots, each of which has run so many phases of 100 s with as many trials, one after another."""
    for slot in range(slots):
        yield Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "n"})
    for n in range(slots * phases):
        begun = 100.0 * (n // slots)
        yield Event(Kind.RUN, begun, n, 0, data={"config": {}, "seed": 0, "parent": None})
        yield Event(Kind.PHASE_STARTED, begun, n, 0, n % slots)
        yield Event(Kind.PHASE_ENDED, begun + 100, n, 0, n % slots, {"score": 1.0})
        yield Event(Kind.DECISION, begun + 100, n, 0, data={"verdict": "stop"})


def test_what_is_left_is_told_by_the_phases_and_the_slots_that_live():
    progress = Progress(Size(80, expected_phases=80.0))
    assert progress.eta_s is None
    events = [*_slots_with_phases(8, 5), *(Event(Kind.SLOT_LOST, 500.0, slot=k) for k in range(7))]
    for event in events:
        progress.see(event)
    assert (progress.expected_phases, progress.eta_s) == (80.0, 4000.0)
    board = Board("same", Size(80, expected_phases=80.0))
    board.take(News(events))
    assert board.state()["left_s"] == [4000.0, 4000.0]
    progress.see(Event(Kind.STUDY_RESUMED, 500.0))  # no slot has come yet
    assert progress.eta_s is None


def test_what_is_left_at_most_is_not_told_while_phases_run_longer_than_any_that_has_ended():
    progress, board = Progress(Size(200, expected_phases=200.0)), Board("slow", Size(200, expected_phases=200.0))
    events = [Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "n"}) for slot in range(16)]
    for n in range(16):
        events.append(Event(Kind.RUN, 0.0, n, 0, data={"config": {}, "seed": 0, "parent": None}))
        events.append(Event(Kind.PHASE_STARTED, 0.0, n, 0, n))
    events += [Event(Kind.PHASE_ENDED, 2.0, n, 0, n, {"score": 1.0}) for n in range(3)]
    events.append(Event(Kind.SLOT_LOST, 9.0, slot=0))
    for event in events:
        progress.see(event)
    board.take(News(events))
    low, high = board.state()["left_s"]
    assert low > 0
    assert high is None
    assert progress.eta_s is None
    assert "left" not in str(progress)


def test_frames_a_second_are_those_of_trials_that_run_as_they_last_grew(tmp_path):
    """In the study's own process, attached from elsewhere, at a first look too, and on a dashboard."""
    log, progress, board = StudyLog(tmp_path / "kb.db", "fast", {}), Progress(Size(2)), Board("fast", Size(2))
    away, feed = AttachedStudy(tmp_path / "kb.db", "fast"), Feed(tmp_path / "kb.db", "fast")

    def rate(*events: Event) -> float:
        log.append(events)
        board.take(feed.news())
        for event in events:
            progress.see(event)
        first = AttachedStudy(tmp_path / "kb.db", "fast").progress
        (told,) = {p.frames_per_s for p in (progress, away.progress, first)} | {board.state()["frames_per_s"]}
        return told

    for trial in (0, 1):
        run = Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None})
        assert rate(run, Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial)) == 0
    seen = [(1, 0, 100, 0), (3, 0, 500, 200), (3, 1, 0, 200), (5, 1, 40, 220), (6, 0, 300, 220), (8, 0, 500, 120)]
    for at, trial, frames, expected in seen:  # trial 0 begins its phase again meanwhile
        metrics = {"frames": float(frames), "loss": 1.0}
        assert rate(Event(Kind.PROGRESS, float(at), trial, 0, trial, {"metrics": metrics})) == expected
    assert rate(ended(9.0, 0, 0, 0, 1.0, frames=600.0), judged(9.0, 0, 0, "stop", "m")) == 20
    late = Event(Kind.PROGRESS, 9.5, 0, 0, 0, {"metrics": {"frames": 700.0}})
    assert rate(late) == 20
    assert rate(Event(Kind.PHASE_FAILED, 10.0, 1, 0, 1, {"error": "died"})) == 0

    def reports(at: float, phase: int, frames: float) -> Event:
        return Event(Kind.PROGRESS, at, 2, phase, 0, {"metrics": {"frames": frames}})

    pauses, resumes = (
        Event(Kind.INTERVENTION, at, data={"action": f"{what} study", "accepted": True})
        for at, what in ((13.5, "pause"), (100.0, "resume"))
    )
    assert rate(runs(10.0, 2, {}), begun(10.0, 2, 0), reports(12.0, 0, 100.0), reports(13.0, 0, 200.0)) == 100
    assert rate(pauses, ended(14.0, 2, 0, 0, 1.0, frames=300.0), judged(14.0, 2, 0, "continue", "m")) == 0
    assert rate(resumes, begun(100.0, 2, 1), reports(101.0, 1, 400.0)) == 0  # it did not run since it was last heard
    assert rate(reports(102.0, 1, 500.0)) == 100
    feed.close()
    log.close()


@pytest.mark.parametrize("then", [Kind.STUDY_INTERRUPTED, Kind.STUDY_RESUMED, Kind.STUDY_ENDED])
def test_nothing_that_an_earlier_driver_ran_has_frames_a_second(then):
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data={"config": {}, "seed": 0, "parent": None}))
    progress.see(Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0))
    for at in (1.0, 2.0):
        progress.see(Event(Kind.PROGRESS, at, 0, 0, 0, {"metrics": {"frames": 1000.0 * at}}))
    assert progress.frames_per_s == 1000
    progress.see(Event(then, 3.0))
    assert progress.frames_per_s == 0


def test_a_study_that_no_worker_is_up_for_says_so(monkeypatch):
    monkeypatch.setattr("workbench.core.living._PATIENCE_S", -1.0)
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0))
    assert NO_SLOT not in str(progress)  # nobody is known to drive it
    progress.go_on(driven=True)
    assert str(progress).endswith(f" · {NO_SLOT}")
    progress.message = "waiting for disk space to write the log"
    assert str(progress).endswith(f" · {progress.message}")
    progress.message = ""
    progress.see(Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}))
    assert NO_SLOT not in str(progress)
    progress.see(Event(Kind.SLOT_LOST, 0.0, slot=0, data={"node": "a"}))
    assert NO_SLOT in str(progress)
    progress.see(Event(Kind.STUDY_ENDED, 1.0))
    assert NO_SLOT not in str(progress)


def test_a_study_whose_slots_are_all_held_while_a_trial_has_none_says_so(monkeypatch):
    """A node has left for good, and nobody gives up a slot: it stood still without a word."""
    monkeypatch.setattr("workbench.core.living._PATIENCE_S", -1.0)
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0))
    for trial in (0, 1):
        progress.see(Event(Kind.SLOT_JOINED, 0.0, slot=trial, data={"node": f"m-{trial}"}))
        progress.see(Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None}))
        progress.see(Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial))
    progress.see(Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0}))
    progress.see(Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "hold", "mode": "waiting"}))
    progress.go_on(driven=True)
    assert NO_SLOT not in str(progress)
    progress.see(Event(Kind.SLOT_LOST, 2.0, slot=1, data={"node": "m-1"}))
    progress.see(Event(Kind.PHASE_FAILED, 2.0, 1, 0, 1, {"why": "crash"}))
    assert str(progress).endswith(f" · {NO_SLOT}")
    progress.see(Event(Kind.SLOT_JOINED, 3.0, slot=1, data={"node": "m-1"}))
    progress.see(Event(Kind.PHASE_STARTED, 3.0, 1, 0, 1))
    assert NO_SLOT not in str(progress)


class FullLog:
    """A log that cannot be written to so many times."""

    def __init__(self, times: int, error=DiskFull) -> None:
        self.times, self.error, self.written = times, error, []

    def append(self, events) -> None:
        self.times -= 1
        if self.times >= 0:
            raise self.error("make space")
        self.written += events


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DiskFull, "waiting for disk space to write the log"),
        (LogHeld, "waiting for another process to let go of the log"),
    ],
)
def test_what_keeps_the_log_from_being_written_is_waited_for_unless_the_study_is_to_end(
    monkeypatch, error, said
) -> None:
    monkeypatch.setattr("workbench.study.progress._DISK_RETRY_S", 0.0)
    log, progress, stopping, heard = FullLog(3, error), Progress(Size(1)), threading.Event(), []
    watched = WatchedLog(log, progress, stopping.wait, Hopeless(), heard.extend)
    watched.append([Event(Kind.STUDY_STARTED, 1.0)])
    assert (log.written, progress.at, progress.message) == (heard, 1.0, "")
    log.times = 3
    stopping.set()
    with pytest.raises(error, match="make space"):
        watched.append([Event(Kind.STUDY_ENDED, 2.0)])
    assert (len(log.written), progress.at, progress.message) == (1, 1.0, said)


def test_that_a_trial_went_on_from_an_older_checkpoint_is_warned_of_once() -> None:
    watched = WatchedLog(FullLog(0), Progress(Size(1)), threading.Event().wait, Hopeless())
    events, ended = [], {"score": 1.0, "recovered": "went on from the beginning"}
    for trial in (0, 1):
        events.append(Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None}))
        events.append(Event(Kind.PHASE_ENDED, 1.0, trial, 0, 0, ended))
    with pytest.warns(UserWarning, match="trial 0 went on from the beginning; others are in the log") as said:
        watched.append(events)
    assert len(said) == 1


def test_bars_are_full_when_a_study_has_ended_though_trials_still_wait():
    progress = Progress(Size(4, expected_phases=6.0))
    run = {"config": {"lr": 0.1}, "seed": 0, "parent": None}
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data=run))
    progress.see(Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0))
    progress.see(Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0}))
    progress.see(Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "pause"}))
    assert "<progress value=0 max=4>" in progress._repr_html_()
    assert "phases: 1 of about 6" in str(progress)
    progress.see(Event(Kind.STUDY_ENDED, 2.0))
    assert str(progress).endswith(" · phases: 1")  # what was expected once is not what there is
    assert "<progress value=4 max=4>" in progress._repr_html_()
    assert "<progress value=1.000 max=1>" in progress._repr_html_()


def test_progress_is_looked_at_while_its_driver_tells_of_trials() -> None:
    progress, told, failed = Progress(Size(5000, None, 2, 9000.0, (5000.0, 4000.0), (5000.0, 3000.0))), [], []

    def look() -> None:
        try:
            for _ in range(300):  # where it is not held, the first few tell
                if told:
                    break
                str(progress)
        except RuntimeError as err:
            failed.append(err)

    often, looking = sys.getswitchinterval(), threading.Thread(target=look)
    sys.setswitchinterval(1e-6)  # so that threads meet everywhere
    looking.start()
    try:
        for n in range(1500):
            progress.see(Event(Kind.RUN, 0.0, n, 0, data={"config": {}, "seed": 0, "parent": None}))
            progress.see(Event(Kind.PROGRESS, float(n), n, 0, data={"metrics": {"frames": 1.0}}))
    finally:
        told.append(True)
        looking.join()
        sys.setswitchinterval(often)
    assert failed == []
