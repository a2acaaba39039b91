"""What needs no torch passes its tests on a later Python too, with the lock's packages, where one is found."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ["core", "algos/search", "analysis", "knowledge", "simulation"]
NEEDED = ["numpy", "pandas", "scipy", "scikit-learn", "pyarrow", "cloudpickle", "cryptography", "dask[distributed]"]
NEEDED += ["optuna", "plotly", "anywidget", "ipywidgets", "hypothesis", "psutil", "pytest", "pytest-timeout"]
EXCEPT = [  # presets, whose trials are of torch
    "--ignore=tests/core/test_record.py",
    "--deselect=tests/core/test_failures.py::test_the_command_exits_with_1_and_says_why_when_no_trial_has_a_score",
]


def later_python() -> str | None:
    """Find a Python 3.13: one that is on the path and starts, or pyenv's."""
    on_path = shutil.which("python3.13")
    beside = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.13*/bin/python"))
    for python in [on_path, *map(str, beside)]:
        if python and subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0:
            return python
    return None


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it installs packages, and runs some thousand tests
def test_what_needs_no_torch_passes_on_python_3_13(tmp_path) -> None:
    python = later_python()
    if python is None:
        pytest.skip("no Python 3.13 here: neither on the path nor pyenv's")
    there = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    install = [there, "-m", "pip", "install", "--quiet", "-c", ROOT / "requirements.lock", *NEEDED]
    if (done := subprocess.run(install, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"the lock's packages cannot be had for Python 3.13: {done.stderr.splitlines()[-1]}")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env["PYTHONPATH"] = str(ROOT)
    tests = [there, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{room}" for room in ROOMS), *EXCEPT]
    ran = subprocess.run(tests, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:]
