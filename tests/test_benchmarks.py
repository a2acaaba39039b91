"""What benchmarks import is still there: they are run by people, and a name that was moved shows only then."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
NOT_INSTALLED = {"minigrid", "stable_baselines3"}  # of the extra `bench`


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda script: script.stem)
def test_a_benchmark_still_finds_what_it_imports(script, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    try:
        runpy.run_path(str(script), run_name="not_main")
    except ModuleNotFoundError as missing:
        if missing.name not in NOT_INSTALLED:
            raise
        pytest.skip(f"{missing.name} is not installed")
    finally:
        for name in set(sys.modules) - before:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
