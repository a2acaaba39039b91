"""The command line: the parser, made of the families of commands, and the dispatch.

Everything heavy is imported only by the command that needs it.
"""

import argparse
import os
import select
import sys
from collections.abc import Sequence
from typing import Any

from workbench.cli import evaluate, lab, notebook, paper, run, simulate, studies
from workbench.cli.words import in_shell

_FAMILIES = (run, studies, lab, evaluate, notebook, paper, simulate)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 1 no trial has a score, 2 bad input, 130 interrupted, 141 unread."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow (extra: completion)
        from argcomplete import autocomplete

        autocomplete(parser)
    arguments = parser.parse_args(argv)
    from workbench.core.errors import WorkbenchError

    try:
        code = int(arguments.command(arguments))
        sys.stdout.flush()  # here it may fail, as below, and not after the end
        return code
    except WorkbenchError as err:
        print(f"workbench: {in_shell(str(err))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("workbench: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        if not _is_unread():
            raise
        return 141
    except OSError as err:
        if err.filename is None:
            raise
        print(f"workbench: {in_shell(str(err.filename))}: {err.strerror}", file=sys.stderr)
        return 2


def _is_unread() -> bool:
    """Tell whether whoever read what is printed has gone, as `head` goes; then print no more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    unread = any(seen & select.POLLERR for _, seen in poll.poll(0))
    if unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return unread


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workbench", description="Metaoptimization of deep reinforcement learning.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="command", required=True)
    for family in _FAMILIES:
        family.add_parsers(commands)
    return parser


class _Version(argparse.Action):
    """Look the version up only when it is asked for: that costs more than the rest of the parser."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(parser.prog, version("rl-workbench"))
        parser.exit()
