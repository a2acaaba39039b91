"""The command ``workbench simulate``: schedulers in virtual time, from a file, a preset or a table of curves."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.options import add_preset
from workbench.core.places import in_home
from workbench.core.showing import so_many

if TYPE_CHECKING:
    from workbench.analysis import Interval
    from workbench.core.protocols import Event
    from workbench.simulation import Comparison, Outcome, Scenario

_EXAMPLE = """\
a simulation file:
  [simulation]
  name = "three-hundred-nodes"
  repeats = 100

  [space]
  learning_rate = {log_uniform = [1e-5, 1e-2]}
  t_max = {log_uniform = [2, 100], step = 1}

  [curves]
  kind = "synthetic"          # or table, study
  family = "crossing"
  n_phases = 10

  [cluster]
  nodes = 300
  speed_spread = 0.2
  crash_rate = 1e-4

  [schedulers.hypertrick]
  kind = "hypertrick"
  n_trials = 1000

a table of recorded curves:
  workbench simulate --table curves.parquet --configs configs.csv --column score=return --only env=Qbert-v5 \\
      --scheduler hypertrick,hyperband --nodes 16 --repeats 100
"""

MEASURES = ("makespan", "occupancy", "completion_rate", "time_to_best", "best_score")


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    parser = commands.add_parser(
        "simulate",
        help="run schedulers in virtual time",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("file", nargs="?", help="a simulation file (TOML); see below")
    add_preset(parser, "one", "simulation")
    parser.add_argument("--table", metavar="FILE", help="a table of recorded learning curves (CSV, Parquet)")
    parser.add_argument("--configs", metavar="FILE", help="a second table: config_id and hyperparameters")
    _add_pairs(parser, "--column", "what the table calls a column: score=return (maximised: negate a loss)")
    _add_pairs(parser, "--only", "rows of the table to use: env=Qbert-v5")
    parser.add_argument("--scheduler", metavar="KIND[,KIND]", help="schedulers to run, instead of the file's")
    _add_pairs(parser, "--set", "a setting of the schedulers that have it: eviction_rate=0.2")
    parser.add_argument("--nodes", type=int, metavar="N", help="nodes of the cluster; with --table 16 unless given")
    parser.add_argument("--repeats", type=int, metavar="N", help="paired repetitions")
    parser.add_argument(
        "--seeds", type=int, metavar="K", help="seeds a configuration is run with; the table's others judge the choice"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the first repetition")
    parser.add_argument("--processes", type=int, metavar="N", default=2, help="processes for repetitions (default 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--db", metavar="FILE", type=in_home, help="a knowledge base to keep the first repetition in")
    parser.add_argument("--name", help="the study's name there")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry the command out."""
    from workbench.simulation import compare
    from workbench.study.file import presets_told

    if arguments.preset == "list":
        print(presets_told("simulation"))
        return 0
    scenario = _scenario(arguments)
    if scenario.seeds is not None:
        return _held_out(scenario, arguments)
    if arguments.db:
        _check_names(scenario, arguments)
    by_label: dict[str, Mapping[str, Any]]
    differences: dict[str, Mapping[str, Any]] = {}
    if scenario.repeats > 1:
        comparison = compare(scenario, processes=arguments.processes)
        by_label = {label: _intervals(comparison, label) for label in scenario.schedulers}
        first, *others = by_label
        differences = {f"{first} - {other}": _differences(comparison, first, other) for other in others}
    else:
        by_label = {label: _numbers(scenario.repetition().run(label)) for label in scenario.schedulers}
    if arguments.db:
        _keep(scenario, arguments)
    result = {
        "name": scenario.name,
        "simulated": True,
        "curves": scenario.curves["kind"],
        "nodes": scenario.cluster.nodes,
        "seed": scenario.seed,
        "repeats": scenario.repeats,
        "scheduler": next(iter(by_label)),
        **next(iter(by_label.values())),
    }
    if len(by_label) > 1:
        result["schedulers"] = by_label
    if differences:
        result["differences"] = differences
    print(json.dumps(result, indent=2) if arguments.json else _table(scenario, {**by_label, **differences}))
    return 0


def _held_out(scenario: "Scenario", arguments: argparse.Namespace) -> int:
    """Choose by some of a table's seeds, and say what the choice is worth by the others."""
    from workbench.core.errors import InvalidInput
    from workbench.simulation import compare_held_out

    if arguments.db:
        raise InvalidInput("--db keeps no studies judged by held-out seeds: leave out --db, or --seeds")
    comparison = compare_held_out(scenario, processes=arguments.processes)
    result = {
        "name": scenario.name,
        "simulated": True,
        "nodes": scenario.cluster.nodes,
        "seed": scenario.seed,
        "repeats": scenario.repeats,
        "seeds": comparison.seeds,
        "held_out": comparison.held_out,
        "schedulers": {label: comparison.summary(label) for label in comparison.labels},
    }
    words = (
        f"{scenario.name}: simulated, {so_many(scenario.cluster.nodes, 'node')}, "
        f"{so_many(scenario.repeats, 'paired repetition')}. Chosen by {so_many(comparison.seeds, 'seed')}, judged by "
        f"{so_many(comparison.held_out, 'other')}: mean regret [95 % interval] after shares "
        "of the node time that all configurations take with one seed; 0 is the best there is, 1 the median"
    )
    print(json.dumps(result, indent=2) if arguments.json else f"{words}\n{comparison.table().to_string()}")
    return 0


def _scenario(arguments: argparse.Namespace) -> "Scenario":
    from workbench.core.errors import InvalidInput
    from workbench.simulation import preset, scenario_from
    from workbench.study.file import read_file

    if sum(map(bool, (arguments.file, arguments.preset, arguments.table))) != 1:
        raise InvalidInput("say what to simulate: a simulation file, --preset NAME or --table FILE, one of them")
    if arguments.name and not arguments.db:
        raise InvalidInput("--name is of the study that is kept: say in which knowledge base, --db FILE")
    if arguments.table:
        if not arguments.scheduler:
            raise InvalidInput("a table needs --scheduler: for example --scheduler hypertrick")
        scenario = scenario_from({"curves": _curves(arguments), "schedulers": {"": {"kind": ""}}})
        scenario = replace(scenario, name=arguments.table, cluster=replace(scenario.cluster, nodes=16))
    else:
        if arguments.configs or arguments.column or arguments.only:
            raise InvalidInput("--configs, --column and --only go with --table")
        file, name = arguments.file, arguments.preset
        scenario = preset(name) if name else scenario_from(read_file(file, "simulation"))
    given = {
        key: getattr(arguments, key) for key in ("repeats", "seed", "seeds") if getattr(arguments, key) is not None
    }
    if arguments.nodes is not None:
        given["cluster"] = replace(scenario.cluster, nodes=arguments.nodes)
    return replace(scenario, **given, schedulers=_schedulers(scenario.schedulers, arguments))


def _curves(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {"path": arguments.table, "configs": arguments.configs}
    given |= {"columns": dict(arguments.column), "only": dict(arguments.only)}
    return {"kind": "table", **{key: value for key, value in given.items() if value}}


def _schedulers(
    written: Mapping[str, Mapping[str, Any]], arguments: argparse.Namespace
) -> dict[str, Mapping[str, Any]]:
    """Take the schedulers from the command line, or else from the file, and apply --set."""
    from workbench.core.describe import settings_of
    from workbench.core.errors import InvalidInput, unknown
    from workbench.core.registry import SCHEDULERS
    from workbench.study.own import with_own

    schedulers: dict[str, Mapping[str, Any]] = dict(written)
    if arguments.scheduler:
        schedulers = {kind: written.get(kind, {"kind": kind}) for kind in arguments.scheduler.split(",")}
    heard, settings = set(), set()
    for label, described in schedulers.items():
        registry = with_own(described, SCHEDULERS)
        if described.get("kind") not in registry:
            raise unknown("scheduler", str(described.get("kind")), registry)
        takes = settings_of("scheduler", described, registry)
        settings |= takes
        changes = {key: _value(text) for key, text in arguments.set if key in takes}
        heard |= set(changes)
        schedulers[label] = {**described, **changes}
    if unheard := [key for key, _ in arguments.set if key not in heard]:
        known = ", ".join(sorted(settings - {"searcher"}))
        raise InvalidInput(f"no scheduler here has a setting {unheard[0]!r}, only {known}")
    return schedulers


def _keep(scenario: "Scenario", arguments: argparse.Namespace) -> None:
    from workbench.core.describe import describe
    from workbench.core.size import size_of
    from workbench.simulation import keep

    repetition = scenario.repetition()
    for label, name in _kept_names(scenario, arguments).items():
        events: list[Event] = []
        repetition.run(label, events)
        scheduler = repetition.scheduler(label)
        spec = {"scheduler": describe(scheduler), "seed": scenario.seed, **scenario.spec}
        keep(arguments.db, name, spec, events, size_of(scheduler))


def _check_names(scenario: "Scenario", arguments: argparse.Namespace) -> None:
    """Refuse what could not be kept before hours of repetitions, not after."""
    from workbench.core.places import check_study_name
    from workbench.study.unpack import refuse_taken

    for name in _kept_names(scenario, arguments).values():
        check_study_name(name)
        refuse_taken(Path(arguments.db), name)


def _kept_names(scenario: "Scenario", arguments: argparse.Namespace) -> dict[str, str]:
    """Give the study that each scheduler's log is kept as."""
    name = arguments.name or (Path(arguments.table).stem if arguments.table else scenario.name)
    return {label: name if len(scenario.schedulers) == 1 else f"{name} {label}" for label in scenario.schedulers}


def _numbers(outcome: "Outcome") -> dict[str, float | None]:
    return {name: _finite(getattr(outcome, name)) for name in MEASURES}


def _intervals(comparison: "Comparison", label: str) -> dict[str, dict[str, float | None]]:
    return {name: _interval(interval) for name, interval in comparison.medians(label, MEASURES).items()}


def _differences(comparison: "Comparison", label: str, other: str) -> dict[str, dict[str, float | None]]:
    """Medians of the differences within a repetition: who is better where both met the same."""
    return {name: _interval(comparison.difference(name, label, other)) for name in MEASURES}


def _interval(interval: "Interval") -> dict[str, float | None]:
    return {"median": _finite(interval.value), "low": _finite(interval.low), "high": _finite(interval.high)}


def _table(scenario: "Scenario", by_label: Mapping[str, Mapping[str, Any]]) -> str:
    head = f"{scenario.name}: simulated, {so_many(scenario.cluster.nodes, 'node')}, seed {scenario.seed}"
    if scenario.repeats > 1:
        head += f", {scenario.repeats} paired repetitions: median [95 % interval; of fewer than six their range]"
    lines = [head]
    for label, values in by_label.items():
        lines += [f"  {label}", *(f"    {name:<16} {_cell(value)}" for name, value in values.items())]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{_cell(value['median'])} [{_cell(value['low'])}, {_cell(value['high'])}]"
    return "none" if value is None else f"{value:.4g}"


def _finite(value: float) -> float | None:
    """Numbers as JSON can write them, with the noise of adding seconds rounded away."""
    return round(value, 9) if value == value and abs(value) != float("inf") else None


def _add_pairs(parser: argparse.ArgumentParser, option: str, text: str) -> None:
    parser.add_argument(option, metavar="NAME=VALUE", action="append", default=[], type=pair, help=text)


def pair(text: str) -> tuple[str, str]:
    """Read ``name=value``."""
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, got {text!r}")
    return name, value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
