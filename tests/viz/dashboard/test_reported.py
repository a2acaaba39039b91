import numpy as np

from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind
from workbench.knowledge.reader import POINT
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
