"""The command line: the parser, made of the families of commands, and the dispatch.

Everything heavy is imported only by the command that needs it, and the families only where an interrupt is heard.
"""

import argparse
import errno
import os
import select
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    0: done; 1: no trial has a score, there is damage, or a deletion was not agreed to; 2: bad input; 130: interrupted;
    141: whoever read what is printed has gone.
    """
    try:
        from workbench.cli.signals import heed_signals
        from workbench.core.errors import DISK_FULL, WorkbenchError

        heed_signals()
        arguments = _parsed(sys.argv[1:] if argv is None else argv)
        _print_any_letter()
        code = int(arguments.command(arguments))
        if sys.stdout is not None:  # as where it was closed before the start
            sys.stdout.flush()  # here it may fail, as below, and not after the end
        _print_no_more()  # progress that nobody read
        return code
    except KeyboardInterrupt:  # first, for it may come before the other errors are known
        print("workbench: interrupted", file=sys.stderr)
        return 130
    except WorkbenchError as err:
        from workbench.cli.words import told

        print(f"workbench: {told(err)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        if not _is_unread():
            raise
        _print_no_more()
        return 141
    except OSError as err:
        where = err.filename2 or err.filename  # of two, where something was to be put
        if where is None and err.errno not in {*DISK_FULL, errno.EFBIG}:  # of which no file is named
            raise
        said = f"{where}: {err.strerror}" if where else f"{os.strerror(err.errno or 0)}: make space"
        print(f"workbench: {said}", file=sys.stderr)
        _print_no_more()
        return 2
    except (MemoryError, ImportError, SystemError) as err:
        from workbench.core.machine import too_little_memory

        if not (said := too_little_memory(err)):
            raise
        print(f"workbench: {said}", file=sys.stderr)
        return 2


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow (extra: completion)
        from argcomplete import autocomplete

        autocomplete(parser)
    arguments = parser.parse_args(argv)
    arguments.argv = [*argv]
    return arguments


def _print_any_letter() -> None:
    """Let letters that a terminal's encoding lacks be printed escaped, as they are on standard error."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_unread() -> bool:
    """Tell whether whoever read what is printed has gone, as `head` goes."""
    poll = select.poll()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        poll.register(stream.fileno(), 0)
    return any(seen & select.POLLERR for _, seen in poll.poll(0))


def _print_no_more() -> None:
    """Give up what is still to be printed, if it cannot be: Python would try again at the end, and fail aloud."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    from workbench.cli import evaluate, lab, notebook, paper, run, simulate, studies

    parser = argparse.ArgumentParser(prog="workbench", description="Metaoptimization of deep reinforcement learning.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="command", required=True, parser_class=_Command)
    for family in (run, studies, lab, evaluate, notebook, paper, simulate):
        family.add_parsers(commands)
    return parser


class _Command(argparse.ArgumentParser):
    """Refuses an option that it does not have itself: the program's parser would show the usage of all commands."""

    def parse_known_args(self, *given: Any) -> tuple[Any, list[str]]:  # type: ignore[override]
        arguments, odd = super().parse_known_args(*given)
        if odd:
            self.error(f"unrecognized arguments: {' '.join(odd)}")
        return arguments, odd


class _Version(argparse.Action):
    """Look the version up only when it is asked for: that costs more than the rest of the parser."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(parser.prog, version("rl-workbench"))
        parser.exit()
