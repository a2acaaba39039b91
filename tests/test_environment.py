"""environment.yml, pyproject.toml and the lock say the same."""

import re
import tomllib
from pathlib import Path

import yaml

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


def test_the_lock_pins_every_dependency_within_its_range() -> None:
    lines = (ROOT / "requirements.lock").read_text().replace("_", "-").split()
    locked = dict(line.split("==") for line in lines)
    assert locked["torch"].split("+")[0] == "2.13.0"
    for name, wanted in _ranges("dashboard", "docs", "test").items():
        if name != "python":
            least = [int(n) for n in wanted.removeprefix(">=").split(".")]
            assert [int(n) for n in re.findall(r"\d+", locked[name])] >= least, name


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    for name in ("requirements.lock", "requirements-bench.lock", "environment.yml", "pyproject.toml"):
        text = (ROOT / name).read_text()
        assert "://" not in text, name
        assert " @ " not in text, name


def test_the_version_is_everywhere_the_same() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]) == version
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
