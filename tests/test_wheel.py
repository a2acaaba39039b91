"""The wheel is the whole product: built, installed into an environment without the checkout, used from there."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from workbench.core.places import DATA, KEPT, NOTEBOOKS
from workbench.viz.figures.report import LIBRARY

ROOT = Path(__file__).parents[1]
STUDY = """
[study]
name = "quadratic"
[space]
h0 = {uniform = [0, 1]}
h1 = {uniform = [0, 1]}
[scheduler]
kind = "full"
n_trials = 3
n_phases = 2
[trainable]
kind = "quadratic"
"""
EVERY_PRESET = """
from workbench.cli.main import main
from workbench.simulation import presets
assert len(presets()) >= 7
for name in presets():
    assert main(["simulate", "--preset", name, "--repeats", "1"]) == 0, name
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the wheel and, by a path alone, what this one has installed; the checkout is not among it."""
    there = tmp_path_factory.mktemp("wheel")
    source = there / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, source)
    skipped = shutil.ignore_patterns("__pycache__", "runs", ".*")
    for name in ("workbench", "data", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(there), str(source)]
    subprocess.run([*pip, *built], check=True)
    shutil.rmtree(source)
    (wheel,) = there.glob("*.whl")
    venv.create(there / "env", symlinks=True)
    (packages,) = (there / "env").glob("lib/python3*/site-packages")
    (packages / "installed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # its own .pth files are not read
    python = there / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    return python


def run(python: Path, folder: Path, *command: str) -> str:
    """Run a command of the environment in a folder that is no checkout; give what it prints."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([str(python), *command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_alone_simulates_runs_reports_exports_and_scores(installed, tmp_path) -> None:
    where = run(installed, tmp_path, "-c", "import workbench; print(workbench.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parents[1])
    simulated = run(installed, tmp_path, "-c", EVERY_PRESET)
    assert simulated.count("simulated, ") >= 7
    (tmp_path / "study.toml").write_text(STUDY)
    workbench = ("-m", "workbench")
    assert "best score" in run(installed, tmp_path, *workbench, "run", "study.toml", "--quiet")
    (report,) = run(installed, tmp_path, *workbench, "report", "quadratic").split()
    page = tmp_path / report
    assert 'id="figure-0-data"' in page.read_text()
    assert page.with_name(LIBRARY).stat().st_size > 1e6  # what draws the figures, beside the page
    assert "hypertrick" in run(installed, tmp_path, *workbench, "scoreboard").lower()
    folder = run(installed, tmp_path, *workbench, "export", "quadratic", "--to", "csv").strip()
    assert (Path(folder) / "trials.csv").is_file()
    run(installed, tmp_path, *workbench, "notebooks", "mine")
    assert {f.name for f in (tmp_path / "mine").iterdir()} == {f.name for f in NOTEBOOKS.glob("*.ipynb")}
    assert not (tmp_path / "data" / "toy_problem.csv").exists()


def test_in_a_checkout_data_and_notebooks_are_its_own() -> None:
    assert (DATA, KEPT, NOTEBOOKS) == (ROOT / "data", ROOT / "data", ROOT / "notebooks")
