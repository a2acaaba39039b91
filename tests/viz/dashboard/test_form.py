import json
import re

import pytest

from workbench.core.domains import Choice, LogUniform, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.space import Space
from workbench.viz.dashboard.form import changed, fields

CONFIG = {"lr": 0.001, "t_max": 5, "net": "small", "clip": True}
SPACE = Space(
    {
        "lr": LogUniform(1e-5, 1e-2),
        "t_max": LogUniform(2, 100, step=1),
        "net": Choice(["small", "7"]),
        "clip": Choice([True, False]),
        "gamma": Choice([0.9, 1.0]),
        "share": Uniform(0, 0.3, step=0.1),
    },
    only_if={"share": {"net": "7", "gamma": [1]}},
)


def test_without_a_space_changes_take_the_types_of_what_they_change():
    typed = changed(CONFIG, {"lr": "1", "t_max": "7", "net": "7", "clip": "False"})
    assert json.dumps(typed) == '{"lr": 1.0, "t_max": 7, "net": "7", "clip": false}'


def test_with_one_they_take_its_own_also_where_the_trial_has_none():
    sent = {"lr": " 1e-3", "t_max": "7", "net": "7", "clip": False, "gamma": 1, "share": "0.3"}  # 1.0 is 1 in a page
    typed = changed(CONFIG, sent, SPACE)
    assert json.dumps(typed) == (
        '{"lr": 0.001, "t_max": 7, "net": "7", "clip": false, "gamma": 1.0, "share": 0.30000000000000004}'
    )


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"lr": "fast"}, "lr is a number, got 'fast'"),
        ({"lr": ""}, "lr is a number, got ''"),
        ({"lr": "nan"}, "lr is 1e-05 to 0.01, got 'nan'"),
        ({"t_max": "2.5"}, "t_max is 2 to 100 by 1, got '2.5'"),
        ({"net": "large"}, "net is one of ['small', '7'], got 'large'"),
        ({"gamma": True}, "gamma is one of [0.9, 1.0], got True"),
        ({"mu": "1"}, "unknown hyperparameter"),
        ([1], "changes are values by hyperparameter, got [1]"),
    ],
)
def test_what_the_space_has_not_is_refused_in_its_words(sent, why):
    with pytest.raises(InvalidInput, match=f"^{re.escape(why)}"):
        changed(CONFIG, sent, SPACE)


def test_a_form_asks_for_every_hyperparameter_and_says_what_it_may_be():
    asked = {field["name"]: field for field in fields(SPACE)}
    assert list(asked) == list(SPACE)
    assert asked["lr"] == {"name": "lr", "range": "1e-05 to 0.01", "only_if": {}}
    assert asked["gamma"] == {"name": "gamma", "choices": [0.9, 1.0], "only_if": {}}
    assert asked["share"] == {"name": "share", "range": "0 to 0.3 by 0.1", "only_if": {"net": ["7"], "gamma": [1.0]}}
    assert fields(None) == []
