import pandas as pd

from workbench import analysis
from workbench.viz import compare_best, compare_survival

HOSTILE = "<script>alert(1)</script>"


def test_studies_share_a_clock_and_are_escaped(frames, nothing):
    best = {HOSTILE: analysis.best_so_far(frames.phases), "empty": analysis.best_so_far(nothing.phases)}
    fig = compare_best(best, {HOSTILE: 20.0, "empty": 0.0})
    (line,) = fig.data
    assert line.name == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert list(line.x) == [8.0, 20.0, 20.0]
    assert list(line.y) == [3.0, 5.0, 5.0]
    assert fig.layout.xaxis.title.text.endswith("[s]")


def test_survival_is_a_share(survival):
    (line,) = compare_survival({"one": survival, "none": pd.DataFrame(columns=["phase", "began"])}).data
    assert list(line.y) == [1.0, 0.25]


def test_nothing_to_compare_is_said():
    assert "ended" in compare_best({}, {}).layout.annotations[0].text
    assert "begun" in compare_survival({}).layout.annotations[0].text
