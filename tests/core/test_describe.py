"""Settings as plain tables, and built again from them."""

import json
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from workbench.algos.search import GridSearcher, HyperTrick, RandomSearcher
from workbench.core.budget import Budget
from workbench.core.describe import Settings, build, describe, explain_of, hands_on_weights, why
from workbench.core.domains import LogUniform
from workbench.core.errors import InvalidInput
from workbench.core.registry import SCHEDULERS, SEARCHERS
from workbench.core.showing import reason_text
from workbench.core.space import Space


@dataclass
class Scheduled:
    """What is trained by a scheduler of its own learning rate."""

    scheduler: dict
    searcher: dict


def test_description_round_trip() -> None:
    space = Space({"lr": LogUniform(1e-5, 1e-2)})
    scheduler = HyperTrick(RandomSearcher(space, seed=3), 16, 4, 0.25)
    described = describe(scheduler)
    assert described == {
        "kind": "hypertrick",
        "searcher": {"kind": "random", "space": {"lr": {"log_uniform": [1e-5, 1e-2]}}, "seed": 3},
        "n_trials": 16,
        "n_phases": 4,
        "eviction_rate": 0.25,
        "seed": 0,
    }
    assert build("scheduler", described, SCHEDULERS) == scheduler
    searcher = build("searcher", {"kind": "random", "seed": 3}, SEARCHERS, space=space)
    again = build("scheduler", {k: v for k, v in described.items() if k != "searcher"}, SCHEDULERS, searcher=searcher)
    assert describe(again) == described


def test_a_trainable_s_settings_called_as_parts_of_a_scheduler_are_left_as_they_are() -> None:
    described = {"kind": "mine", "scheduler": {"kind": "cosine"}, "searcher": {"kind": "beam"}}
    trainable = build("trainable", described, {"mine": f"{__name__}:Scheduled"})
    assert describe(trainable) == described | {"kind": f"{__name__}:Scheduled"}


@pytest.mark.parametrize(
    ("described", "says"),
    [
        ({"kind": "hypertrik"}, "did you mean 'hypertrick'"),
        ({"kind": "os:system"}, "unknown scheduler 'os:system'"),
        ({"kind": "hypertrick", "n_trails": 3}, "did you mean 'n_trials'"),
        ({"kind": "hypertrick", "n_trials": 3}, "needs n_phases"),
        ({"n_trials": 3}, "a table with a kind"),
        ({"kind": "hypertrick", "n_trials": 3, "n_phases": 2, "eviction_rate": 1.0}, "share between 0 and 1"),
        ({"kind": "hypertrick", "n_trials": 0, "n_phases": 2}, "n_trials a whole number from 1 to 1000000"),
        ({"kind": "hypertrick", "n_trials": 3, "n_phases": 10**9}, "n_phases a whole number from 1 to 1000000"),
        ({"kind": "hypertrick", "n_trials": 2.5, "n_phases": 2}, "n_trials a whole number from 1 to 1000000"),
    ],
)
def test_a_bad_description_is_refused_with_what_to_do(described, says) -> None:
    searcher = GridSearcher(Space({"lr": LogUniform(1e-5, 1e-2)}), 3)
    with pytest.raises(InvalidInput, match=says):
        build("scheduler", described, SCHEDULERS, searcher=searcher)


def test_paths_and_numbers_of_numpy_are_kept_as_values() -> None:
    settings = {"folder": PurePosixPath("/data/set"), "noise": np.float32(0.5), "n": np.int64(3), "on": np.bool_(True)}
    described = describe(settings | {"here": Path("x"), "odd": Decimal(1)})
    assert described == {
        "folder": "/data/set",
        "noise": 0.5,
        "n": 3,
        "on": True,
        "here": "x",
        "odd": {"kind": "decimal:Decimal"},
    }
    assert {type(value) for value in described.values()} == {str, float, int, bool, Settings}
    assert type(describe(Budget(updates=np.int64(5)))["updates"]) is int


class Loss(Enum):
    HUBER, SQUARED = 1, 2


def test_members_of_an_enumeration_are_told_apart_and_so_are_arrays() -> None:
    described = describe({"loss": Loss.HUBER, "widths": np.array([64, 32]), "odd": np.array([Loss.HUBER])})
    assert described["loss"] == {"kind": f"{__name__}:Loss", "name": "HUBER"}
    assert described["widths"].keys() == {"kind", "dtype", "shape", "sha256"}
    assert described["odd"] == {"kind": "numpy:ndarray"}  # its bytes are addresses
    widths = [[64, 32], [32, 64], [[64, 32]], [64.0, 32.0]]
    assert len({json.dumps(describe(np.array(value))) for value in widths}) == 4
    assert describe(np.array([[64, 1], [32, 2]])[:, 0]) == described["widths"]


@pytest.mark.parametrize("key", [1, None, (1, 2)])
def test_a_setting_whose_keys_are_no_words_is_refused_in_one_line(key) -> None:
    assert describe({"a b": {"1": 2}}) == {"a b": {"1": 2}}
    with pytest.raises(InvalidInput, match=f"has the key {re.escape(repr(key))}, which its record would") as told:
        describe({"layers": {"a b": 1, key: 64}})
    assert "\n" not in str(told.value)


def test_words_that_fail_are_none() -> None:
    """They may be anybody's, and a log may be an older one that does not say what they ask for."""
    decision = {"verdict": "stop", "mode": "below", "place": 3}
    assert why(decision) == reason_text({"mode": "below", "place": 3}) == "below: place 3"
    assert why(decision, lambda reason: reason["gone"]) == "below: place 3"
    assert why({"verdict": "stop", "mode": "selecting", "rank": 0.25}, HyperTrick.explain) == "selecting: rank 0.25"


def test_a_scheduler_of_one_s_own_that_runs_another_s_trials_is_explained_in_plain_words() -> None:
    described = {"kind": "mine:Outer", "scheduler": {"kind": "hypertrick"}}
    assert explain_of(described)({"mode": "own", "place": 2}) == "own: place 2"


class Own:
    """A scheduler of one's own, as far as its words go."""

    @staticmethod
    def explain(reason: dict) -> str:
        return f"in its own words, place {reason['place']}"


def test_a_scheduler_of_one_s_own_has_its_words_where_its_module_is_imported_already() -> None:
    reason = {"mode": "own", "place": 2}
    assert explain_of({"kind": f"{__name__}:Own"})(reason) == "in its own words, place 2"
    assert explain_of({"kind": "this:Gone"})(reason) == explain_of({"kind": "sys:exit"})(reason) == "own: place 2"
    assert "this" not in sys.modules


def test_schedulers_that_hand_weights_on_are_known_by_their_record() -> None:
    assert {kind for kind in SCHEDULERS if hands_on_weights({"kind": kind})} == {"pbt", "pb2", "mfpbt"}
    assert hands_on_weights({"kind": "seeded", "scheduler": {"kind": "pbt"}})
    assert not hands_on_weights({"kind": "seeded", "scheduler": {"kind": "full"}})
    assert hands_on_weights({"kind": "mine:Rule"})
