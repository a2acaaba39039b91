"""The command ``workbench run``: a study on a Dask cluster, started or resumed, followed to its end."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.options import add_db, add_preset, add_study, completed, studies_of
from workbench.cli.signals import heed_signals
from workbench.cli.words import study_command, told, typed_again
from workbench.core.places import DEFAULT_DB

if TYPE_CHECKING:
    from distributed import Client

    from workbench.study.results import Results
    from workbench.study.run import StudyRun
    from workbench.study.study import Study

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
  # or a function or class of your own: kind = "my_module:train", and its keyword arguments

or what differs from one that comes with the package:
  base = "pong-hour"

  [study]
  name = "my-pong"

  [scheduler]
  n_trials = 16
"""


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    run = commands.add_parser(
        "run",
        help="run a study, on a local Dask cluster unless another is named",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    run.add_argument("file", nargs="?", help="a study file (TOML); see below")
    add_preset(run, "a study")
    run.add_argument(
        "--trainable", metavar="MODULE:NAME", help="code of your own, a function or class, to --resume a study of it"
    )
    _add_import(run)
    completed(run.add_argument("--name", help="name of the study, instead of the file's"), studies_of)
    run.add_argument("--nodes", type=int, metavar="N", help="worker processes, one trial each")
    _add_gpus(run)
    run.add_argument(
        "--cluster",
        metavar="WHERE",
        help="instead of a local cluster: a Dask scheduler's address or scheduler file (JSON),\n"
        "or a file (TOML) that says how to start a cluster, on SLURM for example",
    )
    run.add_argument("--weight", type=float, metavar="W", help="its share of a cluster that other studies use as well")
    run.add_argument("--checkpoints", metavar="PLACE", help="a directory all workers see, or an fsspec URL")
    run.add_argument("--seed", type=int, metavar="N", help="the study's seed")
    run.add_argument("--mode", choices=("max", "min"), help="whether the score is maximised (default) or minimised")
    run.add_argument("--max-hours", type=float, metavar="H", help="end the study after so long")
    run.add_argument("--target-score", type=float, metavar="X", help="end it once a phase ends with a score as good")
    run.add_argument("--trials", type=int, metavar="N", help="with --resume: so many in all, more than there were")
    run.add_argument("--resume", action="store_true", help="go on with a study that was interrupted")
    run.add_argument("--no-fail-fast", action="store_true", help="go on though the first trials all fail of one error")
    run.add_argument("--quiet", action="store_true", help="print the summary only")
    run.add_argument("--record", metavar="FOLDER", help="once it is over, write it there as Parquet; must not exist")
    add_db(run, None)  # a study file may name one
    run.set_defaults(command=_run)
    _add_confirm(commands)


def _add_confirm(commands: Any) -> None:
    confirm = commands.add_parser("confirm", help="train a study's best configurations again on fresh seeds")
    add_study(confirm)
    confirm.add_argument("--top", type=int, default=3, metavar="N", help="how many configurations (default: 3)")
    confirm.add_argument("--seeds", type=int, default=10, metavar="K", help="fresh seeds of each (default: 10)")
    confirm.add_argument("--nodes", type=int, metavar="N", help="worker processes, one trial each")
    _add_gpus(confirm)
    confirm.add_argument("--cluster", metavar="WHERE", help="instead of a local cluster: as of workbench run")
    confirm.add_argument("--checkpoints", metavar="PLACE", help="where they are, if they were put elsewhere")
    confirm.add_argument("--trainable", metavar="MODULE:NAME", help="code of your own, a function or class")
    _add_import(confirm)
    confirm.set_defaults(command=_confirm)


def _add_gpus(parser: argparse.ArgumentParser) -> None:
    more = "0.5: two share one; 0: none, also where the study had some"
    parser.add_argument("--gpus-per-slot", type=float, metavar="G", help=f"GPUs that each worker sees; {more}")


def _add_import(parser: argparse.ArgumentParser) -> None:
    """Let a command that knows a study by its name alone be told which code of one's own it may run."""
    parser.add_argument(
        "--import",
        action="append",
        default=[],
        metavar="MODULE",
        help="code of your own that the study names, as an environment",
    )


def _confirm(arguments: argparse.Namespace) -> int:
    from workbench.study.file import recorded_study
    from workbench.study.results import Results
    from workbench.study.run import start_to_confirm

    _check_cluster(arguments.cluster, {"--nodes": arguments.nodes, "--gpus-per-slot": arguments.gpus_per_slot})
    _import(arguments)
    with _cluster(arguments.cluster) as client:
        where = {"nodes": arguments.nodes, "gpus_per_slot": arguments.gpus_per_slot}
        where |= {"client": client, "checkpoints": arguments.checkpoints}
        study = recorded_study(arguments.db, arguments.name, None, trainable=arguments.trainable, **where)
        interrupted = _watch(start_to_confirm(study, arguments.top, arguments.seeds), quiet=True)
    print(Results.open(study.db, study.name))
    if interrupted:
        print(f"interrupted; go on with: {typed_again(arguments.argv)}")
    return 130 if interrupted else 0


def _import(arguments: argparse.Namespace) -> None:
    from workbench.core.imports import imported_module

    for module in getattr(arguments, "import"):
        imported_module(module)


def _run(arguments: argparse.Namespace) -> int:
    from workbench.core.errors import FirstTrialsFailed, InvalidInput
    from workbench.study.file import presets_told

    if arguments.preset == "list":
        print(presets_told())
        return 0
    if arguments.file and arguments.preset:
        raise InvalidInput("give a study file or a --preset, not both")
    if arguments.record and Path(arguments.record).exists():
        raise InvalidInput(f"{arguments.record} exists: --record wants a folder that does not")
    _check_cluster(arguments.cluster, {"--nodes": arguments.nodes, "--gpus-per-slot": arguments.gpus_per_slot})
    _import(arguments)
    with _cluster(arguments.cluster) as client:
        study = _study(arguments, client)
        run = study.start(resume=arguments.resume)
        try:
            interrupted, failed = _watch(run, quiet=arguments.quiet), ""
        except FirstTrialsFailed as err:
            interrupted, failed = False, told(err)
    results = run.results()
    print(results)
    if (checkpoint := run.best_checkpoint) is not None:
        print(f"  best checkpoint  {checkpoint}")
    if arguments.record and not (interrupted or failed):
        from workbench.knowledge import record

        print(f"  recorded         {record(study.db, study.name, arguments.record)}")
    if interrupted:
        print(f"interrupted; go on with: {typed_again(arguments.argv, *([] if arguments.resume else ['--resume']))}")
    if failed:
        print(f"workbench: {failed}", file=sys.stderr)
    _report(results, {"--db": study.db})  # last: it takes its time, and may fail
    return 130 if interrupted else 1 if results.summary["best_trial"] is None else 0


def _report(results: "Results", where: Mapping[str, Any]) -> None:
    """Write the report, for which nobody has asked: where it cannot be, say how it can, and fail nothing by it."""
    from workbench.core.errors import InvalidInput

    try:
        print(f"  report           {results.write_report()}")
    except InvalidInput as err:
        elsewhere = study_command("report", results.name, {**where, "--out": "FILE"})
        print(f"workbench: no report was written, {told(err)}: {elsewhere}", file=sys.stderr)


def _check_cluster(where: str | None, local: Mapping[str, Any]) -> None:
    """Refuse options of a local cluster where another one is named."""
    from workbench.core.errors import InvalidInput

    if where is not None and (given := [option for option, value in local.items() if value is not None]):
        raise InvalidInput(
            f"{given[0]} is of the local cluster: leave it out, the workers of --cluster are the nodes, with the GPUs "
            "that they were started with"
        )


def _cluster(where: str | None) -> "AbstractContextManager[Client | None]":
    """Connect to a cluster for the time of a study, or start one, if one is named."""
    if where is None:
        return nullcontext()
    from workbench.cluster.launchers import cluster_client, is_scheduler_file

    if is_scheduler_file(where) and not Path(where).exists():
        print(f"workbench: waiting for a Dask scheduler to write {where}", file=sys.stderr)
    return cluster_client(where)


def _study(arguments: argparse.Namespace, client: "Client | None") -> "Study":
    from workbench.core.errors import InvalidInput
    from workbench.study.file import read_file, read_preset, recorded_study, study_from

    where = {"nodes": arguments.nodes, "client": client, "checkpoints": arguments.checkpoints, "db": arguments.db}
    where["fail_fast"] = False if arguments.no_fail_fast else None
    where |= {key: getattr(arguments, key) for key in ("mode", "max_hours", "target_score", "gpus_per_slot", "weight")}
    if arguments.trials is not None and (arguments.file or arguments.preset or not arguments.resume):
        own = "its file" if arguments.file else f'a file that begins with base = "{arguments.preset or "cartpole"}"'
        raise InvalidInput(
            "--trials is of a study that is resumed by its name; of a new one, write n_trials under [scheduler] in "
            + own
        )
    if arguments.file or arguments.preset:
        if arguments.trainable:
            raise InvalidInput("--trainable goes with --resume --name; a study file says it: kind of [trainable]")
        table = read_file(arguments.file) if arguments.file else read_preset(arguments.preset)
        return study_from(table, name=arguments.name, seed=arguments.seed, **where)
    if not (arguments.resume and arguments.name):
        raise InvalidInput("say what to run: a study file, --preset NAME, or --resume --name STUDY")
    if arguments.seed is not None:
        raise InvalidInput("a resumed study keeps its seed: leave --seed out")
    db = where.pop("db") or DEFAULT_DB
    return recorded_study(db, arguments.name, arguments.trials, trainable=arguments.trainable, **where)


def _watch(run: "StudyRun", *, quiet: bool) -> bool:
    """Follow the study to its end; Ctrl-C, what is heard as it, or a request ends it cleanly. Tell if one did."""
    from workbench.study.run import see_through

    heed_signals()  # again: what starts the cluster, as dask_jobqueue, may have set its own
    see_through(run, run.wait if quiet else partial(_follow, run))
    return run.stopped


def _follow(run: "StudyRun") -> None:
    if run.study.layout:
        print(run.study.layout, file=sys.stderr)
    run.follow(out=sys.stderr)
