"""The command ``workbench notebook``: a notebook executed without a browser."""

import argparse
from typing import Any


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    notebook = commands.add_parser("notebook", help="execute a notebook headless, showing what its cells print")
    notebook.add_argument("path", help="the notebook")
    notebook.add_argument("--out", metavar="FILE", help="where to keep it with its outputs (default: data/runs/)")
    notebook.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], type=_assignment, help="override a parameter"
    )
    notebook.set_defaults(command=_notebook)


def _notebook(arguments: argparse.Namespace) -> int:
    from workbench.cli.headless import execute

    print("kept with its outputs:", execute(arguments.path, arguments.out, dict(arguments.set)))
    return 0


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, got {text!r}")
    return name, value
