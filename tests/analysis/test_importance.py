import json
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from workbench.analysis import importance, partial_dependence
from workbench.analysis.forests import LOWEST, forests_apart, forests_by_phase
from workbench.analysis.importance import (
    _explain,
    _harms,
    _permuted,
    _redrawn,
    _shares,
    _validate,
    drawn_again,
    encoded,
    explained,
)
from workbench.analysis.trees import rows_of_configurations

pytestmark = pytest.mark.usefixtures("few_shuffles")


def _study(n, score, seed=0):
    rng = np.random.default_rng(seed)
    trials = pd.DataFrame(
        {
            "trial": np.arange(n),
            "lr": 10 ** rng.uniform(-5, -2, n),
            "gamma": rng.choice([0.9, 0.99], n),
            "net": rng.choice(["small", "large"], n),
            "fixed": 1,
        }
    )
    trials["last_score"] = score(trials, rng)
    phases = pd.DataFrame({"trial": trials["trial"], "phase": 0, "score": -trials["last_score"]})
    return trials, phases


NAMES = ["gamma", "lr", "net", "fixed"]


def test_what_decides_comes_first():
    trials, phases = _study(80, lambda t, rng: np.log10(t["lr"]) + (t["net"] == "small") + rng.normal(0, 0.1, 80))
    found = importance(trials, phases, NAMES, forests=3, resamples=5)
    assert found.problem == ""
    assert found.r2 > 0.7
    table = found.table.set_index("hyperparameter")
    assert list(table.index) == ["lr", "net", "gamma"]  # what was not varied has no say
    assert table["importance"].sum() == pytest.approx(1)
    assert table.loc["lr", "permutation"] > table.loc["net", "permutation"] > 0.05 > table.loc["gamma", "permutation"]
    assert (table["low"] <= table["high"]).all()
    assert table.loc["lr", "permutation_low"] > 0
    assert "best of 3 forests" in str(found)


def test_of_a_large_study_a_thousand_trials_are_explained_and_it_says_so(monkeypatch):
    """Three thousand took three times as long, in a report and of a dashboard."""
    asked = []
    monkeypatch.setattr(MODULE, "_validate", lambda settings, x, y, folds: asked.append((x, y)) or (0.5, 0.6))
    monkeypatch.setattr(MODULE, "as_good_shuffled", lambda *_: False)
    trials, phases = _study(1001, lambda t, rng: np.log10(t["lr"]))
    found = importance(trials, phases, NAMES, forests=1, resamples=2)
    assert (found.trials, found.drawn) == (1001, 1000)
    assert "; 1000 trials of 1001, drawn at random, best of 1 forests" in str(found)
    ((x, y),) = asked
    assert x[:, 1].tolist() == y.tolist()  # every score is still beside its own learning rate
    assert len(set(y)) == 1000
    rows, scores = explained(trials, phases)
    assert scores.tolist() == y.tolist() == np.log10(rows["lr"]).tolist()


def test_the_same_seed_gives_the_same_answer():
    trials, phases = _study(30, lambda t, rng: np.log10(t["lr"]))
    first = importance(trials, phases, NAMES, forests=1, resamples=3, seed=1)
    _explain.cache_clear()
    again = importance(trials, phases, NAMES, forests=1, resamples=3, seed=1)
    pd.testing.assert_frame_equal(first.table, again.table)


@pytest.mark.parametrize(
    ("second", "chosen", "overfits"), [((0.5, 0.75), 0.5, False), ((0.5, 0.9), 0.6, True), ((0.7, 0.9), 0.7, False)]
)
def test_a_forest_that_knows_its_own_trials_much_better_is_taken_if_there_is_no_other(
    second, chosen, overfits, monkeypatch
):
    """R² on unseen trials and on its own; of two forests the first has 0.6 and 0.95."""
    validated = iter([(0.6, 0.95), second])
    monkeypatch.setattr(sys.modules[importance.__module__], "_validate", lambda *_: next(validated))
    trials, phases = _study(20, lambda t, rng: np.log10(t["lr"]), seed=9)
    _explain.cache_clear()
    found = importance(trials, phases, NAMES, forests=2, resamples=2)
    _explain.cache_clear()
    assert (found.r2, found.overfits) == (chosen, overfits)


MODULE = sys.modules[importance.__module__]  # the package names a function so


def test_r2_is_of_all_unseen_trials_together_and_its_own_the_mean_over_forests(monkeypatch):
    """Scores 0 2 4 6, each guessed 1 too high: 1 - 4 / 20. Of a forest's own two, 1 - 2 / 2."""
    x = np.array([[0.0], [2.0], [4.0], [6.0]])
    monkeypatch.setattr(MODULE, "Forest", lambda settings, x, y: SimpleNamespace(predict=lambda asked: asked[:, 0] + 1))
    assert _validate({}, x, x[:, 0], [np.array([0, 1]), np.array([2, 3])]) == (0.8, 0.0)


def test_the_harm_of_shuffling_a_column_is_the_mean_rise_of_the_squared_error(monkeypatch):
    """Scores 1 and 2, guessed 1 and 3, or 5 where the first column is 5. The second is read by none."""
    x, y = np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([1.0, 2.0])
    monkeypatch.setattr(MODULE, "Forest", lambda settings, x, y: SimpleNamespace(predict=lambda asked: asked[:, 0]))
    fives = SimpleNamespace(choice=lambda values, n: np.full(n, 5.0))
    found = _harms({}, x, y, [np.array([0]), np.array([1])], fives)
    assert found == pytest.approx(np.array([[16.0, 0.0], [9.0 - 1.0, 0.0]]))


def test_intervals_hold_95_percent_of_the_draws(monkeypatch):
    """Of the draws 0 to 40, a configuration each: all but the lowest and the highest."""
    each = np.arange(41.0)[:, None]
    draws = [np.array([k]) for k in range(41)]
    monkeypatch.setattr(MODULE, "Forest", lambda settings, x, y: SimpleNamespace(shares=lambda: np.array([y.mean()])))
    for value, low, high in (_permuted(each, draws), _shares({}, each, each, draws, np.random.default_rng(0))):
        assert (value.tolist(), low.tolist(), high.tolist()) == ([20], [1], [39])


def test_noise_is_not_explained():
    trials, phases = _study(60, lambda t, rng: rng.normal(size=60), seed=3)
    found = importance(trials, phases, NAMES, forests=4, resamples=5)
    assert found.table.empty
    assert "better than their mean" in str(found)
    assert found.r2 <= 0


@pytest.mark.parametrize(
    ("n", "names", "score", "words"),
    [
        (19, NAMES, lambda t, rng: t["lr"], "19 trials with a score, 20 are needed"),
        (30, ["fixed"], lambda t, rng: t["lr"], "no hyperparameter was varied"),
        (30, NAMES, lambda t, rng: 1.0, "all scores are the same"),
    ],
)
def test_what_cannot_be_said_is_not(n, names, score, words):
    found = importance(*_study(n, score), names)
    assert found.problem == words
    assert found.table.empty


def test_of_several_seeds_each_configurations_are_too_few_not_trials():
    trials, phases = _study(30, lambda t, rng: t["lr"])
    found = importance(trials.assign(candidate=trials["trial"] // 3 * 3), phases, NAMES)
    assert found.problem == "10 configurations with a score, 20 are needed"


def test_a_phase_can_be_chosen_and_unfinished_trials_do_not_count():
    trials, phases = _study(30, lambda t, rng: np.log10(t["lr"]))
    trials.loc[:4, "last_score"] = np.nan
    assert importance(trials, phases, NAMES, forests=1, resamples=2).trials == 25
    assert importance(trials, phases, NAMES, phase=0, forests=1, resamples=2).trials == 30
    assert "0 trials" in importance(trials, phases, NAMES, phase=1).problem


def test_intervals_know_the_seeds() -> None:
    """Three seeds of wide scatter: the same means, had each been measured exactly, have narrower intervals."""
    rng = np.random.default_rng(0)
    trials, phases = _study(60, lambda t, rng: np.log10(t["lr"]) + (t["net"] == "small"))
    several = trials.loc[trials.index.repeat(3)].reset_index(drop=True)
    several["candidate"], several["trial"] = several["trial"], np.arange(180)
    several["last_score"] += rng.normal(0, 3, 180)
    means = trials.assign(last_score=several.groupby("candidate")["last_score"].mean().to_numpy())
    known, drawn = (importance(t, phases, NAMES, forests=4, resamples=40).table for t in (means, several))
    assert drawn["importance"].tolist() == pytest.approx(known["importance"].tolist())
    assert (drawn["high"] - drawn["low"]).sum() > 1.1 * (known["high"] - known["low"]).sum()


def test_a_configuration_that_was_run_again_is_not_split_between_folds() -> None:
    """Else a forest is asked what it has been told, and importance found in noise."""
    trials, phases = _study(60, lambda t, rng: rng.normal(size=60), seed=3)
    rungs = pd.concat([trials, *(trials.iloc[:n] for n in (20, 10, 5))], ignore_index=True)
    rungs["trial"] = rungs["candidate"] = np.arange(len(rungs))
    found = importance(rungs, phases, NAMES, forests=4, resamples=5)
    assert found.trials == 95
    assert found.problem.startswith("no forest predicts unseen trials")


def test_what_shuffled_scores_would_have_as_well_is_not_told(monkeypatch) -> None:
    """Noise, of which the best of many forests had a good R²."""
    monkeypatch.setattr(MODULE, "_validate", lambda *_: (0.3, 0.5))
    found = importance(*_study(30, lambda t, rng: rng.normal(size=30)), NAMES, forests=1, resamples=2)
    assert found.problem == "shuffled scores are explained as well as these (R² 0.30, 30 trials): it may be luck"
    assert found.table.empty


def test_draws_hold_all_rows_of_each_configuration_drawn() -> None:
    x = np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    rows = rows_of_configurations(x)
    assert [of.tolist() for of in rows] == [[0, 2], [1], [3]]
    draws = drawn_again(rows, 50, np.random.default_rng(0))
    assert all(np.count_nonzero(draw == 0) == np.count_nonzero(draw == 2) for draw in draws)
    assert {len(draw) for draw in draws} == {3, 4, 5, 6}


@pytest.mark.filterwarnings("error")
def test_one_score_that_differs_from_all_others_is_said_without_a_warning() -> None:
    trials, phases = _study(30, lambda t, rng: np.arange(30) == 7)
    assert importance(trials.astype({"last_score": float}), phases, NAMES, forests=2, resamples=2).trials == 30


@pytest.mark.parametrize("power", [-1000, 600, 1020])
def test_scores_of_any_size_are_explained_alike_and_without_a_warning(power) -> None:
    trials, phases = _study(40, lambda t, rng: np.log10(t["lr"]) + rng.normal(0, 0.1, 40))
    told = importance(trials, phases, NAMES, forests=2, resamples=3)
    larger = trials.assign(last_score=np.ldexp(trials["last_score"], power))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = importance(larger, phases, NAMES, forests=2, resamples=3)
    assert again.r2 == pytest.approx(told.r2, abs=1e-6)
    pd.testing.assert_frame_equal(again.table, told.table)


def test_a_seed_that_has_no_score_is_not_drawn() -> None:
    by_seed = np.array([[1.0, np.nan, np.nan], [2.0, 4.0, np.nan], [5.0, 5.0, 5.0]])
    found = np.array([_redrawn(by_seed, np.random.default_rng(n)) for n in range(50)])
    assert set(found[:, 0]) == {1.0}
    assert set(found[:, 1]) == {2.0, 3.0, 4.0}
    assert set(found[:, 2]) == {5.0}


def in_numbers(*values, dtype=None) -> list[float]:
    """Give what the forests know a single hyperparameter's values as."""
    return encoded(pd.DataFrame({"h": pd.Series(values, dtype=dtype)}))[:, 0].tolist()


def test_where_a_hyperparameter_does_not_apply_it_has_one_of_its_values() -> None:
    assert in_numbers(0.5, np.nan, 0.9, 0.6)[1] in (0.5, 0.6, 0.9)
    assert in_numbers(1e-5, np.nan, 1e-3)[1] in (-5, -3)
    assert set(in_numbers("b", None, "a", np.nan, "b")) == {0, 1}
    assert in_numbers(np.nan, np.nan) == [0, 0]
    assert in_numbers(None, None, dtype=object) == [0, 0]


def test_what_is_drawn_where_it_does_not_apply_tells_nothing_and_is_one_s_own() -> None:
    """As often above the median as below; and a configuration that was run again stays the same one."""
    momentum = np.concatenate([np.linspace(0, 1, 200), np.full(200, np.nan)])
    configs = pd.DataFrame({"lr": np.arange(400.0), "momentum": momentum})
    x = encoded(pd.concat([configs, configs.iloc[::-1]]))
    assert x[:400].tolist() == x[:399:-1].tolist()
    drawn = x[200:400, 1]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.1)
    assert np.std(drawn) == pytest.approx(np.std(momentum[:200]), abs=0.05)


def test_one_that_has_a_single_value_is_there_or_not() -> None:
    assert in_numbers(0.9, np.nan, 0.9) == [0.9, 0.9 - 1, 0.9]
    assert in_numbers(None, "on") == [-1, 0]


def test_whether_a_hyperparameter_applies_counts_for_the_one_it_depends_on() -> None:
    """Momentum, which only SGD has, changes nothing; it took up to 0.6 of the importance."""
    trials, phases = _study(60, lambda t, rng: (t["net"] == "small") + rng.normal(0, 0.1, 60))
    momentum = np.random.default_rng(1).uniform(0, 1, 60)
    trials["momentum"] = np.where(trials["net"] == "small", momentum, np.nan)
    shares = importance(trials, phases, [*NAMES, "momentum"], forests=3, resamples=3).table
    shares = shares.set_index("hyperparameter")["importance"]
    assert shares["net"] > 0.9
    assert shares["momentum"] < 0.05


def test_what_depends_on_another_does_not_take_the_other_s_importance() -> None:
    """Adam scores 0, SGD less the further its momentum is from 0.95; a third of the variance is between the two."""
    rng = np.random.default_rng(0)
    sgd, momentum, rate = rng.random(200) < 0.5, rng.uniform(0.5, 0.99, 200), rng.uniform(1, 5, 200)
    score = np.where(sgd, -40 * (momentum - 0.95) ** 2, 0.0) + rng.normal(0, 0.1, 200)
    trials = pd.DataFrame({"trial": range(200), "last_score": score, "optimizer": np.where(sgd, "sgd", "adam")})
    trials = trials.assign(momentum=np.where(sgd, momentum, np.nan), rate=rate)
    phases, names = pd.DataFrame({"trial": range(200), "phase": 0, "score": score}), ["optimizer", "momentum", "rate"]
    found = importance(trials, phases, names, forests=3, resamples=2)
    assert found.table.set_index("hyperparameter")["importance"]["optimizer"] == pytest.approx(0.36, abs=0.1)
    means = partial_dependence(trials, phases, names, fitted=found).set_index("value")["score"]
    assert means[["adam", "sgd"]].tolist() == pytest.approx([score[~sgd].mean(), score[sgd].mean()], abs=0.2)


@pytest.mark.parametrize("founders", [20, 19])
def test_of_a_population_those_that_began_with_others_weights_explain_nothing(founders) -> None:
    """No hyperparameter does anything; copies score as their donor did, and have hyperparameters near to its."""
    trials, phases = _study(founders, lambda t, rng: rng.normal(size=founders))
    donors = trials.nlargest(4, "last_score")
    copies = [donors.assign(lr=donors["lr"] * 1.02**k, last_score=donors["last_score"] + k) for k in range(1, 11)]
    heirs = pd.concat(copies)
    heirs = heirs.assign(trial=founders + np.arange(len(heirs)), parent_phase=0.0)
    population = pd.concat([trials.assign(parent_phase=np.nan), heirs], ignore_index=True)
    every = pd.concat([phases, heirs[["trial"]].assign(phase=0, score=heirs["last_score"])], ignore_index=True)
    found = importance(population, every, NAMES, forests=3, resamples=5)
    if founders == 20:
        assert found.problem == importance(trials, phases, NAMES, forests=3, resamples=5).problem != ""
        assert [answer["phase"] for answer in forests_by_phase(population, every, NAMES, forests=1)] == [None, 0]
    else:
        left_out = "(40 that began with others' weights are left out)"
        assert found.problem == f"19 trials with a score {left_out}, 20 are needed"
        assert [answer["phase"] for answer in forests_by_phase(population, every, NAMES, forests=1)] == [None]


def test_learning_rates_are_taken_by_their_logarithm():
    assert in_numbers(1e-5, 1e-3) == [-5, -3]
    assert in_numbers(0.9, 0.99) == [0.9, 0.99]
    assert in_numbers("b", "a", "b") == [1, 0, 1]
    assert in_numbers(True, False) == [1, 0]


def test_numbers_with_an_infinite_one_are_taken_by_their_order():
    numbers = in_numbers(40.0, np.inf, 0.5, np.nan, np.inf)
    assert numbers[:3] + numbers[4:] == [1, 2, 0, 2]
    assert numbers[3] in (0, 1, 2)


_KERNEL = """
import os, signal
import numpy as np, pandas as pd
from workbench.analysis.forests import forests_apart

rng = np.random.default_rng(0)
trials = pd.DataFrame({"trial": range(400), "last_score": rng.normal(size=400), "x": rng.normal(size=400)})
phases = pd.DataFrame({"trial": range(400), "phase": 0, "score": trials["last_score"]})
print(forests_apart(trials, phases, ["x"], forests=10_000, niceness=0).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_computes_apart_gives_way_to_all_others() -> None:
    rng = np.random.default_rng(0)
    trials = pd.DataFrame({"trial": range(40), "last_score": rng.normal(size=40), "x": rng.normal(size=40)})
    phases = pd.DataFrame({"trial": range(40), "phase": 0, "score": trials["last_score"]})
    with forests_apart(trials, phases, ["x"], forests=2) as process:
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == LOWEST == 19  # from its first import on
        assert os.getpgid(process.pid) == process.pid  # interrupting a cell is not meant for it
        process.kill()  # on a loaded machine it would answer after minutes


def test_what_computes_apart_takes_seeds_of_a_configuration_for_one() -> None:
    """Scores that follow nothing: were seeds trials of their own, the forest would know its unseen ones by their x."""
    seeds, rng = 4, np.random.default_rng(0)
    x, noise = rng.normal(size=30), rng.normal(size=30)
    configs = np.arange(30).repeat(seeds)
    trials = pd.DataFrame({"trial": range(30 * seeds), "candidate": configs * seeds, "x": x[configs]})
    trials["last_score"] = noise[configs] + rng.normal(0, 0.01, 30 * seeds)
    phases = pd.DataFrame({"trial": trials["trial"], "phase": 0, "score": trials["last_score"]})
    with forests_apart(trials, phases, ["x"], forests=2, niceness=0) as process:
        first = json.loads(process.stdout.readline())
        process.kill()  # what it makes of the only phase is the same
    assert first["phase"] is None
    assert "30 trials" in first["told"]


def test_what_computes_apart_ends_with_the_kernel_that_asked() -> None:
    done = subprocess.run([sys.executable, "-c", _KERNEL], stdout=subprocess.PIPE, text=True)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(done.stdout)).wait(120)  # thousands of forests would take far longer
