import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workbench.analysis import thin


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6)), st.integers(4, 60))
def test_extremes_and_ends_stay(y, most):
    kept = thin(y, most)
    assert len(kept) <= max(most, 4) or len(kept) == len(y)
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
