import numpy as np
import pytest

from workbench.algos.search.surrogate import EARLY_NOISE, NOISE, OWN, Surrogate, likeness, positions

CONFIGS = [{"config_id": n, "lr": 10.0**-n, "network": "ab"[n % 2], "layers": 2} for n in range(4)]


def test_positions_are_ranks_and_words_zero_or_one() -> None:
    """What never varies, and the number a table gives a configuration, say nothing."""
    assert positions(CONFIGS).tolist() == [[0.875, 0], [0.625, 1], [0.375, 0], [0.125, 1]]
    assert positions([{"lr": 1.0}, {}, {"lr": 3.0}]).tolist() == [[1, 0.25], [0, 0.5], [1, 0.75]]


def test_likeness_by_hand() -> None:
    like = likeness(positions(CONFIGS))
    assert like[0, 1] == pytest.approx((np.exp(-0.25) + np.exp(-1)) / 2)
    assert like[0, 2] == pytest.approx((np.exp(-0.5) + 1) / 2)
    assert likeness(positions([{"config_id": 0}, {"config_id": 1}])).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("configs", [[{"network": word} for word in "abc"], [{"network": "a"}, {"network": "b"}, {}]])
def test_any_two_words_are_as_unlike_as_any_other_two(configs) -> None:
    """Whichever comes first; having none is one of them."""
    like = likeness(positions(configs))
    assert len({*like[~np.eye(3, dtype=bool)]}) == 1
    assert like[0, 1] < 1


def test_two_configurations_meet_at_the_last_phase_that_both_have_reported() -> None:
    surrogate = Surrogate(CONFIGS, 3)
    surrogate.see(2, 0, 1.0)
    surrogate.see(0, 0, 2.0)
    surrogate.see(3, 0, 0.0)
    assert surrogate.seen.tolist() == [2, 0, 3]
    assert surrogate.shares().tolist() == pytest.approx([0.5, 2.5 / 3, 0.5 / 3])
    surrogate.see(2, 1, 9.0)  # the others have no second phase to hold against it
    assert surrogate.shares().tolist() == pytest.approx([0.5, 2.5 / 3, 0.5 / 3])
    surrogate.see(0, 1, 3.0)
    assert surrogate.shares().tolist() == pytest.approx([2.5 / 3, 0.5, 0.5 / 3])
    surrogate.see(2, 2, -np.inf)  # diverged: it loses to all, in every phase
    assert surrogate.shares().tolist() == pytest.approx([0.5 / 3, 2.5 / 3, 0.5])


def test_the_posterior_of_one_observation_by_hand() -> None:
    """A single one beats half of all, itself: score 0; it only narrows the spread."""
    surrogate = Surrogate(CONFIGS, 3)
    surrogate.see(0, 0, 1.0)
    assert surrogate.means().tolist() == [0, 0, 0, 0]
    like = (1 - OWN) * (np.exp(-0.25) + np.exp(-1)) / 2
    expected = [np.sqrt(1 - 1 / (1 + NOISE + EARLY_NOISE)), np.sqrt(1 - like**2 / (1 + NOISE + EARLY_NOISE))]
    assert surrogate.spreads([0, 1]).tolist() == pytest.approx(expected, abs=1e-6)


def test_a_mended_inverse_is_the_inverse() -> None:
    """After 300 reports in any order, against the same worked out at once."""
    rng = np.random.default_rng(0)
    configs = [{"lr": float(v), "gamma": float(w)} for v, w in rng.random((60, 2))]
    surrogate, lengths = Surrogate(configs, 10), np.zeros(60, dtype=int)
    for config in rng.permutation(np.repeat(np.arange(60), 5)):
        surrogate.see(config, lengths[config], rng.normal())
        lengths[config] += 1
    covariance = (1 - OWN) * likeness(positions(configs)) + OWN * np.eye(60)
    seen = surrogate.seen
    observed = covariance[np.ix_(seen, seen)] + np.diag(NOISE + EARLY_NOISE / lengths[seen])
    assert np.allclose(surrogate._inverse, np.linalg.inv(observed), atol=1e-10)
    assert np.argmax(surrogate.means()[seen]) == np.argmax(surrogate.shares())


def test_a_lucky_score_among_poor_neighbours_is_believed_less() -> None:
    configs = [{"lr": float(n)} for n in range(20)]
    surrogate = Surrogate(configs, 2)
    for n in range(20):
        surrogate.see(n, 0, float(n))
    alone = surrogate.means()
    lucky = Surrogate(configs, 2)
    for n in range(20):
        lucky.see(n, 0, 30.0 if n == 0 else float(n))
    assert alone[19] > lucky.means()[0] > lucky.means()[1]
