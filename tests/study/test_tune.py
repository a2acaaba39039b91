"""One call that tunes a function."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests import own
from tests.support import FROM_HERE
from workbench import AttachedStudy, Function, HyperTrick, KnowledgeBase, LogUniform, Study, tune
from workbench.core.errors import FirstTrialsFailed, InvalidInput, StudyError
from workbench.knowledge.lock import claim
from workbench.study.tune import _name_of

SPACE = {"lr": LogUniform(1e-3, 1.0)}


@pytest.fixture
def here(one_cluster, tmp_path):
    return {"db": tmp_path / "kb.db", "nodes": 2}


def test_a_number_of_configurations_is_tried_and_the_best_is_known(here) -> None:
    found = [tune(own.forgetful, SPACE, n_trials=4, n_phases=2, **here) for _ in range(2)]
    assert [results.name for results in found] == ["forgetful", "forgetful-2"]
    assert found[0].spec["scheduler"]["kind"] == "hypertrick"
    assert found[0].best_score == pytest.approx(2 * found[0].best_config["lr"])
    assert len(found[0].frames.trials) == 4


def test_calls_at_once_have_a_name_each(here) -> None:
    with claim(here["db"], "forgetful"), ThreadPoolExecutor(3) as pool:  # whose study is not in the file yet
        tuned = partial(tune, own.forgetful, SPACE, n_phases=2, **here)
        found = list(pool.map(lambda n_trials: tuned(n_trials=n_trials), (1, 2, 3)))
    assert {results.name for results in found} == {"forgetful-2", "forgetful-3", "forgetful-4"}
    assert [len(results.frames.trials) for results in found] == [1, 2, 3]


def test_the_same_call_goes_on_with_what_it_began(here) -> None:
    tune(own.forgetful, SPACE, n_trials=2, n_phases=2, **here)
    more = tune(own.forgetful, SPACE, n_trials=4, n_phases=2, resume=True, **here)
    assert (more.name, len(more.frames.trials)) == ("forgetful", 4)
    with pytest.raises(StudyError, match="no study 'climb'"):
        tune(own.climb, SPACE, n_trials=2, resume=True, **here)


def test_the_state_of_the_best_score_is_at_hand(here) -> None:
    found = tune(own.climb, SPACE, n_trials=3, n_phases=2, **here)
    place = found.best_checkpoint
    assert place == AttachedStudy(here["db"], "climb").best_checkpoint
    assert place.endswith(f"climb/trial-{found.best['trial']:05d}/phase-001")
    assert Function.state_in(place)["updates"] == 2
    trial = Function(own.climb)(found.best_config, 0)
    trial.load(Path(place))
    assert trial.train_phase(lambda metrics: None)["score"] > found.best_score  # a phase further
    again = Study("climb", HyperTrick(SPACE, n_trials=3, n_phases=2), own.climb, **here).run(resume=True)
    assert len(again.confirm(top=1, seeds=2)) == 1  # as the docs tell


def test_a_low_score_may_be_the_good_one_and_one_as_good_as_wanted_the_end(here) -> None:
    found = tune(own.forgetful, SPACE, n_trials=4, n_phases=2, mode="min", **here)
    assert found.best_score == pytest.approx(2 * found.best_config["lr"])  # not that of a first phase
    assert tune(own.forgetful, SPACE, n_trials=400, target_score=0.01, **here).summary["trials"] < 400


def test_it_ends_when_its_time_is_up(here) -> None:
    def unhurried(config, state=None):  # in whose seconds there are not thousands of phases
        while True:
            time.sleep(0.05)
            yield config["lr"], {}

    found = tune(unhurried, SPACE, hours=2 / 3600, **here)
    assert found.spec["scheduler"] | {"searcher": None} == found.spec["scheduler"] | {"searcher": None, "kind": "asha"}
    assert found.spec["scheduler"]["variant"] == "stopping"
    assert found.frames.state == "ended"
    assert 0 < len(found.frames.trials) < 10_000


def test_a_function_with_settings_gives_its_name_too() -> None:
    given = (own.climb, partial(own.climb, step=2.0), partial(own.Climber, step=2.0), lambda config: None)
    assert [_name_of(train) for train in given] == ["climb", "climb", "Climber", "lambda"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "pass hours=1, n_trials=50, or both"),
        ({"hours": 0}, "max_hours"),
        ({"hours": 1, "mode": "low"}, "mode"),
        ({"n_trials": 0}, "n_trials a whole number from 1"),
        ({"hours": 1, "nodes": 0}, "nodes >= 1"),
        ({"hours": 1, "space": {"lr": (0, 1)}}, "'lr': got"),
        ({"hours": 1, "train": lambda config: 0.5}, "has no yield of its own"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(tmp_path, given, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        tune(**{"train": own.climb, "space": SPACE, "db": tmp_path / "new" / "kb.db"} | given)
    assert not (tmp_path / "new").exists()


def test_an_error_of_the_function_comes_out_with_its_line(here) -> None:
    def train(config):
        yield config["momentum"]

    with pytest.raises(FirstTrialsFailed, match=r"KeyError: 'momentum' \(test_tune.py:\d+ in train\)"):
        tune(train, SPACE, n_trials=9, **here)
    with KnowledgeBase(here["db"]) as kb:
        assert list(kb) == ["train"]


def test_a_search_whose_first_trials_fail_goes_on_if_it_is_told_to_as_the_error_says(here) -> None:
    def train(config):
        yield config["momentum"]

    with pytest.raises(FirstTrialsFailed, match="or let it go on with fail_fast=False"):
        tune(train, SPACE, n_trials=9, **here)
    with pytest.raises(StudyError, match=r"no trial of study 'train-2' has a score: .*, 9 trials"):
        tune(train, SPACE, n_trials=9, fail_fast=False, **here)


def test_fewer_trials_than_tell_what_is_wrong_are_an_error_too_if_all_fail(here) -> None:
    """Two were: tune returned as if it had found something."""

    def train(config):
        yield config["momentum"]

    says = r"^no trial of study 'train' has a score: KeyError: 'momentum' \(test_tune.py:\d+ in train\), 2 trials$"
    with pytest.raises(StudyError, match=says):
        tune(train, SPACE, n_trials=2, **here)


def test_a_function_that_yields_less_often_than_there_are_phases_is_told_at_its_first_end(here) -> None:
    def train(config):
        yield from (config["lr"], config["lr"])

    with pytest.raises(FirstTrialsFailed, match=r"ended after 2 yields .* tune\(…, n_phases=2\), or correct it"):
        tune(train, SPACE, n_trials=12, n_phases=3, **here)
    with KnowledgeBase(here["db"]) as kb:
        assert kb["train"].frames().trials["state"].eq("failed").sum() <= 2  # so many slots


_SPAWNED = """
import sys
from multiprocessing import get_context
from workbench import Uniform, tune

def train(config):
    yield config["x"]
    yield 2 * config["x"]

def job(n_trials):
    tune(train, {"x": Uniform(1, 2)}, n_trials=n_trials, n_phases=2, nodes=1, db=sys.argv[1], resume=n_trials > 1)

if __name__ == "__main__":
    process = get_context("spawn").Process(target=job, args=(1,))
    process.start()
    process.join()
    job(2)
"""


@pytest.mark.slow
def test_a_function_of_the_script_is_tuned_in_a_spawned_process_and_resumed_in_the_script_s_own(tmp_path) -> None:
    (script := tmp_path / "script.py").write_text(_SPAWNED)
    subprocess.run([sys.executable, str(script), str(tmp_path / "kb.db")], env=FROM_HERE, check=True, timeout=500)
    phases = AttachedStudy(tmp_path / "kb.db", "train").frames().phases
    assert {*phases["trial"]} == {0, 1}
    assert phases["score"].min() >= 1
