from dataclasses import dataclass, field

from workbench.core.showing import four_digits, reason_text, setting, settings_html, so_many

HOSTILE = "<script>alert(1)</script>"


@dataclass
class Inner:
    """Draw <b>anything</b>.

    More.
    """

    word: str
    _state: int = field(init=False, default=0)

    _repr_html_ = settings_html


@dataclass
class Outer:
    """Hold all."""

    inner: Inner
    table: dict[str, object]
    long: str = "x" * 1000

    _repr_html_ = settings_html


@dataclass
class Expecting:
    """Run some phases."""

    expected_phases: float

    _repr_html_ = settings_html


def test_phases_that_are_expected_are_told_be_they_counted_or_estimated() -> None:
    for expected, told in ((40, "40"), (40.0, "40"), (40.26, "40.3"), (123456.25, "123456.2")):
        assert f"phases expected in all</th><td style='text-align:left;vertical-align:top'>{told}<" in (
            Expecting(expected)._repr_html_()
        )


def test_what_is_counted_is_one_or_several() -> None:
    assert [so_many(n, "checkpoint") for n in (0, 1, 2)] == ["0 checkpoints", "1 checkpoint", "2 checkpoints"]
    assert [so_many(n, "study") for n in (1, 2)] == ["1 study", "2 studies"]


def test_a_number_with_a_fraction_is_cut_to_four_digits_or_as_many_more_as_keep_it_from_a_whole_one() -> None:
    told = {0.123456: "0.1235", 0.99999: "0.99999", 0.99999999999: "0.99999999999", 126.99203: "126.99"}
    assert [setting(value) for value in (*told, 65540.0, 2.0**60)] == [*told.values(), "65540", "1.153e+18"]


def test_scores_of_thousands_are_told_in_full_as_on_a_page() -> None:
    told = {10889.4: "10889", 10894.6: "10895", -54321.2: "-54321", 999.96: "1000", 99999.96: "100000"}
    told |= {999_999.6: "1e+06", 0.00012341: "0.0001234", 2.0: "2", float("nan"): "nan"}
    assert [four_digits(value) for value in told] == [*told.values()]
    assert reason_text({"mode": "below", "score": 10889.4, "of": 10894.6}) == "below: score 10889, of 10895"


def test_settings_are_shown_escaped_and_those_within_show_themselves() -> None:
    page = Outer(Inner(HOSTILE), {HOSTILE: [HOSTILE]})._repr_html_()
    assert "<b>Outer</b>: Hold all." in page
    assert "<b>Inner</b>: Draw &lt;b&gt;anything&lt;/b&gt;." in page
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 3
    assert "_state" not in page
    assert "x" * 301 not in page
