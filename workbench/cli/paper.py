"""The commands ``workbench reproduce`` and ``workbench scoreboard``: what the papers published, and ours."""

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    again = commands.add_parser("reproduce", help="run the experiments behind the papers' figures and tables again")
    again.add_argument("names", nargs="*", metavar="NAME", help="which; without any, they are listed")
    again.add_argument("--scale", default="minutes", help="minutes (default), hours, or paper: as published")
    again.add_argument(
        "--out",
        metavar="FOLDER",
        help="where recordings go, in place of earlier ones (default: data/ of a checkout, else of this folder)",
    )
    again.add_argument("--parts", type=int, metavar="N", help="of a long one, run so many parts now, the rest later")
    again.set_defaults(command=_reproduce)

    board = commands.add_parser("scoreboard", help="put every published number and claim beside ours, as Markdown")
    board.add_argument("--write", metavar="FILE", help="write it there instead of printing it")
    board.add_argument(
        "--recordings",
        metavar="FOLDER",
        help="put those in it beside them, as reproduce --out keeps them (default: those that come with the project)",
    )
    board.set_defaults(command=_scoreboard)


def _reproduce(arguments: argparse.Namespace) -> int:
    from workbench.core.places import KEPT
    from workbench.paper.catalogue import EXPERIMENTS, planned, reproduce

    if not arguments.names:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:30} {experiment.shows} ({', '.join(experiment.scales)})")
    for name in arguments.names:
        planned(name, arguments.scale)  # all of them, before hours of the first
    for name in arguments.names:
        print(reproduce(name, arguments.scale, arguments.out or KEPT, arguments.parts))
    return 0


def _scoreboard(arguments: argparse.Namespace) -> int:
    from workbench.core.places import whole_file
    from workbench.paper.learned import page_of_what_was_learned
    from workbench.paper.scoreboard import ABOUT, page, page_of_own, recordings, scoreboard

    # the place first: all that is recorded takes seconds to read
    with whole_file(Path(arguments.write)) if arguments.write else nullcontext() as part:
        if arguments.recordings is not None:
            text = page_of_own(Path(arguments.recordings))
        else:
            text = "\n".join([ABOUT, page_of_what_was_learned(), page(scoreboard()), recordings()])
        if part is not None:
            part.write_text(text, encoding="utf-8")
    print(arguments.write or text)
    return 0
