"""Imports are lazy, and the floors hold."""

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

HEAVY = {"torch", "distributed", "dask", "pandas", "plotly", "sklearn", "scipy", "ipywidgets", "ale_py", "gymnasium"}


def _loaded(statement: str) -> set[str]:
    code = f"{statement}; import sys, json; print(json.dumps([m for m in sys.modules if '.' not in m]))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(json.loads(out.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import workbench",
        "import workbench.algos.search",
        "import workbench.core.drive",
        "from workbench import Choice, Space; from workbench.algos.search import *; "
        "PBT(RandomSearcher(Space({'x': Choice([0, 1])})), 2, 2, exploit='t-test').ask()",
        "import workbench.cli.main; workbench.cli.main._parser().format_help()",
        "from workbench import HyperTrick, RandomSearcher, Space, LogUniform, Budget, Study",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(statement) -> None:
    assert _loaded(statement) & HEAVY == set()


def test_the_package_itself_does_not_even_load_numpy() -> None:
    assert "numpy" not in _loaded("import workbench")


def test_everything_public_can_be_imported() -> None:
    import workbench

    for name in workbench.__all__:
        assert getattr(workbench, name).__name__ == name
        assert name in dir(workbench)
    with pytest.raises(AttributeError, match="has no attribute 'HyperTrik'"):
        workbench.HyperTrik  # noqa: B018


def test_the_floors_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", ["", ".analysis", ".knowledge", ".viz.figures", ".viz.dashboard"])
def test_everything_public_says_what_it_is(package) -> None:
    there = import_module(f"workbench{package}")
    silent = []
    for name in there.__all__:
        thing = getattr(there, name)
        members = {f"{name}.{m}": v for m, v in vars(thing).items() if m[0] != "_"} if isinstance(thing, type) else {}
        for path, member in {name: thing, **members}.items():
            if (callable(member) or isinstance(member, property)) and not (inspect.getdoc(member) or "").strip():
                silent.append(path)
    assert silent == []
