"""Options that several families of commands have, and what a shell may complete them with."""

import argparse
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from workbench.core.places import DEFAULT_DB, in_home


def add_db(parser: argparse.ArgumentParser, default: Path | None = DEFAULT_DB) -> None:
    """Let a command be told which knowledge base."""
    said = f"the knowledge base (default: {DEFAULT_DB})"
    parser.add_argument("--db", metavar="FILE", type=in_home, default=default, help=said)


def add_study(parser: argparse.ArgumentParser) -> None:
    """Let a command be told which study of which knowledge base."""
    completed(parser.add_argument("name", help="name of the study"), studies_of)
    add_db(parser)


def completed(argument: argparse.Action, by: Callable[[argparse.Namespace], Iterable[str]]) -> None:
    """Complete an argument by what a function makes of those typed so far (argcomplete reads this attribute)."""

    def completer(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        return [*by(parsed_args)]

    argument.completer = completer  # type: ignore[attr-defined]


def add_preset(parser: argparse.ArgumentParser, what: str, of: str = "study") -> None:
    """Let a command be told a preset, one of `workbench.study.file.presets(of)`; to list them is for the command."""

    def known(_: argparse.Namespace) -> list[str]:
        from workbench.study.file import presets

        return [*presets(of), "list"]

    said = f"{what} that comes with the package; 'list' lists them"
    completed(parser.add_argument("--preset", metavar="NAME", help=said), known)


def studies_of(arguments: argparse.Namespace) -> list[str]:
    """Name the studies of the knowledge base that was named; a shell is told of no error.

    The file is asked directly: to import what reads it would take longer than anyone waits for a completion.
    """
    try:
        file = Path(arguments.db or DEFAULT_DB).resolve(strict=True)
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM studies ORDER BY id")]
    except (OSError, sqlite3.Error):
        return []
