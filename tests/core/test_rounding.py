from workbench.core.rounding import ceiled, floored


def test_a_hair_is_rounded_away_and_more_is_not():
    assert 33 / 2.2 < 15
    assert 3 * 1.1 / 0.3 > 11
    assert (floored(33 / 2.2), ceiled(3 * 1.1 / 0.3)) == (15, 11)
    assert (floored(14.9999), ceiled(11.0001)) == (14, 12)
    assert (floored(15.0), ceiled(11.0)) == (15, 11)
    assert (floored(1 - 1e-9), ceiled(1e-13)) == (0, 1)
