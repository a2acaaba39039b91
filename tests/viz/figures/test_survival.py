import pandas as pd
import pytest

from workbench.viz.figures import phase_survival


def test_bars_by_fate_and_curves_of_the_paper(survival):
    fig = phase_survival(survival, expected=[4.0, 3.0, 2.25], minimum=[4.0, 2.0, 1.5])
    drawn = {trace.name: list(trace.y) for trace in fig.data}
    assert drawn == {
        "went on": [1, 0],
        "waiting": [1, 0],
        "finished": [0, 1],
        "stopped": [1, 0],
        "running": [1, 0],
        "expected": [4.0, 3.0],
        "fewest": [4.0, 2.0],
    }


def test_a_fate_that_all_have_is_named_in_the_legend(survival):
    gone = survival.assign(failed=survival["began"], continued=0, waiting=0, finished=0, stopped=0, running=0)
    fig = phase_survival(gone)
    assert [trace.name for trace in fig.data] == ["failed"]
    assert fig.layout.showlegend  # plotly has none for a lone trace unless it is asked for


@pytest.mark.parametrize(("state", "name"), [("paused", "running"), ("ended", "cut off"), ("abandoned", "cut off")])
def test_what_was_under_way_as_a_study_broke_off_is_cut_off_as_in_the_table(survival, state, name):
    drawn = [trace.name for trace in phase_survival(survival, state=state).data]
    assert drawn == ["went on", "waiting", "finished", "stopped", name]


def test_ticks_tell_the_mode(survival):
    assert list(phase_survival(survival).layout.xaxis.ticktext) == ["0<br><i>selecting</i>", "1<br><i>last</i>"]


def test_of_many_phases_only_some_have_their_number(survival):
    many = pd.concat([survival[:1]] * 200, ignore_index=True).assign(phase=range(200))
    axis = phase_survival(many).layout.xaxis
    assert list(axis.tickvals) == [*range(0, 200, 7)]
    assert list(axis.ticktext) == [str(phase) for phase in axis.tickvals]
    few = phase_survival(many[:30]).layout.xaxis
    assert list(few.tickvals) == [*range(30)]


def test_nothing_yet(survival):
    assert phase_survival(survival.iloc[:0]).layout.annotations[0].text == "no phase has begun yet"
