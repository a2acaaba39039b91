"""Several studies in one view."""

import json
from contextlib import suppress
from queue import Queue

import numpy as np
import pytest

from tests.events import begun, ended, runs, write_log
from tests.viz.dashboard.conftest import SPEC, Telling, in_order
from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog
from workbench.viz.dashboard import Comparison
from workbench.viz.dashboard.comparison import APART
from workbench.viz.figures import theme

FOREVER = 3600.0


@pytest.fixture
def logs(db):
    made = [StudyLog(db, name, SPEC) for name in ("one", "two")]
    for log in made:
        log.append(in_order())
    yield made
    for log in made:
        log.close()


class _Telling(Telling, Comparison):
    pass


@pytest.fixture
def both(db, logs):
    shown = _Telling(db, "one", "two", refresh_s=FOREVER)
    shown.until("beat")  # its thread has had its first look, and has no more to say
    yield shown
    shown.close()


def told(comparison):
    content, (_, points) = next(comparison._snapshot())
    return content, np.frombuffer(points, np.float32).reshape(-1, 6)


@pytest.mark.parametrize("names", [("one", "two", "three"), ("one", "two", "one"), ("one", "least")])
def test_nothing_that_was_opened_stays_open(db, logs, monkeypatch, names):
    log = StudyLog(db, "least", SPEC)
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})])
    log.close()
    opened = []

    class Counted(KnowledgeBase):
        def __init__(self, path):
            super().__init__(path)
            opened.append(id(self))

        def close(self):
            opened.remove(id(self))
            super().close()

    monkeypatch.setattr("workbench.viz.dashboard.feed.KnowledgeBase", Counted)
    with suppress(InvalidInput, StudyError):
        Comparison(db, *names, refresh_s=FOREVER).close()
    assert opened == []


def test_trials_keep_apart_and_say_whose_they_are(both):
    content, points = told(both)
    assert [t["trial"] for t in content["trials"]] == [0, 1, 2, 3, APART, APART + 1, APART + 2, APART + 3]
    assert [t["config"]["study"] for t in content["trials"]] == ["one"] * 4 + ["two"] * 4
    assert [t["study"] for t in content["trials"]] == [0] * 4 + [1] * 4
    assert [t["label"] for t in content["trials"]][-1] == "3"
    assert content["meta"]["hyperparameters"][0] == "study"
    mine, other = points[points[:, 0] < APART], points[points[:, 0] >= APART]
    assert np.array_equal(mine[:, 1:], other[:, 1:], equal_nan=True)
    assert set(other[:, 0] - APART) == set(mine[:, 0])


def test_a_hyperparameter_may_be_called_as_the_column_of_studies(both, logs):
    logs[1].append([runs(21.0, 4, {"study": "A", "study_": 1})])
    both.refresh()
    content, _ = told(both)
    names = content["meta"]["hyperparameters"]
    assert (names[0], names[-2:]) == ("study__", ["study", "study_"])
    assert content["trials"][-1]["config"] == {"study__": "two", "study": "A", "study_": 1}
    assert [(t["study"], t["config"]["study__"]) for t in content["trials"]] == [(0, "one")] * 4 + [(1, "two")] * 5


def test_a_trial_names_those_of_its_own_study_that_it_comes_from(both, logs):
    told_of = {"config": {"lr": 0.1}, "parent": None, "seed": 9, "candidate": 0, "confirms": True, "clone_of": 1}
    logs[1].append([Event(Kind.RUN, 21.0, 4, 0, data=told_of)])
    both.refresh()
    trials = {t["trial"]: t for t in told(both)[0]["trials"]}
    assert [trials[4 + APART][of] for of in ("candidate", "parent", "confirms")] == [APART, APART + 1, True]
    assert trials[APART]["candidate"] is None


def test_the_best_score_stands_against_node_hours(both):
    content, _ = told(both)
    one, two = content["studies"]
    assert one["best"] == two["best"]
    assert [(side["color"], side["dash"]) for side in (one, two)] == [theme.study_line(k) for k in range(2)]
    hours, scores, seconds = np.array(one["best"]).T
    assert scores.tolist() == sorted(scores)
    assert np.all(hours * 3600 <= 2 * seconds + 1e-3)  # two nodes at most
    assert one["node_h"] >= hours[-1]


def test_small_losses_are_told_as_they_are(db, logs):
    scores = [5e-9, 1.234567891e-9]
    for name in ("small", "smaller"):
        first, second = (ended(k + 1.0, 0, k, 0, score) for k, score in enumerate(scores))
        began = Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})
        write_log(db, name, [began, runs(0.0, 0, {}), begun(0.0, 0, 0), first, begun(1.0, 0, 1), second], SPEC)
    shown = Comparison(db, "small", "smaller", refresh_s=FOREVER)
    assert [score for _, score, _ in told(shown)[0]["studies"][0]["best"]] == scores
    shown.close()


def test_a_simulated_study_is_marked(db, logs):
    log = StudyLog(db, "played", {**SPEC, "simulated": True})
    log.append(in_order())
    log.close()
    shown = Comparison(db, "one", "played", refresh_s=FOREVER)
    content, _ = told(shown)
    assert content["meta"]["name"] == "one, played (simulated)"
    assert [study["title"] for study in content["studies"]] == ["one", "played (simulated)"]
    assert {trial["config"]["study"] for trial in content["trials"]} == {"one", "played"}  # as the filter asks for it
    assert "<td>played (simulated)</td>" in shown._repr_html_()
    assert ">luckiest phase</th>" in shown._repr_html_()
    shown.close()


def test_it_is_sent_again_only_when_something_is_new(both, logs):
    both.refresh()
    kinds = []
    both.send = lambda content, buffers=None: kinds.append(content["type"])
    both.refresh()
    logs[1].append([Event(Kind.STUDY_ENDED, 20.0)])
    both.refresh()
    assert kinds == ["beat", "snapshot"]
    assert "<td>ended</td>" in both._repr_html_()
    states = {(t["config"]["study"], t["state"]) for t in told(both)[0]["trials"]}
    assert {("one", "running"), ("two", "cut off")} <= states  # of what ran in both
    assert ("two", "running") not in states


def test_what_one_study_has_new_is_told_though_another_could_not_be_read(both, logs, monkeypatch):
    logs[0].append([Event(Kind.STUDY_ENDED, 20.0)])
    with monkeypatch.context() as patch:
        patch.setattr(both._studies["two"][0], "news", _away)
        both.refresh()
    assert both.error == "DatabaseError: held by another process"
    both.refresh()
    assert both.error == ""
    assert [study["state"] for study in both.said[-1]["studies"]] == ["ended", "running"]


def _away():
    raise DatabaseError("held by another process")


def test_studies_that_go_on_after_their_end_are_followed(db, logs, monkeypatch):
    monkeypatch.setattr("workbench.viz.dashboard.live._RARELY_S", 0.01)
    for log in logs:
        log.append([Event(Kind.STUDY_ENDED, 20.0)])
    shown, states = Comparison(db, "one", "two", refresh_s=0.01), Queue()
    shown.send = lambda _, buffers=None: buffers and states.put(json.loads(buffers[-1])["state"])
    shown._handle_custom_msg({"type": "snapshot"}, [])
    assert states.get(timeout=60) == "ended"
    logs[0].append([Event(Kind.STUDY_RESUMED, 20.0)])
    assert states.get(timeout=60) == "running"
    shown.close()


def test_what_cannot_be_compared_is_said(db, logs):
    with pytest.raises(InvalidInput, match="needs two studies"):
        Comparison(db, "one", "one")
    with pytest.raises(StudyError, match="unknown study"):
        Comparison(db, "one", "three")
    least = StudyLog(db, "least", SPEC)
    least.append([Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})])
    with pytest.raises(InvalidInput, match="minimise"):
        Comparison(db, "one", "least")
    least.close()
