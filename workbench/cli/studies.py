"""Commands on the studies of a knowledge base, and on the knowledge base itself."""

import argparse
import codecs
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.options import add_db, add_study
from workbench.cli.words import resume_command, study_command

if TYPE_CHECKING:
    from workbench.cluster.checkpoints import CheckpointStore
    from workbench.knowledge import RecordedStudy
    from workbench.study.pack import Pack

_ELSEWHERE = "where they are, if not where the study's log has them"


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    studies = commands.add_parser("studies", help="list the studies of a knowledge base")
    add_db(studies)
    studies.set_defaults(command=_studies)
    _add_looking(commands)
    _add_tending(commands)
    _add_carrying(commands)


def _add_looking(commands: Any) -> None:
    """Commands that read a study."""
    report = commands.add_parser("report", help="write a study's figures to an HTML page")
    add_study(report)
    report.add_argument("--whole", action="store_true", help="one file to send: plotly's library, 5 MB, inside")
    report.add_argument("--out", metavar="FILE", help="where to (default: beside the knowledge base)")
    report.set_defaults(command=_report)

    show = commands.add_parser("show", help="print a study's best configuration, and what its trials failed of")
    add_study(show)
    show.add_argument("--json", action="store_true", help="as JSON")
    show.set_defaults(command=_show)

    schedule = commands.add_parser(
        "schedule",
        help="write what a study's best weights were trained with, phase by phase; or, where none were handed on, "
        "the configuration to take",
    )
    add_study(schedule)
    schedule.add_argument("--trial", type=int, metavar="N", help="whose weights, instead of the best")
    schedule.add_argument("--out", metavar="FILE", help="a JSON file to write, for a trainable of kind replay")
    schedule.set_defaults(command=_schedule)


def _add_tending(commands: Any) -> None:
    """Commands that keep a knowledge base in order."""
    delete = commands.add_parser("delete", help="remove a study and its checkpoints for good, once you have said yes")
    add_study(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask")
    delete.add_argument("--checkpoints", metavar="PLACE", help=_ELSEWHERE)
    delete.set_defaults(command=_delete)

    check = commands.add_parser("check", help="look for damage in a knowledge base; exit code 1 if there is any")
    add_db(check)
    check.set_defaults(command=_check)

    repair = commands.add_parser("repair", help="mend what can be mended without losing anything")
    add_db(repair)
    repair.set_defaults(command=_repair)

    backup = commands.add_parser(
        "backup", help="copy a knowledge base without its checkpoints, also while studies write to it"
    )
    backup.add_argument("target", metavar="FILE", help="where to; must not exist")
    add_db(backup)
    backup.set_defaults(command=_backup)


def _add_carrying(commands: Any) -> None:
    """Commands that take a study elsewhere."""
    record = commands.add_parser("record", help="write a study to a folder of Parquet files, to be published")
    add_study(record)
    record.add_argument("folder", help="where to; must not exist")
    record.add_argument("--points", type=int, default=500, metavar="N", help="most points of a curve (default: 500)")
    record.add_argument("--note", default="", help="a line on what was recorded and why")
    record.set_defaults(command=_record)

    export = commands.add_parser(
        "export", help="write a study for Optuna, TensorBoard, MLflow, Weights & Biases, or as CSV"
    )
    add_study(export)
    export.add_argument(
        "--to", required=True, choices=("optuna", "tensorboard", "mlflow", "wandb", "csv"), help="which"
    )
    export.add_argument("--out", metavar="PLACE", help="where to, or a URL (default: beside the knowledge base)")
    export.set_defaults(command=_export)

    pack = commands.add_parser("pack", help="write a study that is not running to one file, to go on elsewhere")
    add_study(pack)
    pack.add_argument("file", metavar="FILE", help="where to; must not exist")
    pack.add_argument("--checkpoints", metavar="PLACE", help=_ELSEWHERE)
    pack.set_defaults(command=_pack)

    unpack = commands.add_parser("unpack", help="take up a packed study, to be resumed here")
    unpack.add_argument("file", metavar="FILE", help="what workbench pack wrote")
    unpack.add_argument("--name", metavar="STUDY", help="another name for it")
    unpack.add_argument("--checkpoints", metavar="PLACE", help="a folder or URL to put its checkpoints into")
    add_db(unpack)
    unpack.set_defaults(command=_unpack)


def _studies(arguments: argparse.Namespace) -> int:
    from workbench.core.showing import LUCKIEST, titled
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(arguments.db) as kb:
        if not len(kb):
            print(f"{kb.path} holds no study yet")
            return 0
        studies = kb.studies
        used = [_used(kb.path, kb[name]) for name in studies["name"]]
        names = [titled(name, kb[name].spec) for name in studies["name"]]
    told = studies.assign(name=names, created=studies["created"].dt.floor("s"), checkpoints_mib=used)
    print(told.rename(columns=LUCKIEST).to_string(index=False, float_format="{:.6g}".format))
    return 0


def _used(db: Path, study: "RecordedStudy") -> str:
    """Tell the MiB of a study's checkpoints; a list of studies waits for no network."""
    from workbench.core.errors import CheckpointError
    from workbench.study.saved import store_of

    store = store_of(db, study)
    if store is None:
        return "none"
    try:
        return "remote" if store.remote else f"{store.disk_use() / 2**20:.1f}"
    except CheckpointError:
        return "unreachable"


def _report(arguments: argparse.Namespace) -> int:
    from workbench.core.places import is_device
    from workbench.study.results import Results

    written = Results.open(arguments.db, arguments.name).write_report(arguments.out or None, whole=arguments.whole)
    print(written, file=sys.stderr if is_device(written) else sys.stdout)  # the page itself may be what goes to stdout
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from workbench.analysis import failures
    from workbench.core.showing import finite_only
    from workbench.core.toml import toml_lines
    from workbench.study.results import Results

    results = Results.open(arguments.db, arguments.name)
    numbers, failed = results.summary, failures(results.frames.trials)[["error", "trials"]]
    summary: dict[str, Any] = {"study": arguments.name, "state": results.frames.state, "trials": numbers["trials"]}
    if results.best:
        summary["best"] = {"trial": results.best["trial"], "score": results.best_score, "config": results.best_config}
        if (checkpoint := results.best_checkpoint) is not None:
            summary["best"]["checkpoint"] = checkpoint
    if results.spec.get("simulated"):
        summary["simulated"] = True
    summary["failures"] = failed.to_dict("records")
    if arguments.json:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # there may be nothing to print to
        as_it_is = codecs.lookup(encoding).name == "utf-8"  # others lack letters
        print(json.dumps(finite_only(summary, lambda _: None), indent=1, ensure_ascii=not as_it_is, allow_nan=False))
    else:
        print("\n".join(toml_lines(summary)))
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import KnowledgeBase, delete
    from workbench.study.saved import remove_checkpoints, store_to_delete

    with KnowledgeBase(arguments.db) as kb:
        study = kb[arguments.name]
        identity = study.identity
        store = store_to_delete(arguments.db, study, arguments.checkpoints)
        print(f"{study!r}; {_what_goes(store, arguments)}")
    question = "delete it for good, with its checkpoints? [y/N] " if store else "delete it for good? [y/N] "
    if not arguments.yes and not _agreed(question):
        print("nothing was deleted")
        return 1
    delete(arguments.db, arguments.name, first=partial(remove_checkpoints, store), identity=identity)
    print("deleted")
    return 0


def _what_goes(store: "CheckpointStore | None", arguments: argparse.Namespace) -> str:
    """Say which checkpoints are deleted with a study."""
    from workbench.cluster.place import Place
    from workbench.study.saved import checkpoint_store

    beside = checkpoint_store(arguments.db, arguments.name)
    if store is None:
        kept = f": those in {beside.root}, which its log does not name, stay" if Place(beside.root).holds_any() else ""
        return f"it has no checkpoints{kept}"
    copies = ", which are also those of any copy of this knowledge base" if store.root != beside.root else ""
    return f"checkpoints of {store.disk_use() / 2**20:.1f} MiB in {store.root}{copies}"


def _agreed(question: str) -> bool:
    """Ask; where nobody can answer, that is a no."""
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # the latter where standard input was closed before the start
        print()
        return False


def _schedule(arguments: argparse.Namespace) -> int:
    from workbench.study.results import Results

    results = Results.open(arguments.db, arguments.name)
    print(results.best_schedule(arguments.trial).to_string(index=False, float_format="{:.10g}".format))
    if arguments.out:
        print("written to", results.write_schedule(arguments.out, arguments.trial))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import record

    print(record(arguments.db, arguments.name, arguments.folder, points=arguments.points, note=arguments.note))
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from workbench.study.export import export
    from workbench.study.export.exporter import shown

    print(shown(export(arguments.db, arguments.name, arguments.to, arguments.out)))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import check

    problems = check(arguments.db)
    print("\n".join(map(str, problems)) if problems else "nothing is wrong")
    return 1 if problems else 0


def _repair(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import repair

    for finding in repair(arguments.db):
        print(f"mended: {finding}")
    return _check(arguments)


def _backup(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import backup

    print(backup(arguments.db, arguments.target))
    return 0


def _pack(arguments: argparse.Namespace) -> int:
    from workbench.study.pack import pack

    print(pack(arguments.db, arguments.name, arguments.file, checkpoints=arguments.checkpoints))
    return 0


def _unpack(arguments: argparse.Namespace) -> int:
    from workbench.study.unpack import unpack

    unpacked = unpack(arguments.file, arguments.db, name=arguments.name, checkpoints=arguments.checkpoints)
    print(unpacked)
    print(_what_next(unpacked, arguments))
    return 0


def _what_next(unpacked: "Pack", arguments: argparse.Namespace) -> str:
    """Say how to go on with a study that was unpacked, or to look at one that has ended."""
    from workbench.core.checks import whole
    from workbench.core.machine import slots_here
    from workbench.core.protocols import TURNS, Kind
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(arguments.db) as kb:
        last = kb[unpacked.name].events(*TURNS)[-1:]
    if any(event.kind is Kind.STUDY_ENDED for event in last):
        return f"it has ended; look at it with: {study_command('show', unpacked.name, {'--db': arguments.db})}"
    where = {"--db": arguments.db, "--checkpoints": arguments.checkpoints}
    n_ranks = unpacked.spec["trainable"].get("n_ranks")
    where["--nodes"] = slots_here(n_ranks if whole(1).fits(n_ranks) else 1)  # not those of the machine it comes from
    return f"go on with: {resume_command(unpacked.name, unpacked.spec, where)}"
