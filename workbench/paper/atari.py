"""HyperTrick's Atari studies (Tables 1 and 3, Fig. 6) as far as two cores go: recorded with ``workbench record``.

Each game has two studies on the same configurations and nodes, of equal expected work: the presets ``GAME-hypertrick``
and ``GAME-hyperband``.
"""

from collections.abc import Iterator
from pathlib import Path

from workbench.core.errors import DatabaseError
from workbench.paper.published import Published, published
from workbench.results import Results
from workbench.scenario import DATA

GAMES = ("boxing", "pong")
SCHEDULERS = ("hypertrick", "hyperband")


def recorded_studies(game: str, root: str | Path = DATA) -> dict[str, Results]:
    """Open a game's recorded studies, by scheduler; those that have not been recorded are left out."""
    found = {}
    for scheduler in SCHEDULERS:
        try:
            found[scheduler] = Results.of_recording(Path(root) / f"{game}-{scheduler}")
        except DatabaseError:
            continue
    return found


def scale_of(results: Results) -> str:
    """Say in words how large a study was, for captions: trials, phases, frames a phase, nodes."""
    frames, spec = results.frames, results.spec
    phase = " and ".join(f"{length:,} {unit}" for unit, length in spec["trainable"]["phase"].items() if length)
    return (
        f"{len(frames.trials)} trials of up to {spec['scheduler']['n_phases']} phases of {phase} on "
        f"{frames.slots['slot'].nunique()} nodes"
    )


def numbers(root: str | Path = DATA) -> Iterator[tuple[Published, float, bool, str, str]]:
    """Put what was measured beside the published: number, ours, whether it agrees, why, scale.

    The paper's studies have 100 trials of 10 phases of 2500 games; so what is compared is what it claims: HyperTrick's
    completion rate is above its expectation (Eq. 9), and it takes less time than Hyperband.
    """
    for game in GAMES:
        studies = recorded_studies(game, root)
        if set(studies) != set(SCHEDULERS):
            continue
        hypertrick, hyperband = studies["hypertrick"], studies["hyperband"]
        scale, summary = scale_of(hypertrick), hypertrick.summary
        alpha, expected = 100 * summary["alpha"], 100 * summary["alpha_expected"]
        why = f"expected {expected:.3g} % at this r and Np; agrees if it is above the expectation, as the paper's"
        yield published("HyperTrick", "Table 1", f"measured alpha, {game}"), alpha, alpha > expected, why, scale
        number = published("HyperTrick", "Table 1", f"best score, {game}")
        best = summary["best_score"]
        yield number, best, best >= number.value, "agrees if at least as high", scale
        ratio = hypertrick.frames.wall_s / hyperband.frames.wall_s
        number = published("HyperTrick", "Table 3", f"wall time, HyperTrick over Hyperband, {game}")
        yield number, ratio, ratio < 1, "one study each; agrees if HyperTrick is faster", scale
