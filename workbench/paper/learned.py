"""What the recordings learned, in ten lines and three pictures: how `docs/reproduction.md` begins."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from workbench.core.places import DATA
from workbench.core.showing import so_many
from workbench.paper.evaluated import evaluated
from workbench.paper.experiment import RecordedTable
from workbench.paper.ga3c.agents import AGENTS
from workbench.paper.hypertrick.atari import best_at_the_end, learned, recorded_games, scale_of

# Recording → the column that parts its curves, and what its values are called.
_CURVES = {
    "ga3c-against-sb3-atari": ("system", {"default": "GA3C", "a2c": "Stable-Baselines3's A2C"}),
    "ga3c-against-sb3": ("system", {"default": "GA3C", "a2c": "Stable-Baselines3's A2C"}),
    "hts-return": ("system", {}),
    "ba3c-stability": ("variant", {"synchronous": "BA3C, synchronous", "asynchronous": "asynchronous"}),
}
_FEW = 5  # seeds
_ALIKE = 1.02  # lengths
_SCORES = (
    "Scores are the last ones, a seed each, or of many seeds their median and range; of a study the best last",
    "one of the trials that ran to the end, lucky among as many, and the highest of any phase of any trial.",
)
_PICTURES = (
    ("ga3c-learns", "Ms. Pac-Man: GA3C's default beside Stable-Baselines3's A2C, median and range of the seeds"),
    ("curves", "Ms. Pac-Man under HyperTrick: every trial of the study, and which were stopped"),
    ("hts-speedup", "HTS-RL: steps a second over its synchronous baseline's, by the variance of step times"),
)


def page_of_what_was_learned(root: str | Path = DATA) -> str:
    """Write the table of last scores and the pictures; a recording that is missing is left out."""
    lines = ["## What was learned", "", "| recording | game | length | scores |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in (*_agents(Path(root)), *_last_scores(root), *_studies(root))]
    lines += ["", *_SCORES]
    for name, words in _PICTURES:
        lines += ["", f"![{words}](pictures/{name}.png)", f"*{words}.*"]
    return "\n".join(lines) + "\n"


def _agents(root: Path) -> Iterator[tuple[str, ...]]:
    """Agents that were evaluated by the protocol of their paper: a row a game, and one of the games with one agent."""
    by_game: dict[str, dict[str, list[dict[str, Any]]]] = {}
    went_on = {agent.goes_on_from for agent in AGENTS.values()}
    for name, evaluations in evaluated(root):
        if name not in went_on:
            by_game.setdefault(evaluations[0]["game"], {})[name] = evaluations
    lone: dict[str, list[dict[str, Any]]] = {}
    for game, known in by_game.items():
        if sum(map(len, known.values())) > 1:
            yield _row_of_agents(known, game)
        else:
            lone |= known
    if lone:
        yield _row_of_agents(lone, ", ".join(only["game"] for (only,) in lone.values()))


def _row_of_agents(known: dict[str, list[dict[str, Any]]], games: str) -> tuple[str, ...]:
    means = "; ".join(", ".join(f"{each['mean']:.1f}" for each in of_one) for of_one in known.values())
    lengths = [each["n_episodes"] for of_one in known.values() for each in of_one]
    words = f"{means}: means of {' or '.join(map(str, sorted(set(lengths))))} games"
    return ", ".join(f"`{name}`" for name in known), games, so_many(len(lengths), "agent"), words


def _last_scores(root: str | Path) -> Iterator[tuple[str, ...]]:
    for kept in RecordedTable.those_of(_CURVES, root):
        rows, (column, words) = kept.frame, _CURVES[kept.name]
        last = rows.groupby([column, "seed"], sort=False).tail(1)
        scores = [
            f"{words.get(str(value), value)} {_written(of_one['score'].tolist())}"
            for value, of_one in last.groupby(column, sort=False)
            if not words or value in words
        ]
        game = rows["game"].iloc[0] if "game" in rows else "CartPole-v1"
        ends = last.groupby(column)["frames"].median()
        length = f"{ends.min():,.0f}" + (f" to {ends.max():,.0f}" if ends.max() > _ALIKE * ends.min() else "")
        yield f"`{kept.name}`", str(game), f"{length} frames", "; ".join(scores)


def _written(scores: list[float]) -> str:
    """List the scores of a few seeds; sum those of many up."""
    if len(scores) <= _FEW:
        return ", ".join(f"{score:.0f}" for score in scores)
    return f"{median(scores):.0f} ({min(scores):.0f} to {max(scores):.0f}, {len(scores)} seeds)"


def _studies(root: str | Path) -> Iterator[tuple[str, ...]]:
    for game, both in recorded_games(root).items():
        scores = [
            f"{scheduler} {best_at_the_end(study):.1f}, its highest phase {study.summary['best_score']:.1f}"
            + ("" if learned(study) else " (not learned: random play)")
            for scheduler, study in both.items()
        ]
        yield "a study each", game, "; ".join(scale_of(study) for study in both.values()), "; ".join(scores)
