import pytest

from tests.viz.dashboard.conftest import NAME
from workbench.core.domains import Choice, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.space import Space
from workbench.knowledge import Controls, Inbox
from workbench.viz.dashboard.asking import ask

CONFIG = {"lr": 0.001, "t_max": 5, "net": "small", "clip": True}


@pytest.mark.parametrize(
    ("content", "arrives"),
    [
        ({"action": "stop", "trial": 3}, ("stop", 3, {})),
        ({"action": "pause", "trial": 3}, ("pause", 3, {})),
        ({"action": "resume", "trial": 3}, ("resume", 3, {})),
        ({"action": "extend", "trial": 3, "phases": 2}, ("extend", 3, {"phases": 2})),
        ({"action": "clone", "trial": 3, "config": {"lr": "1e-4"}}, ("clone", 3, {"config": {"lr": 1e-4}})),
        ({"action": "pause study"}, ("pause study", None, {})),
        ({"action": "resume study"}, ("resume study", None, {})),
        ({"action": "stop study"}, ("stop study", None, {})),
        ({"action": "scale", "nodes": 4}, ("scale", None, {"nodes": 4})),
        ({"action": "tag", "trial": 3, "words": " good "}, ("tag", 3, {"tag": "good"})),
        ({"action": "note", "trial": None, "words": "of the study"}, ("note", None, {"text": "of the study"})),
    ],
)
def test_a_button_becomes_a_request(db, log, content, arrives):
    request = ask(Controls(db, NAME), content, CONFIG)
    (found,) = Inbox(db, NAME)()
    assert (found.id, (found.action, found.trial, dict(found.data))) == (request, arrives)


@pytest.mark.parametrize(
    ("content", "config", "words"),
    [
        ({"action": "drop tables"}, CONFIG, "drop tables"),
        ({"action": None, "trial": 1}, CONFIG, "unknown action"),
        ({"action": "stop", "trial": 9}, None, "no trial 9"),
        ({"action": "stop", "trial": "9"}, CONFIG, "no trial '9'"),
        ({"action": "extend", "trial": 1, "phases": None}, CONFIG, "whole number of phases"),
        ({"action": "extend", "trial": 1, "phases": 2.5}, CONFIG, "whole number of phases >= 1, got 2.5"),
        ({"action": "scale", "nodes": -1}, CONFIG, "whole number of nodes"),
        ({"action": "scale", "nodes": 0}, CONFIG, "whole number of nodes >= 1, got 0"),
        ({"action": "clone", "trial": 1, "config": {"mu": 1}}, CONFIG, "mu"),
        ({"action": "clone", "trial": 1, "config": {"lr": "fast"}}, CONFIG, "lr is a number, got 'fast'"),
        ({"action": "clone", "trial": 1, "config": {"t_max": "2.5"}}, CONFIG, "t_max is a whole number"),
        ({"action": "clone", "trial": 1, "config": {"clip": "maybe"}}, CONFIG, "clip is true or false"),
        ({"action": "clone", "trial": 1, "config": [1]}, CONFIG, "values by hyperparameter"),
        ({"action": "tag", "trial": 1, "words": "two words"}, CONFIG, "a tag is one word .* got 'two words'"),
        ({"action": "untag", "trial": None}, None, "a tag is one word"),
        ({"action": "note", "trial": 1, "words": "x" * 2001}, CONFIG, "a note is 1 to 2000 characters"),
    ],
)
def test_nonsense_never_reaches_the_study(db, log, content, config, words):
    with pytest.raises(InvalidInput, match=words):
        ask(Controls(db, NAME), content, config)
    assert Inbox(db, NAME)() == []


def test_a_clone_may_have_what_the_space_has_and_nothing_else(db, log):
    space = Space(
        {"net": Choice(["small", "large"]), "width": Uniform(8, 64, step=8)}, only_if={"width": {"net": "large"}}
    )
    for wrong in ({"width": "9"}, {"net": "huge"}, {"lr": "1"}):
        with pytest.raises(InvalidInput):
            ask(Controls(db, NAME), {"action": "clone", "trial": 3, "config": wrong}, {"net": "small"}, space)
    changes = {"net": "large", "width": "16"}  # the width begins to apply
    ask(Controls(db, NAME), {"action": "clone", "trial": 3, "config": changes}, {"net": "small"}, space)
    (found,) = Inbox(db, NAME)()
    assert found.data == {"config": {"net": "large", "width": 16}}
