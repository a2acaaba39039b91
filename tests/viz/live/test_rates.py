from workbench.viz.live.rates import MOST, NAMES, Rates

PPS, LAG = 1 + NAMES.index("pps"), 1 + NAMES.index("policy_lag_mean")


def test_rates_add_up_and_lags_are_averaged():
    rates = Rates()
    for trial, pps, lag in [(0, 100.0, 1.0), (1, 50.0, 3.0)]:
        rates.add(trial, 0.5, "pps", pps)
        rates.add(trial, 0.5, "policy_lag_mean", lag)
    rates.add(0, 2.0, "pps", 10.0)
    rates.drop(1, 4.0)
    rates.add(0, 6.0, "pps", 10.0)
    assert [(s[0], s[PPS], s[LAG]) for s in rates.samples] == [(2.0, 150, 2), (4.0, 60, 2), (6.0, 10, 1)]


def test_samples_are_sent_once_and_again_when_they_are_thinned():
    rates = Rates()
    rates.add(0, 0.0, "tps", 1.0)
    for second in range(1, 11):
        rates.add(0, float(second), "tps", float(second))
    assert [anew for anew, _ in (rates.changes(),)] == [True]
    assert rates.changes() == (False, [])
    for second in range(11, 3 * MOST):
        rates.add(0, float(second), "tps", 4.0)
    anew, samples = rates.changes()
    assert anew
    assert MOST / 2 <= len(samples) <= MOST
    assert samples[-1][1 + NAMES.index("tps")] == 4.0
    assert 0 <= 3 * MOST - samples[-1][0] <= 8
