"""The floor plan, from the lint contract and the packages' docstrings. `python -m tests.floors --write` renews it."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design.md"
_BETWEEN = re.compile(r"(?<=\[start:floors\] -->\n).*?(?=<!-- --8<-- \[end:floors\])", re.DOTALL)


def floor_plan() -> str:
    """Draw the layers of `pyproject.toml`, a line a package: its path, and the first line of its docstring."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    floors = [[module.strip() for module in layer.split("|")] for layer in layers]
    wide = max(len(module) for floor in floors for module in floor) - len("workbench.") + 2
    lines = []
    for floor in floors:
        marks = ["┐", *"│" * (len(floor) - 2), "┘"] if len(floor) > 1 else [" "]  # siblings stand in one bracket
        for module, mark in zip(floor, marks, strict=True):
            lines.append(f"{module.removeprefix('workbench.').replace('.', '/'):{wide}}{mark} {_duty(module)}")
    return "\n".join(["```", *lines, "```", ""])


def _duty(module: str) -> str:
    place = ROOT.joinpath(*module.split("."))
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text())) or "").partition("\n")[0]


def drawn() -> str:
    """What stands between the markers of `docs/design.md` now."""
    return _BETWEEN.search(PAGE.read_text())[0]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(_BETWEEN.sub(lambda _: floor_plan(), PAGE.read_text()))
    sys.stdout.write(floor_plan())
