"""A landscape whose best moves from phase to phase, and when there is none."""

import numpy as np
import pandas as pd
import pytest

from workbench.analysis import importance, landscape

pytestmark = pytest.mark.usefixtures("few_shuffles")


def study_of(n: int = 90) -> tuple[pd.DataFrame, pd.DataFrame]:
    """In phase 0 a high rate is best, in phase 2 a low one; a low momentum always; half of the trials are stopped."""
    rng = np.random.default_rng(0)
    trials = pd.DataFrame({"trial": np.arange(n), "candidate": np.arange(n)})
    trials["rate"], trials["momentum"], trials["idle"] = 10 ** rng.uniform(-5, -1, n), rng.random(n), rng.random(n)
    rows = []
    for phase, sign in enumerate((1.0, 0.2, -1.0)):
        ran = trials if phase == 0 else trials.iloc[::2]
        score = sign * np.log10(ran["rate"]) - 2 * ran["momentum"]
        rows.append(pd.DataFrame({"trial": ran["trial"], "phase": phase, "score": score}))
    phases = pd.concat(rows, ignore_index=True)
    trials["last_score"] = phases.groupby("trial")["score"].last()
    return trials, phases


def best(table: pd.DataFrame, phase: int) -> pd.Series:
    rows = table[table["phase"] == phase]
    return rows.loc[rows["score"].idxmax()]


def test_the_best_moves_as_it_was_made_to() -> None:
    trials, phases = study_of()
    names = ["rate", "momentum", "idle"]
    found = importance(trials, phases, names, phase=2, forests=4, resamples=2)
    table = landscape(trials, phases, names, fitted=found)
    assert list(table.columns[:2]) == ["phase", "trials"]
    assert set(table.columns[2:4]) == {"rate", "momentum"}
    assert table.groupby("phase")["trials"].first().to_dict() == {0: 90, 1: 45, 2: 45}
    assert best(table, 0)["rate"] > 1e-3 > best(table, 2)["rate"]
    assert max(best(table, phase)["momentum"] for phase in (0, 2)) < 0.4
    assert set(landscape(trials, phases, names, fitted=found, most_phases=2)["phase"]) == {0, 2}


def test_without_importance_or_a_second_hyperparameter_there_is_none() -> None:
    trials, phases = study_of()
    assert landscape(trials.iloc[:10], phases, ["rate", "momentum"]).empty
    found = importance(trials, phases, ["rate"], forests=4, resamples=2)
    assert landscape(trials, phases, ["rate"], fitted=found).empty


def test_where_a_hyperparameter_applies_to_no_trial_of_a_phase_there_is_no_landscape_of_it() -> None:
    trials, phases = study_of()
    found = importance(trials, phases, ["rate", "momentum"], phase=0, forests=4, resamples=2)
    later = set(phases.loc[phases["phase"] > 0, "trial"])
    trials["momentum"] = trials["momentum"].where(~trials["trial"].isin(later))
    assert set(landscape(trials, phases, ["rate", "momentum"], fitted=found)["phase"]) == {0}
