"""The commands on notebooks: copies to work in, one executed headless, pictures for a saved one."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    notebooks = commands.add_parser("notebooks", help="put copies of the notebooks into a folder")
    notebooks.add_argument("folder", help="where to; made if it is missing")
    notebooks.set_defaults(command=_notebooks)

    notebook = commands.add_parser("notebook", help="execute a notebook headless, showing what its cells print")
    notebook.add_argument("path", help="the notebook")
    notebook.add_argument("--out", metavar="FILE", help="where to keep it with its outputs (default: data/runs/)")
    notebook.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], type=_assignment, help="override a parameter"
    )
    notebook.set_defaults(command=_notebook)

    pictures = commands.add_parser(
        "pictures", help="put pictures beside a notebook's figures, for GitHub and nbconvert"
    )
    pictures.add_argument("path", help="the notebook, saved with its outputs")
    pictures.set_defaults(command=_pictures)


def _notebooks(arguments: argparse.Namespace) -> int:
    from workbench.core.errors import InvalidInput
    from workbench.core.places import NOTEBOOKS, whole_file

    folder = Path(arguments.folder)
    sources = sorted(NOTEBOOKS.glob("*.ipynb"))
    if there := [source.name for source in sources if (folder / source.name).exists()]:
        raise InvalidInput(f"{folder} holds {there[0]} already, perhaps with work of yours: choose another folder")
    for source in sources:
        with whole_file(folder / source.name) as part:
            part.write_bytes(source.read_bytes())
        print(folder / source.name)
    return 0


def _notebook(arguments: argparse.Namespace) -> int:
    path = _there(arguments.path)
    # a second and more: a wrong name need not wait
    from workbench.cli.headless import NotebookError, NotebookInterrupted, execute

    try:
        print("kept with its outputs:", execute(path, arguments.out, dict(arguments.set)))
    except (NotebookError, NotebookInterrupted) as err:  # in the words of Python, which it is written in
        print(f"workbench: {err}", file=sys.stderr)
        return 130 if isinstance(err, NotebookInterrupted) else 2
    return 0


def _pictures(arguments: argparse.Namespace) -> int:
    path = _there(arguments.path)
    from workbench.cli.headless import add_pictures, read_notebook, replace_notebook
    from workbench.core.showing import so_many

    notebook = read_notebook(path)
    if drawn := add_pictures(notebook):
        replace_notebook(path, notebook)
    print(f"{so_many(drawn, 'picture')} put into {path}")
    return 0


def _there(path: str) -> Path:
    from workbench.core.errors import InvalidInput

    if not Path(path).is_file():
        raise InvalidInput(f"no notebook at {path}")
    return Path(path)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, got {text!r}")
    return name, value
