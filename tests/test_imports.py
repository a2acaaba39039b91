"""Imports are lazy, and the floors hold."""

import doctest
import inspect
import json
import re
import resource
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import grimp
import pytest

from tests.floors import drawn, floor_plan

ROOT = Path(__file__).parents[1]
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
        "import workbench.cli.main; workbench.cli.main.main(['run', '--preset', 'list'])",
        "from workbench import HyperTrick, RandomSearcher, Space, LogUniform, Budget, Study",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(statement) -> None:
    assert _loaded(statement) & HEAVY == set()


def test_the_package_itself_does_not_even_load_numpy() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "numpy" not in _loaded("import workbench")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 0.3  # seconds of processor time, Python's own start included


def test_everything_public_can_be_imported() -> None:
    import workbench

    for name in workbench.__all__:
        assert getattr(workbench, name).__name__ == name
        assert name in dir(workbench)
    with pytest.raises(AttributeError, match="has no attribute 'HyperTrik'"):
        workbench.HyperTrik  # noqa: B018


def test_the_floors_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout


def test_no_files_import_each_other_in_a_circle_not_even_later() -> None:
    graph = grimp.build_graph("workbench", cache_dir=None, exclude_type_checking_imports=True)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_the_floor_plan_is_the_contract_s() -> None:
    assert drawn() == floor_plan(), "renew docs/design.md: python -m tests.floors --write"
    lines = [line.split(maxsplit=1) for line in floor_plan().splitlines()[1:-1]]
    assert [floor for floor, duty in lines if not duty.endswith(".")] == []  # its docstring says no duty
    floors = {floor for floor, _ in lines}
    apart = {Path(floor).parent for floor in floors}  # packages whose parts are floors of their own
    parts = {path for part in apart for path in (ROOT / "workbench" / part).iterdir()}
    code = {
        path for path in parts if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem[:2] != "__")
    }
    found = {path.relative_to(ROOT / "workbench").with_suffix("").as_posix() for path in code}
    assert found - set(map(str, apart)) == floors


WRONG = """\
from workbench import Budget, HyperTrick, KnowledgeBase, Results, Study, watch

Study("x", "not a scheduler", 3, nodse=5)  # arg-type call-arg
HyperTrick(3, n_trial=16)  # arg-type call-arg
Budget(frames="many")  # arg-type
KnowledgeBase("x.db").studdies  # attr-defined
Results.opne("x.db", "x")  # attr-defined
watch(3)  # arg-type call-arg
"""


@pytest.mark.slow
def test_mypy_refuses_what_the_public_names_do_not_take(tmp_path) -> None:
    """Lazily imported names keep their types; were they `Any`, all of this would pass."""
    (tmp_path / "wrong.py").write_text(WRONG)
    mypy = [sys.executable, "-m", "mypy", "--no-error-summary", tmp_path / "wrong.py"]
    found = subprocess.run(mypy, capture_output=True, text=True, cwd=ROOT, check=False).stdout.splitlines()
    errors = [re.search(r":(\d+): error: .* \[([a-z-]+)\]$", line) for line in found]
    expected = {(n, code) for n, line in enumerate(WRONG.splitlines(), 1) for code in line.partition("# ")[2].split()}
    assert {(int(error[1]), error[2]) for error in errors if error} == expected, found


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


WITH_EXAMPLES = [path for path in sorted((ROOT / "workbench").rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_in_docstrings_give_what_they_say(path) -> None:
    module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    assert doctest.testmod(module).failed == 0
