"""HyperTrick's Atari studies (Tables 1 and 3, Figs 4 to 7) as far as two cores go.

Each game has two studies on the same configurations and nodes, of equal expected work: the presets ``GAME-hypertrick``
and ``GAME-hyperband`` (`preset_of`: Pong has longer ones). ``workbench run --preset GAME-SCHEDULER`` runs one again,
and with ``--record FOLDER`` writes what notebooks read.

As published, Table 1's studies are the presets ``GAME-paper``. Those of Sec. 5.2.4 had as many configurations and
phases as ``ms-pacman-hypertrick`` and its rival: a study file with one of these as its ``base`` has their sizes with
``nodes = 46`` under ``[study]`` and ``phase = {episodes = 500}`` under ``[trainable]``.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analysis import learning_curves
from workbench.analysis.bootstrap import Interval, mean_of
from workbench.core.errors import DatabaseError
from workbench.core.places import DATA
from workbench.paper.hypertrick.published import (
    ALPHA,
    ALPHA_EXCESS,
    BUSIER,
    CLAIMS,
    FASTER,
    GAMES,
    NUMBERS,
    SAME,
    SIMILAR,
    SOONER,
)
from workbench.paper.numbers import Origin, Pairs, find
from workbench.paper.verdicts import NEARLY, better, met, not_comparable, percent, within
from workbench.study.file import read_preset
from workbench.study.results import Results

if TYPE_CHECKING:
    import pandas as pd

SCHEDULERS = ("hypertrick", "hyperband")
_LONGER = {"pong": "-2m"}  # phases of two million frames; those of one are where the tuned configurations come from
_NAMES = {"hypertrick": "HyperTrick", "hyperband": "Hyperband"}


def summary(results: Mapping[str, Results]) -> "pd.DataFrame":
    """Put a game's studies side by side: a column a scheduler."""
    import pandas as pd

    columns = {}
    for scheduler, one in results.items():
        totals = one.summary
        columns[scheduler] = {
            "configurations": one.size.n_configs,
            "phases": totals["phases"],
            "completion rate": totals["alpha"],
            "occupancy": totals["occupancy"],
            "best score": totals["best_score"],
            "wall time [min]": one.frames.wall_s / 60,
            "frames/s": _frames_per_s(one),
            "time to best score [min]": totals["best_at_s"] / 60,
        }
    return pd.DataFrame(columns)


def recorded_studies(game: str, root: str | Path = DATA) -> dict[str, Results]:
    """Open a game's recorded studies, by scheduler; those that have not been recorded are left out."""
    results = {}
    for scheduler in SCHEDULERS:
        try:
            results[scheduler] = Results.of_recording(Path(root) / preset_of(game, scheduler))
        except DatabaseError:
            continue
    return results


def recorded_games(root: str | Path = DATA) -> dict[str, dict[str, Results]]:
    """Open the recorded studies, by game and scheduler; a game without any is left out."""
    return {game: found for game in GAMES if (found := recorded_studies(game, root))}


def scale_of(results: Results) -> str:
    """Say in words how large a study was, for captions: trials, phases, frames a phase, nodes."""
    frames, spec = results.frames, results.spec
    phase = " and ".join(f"{length:,} {unit}" for unit, length in spec["trainable"]["phase"].items() if length)
    return (
        f"{len(frames.trials)} trials of up to {results.size.n_phases} phases of {phase} on {_n_nodes(results)} nodes"
    )


def counterparts(root: Path) -> Pairs:
    """Put what was measured beside the published.

    The paper's studies have 100 trials of 10 phases of 2500 games, or 46 of 27 of 500; these have fewer and shorter
    ones, and are one each: no number of theirs is comparable. Over the games the claims of Sec. 5.2.4 can be asked.
    """
    recorded = recorded_games(root)
    for game, studies in recorded.items():
        yield from _scores(game, studies)
    if pairs := {game: both for game, both in recorded.items() if set(both) == set(SCHEDULERS)}:
        for game, both in pairs.items():
            yield from _times(game, **both)
        yield from _claims(pairs)


def _scores(game: str, studies: Mapping[str, Results]) -> Pairs:
    """Give the best scores of a game's studies, and how much of HyperTrick's work was done; one may be missing."""
    for scheduler, study in studies.items():
        totals, origin, small = study.summary, _origin(game, scheduler=scheduler), _small(study)
        places = [("Table 3", f"best score, {_NAMES[scheduler]}, {game}")]
        if scheduler == "hypertrick":
            number = find(NUMBERS, "Table 1", f"measured alpha, {game}")
            why = f"{100 * totals['alpha_expected']:.3g} % expected; {small}"
            yield not_comparable(number, 100 * totals["alpha"], origin, why)
            places.append(("Table 1", f"best score, {game}"))
        for table, what in places:
            yield not_comparable(find(NUMBERS, table, what), totals["best_score"], origin, small)


def _times(game: str, hypertrick: Results, hyperband: Results) -> Pairs:
    for what, measure in (("wall time", "wall_s"), ("time to best score", "best_at_s")):
        number = find(NUMBERS, "Table 3", f"{what}, HyperTrick over Hyperband, {game}")
        why = f"one study each, as if equally fast; {_small(hypertrick)}"
        yield not_comparable(number, time_ratio(hypertrick, hyperband, measure), _origin(game), why)


def _small(study: Results) -> str:
    """Tell why a study is not comparable, in few words; its length stands in the table of recordings."""
    words = [f"{len(study.frames.trials)} short trials"]
    learner, space = study.spec["trainable"]["kind"], study.spec["scheduler"]["searcher"]["space"]
    words += [f"another learner, {learner}, and its space"] * (learner != "ga3c")
    narrower = learner == "ga3c" and space != read_preset("cartpole")["space"]  # that of Sec. 5.1 in full
    words += ["a narrower space"] * narrower
    words += ["scores of random play"] * (not learned(study))
    return "; ".join(words)


Games = Mapping[str, Mapping[str, Results]]


def _claims(recorded: Games) -> Pairs:
    """Ask over games who is faster and keeps nodes busier; all else only where something was learned."""
    where, origin = _where(recorded), _origin(*recorded)
    yield better(find(CLAIMS, "Sec. 5.2.4", FASTER), _saved(recorded, "wall_s"), origin, f"saved {where}")
    busier = _gap(recorded, lambda ours, rival: 100 * (ours["occupancy"] - rival["occupancy"]))
    rival = [100 * both["hyperband"].summary["occupancy"] for both in recorded.values()]
    why = f"occupancy less Hyperband's {where}"
    yield better(find(CLAIMS, "Sec. 5.2.4", BUSIER), busier, origin, why, "points", rival=rival, most=100)
    chosen = {game: both for game, both in recorded.items() if all(map(learned, both.values()))}
    if chosen:
        yield from _of_the_best(chosen)
        excess = _gap(chosen, lambda ours, rival: 100 * (ours["alpha"] - ours["alpha_expected"]))
        why = f"alpha less its expectation in {', '.join(chosen)}, a study each; as Table 1's four"
        origin = _origin(*chosen, scheduler="hypertrick")
        yield within(find(CLAIMS, "Sec. 5.2.3", ALPHA), excess, *ALPHA_EXCESS, origin, why, "points")


def _of_the_best(chosen: Games) -> Pairs:
    """Ask when the best is found, how good it is, and whether it is the same."""
    where, origin = _where(chosen), _origin(*chosen)
    yield better(find(CLAIMS, "Sec. 5.2.4", SOONER), _saved(chosen, "best_at_s"), origin, f"saved {where}")
    similar = _gap(chosen, lambda ours, rival: percent(ours["best_score"], rival["best_score"]).value)
    why = f"best score less Hyperband's in {', '.join(chosen)}, one study each"
    yield within(find(CLAIMS, "Sec. 5.2.4", SIMILAR), similar, -NEARLY, NEARLY, origin, why, "%")
    same = find(CLAIMS, "Sec. 5.2.4", SAME)
    for game, both in ((game, chosen[game]) for game in ("ms_pacman", "boxing") if game in chosen):
        first, second = (study.best_config for study in both.values())
        n, shared = len(both["hypertrick"].frames.trials), float(first == second)
        why = f"{game}, one study each, {n} configurations: {'the same' if shared else 'others'}"
        yield met(same, bool(shared), shared, 1 / n, _origin(game), why)


def _where(games: Games) -> str:
    """Say of which studies a row over games is, and how much there was to be made better of their nodes' use."""
    studies = [study for both in games.values() for study in both.values()]
    nodes, least = max(map(_n_nodes, studies)), min(study.summary["occupancy"] for study in studies)
    busy = f"which both keep busy for {100 * least:.0f} % of the time or more"
    return f"in {', '.join(games)}, one study each, on {nodes} nodes, {busy}, the paper's on 46"


def _saved(games: Games, measure: str) -> Interval:
    return mean_of([100 * (1 - time_ratio(**both, measure=measure)) for both in games.values()])


def _gap(games: Games, of: Callable[[dict[str, Any], dict[str, Any]], float]) -> Interval:
    """Give the mean over games of what `of` makes of the two summaries, HyperTrick's first."""
    return mean_of([of(both["hypertrick"].summary, both["hyperband"].summary) for both in games.values()])


def time_ratio(hypertrick: Results, hyperband: Results, measure: str) -> float:
    """Give HyperTrick's time over Hyperband's, both in frames that their nodes could have played meanwhile."""
    work = [one.summary[measure] * _frames_per_s(one) / one.summary["occupancy"] for one in (hypertrick, hyperband)]
    return float(work[0] / work[1])


def _origin(*games: str, scheduler: str = "SCHEDULER") -> Origin:
    """Give the command that records a game's studies, or those of several, whose presets it then lists."""
    names = [preset_of(game, scheduler) for game in games]
    name, listed = (names[0], "") if len(names) == 1 else ("PRESET", f"; PRESET: {', '.join(names)}")
    return Origin("measured", f"workbench run --preset {name} --record data/{name}{listed}", "hours")


def learned(results: Results) -> bool:
    """Tell whether a study's best score is far above what trials score after one phase: by 3 of its deviations."""
    phases = results.frames.phases
    first = phases.loc[phases["phase"] == 0, "score"].dropna()
    return bool(phases["score"].max() > first.max() + 3 * first.std())


def whole_curves(results: Results) -> "pd.DataFrame":
    """Give the curves of `analysis.learning_curves`, over frames, of the trials that ran to the last phase."""
    phases = results.frames.phases
    whole = _last_phases(results)["trial"]
    return learning_curves(phases[phases["trial"].isin(whole)], results.frames.metrics, "frames")


def best_at_the_end(results: Results) -> float:
    """Give the best score that a trial had in its last phase, of those that ran to the last; NaN if none did."""
    return float(_last_phases(results)["score"].max())


def _last_phases(results: Results) -> "pd.DataFrame":
    phases = results.frames.phases
    return phases[phases["phase"] == (results.size.n_phases or 0) - 1]


def preset_of(game: str, scheduler: str) -> str:
    """Name the preset, and the recording, of a game under a scheduler: the longest there is."""
    return f"{game.replace('_', '-')}-{scheduler}{_LONGER.get(game, '')}"


def _n_nodes(results: Results) -> int:
    return int(results.frames.slots["slot"].nunique())


def _frames_per_s(results: Results) -> float:
    """Frames of all nodes together."""
    return float(results.frames.phases.groupby("trial")["frames"].max().sum()) / results.frames.wall_s
