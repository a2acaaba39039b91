"""The command line. Everything heavy is imported only by the command that needs it."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.simulate import add_parser as add_simulate
from workbench.core.places import DEFAULT_DB

if TYPE_CHECKING:
    from distributed import Client

    from workbench.study.study import Study, StudyRun

_EXAMPLE = """\
a study file:
  [study]
  name = "my-pong"
  seed = 0
  nodes = 2

  [space]
  learning_rate = {log_uniform = [1e-5, 1e-2]}
  gamma = {choice = [0.9, 0.95, 0.99, 0.995, 0.999]}
  t_max = {log_uniform = [2, 100], step = 1}

  [scheduler]
  kind = "hypertrick"
  n_trials = 16
  n_phases = 4
  eviction_rate = 0.25

  [trainable]
  kind = "ga3c"
  game = "Pong"
  phase = {frames = 400_000}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 1 no trial has a score, 2 bad input, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    from workbench.core.errors import WorkbenchError

    try:
        return int(arguments.command(arguments))
    except WorkbenchError as err:
        print(f"workbench: {err}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workbench", description="Metaoptimization of deep reinforcement learning.")
    commands = parser.add_subparsers(metavar="command", required=True)

    run = commands.add_parser(
        "run",
        help="run a study on a local Dask cluster",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    run.add_argument("file", nargs="?", help="a study file (TOML); see below")
    run.add_argument("--preset", metavar="NAME", help="a study that comes with the package; 'list' lists them")
    run.add_argument("--name", help="name of the study, instead of the file's")
    run.add_argument("--nodes", type=int, metavar="N", help="worker processes, one trial each")
    run.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler's, instead of a local cluster")
    run.add_argument("--checkpoints", metavar="PLACE", help="a directory all workers see, or an fsspec URL")
    run.add_argument("--seed", type=int, metavar="N", help="the study's seed")
    run.add_argument("--resume", action="store_true", help="go on with a study that was interrupted")
    run.add_argument("--no-fail-fast", action="store_true", help="go on though the first trials all fail of one error")
    run.add_argument("--quiet", action="store_true", help="print the summary only")
    run.add_argument("--record", metavar="FOLDER", help="once it is over, write it there as Parquet; must not exist")
    _add_db(run, None)  # a study file may name one
    run.set_defaults(command=_run)

    studies = commands.add_parser("studies", help="list the studies of a knowledge base")
    _add_db(studies)
    studies.set_defaults(command=_studies)

    report = commands.add_parser("report", help="write a study's figures to one self-contained HTML file")
    report.add_argument("name", help="name of the study")
    report.add_argument("--out", metavar="FILE", help="where to (default: beside the knowledge base)")
    _add_db(report)
    report.set_defaults(command=_report)

    schedule = commands.add_parser(
        "schedule", help="write the schedule of hyperparameters that a study's best weights were trained with"
    )
    schedule.add_argument("name", help="name of the study")
    schedule.add_argument("--trial", type=int, metavar="N", help="whose weights, instead of the best member's")
    schedule.add_argument("--out", metavar="FILE", help="a JSON file to write, for a trainable of kind replay")
    _add_db(schedule)
    schedule.set_defaults(command=_schedule)

    record = commands.add_parser("record", help="write a study to a folder of Parquet files, to be published")
    record.add_argument("name", help="name of the study")
    record.add_argument("folder", help="where to; must not exist")
    record.add_argument("--points", type=int, default=500, metavar="N", help="most points of a curve (default: 500)")
    record.add_argument("--note", default="", help="a line on what was recorded and why")
    _add_db(record)
    record.set_defaults(command=_record)

    evaluate = commands.add_parser("evaluate", help="play whole games with a checkpoint; print the scores as JSON")
    evaluate.add_argument("checkpoint", help="a trial's checkpoint: a directory")
    evaluate.add_argument("--game", metavar="NAME", help="what to play (default: what it was trained on)")
    evaluate.add_argument("--protocol", choices=("ga3c", "ba3c"), default="ga3c", help="ga3c: 30 games, drawn actions")
    evaluate.add_argument("--seed", type=int, default=0, metavar="N", help="of the games' starts and the actions drawn")
    evaluate.set_defaults(command=_evaluate)

    check = commands.add_parser("check", help="look for damage in a knowledge base; exit code 1 if there is any")
    _add_db(check)
    check.set_defaults(command=_check)

    repair = commands.add_parser("repair", help="mend what can be mended without losing anything")
    _add_db(repair)
    repair.set_defaults(command=_repair)

    backup = commands.add_parser("backup", help="copy a knowledge base, also while studies write to it")
    backup.add_argument("target", metavar="FILE", help="where to; must not exist")
    _add_db(backup)
    backup.set_defaults(command=_backup)

    notebook = commands.add_parser("notebook", help="execute a notebook headless, showing what its cells print")
    notebook.add_argument("path", help="the notebook")
    notebook.add_argument("--out", metavar="FILE", help="where to keep it with its outputs (default: data/runs/)")
    notebook.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], type=_assignment, help="override a parameter"
    )
    notebook.set_defaults(command=_notebook)

    again = commands.add_parser("reproduce", help="run the experiments behind the papers' figures and tables again")
    again.add_argument("names", nargs="*", metavar="NAME", help="which; without any, they are listed")
    again.add_argument("--scale", default="minutes", help="minutes (default), hours, or paper: as published")
    again.add_argument("--out", metavar="FOLDER", help="where recordings are kept (default: the project's data/)")
    again.add_argument("--parts", type=int, metavar="N", help="of a long one, run so many parts now, the rest later")
    again.set_defaults(command=_reproduce)

    board = commands.add_parser("scoreboard", help="put every published number beside ours, as Markdown")
    board.add_argument("--write", metavar="FILE", help="write it there instead of printing it")
    board.set_defaults(command=_scoreboard)

    add_simulate(commands)
    return parser


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, got {text!r}")
    return name, value


def _add_db(parser: argparse.ArgumentParser, default: Path | None = DEFAULT_DB) -> None:
    parser.add_argument("--db", metavar="FILE", default=default, help=f"the knowledge base (default: {DEFAULT_DB})")


def _run(arguments: argparse.Namespace) -> int:
    from workbench.core.errors import FirstTrialsFailed, InvalidInput
    from workbench.knowledge import record
    from workbench.study.file import presets

    if arguments.preset == "list":
        print("\n".join(presets()))
        return 0
    if arguments.file and arguments.preset:
        raise InvalidInput("give a study file or a --preset, not both")
    if arguments.record and Path(arguments.record).exists():
        raise InvalidInput(f"{arguments.record} exists: --record wants a folder that does not")
    if arguments.cluster and arguments.nodes is not None:
        raise InvalidInput("--nodes is of the local cluster: leave it out, the workers of --cluster are the nodes")
    with _client(arguments.cluster) as client:
        study = _study(arguments, client)
        run = study.start(resume=arguments.resume)
        try:
            interrupted, failed = _watch(run, quiet=arguments.quiet), ""
        except FirstTrialsFailed as err:
            interrupted, failed = False, str(err)
    results = run.results()
    print(results)
    print(f"  report           {run.report()}")
    if arguments.record and not (interrupted or failed):
        print(f"  recorded         {record(study.db, study.name, arguments.record)}")
    if interrupted:
        where = {
            "--name": study.name,
            "--db": study.db,
            "--cluster": arguments.cluster,
            "--checkpoints": study.checkpoints,
        }
        told = " ".join(f"{option} {value}" for option, value in where.items() if value is not None)
        print(f"interrupted; go on with: workbench run --resume {told}")
    if failed:
        print(f"workbench: {failed.replace('fail_fast=False', '--no-fail-fast')}", file=sys.stderr)
    return 130 if interrupted else 1 if results.summary["best_trial"] is None else 0


@contextmanager
def _client(address: str | None) -> Iterator["Client | None"]:
    """Connect to a cluster for the time of a study, if one is named."""
    if address is None:
        yield None
        return
    from distributed import Client

    from workbench.core.errors import InvalidInput

    try:
        client = Client(address, set_as_default=False)
    except (OSError, ValueError) as err:
        raise InvalidInput(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(err).split())}): start one with "
            f"dask scheduler and dask worker, or leave --cluster out to run on this machine"
        ) from None
    with client:
        yield client


def _study(arguments: argparse.Namespace, client: "Client | None") -> "Study":
    from workbench.core.errors import InvalidInput
    from workbench.study.file import read_file, read_preset, recorded_study, study_from

    where = {"nodes": arguments.nodes, "client": client, "checkpoints": arguments.checkpoints, "db": arguments.db}
    where["fail_fast"] = False if arguments.no_fail_fast else None
    if arguments.file or arguments.preset:
        table = read_file(arguments.file) if arguments.file else read_preset(arguments.preset)
        return study_from(table, name=arguments.name, seed=arguments.seed, **where)
    if not (arguments.resume and arguments.name):
        raise InvalidInput("say what to run: a study file, --preset NAME, or --resume --name STUDY")
    if arguments.seed is not None:
        raise InvalidInput("a resumed study keeps its seed: leave --seed out")
    return recorded_study(where.pop("db") or DEFAULT_DB, arguments.name, **where)


def _watch(run: "StudyRun", *, quiet: bool) -> bool:
    """Follow the study to its end; Ctrl-C, or a batch system's SIGTERM, ends it cleanly. Tell whether one did."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run.wait() if quiet else run.follow(out=sys.stderr)
    except KeyboardInterrupt:
        print("\nending the study; press Ctrl-C again to leave at once", file=sys.stderr)
        run.stop()
        run.wait()
        return True
    return False


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


def _evaluate(arguments: argparse.Namespace) -> int:
    import json

    from workbench.algos.rl.checkpoint import load_agent
    from workbench.algos.rl.evaluate import PROTOCOLS
    from workbench.paper.ga3c.table_3 import TABLE_3, normalised

    model, game, rules = load_agent(arguments.checkpoint, arguments.game)
    played = PROTOCOLS[arguments.protocol].play(model, game, rules, arguments.seed)
    found = {"game": game.name, "protocol": arguments.protocol, "seed": arguments.seed} | played.summary()
    if game.name in TABLE_3:
        found["human_normalised"] = round(normalised(played.mean, game.name), 3)
    print(json.dumps(found))
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


def _reproduce(arguments: argparse.Namespace) -> int:
    from workbench.core.places import DATA
    from workbench.paper.catalogue import EXPERIMENTS
    from workbench.paper.experiments import reproduce

    if not arguments.names:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:30} {experiment.shows} ({', '.join(experiment.commands)})")
    for name in arguments.names:
        print(reproduce(name, arguments.scale, arguments.out or DATA, arguments.parts))
    return 0


def _scoreboard(arguments: argparse.Namespace) -> int:
    from workbench.paper.scoreboard import page, recordings, scoreboard

    text = f"{page(scoreboard())}\n{recordings()}"
    if arguments.write:
        Path(arguments.write).write_text(text, encoding="utf-8")
    print(arguments.write or text)
    return 0


def _notebook(arguments: argparse.Namespace) -> int:
    from workbench.cli.notebook import execute

    print("kept with its outputs:", execute(arguments.path, arguments.out, dict(arguments.set)))
    return 0
