"""Options that several families of commands have."""

import argparse
from pathlib import Path

from workbench.core.places import DEFAULT_DB


def add_db(parser: argparse.ArgumentParser, default: Path | None = DEFAULT_DB) -> None:
    """Let a command be told which knowledge base."""
    parser.add_argument("--db", metavar="FILE", default=default, help=f"the knowledge base (default: {DEFAULT_DB})")
