"""The recipes of CONTRIBUTING.md: what is part of the workbench is named wherever it must be, and told of."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import workbench
from tests.algos.search import test_contract
from tests.simulation import test_agreement
from workbench import A3C, BA3C, GA3C, HTS, analysis
from workbench.algos import search
from workbench.core.registry import SCHEDULERS, SEARCHERS, TRAINABLES
from workbench.study.file import presets
from workbench.viz import figures

OF_A_STUDY = {"seeded"}  # which `Study(seeds=…)` makes; nobody imports it
OWN = sorted(SCHEDULERS.keys() - OF_A_STUDY)
ROOT = Path(__file__).parents[1]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def class_of(place: str) -> str:
    return place.partition(":")[2]


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_scheduler_is_held_to_the_contract_and_to_what_the_cluster_does(kind) -> None:
    for suite in (test_contract, test_agreement):
        held = {type(make()).__name__ for make in suite.SCHEDULERS.values()}
        assert class_of(SCHEDULERS[kind]) in held, suite.__name__


@pytest.mark.parametrize("kind", OWN)
def test_a_scheduler_is_told_of(kind) -> None:
    name = class_of(SCHEDULERS[kind])
    assert f"| `{kind}` | `{name}` |" in page("schedulers.md")
    assert f"## `{kind}`" in page("schedulers.md")


def test_every_searcher_is_held_to_the_contract() -> None:
    held = {type(getattr(make(), "searcher", None)).__name__ for make in test_contract.SCHEDULERS.values()}
    not_here = {kind for kind in ("optuna", "smac") if not find_spec(kind)}
    assert {class_of(SEARCHERS[kind]) for kind in SEARCHERS.keys() - not_here} <= held


@pytest.mark.parametrize("kind", [*OWN, *SEARCHERS])
def test_what_searches_can_be_imported_from_where_a_user_looks(kind) -> None:
    name = class_of((SCHEDULERS | SEARCHERS)[kind])
    assert name in search.__all__
    assert name in workbench.__all__
    assert f"`{name}`" in page("schedulers.md")


@pytest.mark.parametrize("kind", TRAINABLES)  # that the contract suite has each is held there
def test_a_trainable_is_told_of(kind) -> None:
    name = class_of(TRAINABLES[kind])
    assert f"| `{kind}` | `{name}` |" in page("trainables.md")
    assert any(f".{name}\n" in path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))


@pytest.mark.parametrize("system", [A3C, BA3C, GA3C, HTS], ids=lambda system: system.__name__)
def test_every_hyperparameter_of_an_agent_that_may_be_tuned_is_told_of(system) -> None:
    assert [name for name in system.tunable if f"`{name}`" not in page("ga3c.md")] == []


@pytest.mark.parametrize(("of", "name"), [("study", "studies.md"), ("simulation", "simulator.md")])
def test_every_preset_is_told_of(of, name) -> None:
    assert [preset for preset in presets(of) if f"`{preset}`" not in page(name)] == []


@pytest.mark.parametrize("package", [analysis, figures], ids=["analysis", "figures"])
def test_every_analysis_and_figure_is_told_of(package) -> None:
    functions = [name for name in package.__all__ if name[0].islower()]
    assert [name for name in functions if f"`{name}(" not in page("figures.md")] == []
