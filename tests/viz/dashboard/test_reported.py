import numpy as np
import pandas as pd
import pytest

from tests.browser.standing import news, with_progress
from tests.events import begun, ended, judged, runs
from tests.support import SPACE, RandomTimes
from workbench import PBT
from workbench.analysis import learning_curves
from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind
from workbench.knowledge import frames_of
from workbench.knowledge.reader import POINT
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.viz.dashboard.feed import FRAMES, NO_POINTS, SCORE
from workbench.viz.dashboard.reported import Reported


def test_points_wait_until_no_more_are_to_come_and_curves_go_by_the_ends_of_phases_till_then():
    ledger = Ledger()
    reported = Reported(ledger)
    run = {"config": {}, "parent": None, "seed": 0}
    for event in (
        Event(Kind.RUN, 0.0, 0, 0, data=run),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.PHASE_ENDED, 4.0, 0, 0, 0, {"score": 3.0}),
        Event(Kind.DECISION, 4.0, 0, 0, data={"verdict": "continue", "mode": "m"}),
        Event(Kind.PHASE_STARTED, 4.0, 0, 1, 0),
    ):
        ledger.see(event)
        reported.see(event)
    told = [(0, 1, at, name, 10 * at) for at in (5.0, 6.0) for name in (FRAMES, SCORE)]
    reported.take(np.array(told, POINT), more=True)
    assert reported.reading
    assert reported.rates.frames_per_s == 0
    assert reported.curves.all()[:, :3].tolist() == [[0, 4, 3]]
    ledger.pass_to(6.0)
    reported.take(NO_POINTS, more=False)
    assert not reported.reading
    assert reported.rates.frames_per_s == 10
    assert reported.curves.all()[:, :3].tolist() == [[0, 4, 3], [0, 5, 50], [0, 6, 60]]


def scored() -> list[Event]:
    """A simulated population on few nodes, and what its trials report."""
    events: list[Event] = []
    scheduler = PBT(SPACE, 6, 5, share=0.5, seed=1)
    simulate(scheduler, RandomTimes(1), VirtualCluster(4, 1, startup_s=3.0), events=events)
    return sorted(with_progress(events, np.random.default_rng(0), each=4), key=lambda event: event.at)


@pytest.mark.parametrize("looks", [1, 7, 100])
def test_curves_of_a_population_are_those_of_the_analysis_and_go_on_where_their_weights_stood(looks):
    told = scored()
    ledger = Ledger()
    reported = Reported(ledger)
    for part in np.array_split(np.arange(len(told)), looks):
        now = news([told[k] for k in part])
        for event in now.events:
            ledger.see(event)
            reported.see(event)
        reported.take(now.points, more=False)
    rows = [(e.trial, e.phase, e.at, "score", e.data["metrics"]["score"]) for e in told if e.kind is Kind.PROGRESS]
    metrics = pd.DataFrame(rows, columns=["trial", "phase", "at_s", "name", "value"])
    frames = frames_of([e for e in told if e.kind is not Kind.PROGRESS])
    curves = learning_curves(frames.phases, metrics, trials=frames.trials)
    np.testing.assert_allclose(reported.curves.all(10_000)[:, :3], curves[["trial", "x", "score"]], rtol=1e-4)
    ends = curves[curves["phase_end"]].groupby("phase")["x"].median()
    assert frames.trials["parent_phase"].notna().sum() > 6
    assert ends.is_monotonic_increasing


def test_before_there_are_points_ends_of_phases_go_on_where_their_weights_stood():
    ledger = Ledger()
    reported = Reported(ledger)
    for event in scored():
        if event.kind is not Kind.PROGRESS:
            ledger.see(event)
            reported.see(event)
    frames = frames_of([e for e in scored() if e.kind is not Kind.PROGRESS])
    curves = learning_curves(frames.phases, frames.metrics, trials=frames.trials)
    np.testing.assert_allclose(reported.curves.all()[:, :2], curves[["trial", "x"]], rtol=1e-4)


def test_weights_are_taken_over_as_the_scheduler_knows_of_them():
    """A person has let the donor run another phase: the copy begins with what stood before."""
    ledger = Ledger()
    reported = Reported(ledger)
    for event in (
        runs(0.0, 0, {}),
        begun(0.0, 0, 0, 0),
        ended(4.0, 0, 0, 0, 1.0),
        judged(4.0, 0, 0, "stop", "finished"),
        Event(Kind.INTERVENTION, 4.0, 0, data={"action": "extend", "accepted": True, "phases": 1}),
        begun(4.0, 0, 1, 0),
        ended(9.0, 0, 1, 0, 2.0),
        judged(9.0, 0, 1, "stop", "extended"),
        Event(Kind.RUN, 9.0, 1, 1, data={"config": {}, "parent": 0, "seed": 1}),
        begun(9.0, 1, 1, 0),
        ended(11.0, 1, 1, 0, 2.0),
    ):
        ledger.see(event)
        reported.see(event)
    reported.take(NO_POINTS, more=False)
    rows = reported.curves.all()
    assert rows[:, 1].tolist() == [4, 9, 6]
    assert rows[:, 5].tolist() == [0, 4, 4]  # where their phases began
