"""Ours beside the HyperTrick paper's numbers and claims: formulas, simulations, and recorded studies."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.algos.search.hyperband import bracket_completion, bracket_table
from workbench.algos.search.hypertrick import eviction_rate_for, expected_completion_rate, minimum_completion_rate
from workbench.analysis.bootstrap import Interval
from workbench.paper.evaluated import evaluations_of, made_by
from workbench.paper.experiment import RecordedTable
from workbench.paper.hypertrick import atari, toy_problem
from workbench.paper.hypertrick.published import (
    ALPHA,
    ALPHA_EXCESS,
    BUSIER,
    CLAIMS,
    COLUMNS,
    EARLY,
    FASTER,
    NUMBERS,
    SCHEDULES,
    SIMILAR,
    SLOW_AND_LOW,
    SOONER,
    T_MAX_LAST,
)
from workbench.paper.numbers import Counterpart, Origin, Pairs, find
from workbench.paper.verdicts import (
    NEARLY,
    above,
    below,
    better,
    by_construction,
    exact,
    least,
    negated,
    not_comparable,
    percent,
    with_room,
    within,
)

if TYPE_CHECKING:
    import pandas as pd

_CARTPOLE, _MS_PACMAN = "recorded CartPole curves", "recorded Ms. Pac-Man curves"
SIMULATED = {
    "curves-hyperband-against-hypertrick": _CARTPOLE,
    "curves-hyperband-against-hypertrick-atari": _MS_PACMAN,
    "hyperband-against-hypertrick": "made-up curves",
}
"""Recordings of Hyperband beside HyperTrick on 46 virtual nodes → what is replayed."""

AGENTS = {
    0.95: ("pong-tuned", "pong-tuned-third", "pong-best", "pong-long", "pong-longer", "pong-gpu"),
    0.98: ("pong-annealed",),
}
"""Gamma → recordings of Pong whose agents were trained with it."""
ALIKE = 14  # scores from here on are similar: the best come to 19.7


def formulas(root: Path) -> Pairs:
    """Completion rates (Eqs 8 and 9) and Hyperband's brackets (Table 2)."""
    for n_phases in (10, 5):
        why = "Eq. 8; it leaves out the phase in which a trial is stopped, so that no run comes as low"
        expected = find(NUMBERS, "Table 1", f"E[alpha], Np = {n_phases}")
        least = find(NUMBERS, "Table 1", f"min alpha, Np = {n_phases}")
        yield exact(expected, 100 * expected_completion_rate(0.25, n_phases), _of("expected_completion_rate"), "Eq. 9")
        yield exact(least, 100 * minimum_completion_rate(0.25, n_phases), _of("minimum_completion_rate"), why)
    brackets, origin = bracket_table(27, 3), _of("bracket_table")
    configs = sum(bracket[0].n_trials for bracket in brackets)
    yield exact(find(NUMBERS, "Sec. 5.2.4", "Hyperband, R = 27, eta = 3"), configs, origin)
    origin = _of("bracket_completion")
    for s, bracket in zip((3, 2, 1, 0), brackets, strict=True):
        yield exact(find(NUMBERS, "Table 2", f"alpha, s = {s}"), 100 * bracket_completion([bracket]), origin)
    together = bracket_completion(brackets)
    yield exact(find(NUMBERS, "Table 2", "alpha"), 100 * together, origin)
    rate, origin = find(NUMBERS, "Sec. 5.2.4", "r of equal expected alpha, Np = 27"), _of("eviction_rate_for")
    yield exact(rate, 100 * eviction_rate_for(together, 27), origin, "Eq. 9 solved for r")


def toy_makespans(root: Path) -> Pairs:
    """The four schedules of Figs 2, 3, 8 and 9, on a table that was searched for until they came out."""
    table, origin = toy_problem.table(), Origin("simulated", "toy_problem.play")
    why = "the table was searched for (`data/toy_problem.py`) until this came out: it can be met"
    for name, scheduler in toy_problem.schedulers(table).items():
        number = find(NUMBERS, "Figs 2, 3, 8, 9", f"makespan, {SCHEDULES[name]}")
        yield by_construction(number, toy_problem.play(scheduler, table).outcome.makespan, origin, why)


def simulated(root: Path) -> Pairs:
    """The claims of Sec. 5.2 on virtual nodes: medians of paired differences, with intervals."""
    for kept in RecordedTable.those_of(SIMULATED, root):
        curves = SIMULATED[kept.name]
        rows: dict[str, dict[str, Any]] = kept.frame.set_index("scheduler").to_dict("index")  # type: ignore[assignment]
        gap, share, origin = rows["hypertrick - hyperband"], rows["hypertrick - hyperband, %"], kept.origin
        why = f"on {curves}, {gap['repeats']} times{_drawn(gap['draws']) if 'draws' in gap else ''}"
        faster, sooner, similar = (_scaled(share, measure) for measure in ("makespan", "time_to_best", "best_score"))
        yield better(find(CLAIMS, "Sec. 5.2.4", FASTER), negated(faster), origin, f"wall time saved, {why}")
        yield better(find(CLAIMS, "Sec. 5.2.4", SOONER), negated(sooner), origin, f"time to best saved, {why}")
        best = f"best score less Hyperband's, {why}"
        pair = within(find(CLAIMS, "Sec. 5.2.4", SIMILAR), similar, -NEARLY, NEARLY, origin, best, "%")
        limited = curves == _CARTPOLE
        yield with_room(pair, *(rows[name]["best_score"] for name in ("hypertrick", "hyperband"))) if limited else pair
        busier = _scaled(gap, "occupancy", 100)
        yield better(find(CLAIMS, "Sec. 5.2.4", BUSIER), busier, origin, f"occupancy less Hyperband's, {why}", "points")
        # Hyperband's completion rate is what HyperTrick's is expected to be: the same work was asked of both
        excess, why = _scaled(gap, "completion_rate", 100), f"alpha less its expectation on {curves}; as Table 1's four"
        yield within(find(CLAIMS, "Sec. 5.2.3", ALPHA), excess, *ALPHA_EXCESS, origin, why, "points")


EVICTED = {"curves-evictions": _CARTPOLE, "curves-evictions-atari": _MS_PACMAN}
"""Recordings of whom HyperTrick stopped → what is replayed."""


def evicted(root: Path) -> Pairs:
    """Whom HyperTrick lets go on (Sec. 5.2.2): how much of their phases kinds of trials ran."""
    for kept in RecordedTable.those_of(EVICTED, root):
        yield from _evicted(kept, EVICTED[kept.name])


def _evicted(kept: RecordedTable, curves: str) -> Pairs:
    """Ask the claims; intervals are over draws of the configurations: repetitions alone would tell of no others."""
    shares = 100 * kept.frame.groupby("draw").mean()
    on = f"{curves}, {(kept.frame['draw'] == 0).sum()} times{_drawn(len(shares) - 1)}"
    number = find(CLAIMS, "Sec. 5.2.2", "fast workers go on whatever their score")
    of_all = shares["unstable"] / 4 + 3 * shares["steady"] / 4  # a quarter and the others
    ran = _over_draws(100 * (shares["fast_low"] / of_all - 1))
    why = f"phases run, fast trials of low scores less all trials, whose share is {of_all.iloc[0]:.3g} %; {on}"
    yield above(number, ran, -NEARLY, kept.origin, why, "%")
    number = find(CLAIMS, "Sec. 5.2.2", "unstable training is evicted")
    why = f"phases run of all, the quarter whose scores fall most less the others; {on}"
    yield below(number, _over_draws(shares["unstable"] - shares["steady"]), 0, kept.origin, why, "points")
    saved = _over_draws(100 * (1 - shares["slow_low"] / of_all))
    why = f"phases saved, slow trials of low scores beside all trials; {on}"
    yield better(find(CLAIMS, "Fig. 5", SLOW_AND_LOW), saved, kept.origin, why)


def arrived(root: Path) -> Pairs:
    """What it costs the result that early workers are favoured (Sec. 3.2)."""
    kept = RecordedTable.open("curves-arrival", root)
    rows, nodes = kept.frame, kept.about["settings"][0]["nodes"]
    of = rows.groupby(["draw", rows["came"] < 0.5])["best_score"].mean().unstack()
    gain = _over_draws(100 * (of[True] / of[False] - 1))
    on = f"{_MS_PACMAN} on {nodes} nodes, {(rows['draw'] == 0).sum()} times{_drawn(len(of) - 1)}"
    why = f"best score where the best configuration is among the first half of the trials, less where later; {on}"
    yield below(find(CLAIMS, "Sec. 3.2", EARLY), gain, NEARLY, kept.origin, why, "%")


def _over_draws(gaps: "pd.Series") -> Interval:
    """Give the gap of the configurations as they were recorded, and where 95 % of their draws' lie."""
    low, high = gaps.iloc[1:].quantile([0.025, 0.975])
    return Interval(float(gaps.iloc[0]), float(low), float(high))


def _drawn(draws: int) -> str:
    return f", their configurations drawn again {draws:.0f} times"


IMPORTANCES = {"curves-importance": _CARTPOLE, "ms-pacman-importance": "GA3C on Ms. Pac-Man"}
"""Recordings of what the forests say → of what."""


def importances(root: Path) -> Pairs:
    """Which hyperparameters the scores follow (App. A.2, Table 4): shares, with intervals over the trials."""
    for kept in RecordedTable.those_of(IMPORTANCES, root):
        rows = kept.frame.set_index("hyperparameter")[["importance", "low", "high"]] * 100
        shares = {str(name): Interval(*row) for name, row in zip(rows.index, rows.to_numpy(float), strict=True)}
        on = f"{IMPORTANCES[kept.name]}, {kept.frame['trials'].iloc[0]} trials, R² {kept.frame['r2'].iloc[0]:.2g}"
        yield from _important(shares, on, kept.origin)
        if kept.name == "ms-pacman-importance":
            for hyperparameter, share in shares.items():
                what = f"importance of {hyperparameter.replace('_rate', ' rate')}, ms_pacman"
                number, why = find(NUMBERS, "Table 4", what), f"{on}, of few frames; {COLUMNS}"
                yield not_comparable(number, share.value, kept.origin, why, interval=share)


def _important(shares: dict[str, Interval], on: str, origin: Origin) -> Pairs:
    """Ask the two claims."""
    rate, gamma, t_max = (shares[name] for name in ("learning_rate", "gamma", "t_max"))
    lesser = least([rate, gamma])
    ahead = Interval(lesser.value - t_max.value, lesser.low - t_max.high, lesser.high - t_max.low)
    number = find(CLAIMS, "App. A.2", T_MAX_LAST)
    wide = "limits of each share by itself, as a rule wider than their difference's"
    why = f"the lesser share of both less t_max's ({wide}); {on}; another game"
    yield not_comparable(number, ahead.value, origin, why, "points", ahead)
    number = find(CLAIMS, "App. A.2", "t_max has little influence")
    yield below(number, t_max, 33.3, origin, f"its share, a third if all were alike; {on}", "%")


def policies(root: Path) -> Pairs:
    """Tell what gamma changes of the policy (Sec. 5.3): how long agents of similar scores play a game of Pong."""
    agents = {gamma: [one for name in names for one in evaluations_of(root / name)] for gamma, names in AGENTS.items()}
    lengths = {gamma: [one["mean_length"] for one in found if one["mean"] >= ALIKE] for gamma, found in agents.items()}
    short, far = sorted(lengths)
    longer = percent(lengths[short], lengths[far])
    (near, nears), (other, others) = ((", ".join(AGENTS[gamma]), len(lengths[gamma])) for gamma in (short, far))
    why = (
        f"steps of a game of Pong at gamma {short} less at {far}: {nears} agents of {near}, {others} of {other} that "
        f"come to {ALIKE} or more; t_max differs too; the paper's short-sighted agents play the longer rallies"
    )
    claim = find(CLAIMS, "Sec. 5.3", "gamma changes the policy that is learned, not the learning rate")
    yield not_comparable(claim, longer.value, Origin("measured", made_by("PRESET"), "hours"), why, "%", longer)


def _scaled(row: dict[str, Any], measure: str, factor: float = 1) -> Interval:
    low, high = sorted(factor * row[measure + end] for end in ("_low", "_high"))
    return Interval(factor * row[measure], low, high)


def _of(function: str) -> Origin:
    return Origin("computed", function)


COUNTERPARTS: list[Counterpart] = [
    formulas,
    toy_makespans,
    simulated,
    evicted,
    arrived,
    importances,
    policies,
    atari.counterparts,
]
