"""What the Distributed BA3C paper's numbers say of why they were not run."""

from workbench.paper.ba3c.published import NUMBERS


def test_the_preset_is_named_where_it_gives_the_number_alone() -> None:
    with_it = {(number.where, number.what) for number in NUMBERS if "breakout-ba3c-paper" in number.why_not}
    assert with_it == {
        ("Sec. 3.1", "Breakout to 300 points on 64 nodes"),
        ("Table 3", "DDRL, breakout"),
        ("Table 3", "DDRL, breakout, time"),
    }
