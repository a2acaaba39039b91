"""HyperTrick's Atari studies (Tables 1 and 3, Figs 4 to 7) as far as two cores go, and as published.

Each game has two studies on the same configurations and nodes, of equal expected work: the presets ``GAME-hypertrick``
and ``GAME-hyperband``. One is recorded by ``workbench run --preset NAME --record data/NAME``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analysis import learning_curves
from workbench.core.errors import DatabaseError, unknown
from workbench.core.places import DATA, KEPT
from workbench.paper.experiment import SCALES
from workbench.paper.ga3c.published import NUMBERS as GA3C_NUMBERS
from workbench.paper.hypertrick.published import NUMBERS
from workbench.paper.numbers import Ours, Pairs, find
from workbench.study.file import read_preset, study_from
from workbench.study.results import Results
from workbench.study.study import Study, unique_name

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

GAMES = ("boxing", "ms_pacman", "pong")
SCHEDULERS = ("hypertrick", "hyperband")

# What a scale changes in the presets. As published (Sec. 5.2.4): 46 configurations on 46 nodes, units of 500 games.
_CHANGES: Mapping[str, dict[str, dict[str, Any]]] = {
    "minutes": {"trainable": {"phase": {"frames": 10_000}}},
    "hours": {},
    "paper": {
        "study": {"nodes": 46},
        "hypertrick": {"n_trials": 46, "n_phases": 27, "eviction_rate": 0.1085},
        "hyperband": {"n_phases": 27},
        "trainable": {"phase": {"episodes": 500}},
    },
}


def studies(
    game: str,
    scale: str | None = None,
    folder: str | Path = KEPT / "runs" / "reproduced",
    client: "Client | None" = None,
) -> dict[str, Results]:
    """Open a game's recorded studies, or run them again at a scale of the reader's choice and open those.

    Parameters
    ----------
    game : {"boxing", "ms_pacman", "pong"}
    scale : {"minutes", "hours", "paper"}, optional
        ``None`` opens what is in ``data/``. "hours" is what was recorded there; "paper" wants a cluster of 46 nodes.
    folder : path
        Where the knowledge base of what is run again goes. A study that is in it already is gone on with, or opened.
    client : distributed.Client, optional
        The cluster; a local one if there is none.

    Returns
    -------
    dict
        Scheduler → results.
    """
    if scale is None:
        return recorded_studies(game)
    results = {}
    for scheduler in SCHEDULERS:
        study = study_of(game, scheduler, scale, db=Path(folder) / f"atari-{scale}.db", client=client)
        begun = unique_name(study.name, study.db) != study.name
        results[scheduler] = study.run(resume=begun).results()
    return results


def study_of(game: str, scheduler: str, scale: str = "hours", **settings: Any) -> Study:
    """Build one of the studies; `settings` are of `Study` and win over the preset's.

    Raises
    ------
    InvalidInput
        No such game, scheduler or scale.
    """
    for what, value, allowed in (("game", game, GAMES), ("scheduler", scheduler, SCHEDULERS), ("scale", scale, SCALES)):
        if value not in allowed:
            raise unknown(what, value, allowed)
    table, changes = read_preset(_preset(game, scheduler)), _CHANGES[scale]
    table["scheduler"] |= changes.get(scheduler, {})
    if scale == "paper":  # what the presets change for two cores is left out
        table["trainable"] = {name: table["trainable"][name] for name in ("kind", "game")}
    for part in ("study", "trainable"):
        table[part] |= changes.get(part, {})
    return study_from(table, **settings)


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
            results[scheduler] = Results.of_recording(Path(root) / _preset(game, scheduler))
        except DatabaseError:
            continue
    return results


def scale_of(results: Results) -> str:
    """Say in words how large a study was, for captions: trials, phases, frames a phase, nodes."""
    frames, spec = results.frames, results.spec
    phase = " and ".join(f"{length:,} {unit}" for unit, length in spec["trainable"]["phase"].items() if length)
    return (
        f"{len(frames.trials)} trials of up to {results.size.n_phases} phases of {phase} on "
        f"{frames.slots['slot'].nunique()} nodes{f'; {OLD_RULE}' if by_the_old_rule(spec) else ''}"
    )


OLD_RULE = "by the rule of 0.1.0, which stopped too many"


def by_the_old_rule(spec: Mapping[str, Any]) -> bool:
    """Tell whether a HyperTrick study was recorded before the switch was rounded up and ties were drawn.

    The setting `seed`, of those draws, came with the correction.
    """
    scheduler = spec["scheduler"]
    return scheduler["kind"] == "hypertrick" and "seed" not in scheduler


def counterparts(root: Path) -> Pairs:
    """Put what was measured beside the published.

    The paper's studies have 100 trials of 10 phases of 2500 games; so what is compared is what it claims: HyperTrick's
    completion rate is above its expectation (Eq. 9), and it takes less time than Hyperband. The time to the best score
    is left out of games that were not `learned`: there chance decides which score is the best.
    """
    for game in GAMES:
        studies = recorded_studies(game, root)
        if set(studies) == set(SCHEDULERS):
            yield from _scores(game, **studies)
            yield from _times(game, **studies)


def _scores(game: str, hypertrick: Results, hyperband: Results) -> Pairs:
    scale, totals, rival = scale_of(hypertrick), hypertrick.summary, hyperband.summary
    alpha, expected = 100 * totals["alpha"], 100 * totals["alpha_expected"]
    why = f"expected {expected:.3g} % at this r and Np; agrees if it is above the expectation, as the paper's"
    number = find(NUMBERS, "Table 1", f"measured alpha, {game}")
    yield number, Ours(alpha, "measured", alpha > expected, why, scale=scale)
    ours, theirs = totals["best_score"], rival["best_score"]
    for numbers, table, what, best, where in (
        (NUMBERS, "Table 1", "best score", ours, scale),
        (NUMBERS, "Table 3", "best score, HyperTrick", ours, scale),
        (NUMBERS, "Table 3", "best score, Hyperband", theirs, scale_of(hyperband)),
        (GA3C_NUMBERS, "Table 3", "after one day", max(ours, theirs), f"the best of both studies: {scale}"),
    ):
        number = find(numbers, table, f"{what}, {game}")
        why = "agrees if at least as high; the paper's games are played for far longer"
        yield number, Ours(best, "measured", best >= number.value, why, scale=where)


def _times(game: str, hypertrick: Results, hyperband: Results) -> Pairs:
    """Compare times as if the machine had been as fast in both studies: as frames that its nodes could have played."""
    both, scale, measures = (hypertrick, hyperband), scale_of(hypertrick), {"wall time": "wall_s"}
    speeds = [_frames_per_s(one) / one.summary["occupancy"] for one in both]
    if all(map(learned, both)):
        measures["time to best score"] = "best_at_s"
    for what, measure in measures.items():
        seconds = [one.summary[measure] for one in both]
        ratio = seconds[0] * speeds[0] / (seconds[1] * speeds[1])
        why = (
            f"{seconds[0] / 60:.0f} and {seconds[1] / 60:.0f} min on nodes of {speeds[0]:.0f} and {speeds[1]:.0f} "
            "frames/s, compared as if equally fast; one study each; agrees if HyperTrick is faster"
        )
        number = find(NUMBERS, "Table 3", f"{what}, HyperTrick over Hyperband, {game}")
        yield number, Ours(ratio, "measured", ratio < 1, why, scale=scale)


def learned(results: Results) -> bool:
    """Tell whether a study's best score is far above what trials score after one phase: by 3 of its deviations."""
    phases = results.frames.phases
    first = phases.loc[phases["phase"] == 0, "score"].dropna()
    return bool(phases["score"].max() > first.max() + 3 * first.std())


def whole_curves(results: Results) -> "pd.DataFrame":
    """Give the curves of `analysis.learning_curves`, over frames, of the trials that ran to the last phase."""
    frames = results.frames
    last = frames.phases.groupby("trial")["phase"].max()
    whole = last.index[last == (results.size.n_phases or 0) - 1]
    return learning_curves(frames.phases[frames.phases["trial"].isin(whole)], frames.metrics, "frames")


def _preset(game: str, scheduler: str) -> str:
    return f"{game.replace('_', '-')}-{scheduler}"


def _frames_per_s(results: Results) -> float:
    """Frames of all nodes together."""
    return float(results.frames.phases.groupby("trial")["frames"].max().sum()) / results.frames.wall_s
