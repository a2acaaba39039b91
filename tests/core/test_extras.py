import re
import sys
import tomllib
from pathlib import Path

import pytest

from workbench.core import extras
from workbench.core.errors import InvalidInput
from workbench.core.imports import imported


def test_every_extra_that_is_named_installs_its_package() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    offered = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for module in extras._EXTRAS:
        (extra,) = re.findall(r"^pip install 'rl-workbench\[(\w+)\]'$", extras.how_to_get(module))
        packages = [re.split(r"[>\[]", requirement)[0].replace("-", "_") for requirement in offered[extra]]
        assert module in [package.removesuffix("_skinny") for package in packages]


def test_a_module_that_an_extra_would_install_is_told_with_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)  # as where it is not installed
    with pytest.raises(InvalidInput, match=r"nor installed: pip install 'rl-workbench\[clusters\]'$"):
        imported("dask_jobqueue:SLURMCluster")
    with pytest.raises(InvalidInput, match=r"nor installed$"):
        imported("no_such_module:SLURMCluster")
