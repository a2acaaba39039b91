from workbench.viz import theme


def test_every_colour_is_used_once_and_phases_are_in_order():
    assert len(set(theme.STATE_COLORS.values())) == len(theme.STATE_COLORS)
    assert len(set(theme.phase_colors(27))) == 27
    assert theme.phase_colors(0) == []


def test_words_from_a_log_are_escaped():
    assert theme.figure("<b>x</b>").layout.title.text == "&lt;b&gt;x&lt;/b&gt;"
    assert theme.number("<i>") == "&lt;i&gt;"
    assert theme.number(0.000123456) == "0.0001235"
    assert theme.number(True) == "True"


def test_a_clock_fits_the_study():
    assert [theme.clock(s).unit for s in (10, 1000, 100_000)] == ["s", "min", "h"]


def test_the_ground_is_transparent():
    layout = theme.template().layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
