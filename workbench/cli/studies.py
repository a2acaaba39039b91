"""Commands on the studies of a knowledge base, and on the knowledge base itself."""

import argparse
from pathlib import Path
from typing import Any

from workbench.cli.options import add_db


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    studies = commands.add_parser("studies", help="list the studies of a knowledge base")
    add_db(studies)
    studies.set_defaults(command=_studies)

    report = commands.add_parser("report", help="write a study's figures to one self-contained HTML file")
    report.add_argument("name", help="name of the study")
    report.add_argument("--out", metavar="FILE", help="where to (default: beside the knowledge base)")
    add_db(report)
    report.set_defaults(command=_report)

    schedule = commands.add_parser(
        "schedule", help="write the schedule of hyperparameters that a study's best weights were trained with"
    )
    schedule.add_argument("name", help="name of the study")
    schedule.add_argument("--trial", type=int, metavar="N", help="whose weights, instead of the best member's")
    schedule.add_argument("--out", metavar="FILE", help="a JSON file to write, for a trainable of kind replay")
    add_db(schedule)
    schedule.set_defaults(command=_schedule)

    record = commands.add_parser("record", help="write a study to a folder of Parquet files, to be published")
    record.add_argument("name", help="name of the study")
    record.add_argument("folder", help="where to; must not exist")
    record.add_argument("--points", type=int, default=500, metavar="N", help="most points of a curve (default: 500)")
    record.add_argument("--note", default="", help="a line on what was recorded and why")
    add_db(record)
    record.set_defaults(command=_record)

    check = commands.add_parser("check", help="look for damage in a knowledge base; exit code 1 if there is any")
    add_db(check)
    check.set_defaults(command=_check)

    repair = commands.add_parser("repair", help="mend what can be mended without losing anything")
    add_db(repair)
    repair.set_defaults(command=_repair)

    backup = commands.add_parser("backup", help="copy a knowledge base, also while studies write to it")
    backup.add_argument("target", metavar="FILE", help="where to; must not exist")
    add_db(backup)
    backup.set_defaults(command=_backup)


def _studies(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import KnowledgeBase
    from workbench.study.study import checkpoint_store

    with KnowledgeBase(arguments.db) as kb:
        if not len(kb):
            print(f"{kb.path} holds no study yet")
            return 0
        studies = kb.studies
    used = [f"{checkpoint_store(kb.path, name).disk_use() / 2**20:.1f}" for name in studies["name"]]
    print(studies.assign(checkpoints_mib=used).to_string(index=False))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from workbench.study.results import Results

    db = Path(arguments.db)
    out = Path(arguments.out) if arguments.out else db.parent / f"{arguments.name}.html"
    print(Results.open(db, arguments.name).write_report(out))
    return 0


def _schedule(arguments: argparse.Namespace) -> int:
    from workbench.study.results import Results

    results = Results.open(arguments.db, arguments.name)
    print(results.best_schedule(arguments.trial).to_string(index=False))
    if arguments.out:
        print("written to", results.write_schedule(arguments.out, arguments.trial))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import record

    print(record(arguments.db, arguments.name, arguments.folder, points=arguments.points, note=arguments.note))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import check

    found = check(arguments.db)
    print("\n".join(map(str, found)) if found else "nothing is wrong")
    return 1 if found else 0


def _repair(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import repair

    for finding in repair(arguments.db):
        print(f"mended: {finding}")
    return _check(arguments)


def _backup(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import backup

    print(backup(arguments.db, arguments.target))
    return 0
