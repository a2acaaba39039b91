"""environment.yml, pyproject.toml and the lock say the same."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"pytorch": "torch"}


def _ranges(*extras: str) -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    more = [requirement for extra in extras for requirement in project["optional-dependencies"][extra]]
    wanted = [*project["dependencies"], *more]
    ranges = dict(_split(requirement) for requirement in wanted)
    ranges["distributed"] = ranges["dask"]
    return {**ranges, "python": project["requires-python"]}


def _split(requirement: str) -> tuple[str, str]:
    name, version = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?(.*)", requirement).groups()
    return CONDA_NAMES.get(name, name), version


def test_environment_yml_is_what_pyproject_depends_on_and_forces_no_extra_on_anybody() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str) and entry != "pip"]
    assert pip[-1] == "-e ."
    assert dict(_split(entry) for entry in conda + pip[:-1]) == _ranges()


LOCKS = {  # what each is made of: Makefile, `lock`
    "requirements.lock": ("dashboard", "docs", "test"),
    "requirements-bench.lock": ("dashboard", "docs", "test", "bench"),
    "requirements-clusters.lock": ("dashboard", "docs", "test", "clusters", "clusters-test"),
}


def _pins(lock: str) -> dict[str, str]:
    pins: dict[str, str] = {}
    for line in (ROOT / lock).read_text().splitlines():
        if line.startswith("-r "):
            pins |= _pins(line.removeprefix("-r "))
        else:
            name, _, version = line.partition("==")
            pins[canonicalize_name(name)] = version
    return pins


def test_what_is_locked_runs_on_the_python_that_debian_12_has() -> None:
    for name in _pins("requirements.lock"):
        assert SpecifierSet(distribution(name).metadata.get("Requires-Python", "")).contains("3.11.2"), name


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_dependency_within_its_range(lock) -> None:
    locked = _pins(lock)
    assert locked["torch"] == "2.13.0"
    for name, wanted in _ranges(*LOCKS[lock]).items():
        if name != "python":
            least = [int(n) for n in wanted.removeprefix(">=").split(".")]
            assert [int(n) for n in re.findall(r"\d+", locked[canonicalize_name(name)])] >= least, name


@pytest.mark.parametrize(("lock", "taken_back"), [("bench", set()), ("clusters", {"python-dateutil"})])
def test_a_lock_for_more_is_the_lock_and_more(lock, taken_back) -> None:
    locked, more = _pins("requirements.lock"), _pins(f"requirements-{lock}.lock")
    assert {name for name in locked if locked[name] != more.get(name)} == taken_back
    assert len(more) > len(locked)


@pytest.mark.clusters
def test_what_the_clusters_lock_pins_is_installed_fits_together_and_lacks_nothing() -> None:
    locked = _pins("requirements-clusters.lock")
    for name, version in locked.items():
        about = distribution(name)
        assert about.version.partition("+")[0] == version, name
        for needed in map(Requirement, about.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                pin = locked.get(canonicalize_name(needed.name))
                assert pin is not None, f"{name} needs {needed}"
                assert needed.specifier.contains(pin, prereleases=True), f"{name} needs {needed}, pinned is {pin}"


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    for name in (*LOCKS, "environment.yml", "pyproject.toml"):
        text = (ROOT / name).read_text()
        assert "://" not in text, name
        assert " @ " not in text, name


def test_the_version_is_everywhere_the_same() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]) == version
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
