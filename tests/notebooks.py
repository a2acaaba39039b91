"""Notebooks as tests make, run and read them. Their reader takes two seconds to import: only they wait."""

import json
from pathlib import Path
from typing import Any


def written(path: Path, *sources: str) -> Path:
    """Write a notebook of these cells."""
    import nbformat

    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]), path)
    return path


def read(path: Path) -> Any:
    import nbformat

    return nbformat.read(path, as_version=4)


def outputs(path: Path) -> str:
    """Give the outputs of all cells, as JSON."""
    return json.dumps([cell.get("outputs", []) for cell in read(path).cells])


def execute(path: Path, out: Path, parameters: dict[str, str] | None = None) -> Path:
    """Run a notebook as `workbench notebook` does."""
    from workbench.cli.headless import execute

    return execute(path, out, parameters)
