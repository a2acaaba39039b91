import json

import numpy as np
import pytest

from tests.events import begun, ended, judged, runs
from tests.viz.dashboard.conftest import NAME, in_order
from tests.viz.dashboard.test_derived import Drawn
from workbench.algos.search import HyperTrick
from workbench.core.aim import Aim
from workbench.core.errors import DatabaseError, StudyError
from workbench.core.living import NO_SLOT
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge.reader import POINT
from workbench.study.progress import Progress
from workbench.viz.dashboard.board import OUTCOMES, Board
from workbench.viz.dashboard.feed import READ, Feed, News
from workbench.viz.dashboard.static import static_html
from workbench.viz.dashboard.words import line_of


def _news(events):
    """What a feed makes of these events."""
    points = [
        (event.trial, event.phase, event.at, READ.index(name), value)
        for event in events
        if event.kind is Kind.PROGRESS
        for name, value in event.data["metrics"].items()
    ]
    return News([event for event in events if event.kind is not Kind.PROGRESS], np.array(points, POINT))


class Viewer:
    """What a front end does with messages, in Python."""

    def __init__(self, snapshot):
        self.trials, self.spans, self.points, self.log, self.rates = {}, {}, {}, [], []
        self.take(snapshot)

    def take(self, message):
        content, (spans, points) = message
        json.dumps(content, allow_nan=False)
        self.now = {**getattr(self, "now", {}), **content}
        self.trials |= {trial["trial"]: trial for trial in content["trials"]}
        self.log += content["log"]
        anew, samples = content["rates"]
        self.rates = samples if anew else self.rates + samples
        for row in np.frombuffer(spans, np.float32).reshape(-1, 7):
            self.spans[int(row[0])] = row[1:].tolist()
        self.log = [line for line in self.log if line["n"] not in content.get("void", [])]
        for trial in content.get("dropped", []):
            self.points.pop(trial, None)
        for trial, *point in np.nan_to_num(np.frombuffer(points, np.float32).reshape(-1, 6)).tolist():
            self.points.setdefault(int(trial), []).append(point)

    def __eq__(self, other):
        names = ("trials", "points", "log", "rates")
        same_spans = self.spans.keys() == other.spans.keys() and all(
            np.array_equal(self.spans[k], other.spans[k], equal_nan=True) for k in self.spans
        )
        state = [{k: v for k, v in viewer.now.items() if k not in ("trials", "log", "void", "dropped", "rates")}
                 for viewer in (self, other)]  # fmt: skip
        return same_spans and state[0] == state[1] and all(getattr(self, n) == getattr(other, n) for n in names)


def _board(events=()):
    """What a board makes of these events of the small study."""
    board = Board(NAME, Size(4, 4, 2, 7.0, [4.0, 3.0], [4.0, 2.0]))
    if events:
        board.take(_news(events))
    return board


def test_deltas_add_up_to_the_snapshot():
    board = _board()
    viewer = Viewer(board.snapshot())
    for event in in_order():
        board.take(_news([event]))
        viewer.take(board.delta())
    assert viewer == Viewer(board.snapshot())


@pytest.mark.parametrize("seed", range(3))
def test_deltas_add_up_whatever_happens_and_however_often_somebody_looks(seed):
    rng, board, events = np.random.default_rng(seed), _board(), []
    viewer = Viewer(board.snapshot())
    board.take_as_sent()
    for k, batch in enumerate(told_of(Drawn(seed))):
        events += batch
        news = _news(batch)
        if len(news.points) > 1 and rng.random() < 0.3:  # of a long log they come bit by bit
            board.take(News(news.events, news.points[:1], more=True))
            news = News([], news.points[1:])
        board.take(news)
        board.learn(driven=bool(rng.random() < 0.9))
        if rng.random() < 0.6 and (delta := board.delta()):
            viewer.take(delta)
            assert k % 10 or viewer == Viewer(board.snapshot())
    if delta := board.delta():
        viewer.take(delta)
    assert viewer == Viewer(board.snapshot())
    later = _board()
    later.learn(driven=board.driven)
    later.take(_news(events))
    assert viewer == Viewer(later.snapshot())


def told_of(drawn):
    """What happens in a study, with what running trials report and people remark, and its end."""
    yield [*drawn.begin()]
    for _ in range(100):
        batch = [*drawn.step()]
        for trial, (slot, phase) in [*drawn.on.items()]:
            told = {"score": drawn.rng.normal(), "frames": 10 * drawn.at, "pps": drawn.rng.random()}
            metrics = {name: float(value) for name, value in told.items() if drawn.rng.random() < 0.7}
            batch.append(drawn.event(Kind.PROGRESS, trial, phase, slot, {"metrics": metrics}))
        if drawn.rng.random() < 0.1:
            action = str(drawn.rng.choice(["note", "tag", "untag", "pause study", "resume study"]))
            asked = {"request": f"r{drawn.at}", "action": action, "accepted": drawn.rng.random() < 0.8, "by": "person"}
            batch.append(drawn.event(Kind.INTERVENTION, data={**asked, "text": "hm", "tag": "good"}))
        yield batch
    yield [drawn.event(Kind.STUDY_ENDED)]


def test_a_large_study_is_told_bit_by_bit_the_leader_first(monkeypatch):
    board = _board(in_order())
    assert len(list(board.snapshot_in_parts())) == 1
    monkeypatch.setattr("workbench.viz.dashboard.board._AT_FIRST", 2)
    head, rest = board.snapshot_in_parts()
    assert head[0]["partial"]
    assert {trial["trial"] for trial in head[0]["trials"]} == {*board.rows.leading(2, "last_score"), 0}
    assert max(t["best"] for t in head[0]["trials"]) == max(t["best"] or 0.0 for t in board.snapshot()[0]["trials"])
    viewer = Viewer(head)
    viewer.take(rest)
    assert not viewer.now.pop("partial")
    assert viewer == Viewer(board.snapshot())


def test_of_equal_scores_the_first_in_time_leads_and_is_told_first(monkeypatch):
    again = [Event(Kind.PHASE_ENDED, at, trial, 0, 0, {"score": 9.0}) for at, trial in ((21.0, 2), (22.0, 1))]
    board = _board([*in_order(), *again])
    monkeypatch.setattr("workbench.viz.dashboard.board._AT_FIRST", 0)
    monkeypatch.setattr(board.rows, "leading", lambda most, by: [])
    head, _ = board.snapshot_in_parts()
    assert [trial["trial"] for trial in head[0]["trials"]] == [head[0]["best"][-1][2]] == [2]


def test_a_quiet_log_sends_nothing():
    board = _board(in_order())
    assert board.delta() is not None
    assert board.delta() is None


def test_a_delta_holds_only_what_changed():
    events = in_order()
    board = _board(events[:-2])
    board.delta()
    board.take(_news(events[-2:]))  # trial 0 ends
    content, (spans, points) = board.delta()
    assert [trial["trial"] for trial in content["trials"]] == [0]
    assert len(np.frombuffer(points, np.float32)) == 6
    index, *_, ended, outcome = np.frombuffer(spans, np.float32)
    assert (index, ended, OUTCOMES[int(outcome)]) == (5, 20.0, "ended")


def test_what_is_left_ends_with_the_time_the_study_may_take():
    board = _board([Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"max_hours": 21 / 3600}}), *in_order()])
    low, high = board.state()["left_s"]
    assert low <= high == 1.0  # it is the 20th second


def test_numbers_of_the_small_study():
    board = _board(in_order())
    content, _ = board.snapshot()
    assert (content["trials_started"], content["trials_ended"], content["phases_ended"]) == (4, 2, 4)
    assert content["expected_phases"] == 4 + 2  # one under way, and one more at least begins the last
    low, high = content["left_s"]
    assert low < 8.0 < high  # two phases of some 8 s each are left to three slots, one of them all but over
    assert content["busy"] == [1, 3]
    assert content["frames_per_s"] == 200.0  # only trial 3 still runs, at 200 a second
    assert content["best"] == [[8.0, 3.0, 2, 0], [20.0, 5.0, 0, 1]]
    assert [row["began"] for row in content["survival"]] == [4, 1]
    assert content["meta"]["expected"] == [4.0, 3.0]
    assert content["meta"]["minimum"] == [4.0, 2.0]
    assert content["meta"]["hyperparameters"][:2] == ["lr", "net"]
    assert [line["what"] for line in content["log"]] == ["attempt lost", "hold", "continue", "stop", "finished"]
    assert [line["list"] for line in content["log"]] == ["troubles", "decisions", "continues"] + ["decisions"] * 2


def test_an_attempt_that_costs_nothing_is_not_called_lost():
    left = {"why": "left", "error": "the connection to the cluster broke"}
    board = _board([*in_order(), Event(Kind.PHASE_FAILED, 21.0, 3, 0, 1, left)])
    (line,) = [line for line in board.snapshot()[0]["log"] if line["at"] == 21.0]
    assert (line["what"], line["why"]) == ("attempt cut short", "the connection to the cluster broke")


def _answered(at, trial, action, **more):
    return Event(Kind.INTERVENTION, at, trial, data={"request": f"r{at}", "action": action, "by": "person", **more})


def test_what_people_ask_is_told_with_the_answer():
    board = _board(in_order())
    board.delta()
    board.take(_news([
        _answered(21.0, 3, "stop", accepted=True),
        Event(Kind.TRIAL_STOPPED, 21.0, 3, 0, data={"by": "person"}),
        Event(Kind.DECISION, 21.0, 3, 0, data={"verdict": "stop", "mode": "failed"}),
        _answered(22.0, 1, "pause", accepted=False, why="trial 1 is over"),
        _answered(23.0, None, "pause study", accepted=True),
    ]))  # fmt: skip
    content, (spans, _) = board.delta()
    asked = [(line["what"], line["why"], line["request"]) for line in content["log"]]
    assert asked == [
        ("person asked to stop: accepted", "", "r21.0"),
        ("person asked to pause: refused", "trial 1 is over", "r22.0"),
        ("person asked to pause study: accepted", "", "r23.0"),
    ]
    assert (content["state"], content["left_s"], content["frames_per_s"]) == ("paused", None, 0.0)
    stopped = next(trial for trial in content["trials"] if trial["trial"] == 3)
    assert (stopped["state"], stopped["why"]) == ("stopped", "stopped by a person")
    assert OUTCOMES[int(np.frombuffer(spans, np.float32).reshape(-1, 7)[-1][-1])] == "stopped"
    assert [row["stopped"] for row in content["survival"]] == [2, 0]
    assert [row["running"] for row in content["survival"]] == [0, 0]


def test_occupancy_goes_on_between_events():
    board = Board(NAME, Size(2, 2, 2, 4.0))
    board.take(_news([Event(Kind.SLOT_JOINED, 0.0, slot=k, data={"node": "n"}) for k in (0, 1)]))
    begun = [Event(Kind.RUN, 10.0, 0, 0, data={"config": {"lr": 1}, "parent": None, "seed": 0}),
             Event(Kind.PHASE_STARTED, 10.0, 0, 0, 0)]  # fmt: skip
    board.take(_news(begun))
    assert board.state()["occupancy"] == 0.0
    board.take(_news([Event(Kind.PROGRESS, 100.0, 0, 0, data={"metrics": {"score": 1.0}})]))
    assert (board.state()["occupancy"], board.state()["idle"]) == (0.45, 0.55)  # 90 s of 2 × 100 s


@pytest.mark.parametrize("simulated", [False, True])
def test_the_clock_goes_on_though_nothing_is_logged(here, simulated):
    board = Board(NAME, Size(2, 2, 2, 4.0), simulated=simulated)
    slots = [Event(Kind.SLOT_JOINED, 0.0, slot=k, data={"node": "n"}) for k in (0, 1)]
    run = Event(Kind.RUN, 10.0, 0, 0, data={"config": {"lr": 1}, "parent": None, "seed": 0})
    board.take(_news([Event(Kind.STUDY_STARTED, 0.0), *slots, run, Event(Kind.PHASE_STARTED, 10.0, 0, 0, 0)]))
    board.learn(driven=True)
    board.take_as_sent()
    here.at += 0.5
    board.learn(driven=True)
    assert board.delta() is None
    here.at += 89.5
    board.learn(driven=True)
    assert not board.stale  # a comparison is not sent anew for that
    news = board.delta()
    if simulated:
        assert news is None
        return
    assert (news[0]["at_s"], news[0]["occupancy"]) == (100.0, 0.45)
    assert board.delta() is None
    board.learn(driven=False)
    assert board.delta()[0]["at_s"] == 10.0  # from which whoever drives it next goes on


def test_the_workers_that_live_are_counted_those_of_a_gang_too():
    board = Board(NAME, Size())
    assert board.state()["workers"] == 0
    places = ({"node": "n"}, {"node": "n"}, {"node": "n+m", "workers": 3})
    joined = [Event(Kind.SLOT_JOINED, 0.0, slot=k, data=place) for k, place in enumerate(places)]
    board.take(_news([*joined, Event(Kind.SLOT_LOST, 1.0, slot=0, data={"node": "n"})]))
    assert board.state()["workers"] == 4


def test_a_paused_study_has_neither_throughput_nor_time_left():
    board = _board(in_order())
    assert board.state()["frames_per_s"] > 0
    board.take(_news([
        _answered(21.0, None, "pause study", accepted=True),
        Event(Kind.PHASE_ENDED, 22.0, 3, 0, 1, {"score": 1.0}),
        Event(Kind.DECISION, 22.0, 3, 0, data={"verdict": "continue", "mode": "collecting"}),
    ]))  # fmt: skip
    told = board.state()
    assert (told["state"], told["frames_per_s"], told["left_s"], told["busy"]) == ("paused", 0.0, None, [0, 3])
    assert board.reported.rates.frames_per_s == 0.0
    assert "<td>set aside</td>" in static_html(board)  # trial 3, which goes on when the study does


def test_a_trial_that_a_person_set_aside_has_no_throughput():
    board = _board([
        *in_order(),
        _answered(21.0, 3, "pause", accepted=True),
        Event(Kind.PHASE_ENDED, 22.0, 3, 0, 1, {"score": 1.0}),
        Event(Kind.DECISION, 22.0, 3, 0, data={"verdict": "continue", "mode": "collecting"}),
        Event(Kind.SLOT_JOINED, 23.0, slot=3, data={"node": "m"}),
    ])  # fmt: skip
    told = board.state()
    assert (told["state"], told["busy"][0], told["frames_per_s"]) == ("running", 0, 0.0)
    row = board.rows.of(3)
    assert (row["state"], row["may"]) == ("set aside", ["stop", "resume"])


def test_a_phase_that_was_lost_with_its_driver_is_under_way_no_more():
    board = _board([*in_order(), _answered(21.0, None, "pause study", accepted=True)])
    board.delta()
    board.take(_news([Event(Kind.STUDY_RESUMED, 22.0)]))
    content, _ = board.delta()
    assert {row["trial"]: row["in_phase"] for row in content["trials"]} == {2: False, 3: False}


def test_a_study_that_no_worker_is_up_for_says_so_though_its_clock_stands(monkeypatch):
    monkeypatch.setattr("workbench.core.living._PATIENCE_S", -1.0)
    board = _board([Event(Kind.STUDY_STARTED, 0.0)])
    told, _ = board.snapshot()
    assert told["waits"] == ""
    board.delta()
    board.learn(driven=True)
    told, _ = board.delta()
    assert told["waits"] == NO_SLOT
    board.take(_news([Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "m"})]))
    board.learn(driven=True)
    assert board.state()["waits"] == ""


def test_what_waits_for_a_slot_after_a_resumption_has_no_throughput():
    board = _board([*in_order(), Event(Kind.STUDY_INTERRUPTED, 21.0)])
    board.take(_news([Event(Kind.STUDY_RESUMED, 21.0), Event(Kind.SLOT_JOINED, 22.0, slot=0, data={"node": "m"})]))
    told = board.state()
    assert (told["state"], told["busy"], told["frames_per_s"]) == ("running", [0, 1], 0.0)
    board.take(_news([Event(Kind.PHASE_STARTED, 23.0, 3, 0, 0)]))
    for at, frames in ((24.0, 10.0), (25.0, 310.0)):
        board.take(_news([Event(Kind.PROGRESS, at, 3, 0, data={"metrics": {"frames": frames}})]))
    assert board.state()["frames_per_s"] == 300.0


def test_a_study_whose_driver_died_is_not_running():
    board = _board(in_order())
    board.delta()
    board.learn(driven=False)
    content, _ = board.delta()  # that alone is news
    assert (content["state"], content["frames_per_s"], content["left_s"]) == ("abandoned", 0.0, None)


def test_events_that_could_not_be_taken_in_are_said_to_be_lacking_ever_after():
    board = _board()
    for events in ([*in_order(), Event(Kind.DECISION, 21.0, 3, 0)], []):  # a decision has a verdict
        with pytest.raises(StudyError, match=r"is not whole.*KeyError: 'verdict'"):
            board.take(_news(events))


def test_a_stop_is_told_however_often_others_went_on_since():
    went_on = Event(Kind.DECISION, 22.0, 3, 0, data={"verdict": "continue", "mode": "collecting"})
    board = _board([*in_order(), *[went_on] * 400])
    told = board.snapshot()[0]["log"]
    assert [line["list"] for line in told].count("continues") == 300
    assert [line["trial"] for line in told if line["what"] == "stop"] == [1]


def test_a_failure_is_told_once():
    board = _board()
    viewer = Viewer(board.snapshot())
    board.take(_news(in_order()))
    viewer.take(board.delta())
    lost = [Event(Kind.PHASE_FAILED, 21.0 + k, 3, 0, 1, {"why": "exception", "error": "bad"}) for k in range(2)]
    board.take(_news(lost))
    viewer.take(board.delta())
    assert [line["why"] for line in viewer.log if line["trial"] == 3] == ["exception: bad"] * 2
    board.take(_news([
        Event(Kind.TRIAL_FAILED, 23.0, 3, 0, 1, {"why": "exception", "error": "bad", "attempt": 2}),
        Event(Kind.DECISION, 23.0, 3, 0, data={"verdict": "stop", "mode": "failed"}),
    ]))  # fmt: skip
    viewer.take(board.delta())
    assert [(line["what"], line["why"]) for line in viewer.log if line["trial"] == 3] == [
        ("failed after 3 attempts", "exception: bad")
    ]
    assert (viewer.trials[3]["why"], viewer.trials[3]["error"]) == ("", "bad")
    assert viewer == Viewer(board.snapshot())


def test_a_trial_that_confirms_another_fails_as_any_does_but_is_none_of_the_search():
    run = {"config": {"lr": 0.1}, "parent": None, "seed": 9, "candidate": 0, "confirms": True, "by": "person"}
    board = _board([
        *in_order(),
        Event(Kind.RUN, 21.0, 4, 0, data=run),
        Event(Kind.PHASE_STARTED, 21.0, 4, 0, 0),
        Event(Kind.TRIAL_FAILED, 22.0, 4, 0, 0, {"error": "diverged"}),
    ])  # fmt: skip
    told = board.state()
    assert (told["trials_started"], told["trials_asked"]) == (5, 4)
    assert (told["failed"], told["failures"]) == (1, ["diverged, 1 trial"])
    assert "failed: diverged" in static_html(board)
    assert [row["failed"] for row in told["survival"]] == [0, 0]


def test_the_number_of_a_configuration_is_no_hyperparameter():
    run = {"config": {"config_id": 7, "lr": 0.1}, "parent": None, "seed": 0}
    board = _board([Event(Kind.RUN, 0.0, 0, 0, data=run)])
    assert board.snapshot()[0]["meta"]["hyperparameters"] == ["lr"]
    assert board.frames().hyperparameters == ["lr"]


def test_whole_numbers_of_a_configuration_are_told_in_full():
    run = {"config": {"width": 65540.0}, "parent": None, "seed": 0}
    clone = _answered(1.0, 0, "clone", accepted=True, config={"width": 65536.0}, phases=2)
    ended = Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0})
    board = _board([Event(Kind.RUN, 0.0, 0, 0, data=run), Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0), ended, clone])
    assert "<td>65540</td>" in static_html(board)
    assert line_of(clone)["why"] == "config {width: 65536}, phases 2"


def test_a_confirmation_is_told_as_one_and_of_phases_that_a_person_asked_for_what_is_left():
    """It was "asked to clone: accepted (config {…}, phases 2, confirms True)", and its end "finished (extended)"."""
    board = _board()
    run = {"config": {"lr": 0.1}, "parent": None, "seed": 0}
    asked = _answered(2.0, 0, "clone", accepted=True, config={"lr": 0.1}, phases=2, confirms=True)
    fresh = {"clone_of": 0, "own_phases": 2, "by": "person", "confirms": True, "candidate": 0}
    board.take(_news([runs(0.0, 0, {"lr": 0.1}), begun(0.0, 0, 0), ended(1.0, 0, 0, 0, 1.0), asked,
                      Event(Kind.RUN, 2.0, 1, 0, data=run | fresh), begun(2.0, 1, 0), ended(3.0, 1, 0, 0, 1.0),
                      judged(3.0, 1, 0, "continue", "extended", phases_left=1), begun(3.0, 1, 1),
                      ended(4.0, 1, 1, 0, 1.0), judged(4.0, 1, 1, "stop", "extended")]))  # fmt: skip
    content, _ = board.snapshot()
    assert [(line["what"], line["why"]) for line in content["log"]] == [
        ("person asked to confirm: accepted", "phases 2"),
        ("continue", "1 phase left"),
        ("finished", "ran all its phases"),
    ]
    assert content["trials"][1]["why"] == "ran all its phases"


def test_reports_to_collect_are_shown_as_the_scheduler_told_them():
    board = _board(in_order())
    why = {"verdict": "continue", "mode": "collecting", "reported": 3, "collecting_reports": 5}
    board.take(_news([Event(Kind.DECISION, 21.0, 3, 0, data=why)]))
    assert board.state()["survival"][0]["collecting_reports"] == 5
    assert HyperTrick.explain(why) == "DCM: report 3 of the 5 that all go on"


def test_a_letter_a_phase_tells_what_became_of_a_trial():
    board = _board(in_order())
    assert [trial["pips"] for trial in board.snapshot()[0]["trials"]] == ["cf", "s", "h", "r"]


def test_importance_is_sent_when_there_is_something_new():
    board = _board(in_order())
    board.delta()
    board.learn(importance=[{"phase": None, "rows": [], "told": "no importance"}])
    assert board.delta()[0]["importance"] == board.importance
    board.take(_news([Event(Kind.PROGRESS, 30.0, 3, 0, data={"metrics": {"score": 1.0}})]))
    assert "importance" not in board.delta()[0]
    assert board.snapshot()[0]["importance"] == board.importance


def test_a_study_that_minimises_has_its_lowest_scores_first():
    board = Board(NAME, Size())
    begin = Event(Kind.STUDY_STARTED, 0.0, data={"aim": Aim(mode="min").to_json()})
    board.take(_news([begin, *in_order()[1:]]))
    assert board.snapshot()[0]["meta"]["minimise"] is True
    assert [trial["best"] for trial in board.rows.best(2)] == [0.5, 1.0]
    assert _board().snapshot()[0]["meta"]["minimise"] is False


def test_phases_that_a_trial_has_from_its_parent_are_counted_once():
    begun = {"config": {"lr": 0.1}, "seed": 0}
    board = _board([
        Event(Kind.RUN, 0.0, 0, 0, data={**begun, "parent": None}),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0}),
        Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "stop", "mode": "replaced"}),
        Event(Kind.RUN, 1.0, 1, 1, data={**begun, "parent": 0}),
        Event(Kind.PHASE_STARTED, 1.0, 1, 1, 0),
        Event(Kind.PHASE_ENDED, 2.0, 1, 1, 0, {"score": 2.0}),
    ])  # fmt: skip
    assert board.ledger.phases_ended == board.state()["phases_ended"] == 2


def test_lost_slots_and_drivers_are_troubles():
    board = _board([*in_order(), Event(Kind.SLOT_LOST, 21.0, slot=2, data={"node": "m"}),
                Event(Kind.STUDY_INTERRUPTED, 22.0, data={"error": "OSError('full')"})])  # fmt: skip
    troubles = [(line["what"], line["why"]) for line in board.snapshot()[0]["log"] if line["list"] == "troubles"]
    assert troubles[1:] == [("slot 2 lost", "on m"), ("the driver left", "OSError('full')")]


def test_a_study_of_unknown_size_says_so_until_its_first_event_tells():
    board = Board(NAME, Size())
    meta = board.snapshot()[0]["meta"]
    assert (meta["n_trials"], meta["n_phases"], meta["expected"], board.state()["expected_phases"]) == (
        None,
        None,
        [],
        None,
    )
    told = Size(6, 6, 3, 12.0, [6, 4, 2], [6, 3, 1])
    board.take(_news([Event(Kind.STUDY_STARTED, 0.0, data={"size": told.to_json()})]))
    meta = board.snapshot()[0]["meta"]
    assert (meta["n_trials"], meta["n_phases"], meta["expected"], meta["minimum"]) == (6, 3, [6, 4, 2], [6, 3, 1])
    assert board.state()["expected_phases"] == 12


def test_phases_expected_are_told_as_follow_tells_them():
    size = Size(n_trials=6, n_phases=2, expected_phases=10.5)
    assert "phases: 0 of about 10" in str(Progress(size))
    assert Board("half", size).state()["expected_phases"] == 10.5  # a page rounds it alike: front/paint.test.mjs


def test_a_study_that_grows_tells_its_new_size_once():
    board = _board([*in_order(), Event(Kind.STUDY_ENDED, 20.0)])
    viewer = Viewer(board.snapshot())
    board.take_as_sent()
    size = Size(6, 6, 2, 10.0, [6.0, 4.0], [6.0, 3.0])
    board.take(_news([Event(Kind.STUDY_RESUMED, 20.0, data={"size": size.to_json()})]))
    viewer.take(board.delta())
    assert (viewer.now["meta"]["n_trials"], viewer.now["meta"]["expected"]) == (6, [6.0, 4.0])
    board.take(_news([Event(Kind.PROGRESS, 21.0, 3, 0, data={"metrics": {"score": 1.0}})]))
    assert "meta" not in board.delta()[0]


def test_what_only_the_first_event_tells_reaches_who_came_before_it():
    board = Board(NAME, Size())
    viewer = Viewer(board.snapshot())
    board.take_as_sent()
    board.take(_news([Event(Kind.STUDY_STARTED, 0.0, data={"aim": Aim(mode="min").to_json()}), *in_order()[1:]]))
    viewer.take(board.delta())
    assert viewer.now["meta"]["minimise"] is True
    assert viewer == Viewer(board.snapshot())


def test_phases_beyond_those_that_were_meant_have_greys_of_their_own():
    board = _board([*in_order(), Event(Kind.PHASE_STARTED, 21.0, 0, 2, 0)])
    meta = board.snapshot()[0]["meta"]
    assert meta["n_phases"] == 2
    assert len(set(meta["phases_on_light"])) == len(set(meta["phases_on_dark"])) == 3


def test_reasons_are_in_the_words_of_the_scheduler():
    board = Board(NAME, Size(), lambda reason: f"my {reason['mode']}")
    board.take(_news(in_order()))
    content, _ = board.snapshot()
    told = [line["why"] for line in content["log"] if line["list"] == "decisions"]
    assert told
    assert all(words.startswith("my ") for words in told)
    assert any(trial["why"].startswith("my ") for trial in content["trials"])


def test_a_feed_gives_each_thing_once(db, log):
    feed = Feed(db, NAME)
    first, second = in_order()[:15], in_order()[15:]
    for part in (first, second):
        log.append(part)
        events, points, _ = feed.news()
        assert events == [e for e in part if e.kind is not Kind.PROGRESS]
        inner = set(points["at"].tolist()) - {e.at for e in part if e.report()}
        assert inner == {e.at for e in part if e.kind is Kind.PROGRESS}
        assert {READ[name] for name in points["name"]} <= {"score", "frames"}
        events, points, _ = feed.news()
        assert (events, len(points)) == ([], 0)
    feed.close()


def test_a_look_that_fails_half_way_loses_nothing(db, log, monkeypatch):
    log.append(in_order())
    feed, whole = Feed(db, NAME), Feed(db, NAME)
    with monkeypatch.context() as patch:
        patch.setattr("workbench.knowledge.reader.decode_events", _held_by_another)
        with pytest.raises(DatabaseError, match="held"):
            feed.news()
    points, told = feed.news().points, whole.news().points
    assert len(points) == len(told) > 0
    feed.close()
    whole.close()


def _held_by_another(*_):
    raise DatabaseError("held by another process")


def test_points_that_come_bit_by_bit_wait_until_all_are_there_and_curves_begin_with_the_ends_of_phases():
    events = in_order()
    whole = _news(events)
    board, at_once = _board(), _board()
    at_once.take(whole)
    board.take(News(whole.events, whole.points[:3], more=True))
    viewer = Viewer(board.snapshot())
    board.take_as_sent()
    assert viewer.now["reading"]
    ended = {event.trial: event.data["score"] for event in events if event.kind is Kind.PHASE_ENDED}
    assert {trial: rows[-1][1] for trial, rows in viewer.points.items()} == ended
    assert all(end == 1 for rows in viewer.points.values() for _, _, end, *_ in rows)
    board.take(News([], whole.points[3:5], more=True))
    assert not board.stale
    board.take(News([], whole.points[5:]))
    viewer.take(board.delta())
    assert viewer == Viewer(at_once.snapshot())


def test_a_long_log_is_read_bit_by_bit(db, log, monkeypatch):
    log.append(in_order())
    at_once, feed, bits = Feed(db, NAME), Feed(db, NAME), []
    whole = at_once.news()
    monkeypatch.setattr("workbench.viz.dashboard.feed._AT_ONCE", 4)
    while not bits or bits[-1].more:
        bits.append(feed.news())
    at_once.close()
    feed.close()
    assert len(bits) > 2
    assert [len(bit.events) for bit in bits[1:]] == [0] * (len(bits) - 1)
    assert np.concatenate([bit.points for bit in bits])["value"].tolist() == whole.points["value"].tolist()
