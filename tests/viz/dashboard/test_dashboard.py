import gc
import queue
import signal
import subprocess
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest

from tests.viz.dashboard.conftest import NAME, SPEC, Telling, ends_while_read, in_order, slots_drawn
from workbench.analysis.forests import forests_apart
from workbench.core.errors import DatabaseError, StudyError
from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge import Controls, Inbox, StudyLog, frames_of
from workbench.viz.dashboard import Dashboard
from workbench.viz.dashboard.estimator import Estimator
from workbench.viz.dashboard.feed import Feed
from workbench.viz.dashboard.front import BOOT, CODE, CSS
from workbench.viz.dashboard.stored import VIEW

FOREVER = 3600.0  # a refresher that only looks when it is told to


@pytest.fixture
def board(db, log):
    """A dashboard that keeps what it says, and speaks only when made to."""
    dashboard = _Telling(db, NAME, refresh_s=FOREVER)
    dashboard.until("beat")  # its thread has had its first look: what there was when it was made comes with a snapshot
    yield dashboard
    dashboard.close()


class _Telling(Telling, Dashboard):
    pass


def test_deltas_are_numbered_and_quiet_looks_beat(board, log):
    log.append(in_order()[:9])
    board.refresh()
    board.refresh()
    assert [(m["type"], m["number"]) for m in board.said[-3:]] == [("beat", 0), ("delta", 1), ("beat", 1)]


def test_a_view_that_attaches_gets_a_snapshot_from_the_thread(board, log):
    log.append(in_order())
    board._handle_custom_msg({"type": "snapshot"}, [])
    told = board.until("snapshot")
    assert [trial["trial"] for trial in told["trials"]] == [0, 1, 2, 3]
    assert told["number"] == board.said[-1]["number"]


class _Counting(_Telling):
    """A dashboard whose looks are heard of."""

    def __init__(self, db):
        self.looked = threading.Event()
        super().__init__(db, NAME, refresh_s=0.001)

    def _take(self):
        super()._take()
        self.looked.set()

    def looks_on(self):
        """Tell whether looks follow one another; five seconds without one are a rest."""
        for _ in range(20):
            self.looked.clear()
            if not self.looked.wait(5):
                return False
        return True


def test_a_dashboard_that_no_page_shows_rests_until_one_does(db, log):
    """As when a cell is run again: its first view is gone, and nobody closes its widget."""
    board = _Counting(db)
    assert board.looks_on()
    board._handle_custom_msg({"type": "unseen"}, [])
    board.until("seen?")
    assert not board.looks_on()
    log.append(in_order())
    assert "4 trials begun" in board.still().html  # drawn now, not as of then
    board._handle_custom_msg({"type": "snapshot"}, [])
    assert len(board.until("snapshot")["trials"]) == 4
    assert board.looks_on()
    board._handle_custom_msg({"type": "unseen"}, [])
    board._handle_custom_msg({"type": "seen"}, [])  # by another page
    assert board.looks_on()
    board._handle_custom_msg({"type": "unseen"}, [])
    board.close()
    assert not board.running


def test_a_view_that_attaches_does_not_wait_for_the_points(db, log, monkeypatch):
    log.append(in_order())
    monkeypatch.setattr("workbench.viz.dashboard.feed._AT_ONCE", 4)
    board = _Telling(db, NAME, refresh_s=FOREVER)
    board.until("beat")
    real, read = board._feed.news, []
    monkeypatch.setattr(board._feed, "news", lambda: read.append(len(board.said)) or real())
    board._handle_custom_msg({"type": "snapshot"}, [])
    told = board.until("snapshot")
    assert told["reading"]
    assert [trial["trial"] for trial in told["trials"]] == [0, 1, 2, 3]
    assert not read or read[0] > board.said.index(told)
    with board.heard:  # then they follow by themselves
        assert board.heard.wait_for(lambda: board.said[-1].get("reading") is False, timeout=120)
    board.close()


def test_a_page_is_told_how_often_a_word_comes(board):
    assert board.get_state()["_every"] == FOREVER


def test_messages_that_are_not_ours_are_passed_over(board):
    for content in ("snapshot", {"type": "drop tables"}, None):
        board._handle_custom_msg(content, [])
    assert not any(m["type"] == "snapshot" for m in board.said)


def test_buttons_ask_and_are_told_whether_it_was_sent(board, log, db):
    log.append(in_order())
    board.refresh()
    board._handle_custom_msg({"type": "ask", "action": "stop", "trial": 3}, [])
    asked = board.until("asked")
    assert [(r.id, r.action, r.trial) for r in Inbox(db, NAME)()] == [(asked["request"], "stop", 3)]
    board._handle_custom_msg({"type": "ask", "action": "stop", "trial": 99}, [])
    assert "no trial 99" in board.until("refused")["why"]
    assert board.controls.study == NAME


def with_scores(n_trials, n_phases=1):
    """Events of trials that have each ended so many phases."""
    for trial in range(n_trials):
        yield Event(Kind.RUN, 0.0, trial, 0, data={"config": {"lr": 0.1 * trial}, "parent": None, "seed": trial})
        for phase in range(n_phases):
            yield Event(Kind.PHASE_STARTED, phase, trial, phase, trial)
            yield Event(Kind.PHASE_ENDED, phase + 1.0, trial, phase, trial, {"score": float(trial)})


ENOUGH = Ledger(with_scores(20))


def test_importance_is_not_computed_before_enough_trials_have_a_score_however_many_phases_have_ended(board, log):
    log.append([*with_scores(19, n_phases=3)])
    board.refresh()
    assert board._estimator._thread is None


def test_importance_is_told_phase_by_phase_and_what_was_told_before_stays_until_then(monkeypatch):
    class Heard(Estimator):
        def __init__(self):
            self.news = queue.Queue()
            super().__init__()

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "answers":
                self.news.put([answer["told"] for answer in value])

    says = """import json, sys
for phase in (None, 0):
    print(json.dumps({"phase": phase, "rows": [], "told": f"new, {phase}"}), flush=True)
    sys.stdin.readline()"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    begun = []

    def start(*_):
        begun.append(subprocess.Popen([sys.executable, "-c", says], **pipes))
        return begun[0]

    monkeypatch.setattr("workbench.viz.dashboard.estimator.forests_apart", start)
    estimator = Heard()
    estimator.answers = [{"phase": phase, "rows": [], "told": f"old, {phase}"} for phase in (None, 0)]
    estimator.look(ENOUGH, lambda: frames_of([]))
    told = [estimator.news.get(timeout=60) for _ in range(3)]
    assert told == [[], ["old, None", "old, 0"], ["new, None", "old, 0"]]
    assert begun[0].poll() is None  # it is still at the phase
    begun[0].stdin.write(b"\n\n")
    begun[0].stdin.flush()
    estimator._thread.join(60)
    assert estimator.news.get() == ["new, None", "new, 0"]


def test_importance_comes_by_itself_once_there_are_enough_trials_unless_it_is_switched_off(board, log, monkeypatch):
    quick = partial(forests_apart, forests=2, niceness=0)  # or a busy machine lets it wait for long
    monkeypatch.setattr("workbench.viz.dashboard.estimator.forests_apart", quick)
    rng = np.random.default_rng(0)
    for trial in range(24):
        run = {"config": {"lr": float(rng.uniform()), "gamma": 0.9}, "parent": None, "seed": trial}
        log.append([Event(Kind.RUN, 0.0, trial, 0, data=run), Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial),
                    Event(Kind.PHASE_ENDED, 1.0, trial, 0, trial, {"score": run["config"]["lr"]})])  # fmt: skip
        if trial == 10:
            board.refresh()
            assert board._estimator._thread is None
    board.importance = False
    board.refresh()
    assert board._estimator._thread is None
    board.importance = True
    board.refresh()
    board._estimator._thread.join()
    board.refresh()
    told = next(m["importance"] for m in reversed(board.said) if m.get("importance"))
    assert [answer["phase"] for answer in told] == [None, 0]
    assert told[0]["rows"][0]["hyperparameter"] == "lr"
    assert "R²" in told[0]["told"]


def test_close_ends_the_thread_and_leaves_the_study_alone(db, log):
    dashboard = Dashboard(db, NAME, refresh_s=FOREVER)
    assert dashboard.running
    dashboard.close()
    assert not dashboard.running
    log.append(in_order())
    dashboard.close()  # twice is fine


def test_after_an_end_one_beat_tells_views_that_missed_it_and_then_only_those_that_come_hear(board, log):
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    board.said.clear()
    for _ in range(4):
        board.refresh()
    assert [(m["type"], m["number"]) for m in board.said] == [("delta", 1), ("beat", 1)]
    assert board.said[0]["state"] == "ended"
    board.said.clear()
    board._handle_custom_msg({"type": "snapshot"}, [])
    assert board.until("snapshot")["state"] == "ended"
    for _ in range(3):
        board.refresh()
    board.close()
    assert not board.running
    assert [(m["type"], m["number"]) for m in board.said] == [("snapshot", 2), ("beat", 2)]


def test_of_a_study_that_was_over_nothing_is_told_unasked(db, log):
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    dashboard = _Telling(db, NAME, refresh_s=FOREVER)
    dashboard.refresh()
    dashboard.refresh()
    dashboard.close()
    assert not dashboard.said


def test_a_study_that_goes_on_after_its_end_is_followed(db, log, monkeypatch):
    monkeypatch.setattr("workbench.viz.dashboard.live._RARELY_S", 0.01)
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    dashboard = _Telling(db, NAME, refresh_s=0.01)
    size = Size(6, 6, 2, 10.0, [6.0, 4.0], [6.0, 3.0])
    log.append([Event(Kind.STUDY_RESUMED, 20.0, data={"size": size.to_json()})])
    assert dashboard.until("delta", state="running")["meta"]["n_trials"] == 6
    dashboard.until("beat")  # by which a page knows that the kernel lives
    log.append([Event(Kind.RUN, 21.0, 4, 0, data={"config": {"lr": 0.1}, "parent": None, "seed": 4})])
    dashboard.until("delta", trials_started=5)
    dashboard.said.clear()
    log.append([Event(Kind.STUDY_ENDED, 22.0)])
    dashboard.until("delta", state="ended")
    dashboard.close()


def test_a_note_on_a_study_that_is_over_is_told(db, log, monkeypatch):
    monkeypatch.setattr("workbench.viz.dashboard.live._RARELY_S", 0.01)
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    log.close()  # its driver has gone
    dashboard = _Telling(db, NAME, refresh_s=0.01)
    Controls(db, NAME).tag("good")
    dashboard.until("delta", tags=["good"])
    dashboard.close()


class _Slow(Estimator):
    """Its answers come after the study's end."""

    def look(self, ledger, frames):
        self.looks = getattr(self, "looks", 0) + 1
        if self.looks > 3:
            self.answers = [{"phase": None, "rows": [], "told": "late"}]


def test_importance_that_is_reckoned_longer_than_a_study_lasts_is_told(db, log, monkeypatch):
    monkeypatch.setattr("workbench.viz.dashboard.live._RARELY_S", 0.01)
    monkeypatch.setattr("workbench.viz.dashboard.dashboard.Estimator", _Slow)
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    dashboard = _Telling(db, NAME, refresh_s=0.01)
    assert dashboard.until("delta")["importance"][0]["told"] == "late"
    dashboard.close()


def test_importance_that_is_just_being_started_ends_with_its_dashboard(monkeypatch):
    closed, begun = threading.Event(), []

    def start(*_):
        assert closed.wait(60)
        waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        begun.append(subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return begun[0]

    monkeypatch.setattr("workbench.viz.dashboard.estimator.forests_apart", start)
    estimator = Estimator()
    estimator.look(ENOUGH, lambda: frames_of([]))
    estimator.close()
    closed.set()
    estimator._thread.join(60)
    assert begun[0].returncode == -signal.SIGKILL


def test_importance_is_computed_for_one_view_of_a_kernel_at_a_time(monkeypatch):
    begun, beside = [], []

    def start(*_):
        beside.append(sum(process.poll() is None for process in begun))
        begun.append(subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return begun[-1]

    monkeypatch.setattr("workbench.viz.dashboard.estimator.forests_apart", start)
    estimators = [Estimator() for _ in range(4)]
    for estimator in estimators:
        estimator.look(ENOUGH, lambda: frames_of([]))
    for estimator in estimators:
        estimator._thread.join()
    assert beside == [0, 0, 0, 0]


def test_a_dead_driver_is_seen(board, log):
    log.append(in_order())
    board.refresh()
    assert board.still().text.endswith(": running")
    log.close()  # as the operating system does when it dies
    board.refresh()
    assert board.said[-1]["state"] == "abandoned"


def test_a_driver_that_ends_between_two_glances_of_a_look_is_not_taken_for_dead(board, log):
    log.append(in_order())
    board.refresh()
    with ends_while_read(log):
        board.refresh()
    assert board.still().text.endswith(": running")
    board.refresh()
    assert board.said[-1]["state"] == "ended"
    assert not any(message.get("state") == "abandoned" for message in board.said)


def test_trouble_is_told_and_outlived(board, log, monkeypatch):
    real = board._feed.news

    def fail():
        raise OSError("the disk is <b>gone</b>")

    monkeypatch.setattr(board._feed, "news", fail)
    board.refresh()
    assert board.error == "OSError: the disk is <b>gone</b>"
    monkeypatch.setattr(board._feed, "news", real)
    board.refresh()
    assert board.error == ""


def test_what_cannot_be_told_is_said_and_made_up_for(board, log, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(board._board, "delta", lambda: 1 / 0)
        board.refresh()
        assert board.error == "ZeroDivisionError: division by zero"
    before = board.said[-1]["number"]
    board.refresh()
    assert (board.error, board.said[-1]["type"], board.said[-1]["number"]) == ("", "beat", before + 1)  # views ask


def test_a_stored_page_says_as_of_when_with_its_zone(board, monkeypatch, in_the_east):
    cell = _Cell()
    monkeypatch.setattr("IPython.display.display", cell)
    board._ipython_display_()
    assert f" {in_the_east}. Run the cell" in cell.shown[0]["text/plain"]


def test_a_stored_page_that_cannot_be_drawn_ends_no_thread(board, log, monkeypatch):
    cell = _Cell()
    monkeypatch.setattr("IPython.display.display", cell)
    board._ipython_display_()
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    with monkeypatch.context() as patch:
        patch.setattr(board, "_html", lambda: 1 / 0)
        board.refresh()
        board._stored.update(now=True)
        board.refresh()
        assert board.error == "ZeroDivisionError: division by zero"
    board._stored.update(now=True)
    board.refresh()
    assert board.error == ""
    cell.until("ended")


def test_selection_can_be_observed_and_is_a_list_of_trials(board):
    seen = []
    board.observe(lambda change: seen.append(change["new"]), "selected")
    board.selected = 3
    board.selected = [1, 2]
    board.selected = None
    assert seen == [[3], [1, 2], []]


def test_what_is_made_visible_becomes_the_filter_and_what_a_page_says_does_not(board):
    board.visible = [3, 9, 5, 6, 7]
    assert board.filter == "trial:3,5-7,9"
    board.set_state({"filter": "state:running", "visible": [4, 2]})
    assert (board.filter, board.visible) == ("state:running", [4, 2])
    board.visible = []
    assert board.filter == "trial:"  # which leaves none
    board.visible = None
    assert board.filter == ""


def test_a_stored_notebook_shows_something(board, log):
    log.append(in_order())
    board.refresh()
    page = board._repr_html_()
    assert slots_drawn(page).count("<rect") == 7
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    bundle = board._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"] == page


class _Cell:
    """What IPython displays, and what it is told to replace."""

    def __init__(self):
        self.shown = []
        self.replaced = threading.Condition()

    def __call__(self, data, *, raw, display_id=None):
        self.shown.append(data)
        return self if display_id else None

    def update(self, data, *, raw):
        with self.replaced:
            self.shown[0] = data
            self.replaced.notify_all()

    def until(self, words):
        with self.replaced:
            assert self.replaced.wait_for(lambda: words in self.shown[0]["text/html"], timeout=60)


def test_a_notebook_keeps_the_last_state_beside_the_view(board, log, monkeypatch):
    cell = _Cell()
    monkeypatch.setattr("IPython.display.display", cell)
    board._ipython_display_()
    page, view = cell.shown
    assert "0 trials begun" in page["text/html"]
    assert set(view) == {VIEW, "text/plain"}  # nothing else that a page without a kernel would show
    assert f'data-of="{board._key}"' in page["text/html"]  # by which the living view hides it
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    board._wake.set()
    cell.until("ended")
    cell.until("4 trials begun")


def test_one_that_is_closed_shows_its_last_state(board, log, monkeypatch):
    log.append(in_order())
    board.refresh()
    board.close()
    cell = _Cell()
    monkeypatch.setattr("IPython.display.display", cell)
    board._ipython_display_()
    (page,) = cell.shown
    assert set(page) == {"text/html", "text/plain"}
    assert "4 trials begun" in page["text/html"]
    assert "when this view was closed: open another" in page["text/plain"]
    assert "<script>" not in page["text/html"]


@pytest.fixture
def long_log(log, monkeypatch):
    """A log that counts as long, and whoever reads it waits for the event given."""
    log.append([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    monkeypatch.setattr("workbench.viz.dashboard.dashboard._AT_ONCE", 0)
    may_be_read, news = threading.Event(), Feed.news
    monkeypatch.setattr(Feed, "news", lambda feed: may_be_read.wait(60) and news(feed))
    return may_be_read


def test_a_long_log_is_not_waited_for_where_a_dashboard_is_made_and_shown(db, long_log, monkeypatch):
    cell = _Cell()
    monkeypatch.setattr("IPython.display.display", cell)
    board = _Telling(db, NAME, refresh_s=FOREVER)
    board._ipython_display_()
    assert "its log is being read" in cell.shown[0]["text/html"]
    board._handle_custom_msg({"type": "snapshot"}, [])
    assert not board.said
    long_log.set()
    assert [trial["trial"] for trial in board.until("snapshot")["trials"]] == [0, 1, 2, 3]
    cell.until("4 trials begun")
    board.close()


def test_a_long_log_that_cannot_be_read_at_first_is_shown_once_it_can(db, log, monkeypatch):
    log.append(in_order())
    monkeypatch.setattr("workbench.viz.dashboard.dashboard._AT_ONCE", 0)
    cell, readable, real = _Cell(), threading.Event(), Feed.news

    def news(feed):
        if not readable.is_set():
            raise DatabaseError("held by another process")
        return real(feed)

    monkeypatch.setattr(Feed, "news", news)
    monkeypatch.setattr("IPython.display.display", cell)
    board = _Telling(db, NAME, refresh_s=FOREVER)
    board._ipython_display_()
    board._handle_custom_msg({"type": "snapshot"}, [])
    board.until("snapshot")
    board._handle_custom_msg({"type": "ask", "action": "pause study"}, [])
    assert board.until("refused")["why"] == "held by another process"
    assert board.running
    readable.set()
    board._wake.set()
    cell.until("4 trials begun")
    assert board.error == ""
    board.close()


def test_a_picture_of_a_long_log_waits_for_it(db, long_log):
    long_log.set()
    board = _Telling(db, NAME, refresh_s=FOREVER)
    assert "4 trials begun" in board.still().html
    board.close()


def test_a_still_has_no_widget_in_it(board, log):
    log.append(in_order())
    board.refresh()
    still = board.still()
    assert still._repr_html_() == board._repr_html_()
    assert repr(still) == f"{NAME}: running"
    assert not hasattr(still, "_repr_mimebundle_")


def test_a_simulated_study_is_marked(db):
    log = StudyLog(db, "played", {**SPEC, "simulated": True})
    log.append(in_order())
    dashboard = Dashboard(db, "played", refresh_s=FOREVER)
    content, _ = next(dashboard._snapshot())
    assert content["meta"]["name"] == "played (simulated)"
    still = dashboard.still()
    assert "<strong>played (simulated)</strong>" in still.html
    assert still.text == "played (simulated): running"
    dashboard.close()
    log.close()


def test_the_best_trial_of_a_still_is_a_whole_number(board, log):
    log.append(in_order())
    board.refresh()
    assert "best score 5 (trial 0)" in board._repr_html_()


def test_a_page_calls_the_best_score_of_any_phase_the_luckiest_phase(board, log):
    log.append(in_order())
    board.refresh()
    assert "luckiest phase: best score 5 (trial 0)" in board._repr_html_()


def test_a_page_with_the_best_trials_alone_says_so(board, log):
    log.append(in_order())
    board.refresh()
    assert "best of" not in board._repr_html_()
    for trial in range(4, 12):
        log.append([Event(Kind.RUN, 21.0, trial, 0, data={"config": {"lr": 0.1}, "seed": 0, "parent": None})])
        log.append([Event(Kind.PHASE_STARTED, 21.0, trial, 0, 2)])
        log.append([Event(Kind.PHASE_ENDED, 22.0, trial, 0, 2, {"score": 1.0, "metrics": {"score": 1.0}})])
    board.refresh()
    assert "The 10 best of 12 trials, by their luckiest phases:" in board._repr_html_()


def test_an_empty_study_shows_something(board):
    assert "0 trials begun" in board._repr_html_()


def test_it_can_be_collected(db, log):
    dashboard = Dashboard(db, NAME, refresh_s=FOREVER)
    gone = weakref.ref(dashboard)
    dashboard.close()
    del dashboard
    gc.collect()
    assert gone() is None


def test_what_is_not_there_is_said_at_once(db, log):
    with pytest.raises(StudyError, match="unknown study"):
        Dashboard(db, "no such study")
    with pytest.raises(DatabaseError, match="no knowledge base"):
        Dashboard(db.with_name("none.db"), NAME)


def test_the_front_end_loads_nothing_and_travels_when_a_page_lacks_it(board):
    for code in (BOOT, CODE):
        for word in ("import ", "require(", "https://", "http://", "innerHTML", "eval("):
            assert word not in code
    assert BOOT.count("export ") == CODE.count("export ") == 1
    assert "@import" not in CSS
    assert len(board._esm) < 3000
    board._handle_custom_msg({"type": "front"}, [])
    told = board.until("front")
    assert (told["code"], told["css"]) == (CODE, CSS)


def test_ten_viewers_never_lock_the_study_out(db, log):
    """The writer waits for nobody: it is given no time to wait in."""
    log._connection.execute("PRAGMA busy_timeout = 0")
    viewers = [_Telling(db, NAME, refresh_s=0.001) for _ in range(10)]
    for event in in_order():
        log.append([event])
        log.append([Event(Kind.PROGRESS, event.at, 0, 0, data={"metrics": {"pps": 1.0}})] * 50)
    log.append([Event(Kind.STUDY_ENDED, 20.0)])
    for viewer in viewers:
        viewer.until("delta", state="ended")
        assert viewer.error == ""
        viewer.close()


def test_a_burst_loses_nothing(board, log):
    log.append(in_order())
    board.refresh()
    sent = []
    board.send = lambda content, buffers=None: sent.extend(np.frombuffer(buffers[1], np.float32).reshape(-1, 6))
    for k in range(120):
        at = 17.0 + 0.02 * k
        points = [
            Event(Kind.PROGRESS, at + 0.0001 * n, 3, 0, data={"metrics": {"score": float(n)}}) for n in range(100)
        ]
        log.append(points)
    board.refresh()
    assert len(sent) == 12_000
