import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support import KEYS, NETWORK, names_what_applies
from workbench.algos.search import FullRuns, ListSearcher, RandomSearcher, Seeded
from workbench.core.domains import Choice, LogUniform, Uniform, on_step, real_ends, spaced
from workbench.core.errors import InvalidInput
from workbench.core.space import Space, space_of

PAPER = Space(
    {
        "learning_rate": LogUniform(1e-5, 1e-2),
        "t_max": LogUniform(2, 100, step=1),
        "gamma": Choice([0.9, 0.95, 0.99, 0.995, 0.999]),
    }
)


def test_sampled_configurations_are_points_of_the_space() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        PAPER.validate(PAPER.sample(rng))


def test_log_uniform_is_uniform_in_the_logarithm() -> None:
    rng = np.random.default_rng(1)
    logs = np.log10([PAPER["learning_rate"].sample(rng) for _ in range(4000)])
    counts, _ = np.histogram(logs, bins=3, range=(-5, -2))
    assert np.all(np.abs(counts - 4000 / 3) < 4 * np.sqrt(4000 * 2 / 9))


def test_quantised_log_uniform_gives_whole_numbers_and_reaches_both_ends() -> None:
    rng = np.random.default_rng(2)
    values = [LogUniform(2, 5, step=1).sample(rng) for _ in range(400)]
    assert set(values) == {2, 3, 4, 5}
    assert all(type(v) is int for v in values)
    # the law on [1.5, 5.5), rounded: P(2) = ln(2.5/1.5) / ln(5.5/1.5) = 0.393
    assert values.count(2) / 400 == pytest.approx(0.393, abs=0.08)
    assert values.count(5) / 400 == pytest.approx(0.154, abs=0.05)  # ln(5.5/4.5) of it


def test_the_largest_whole_numbers_and_the_widest_ranges_are_drawn_as_others() -> None:
    rng, most = np.random.default_rng(0), 2**53 - 1
    largest = Uniform(most - 10, most, step=1)
    assert {largest.sample(rng) for _ in range(200)} == {*largest.grid(11)} == {*range(most - 10, most + 1)}
    assert LogUniform(1, most, step=1).grid(4)[-1] == most
    for wide in (Uniform(-8e307, 8e307), LogUniform(1e-150, 1e150)):
        value = wide.sample(rng)
        assert wide.contains(value)
        assert wide.contains(wide.shift(value, 0.2))


def test_uniform_step_counts_from_low() -> None:
    domain = Uniform(0.5, 2.0, step=0.5)
    assert domain.grid(10) == [0.5, 1.0, 1.5, 2.0]
    assert domain.contains(1.5)
    assert not domain.contains(1.6)


def test_one_step_fits_whatever_is_lost_by_rounding() -> None:
    assert Uniform(1.0, 1.0001, step=0.0001).grid(2) == pytest.approx([1.0, 1.0001])
    with pytest.raises(InvalidInput, match="0 < step <= high - low"):
        Uniform(1.0, 1.0001, step=0.00011)


@given(
    st.floats(-1e6, 1e6), st.integers(1, 10_000), st.floats(1e-4, 100), st.floats(0, 0.99), st.integers(0, 2**32 - 1)
)
@example(0.0, 3, 0.1, 0.0, 0)  # 3 times 0.1 is more than 0.3
@example(0.1, 5, 0.1, 0.0, 0)
@example(5e-324, 1, 1.0, 0.0, 0)
def test_what_a_domain_with_a_step_draws_lies_in_it(low, n, step, rest, seed) -> None:
    rng = np.random.default_rng(seed)
    high = round(low + (n + rest) * step, 9)
    kinds = [Uniform, LogUniform] if low > 1e-300 else [Uniform]  # below it high / low may overflow, which is refused
    for domain in [kind(low, high, step) for kind in kinds if step <= high - low]:
        drawn = [*(domain.sample(rng) for _ in range(5)), *domain.grid(3), domain.perturb(high, 1.2)]
        assert all(domain.contains(value) for value in drawn)
        assert not any(domain.contains(value + step / 3) for value in drawn)


@pytest.mark.parametrize("outside", [0.35, 0.4, -0.1, 0.3001, 10**400, float("inf"), float("nan"), "0.1", True])
def test_what_is_off_the_steps_or_beyond_the_ends_lies_outside(outside) -> None:
    assert not Uniform(0, 0.3, step=0.1).contains(outside)
    assert not Uniform(0, 0.3).contains(outside)


def test_numpy_s_numbers_lie_in_a_domain_as_python_s_do() -> None:
    assert Uniform(1, 9, step=1).contains(np.int64(3))
    assert LogUniform(0.1, 1.0).contains(np.float32(0.25))
    assert Choice([True, False]).contains(np.bool_(True))
    assert not Choice([1, 2]).contains(np.bool_(True))
    assert not Uniform(0, 1).contains(np.bool_(True))
    assert not Uniform(1, 9, step=1).contains(np.float64(2.5))


def test_grid_is_the_product_with_the_last_name_fastest() -> None:
    space = Space({"a": Uniform(0, 1), "b": Choice(["x", "y"])})
    assert space.grid({"a": 2, "b": 2}) == [
        {"a": 0.0, "b": "x"},
        {"a": 0.0, "b": "y"},
        {"a": 1.0, "b": "x"},
        {"a": 1.0, "b": "y"},
    ]


def test_json_round_trip() -> None:
    described = PAPER.to_json()
    assert described["t_max"] == {"log_uniform": [2, 100], "step": 1}
    assert Space.from_json(described).to_json() == described
    assert dict(Space.from_json(described)) == dict(PAPER)


def test_a_shift_is_a_share_of_the_domain_s_length() -> None:
    assert Uniform(0.0, 2.0).shift(0.0, 0.1) == pytest.approx(0.2)
    assert Uniform(0.0, 2.0).shift(0.0, -0.1) == 0.0
    assert Uniform(1.0, 2.0).shift(1.0, 0.1) == pytest.approx(1.1)
    assert LogUniform(1e-4, 1e-2).shift(1e-3, 0.25) == pytest.approx(10**-2.5)
    assert LogUniform(2, 100, step=1).shift(10, 0.1) == 15  # 10 · 50^0.1 = 14.8
    assert Choice([1, 2, 3, 4]).shift(2, 0.3) == 3
    assert Choice([1, 2, 3, 4]).shift(2, -0.9) == 1
    assert Choice([1, 2, 3, 4]).shift(1, 0.4) == 3  # 0.4 · 4 = 1.6 places


def test_a_range_without_a_step_gives_fractions_though_its_ends_are_whole() -> None:
    moved = Uniform(1, 3).perturb(3, 2.0), Uniform(1, 3).shift(1, -0.5), *Uniform(1, 3).grid(3)
    assert [(type(value), value) for value in moved] == [
        (float, 3.0),
        (float, 1.0),
        *((float, n) for n in (1.0, 2.0, 3.0)),
    ]


def test_values_move_either_way_by_any_of_the_factors_and_are_drawn_anew_as_often_as_asked() -> None:
    space, rng = Space({"lr": Uniform(0.0, 10.0)}), np.random.default_rng(0)
    assert {space.perturb({"lr": 1.0}, (0.5, 2.0), rng)["lr"] for _ in range(50)} == {0.5, 2.0}
    assert {space.shift({"lr": 5.0}, 0.01, rng)["lr"] > 5.0 for _ in range(50)} == {True, False}
    assert [space.redraw({"lr": 5.0}, share, rng)["lr"] == 5.0 for share in (0.0, 1.0)] == [True, False]


def test_a_scheduler_s_space_is_its_own_or_that_of_whose_trials_it_runs() -> None:
    space = Space({"lr": Uniform(0.0, 1.0)})
    full = FullRuns(RandomSearcher(space), 2, 1)
    assert space_of(full) is space_of(Seeded(full, 3)) is space_of(Seeded(Seeded(full, 3), 2)) is space
    assert space_of(FullRuns(ListSearcher([{"lr": 0.5}]), 1, 1)) is None


def test_a_value_with_a_step_moves_by_one_at_least() -> None:
    t_max = LogUniform(2, 100, step=1)
    assert [t_max.perturb(v, f) for v, f in ((2, 1.2), (3, 0.8), (2, 0.8), (100, 1.2))] == [3, 2, 2, 100]
    assert [t_max.perturb(v, f) for v, f in ((2, 1.0), (10, 1.2), (10, 0.8), (4, 2.0))] == [2, 12, 8, 8]
    tenths = Uniform(0.0, 1.0, step=0.1)
    assert tenths.perturb(0.2, 0.8) == pytest.approx(0.1)
    assert tenths.perturb(0.0, 1.2) == pytest.approx(0.1)
    assert tenths.perturb(0.0, 0.8) == 0.0
    assert Uniform(-3, 3, step=1).perturb(-2, 1.2) == -3  # away from 0
    assert Uniform(-3, 3, step=1).perturb(-2, 0.8) == -1
    assert [t_max.shift(v, s) for v, s in ((2, 0.01), (2, -0.01), (3, -0.01), (2, 0.0))] == [3, 2, 2, 2]
    assert tenths.shift(0.5, -0.01) == pytest.approx(0.4)
    assert [Choice([1, 2, 3]).shift(2, s) for s in (0.01, -0.01, 0.0)] == [3, 1, 2]
    assert [Choice([1, 2, 3]).shift(2, s, least=0) for s in (0.01, -0.01, 0.2, -0.2)] == [2, 2, 3, 1]
    assert [t_max.shift(v, s, least=0) for v, s in ((2, 0.01), (3, -0.01), (10, 0.1))] == [2, 3, 15]
    assert tenths.shift(0.5, -0.01, least=0) == pytest.approx(0.5)


@given(st.floats(-3, 3), st.integers(0, 1000))
def test_shifted_values_stay_in_the_domain(spread: float, seed: int) -> None:
    space = Space({"a": Uniform(0.0, 1.0), "b": LogUniform(2, 100, step=1), "c": Choice([1, 2, 3])})
    rng = np.random.default_rng(seed)
    space.validate(space.shift(space.sample(rng), abs(spread), rng))


@given(st.floats(0.01, 100), st.sampled_from([0.8, 1.2]))
def test_perturbed_values_stay_in_the_domain(value: float, factor: float) -> None:
    domain = LogUniform(0.01, 100)
    perturbed = domain.perturb(value, factor)
    assert domain.contains(perturbed)
    assert perturbed == pytest.approx(min(max(value * factor, 0.01), 100))


def test_a_choice_moves_to_a_neighbour() -> None:
    assert Choice([1, 2, 3]).perturb(2, 1.0) == 2
    gamma = PAPER["gamma"]
    assert gamma.perturb(0.99, 1.2) == 0.995
    assert gamma.perturb(0.99, 0.8) == 0.95
    assert gamma.perturb(0.9, 0.8) == 0.9


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Uniform(1, 1), "empty"),
        (lambda: Uniform(2, 1), "inverted"),
        (lambda: LogUniform(0, 1), "0 < low"),
        (lambda: LogUniform(1e-2, 1e-5), "inverted"),
        (lambda: Uniform(0, float("nan")), "finite"),
        (lambda: Uniform(0, 10**400), "finite"),
        (lambda: Uniform(0, 1, step=2), "step"),
        (lambda: Uniform(2**60, 2**60 + 10, step=1), r"beyond 2\*\*53, .*: let it count from 0 with a step of 1, and"),
        (lambda: Uniform(-(2**53), 0, step=1), "beyond"),
        (lambda: Uniform(0, 1, step=1e-18), "in steps, from where on floats miss"),
        (lambda: LogUniform(1, 2**62, step=1), "beyond"),
        (lambda: Uniform(-1e308, 1e308), "high - low overflows: narrow it"),
        (lambda: Uniform(-(10**308), 10**308), "high - low overflows"),
        (lambda: LogUniform(1e-300, 1e300), "high / low overflows: draw the exponent"),
        (lambda: Choice([]), "one or more"),
        (lambda: Choice([1, 1]), "each once"),
        (lambda: Space({}), "one or more hyperparameters"),
        (lambda: Space.from_json({"lr": {"lognormal": [0, 1]}}), "'lr'"),
        (lambda: Space.from_json({"lr": {"uniform": [0]}}), "'lr'"),
        (lambda: Space.from_json({"lr": {"uniform": ["a", "b"]}}), "'lr'"),
        (lambda: PAPER.validate({"learning_rate": 1.0}), "names"),
        (lambda: PAPER.validate({"learning_rate": 1.0, "t_max": 5, "gamma": 0.9}), "learning_rate=1.0"),
        (lambda: PAPER.grid({"t_max": 3}), "whole number from 1 for each"),
        (lambda: PAPER.grid(2.0), "whole number from 1 for each"),
    ],
)
def test_bad_ranges_are_refused_by_name(make, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        make()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 1), r"hyperparameter 'x': got \(0, 1\); write Uniform\(0, 1\), LogUniform\(…\) or Choice\(\[0, 1\]\)"),
        (3, r"'x': got 3; write Choice\(\[3\]\)"),
        (["a", "b"], r"write Choice\(\['a', 'b'\]\)"),
        (np.arange(3), r"write Choice\(\[0, 1, 2\]\)"),
        (None, r"write Uniform\(low, high\)"),
        (Uniform, r"pass an object, such as Uniform\(…\)"),
    ],
)
def test_what_is_no_domain_is_told_what_to_write(given, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        Space({"x": given})


@pytest.mark.parametrize("values", ["abc", 3, {1, 2}, {"a": 1}, [[64, 64]], [(1, 2)], [None], [float("nan")], [{}]])
def test_a_choice_is_between_values_that_can_be_logged(values) -> None:
    with pytest.raises(InvalidInput, match="Choice"):
        Choice(values)


def test_a_space_is_a_dict_of_words() -> None:
    for wrong in ({1: Uniform(0, 1)}, [Uniform(0, 1)], {}):
        with pytest.raises(InvalidInput, match="hyperparameter"):
            Space(wrong)


def test_numbers_of_numpy_are_taken_as_python_s_own() -> None:
    space = Space({"a": Uniform(np.float64(0), np.int64(4), step=np.int32(1)), "b": LogUniform(np.float32(1), 2)})
    both = Choice(np.array([0.5, 1.5])), Choice([np.str_("x"), np.bool_(True), np.int64(3)])
    assert both[0].values == (0.5, 1.5)
    assert [type(value) for value in both[1].values] == [str, bool, int]
    described = json.loads(json.dumps(space.to_json()))
    assert described == {"a": {"uniform": [0, 4], "step": 1}, "b": {"log_uniform": [1, 2]}}
    for number in ("a", True, float("inf"), None, [1]):
        for domain in (Uniform, LogUniform):
            with pytest.raises(InvalidInput, match="finite numbers"):
                domain(number, 2)


def test_a_configuration_names_what_applies_to_it_and_keeps_the_constraint() -> None:
    rng = np.random.default_rng(0)
    drawn = [NETWORK.sample(rng) for _ in range(200)]
    assert all(map(names_what_applies, drawn))
    assert {config["optimizer"] for config in drawn} == set(KEYS)
    moved = [NETWORK.perturb(config, (0.8, 1.2), rng) for config in drawn]
    assert all(map(names_what_applies, moved))
    assert any(before["optimizer"] != after["optimizer"] for before, after in zip(drawn, moved, strict=True))
    assert all(names_what_applies(NETWORK.shift(config, 0.3, rng)) for config in drawn)
    assert all(names_what_applies(NETWORK.redraw(config, 0.5, rng)) for config in drawn)


def test_a_grid_has_every_point_that_applies_once() -> None:
    grid = NETWORK.grid({"optimizer": 3, "momentum": 2, "nesterov": 2, "width": 8})
    assert all(map(names_what_applies, grid))
    assert len(grid) == 2 * 2 * 8 + 2 * 4 + 8


def test_a_point_with_what_does_not_apply_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'momentum' does not apply where optimizer is 'none': leave it out$"):
        NETWORK.validate({"optimizer": "none", "momentum": 0.9, "width": 3})
    with pytest.raises(InvalidInput, match=r"names \['optimizer', 'width'\], got \['momentum', 'width'\]"):
        NETWORK.validate({"momentum": 0.9, "width": 3})
    with pytest.raises(InvalidInput, match="breaks the space's constraint"):
        NETWORK.validate({"optimizer": "adam", "nesterov": True, "width": 5})


def test_conditions_are_written_down_and_a_constraint_only_by_its_name() -> None:
    plain = Space(dict(NETWORK), NETWORK.only_if)
    again = Space.from_json(json.loads(json.dumps(plain.to_json())))
    assert (again.to_json(), again.only_if) == (plain.to_json(), plain.only_if)
    assert Space.from_json({"a": {"choice": [1, 2]}, "b": {"uniform": [0, 1], "only_if": {"a": 1}}}).only_if == {
        "b": {"a": (1,)}
    }
    counted = Space({"a": Choice([1, 2]), "b": Uniform(0, 1)}, {"b": {"a": np.array([1, 2])[0]}})
    assert json.dumps(counted.to_json()["b"]["only_if"]) == '{"a": [1]}'
    assert NETWORK.to_json()["constraint"] == {"kind": "tests.support:<lambda>"}
    with pytest.raises(InvalidInput, match="is code of your own: build this space in Python"):
        Space.from_json(NETWORK.to_json())


def test_what_depends_on_a_value_with_a_step_applies_there_despite_roundings() -> None:
    """Three steps of 0.1 make 0.30000000000000004."""
    space = Space({"dropout": Uniform(0, 0.3, step=0.1), "decay": Uniform(0, 1)}, {"decay": {"dropout": [0.1, 0.3]}})
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(50)]
    assert {round(config["dropout"], 1) for config in drawn if "decay" in config} == {0.1, 0.3}
    space.validate({"dropout": 0.3, "decay": 0.5})
    space.validate({"dropout": 0.1 * 3, "decay": 0.5})
    assert not space.applies("decay", {"dropout": "much"})
    assert Space.from_json(space.to_json()).only_if == {"decay": {"dropout": (0.1, 0.3)}}


@pytest.mark.parametrize(
    ("only_if", "said"),
    [
        ({"b": {"c": 1}}, "'b' depends on 'c', which must be a hyperparameter that comes before it"),
        ({"a": {"b": 1.0}}, "'a' depends on 'b'"),
        ({"b": {"a": 3}}, "'b' applies only if a = 3, which Choice"),
        (
            {"b": {"x": [0.5, 0.9]}},
            "x = 0.5, 0.9, but 'x' is continuous and is never exactly that: let it depend on",
        ),
        ({"b": "a"}, "only_if of 'b'"),
        ({"z": {"a": 1}}, "unknown hyperparameter in only_if 'z'; known: a, b, x"),
        (["b"], r"only_if is a dict, {name: {parent: value}}, got \['b'\]"),
    ],
)
def test_conditions_that_cannot_be_are_refused(only_if, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        Space({"a": Choice([1, 2]), "x": LogUniform(0.1, 1), "b": Uniform(0, 1)}, only_if)


def test_a_constraint_that_fails_is_told_with_the_configuration_and_what_does_not_apply_there() -> None:
    space = Space(dict(NETWORK), NETWORK.only_if, constraint=lambda config: config["momentum"] > 0.5)
    with pytest.raises(InvalidInput, match=r"the constraint raised KeyError: 'momentum' for {.*}; what does not apply"):
        space.allows({"optimizer": "none", "width": 2})

    def refusing(config):
        raise AssertionError

    with pytest.raises(InvalidInput, match=r"the constraint raised AssertionError for {'x': 0\.\d+}$"):
        Space({"x": Uniform(0, 1)}, constraint=refusing).sample(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=r"raised ZeroDivisionError: .* for {'x': 0\.\d+}$"):
        Space({"x": Uniform(0, 1)}, constraint=lambda config: 1 / 0).sample(np.random.default_rng(0))


def test_a_constraint_that_would_hold_for_all_is_refused() -> None:
    """What a generator function or a coroutine gives is true, whatever it says."""

    def yields(config):
        yield config["x"] < 0.5

    async def awaits(config):
        return config["x"] < 0.5

    for late in (yields, awaits, partial(yields)):
        with pytest.raises(InvalidInput, match=r"and .*yields or awaits, .* every one: let it return True or"):
            Space({"x": Uniform(0, 1)}, constraint=late)


def test_a_constraint_that_nothing_keeps_is_an_error_and_not_an_endless_search() -> None:
    space = Space({"x": Uniform(0, 1)}, constraint=lambda config: False)
    with pytest.raises(InvalidInput, match="the constraint held for none of 1000"):
        space.sample(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="for no point of the grid"):
        space.grid(3)
    assert space.perturb({"x": 0.5}, (0.8, 1.2), np.random.default_rng(0)) == {"x": 0.5}


@pytest.mark.parametrize("domain", [Uniform(1, 3, step=1), Uniform(0.5, 1.4, step=0.25), LogUniform(1, 9, step=1)])
def test_numbers_drawn_between_the_real_ends_and_rounded_follow_the_domain_s_own_law(domain) -> None:
    low, high = real_ends(domain)
    log = isinstance(domain, LogUniform)
    evenly = np.geomspace(low, high, 10_000) if log else np.linspace(low, high, 10_000)
    shares = pd.Series([domain.perturb(float(value), 1.0) for value in evenly]).value_counts(normalize=True)
    rng = np.random.default_rng(0)
    drawn = pd.Series([domain.sample(rng) for _ in range(10_000)]).value_counts(normalize=True)
    assert (shares - drawn).abs().max() < 0.015  # three deviations


def test_the_real_ends_of_what_has_no_step_are_its_own() -> None:
    assert real_ends(Uniform(0, 2)) == (0, 2)
    assert real_ends(LogUniform(1e-4, 1e-1)) == pytest.approx((1e-4, 1e-1), rel=1e-15)


def test_a_range_whose_last_step_falls_short_of_its_end_draws_that_step_no_more_often() -> None:
    """Of 1, 5 and 9 the last is drawn between 7 and 11, the law's share of which is known."""
    domain, rng = LogUniform(1, 10, step=4), np.random.default_rng(0)
    assert real_ends(domain) == (0.5, 11.0)
    share = np.mean([domain.sample(rng) == 9 for _ in range(20_000)])
    assert share == pytest.approx(np.log(11 / 7) / np.log(11 / 0.5), abs=0.01)


def test_a_choice_is_written_as_the_domain_has_it() -> None:
    assert [repr(on_step(Choice([1.0, "1", False]), value)) for value in (1, "1", False, 0, True)] == [
        "1.0", "'1'", "False", "0", "True"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "most", "places"),
    [(0, 3, []), (1, 3, [0]), (3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (9, 1, [0]), (9, 0, [])],
)
def test_places_are_chosen_evenly_with_both_ends(n: int, most: int, places: list[int]) -> None:
    assert spaced(n, most).tolist() == places
