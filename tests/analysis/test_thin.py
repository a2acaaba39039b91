import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workbench.analysis import thin_curves


def thin(y, most):
    return thin_curves(np.zeros(len(y), int), np.arange(len(y), dtype=float), y, most)


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6)), st.integers(4, 60))
def test_extremes_and_ends_stay(y, most):
    kept = thin(y, most)
    assert len(kept) == len(y) if len(y) <= most else len(kept) <= most
    assert (np.diff(kept) > 0).all()
    assert y[kept].min() == y.min()
    assert y[kept].max() == y.max()
    assert (kept[0], kept[-1]) == (0, len(y) - 1)


def test_short_curves_stay_whole():
    assert thin(np.array([3.0, 1.0, 2.0]), 4).tolist() == [0, 1, 2]


def test_a_spike_is_not_lost():
    y = np.zeros(1000)
    y[777] = 1.0
    assert 777 in thin(y, 10)


def test_missing_scores_are_passed_over():
    y = np.full(100, np.nan)
    y[50] = 1.0
    assert 50 in thin(y, 4)


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6)), st.integers(4, 40), st.data())
def test_many_curves_at_once_keep_their_own_extremes(y, most, data):
    curve = np.sort(data.draw(arrays(np.int64, len(y), elements=st.integers(0, 5))))
    kept = thin_curves(curve, np.arange(len(y), dtype=float), y, most)
    for one in np.unique(curve):
        mine, chosen = np.flatnonzero(curve == one), kept[curve[kept] == one]
        assert len(chosen) == len(mine) if len(mine) <= most else len(chosen) <= most
        assert (y[chosen].min(), y[chosen].max()) == (y[mine].min(), y[mine].max())
        assert (chosen[0], chosen[-1]) == (mine[0], mine[-1])


def test_stretches_are_equal_in_x():
    x = np.r_[np.linspace(0, 1, 900), np.linspace(1.1, 10, 90)]
    kept = thin_curves(np.zeros(990, int), x, np.sin(50 * x), 42)
    assert (x[kept] > 1).sum() > 30
