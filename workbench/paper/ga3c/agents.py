"""Single agents on games of GA3C's Table 3, a recording each: what they came to, and the way there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from workbench.analysis import learning_curves
from workbench.core.places import DATA
from workbench.knowledge import Recording
from workbench.paper.evaluated import evaluated, made_by, mean_score
from workbench.paper.ga3c.published import NUMBERS
from workbench.paper.ga3c.table_3 import TABLE_3, normalised
from workbench.paper.numbers import Origin, Pairs, find
from workbench.paper.verdicts import not_comparable


class Agent(NamedTuple):
    """Its game, its length, and how its configuration was found.

    `goes_on_from` names the recording with whose checkpoint it began, which is the way's first part.
    """

    game: str
    million_frames: int
    found: str
    goes_on_from: str = ""


# All are of other machines and lengths, Pong's the last of six that were tried: so none is judged, whatever it came to.
_WHY_NOT = "the paper's learned for a day on a GPU"
_USUAL = "A2C's usual settings, the first tried"
_BY_PPO = (
    "HTS-RL's PPO, the first settings tried after six of GA3C's had not left random play, its rate begun anew after 20"
)
_BY_THEM = ("amidar", "centipede", "ms_pacman", "name_this_game", "qbert", "seaquest", "up_n_down")
AGENTS = {
    "pong-longer": Agent("pong", 40, "the best configuration of pong-hypertrick, the last and longest of six tries"),
    **{f"{game.replace('_', '-')}-agent": Agent(game, 14, _USUAL) for game in _BY_THEM},
    "boxing-longer": Agent("boxing", 40, _BY_PPO, "boxing-agent"),
}


def agents(root: Path) -> Pairs:
    """Agents' games (Table 3), with an interval over agents or games; none of them is judged."""
    for name, agent, evaluations in _recorded(root):
        n, games = len(evaluations), evaluations[0]["n_episodes"]
        of = f"{games} games each of {n} seeds" if n > 1 else f"{games} games of one agent"
        origin = Origin("measured", made_by(name), "hours")
        number = find(NUMBERS, "Table 3", f"after one day, {agent.game}")
        why = f"{of} of {agent.found}, after {agent.million_frames} million frames; {_WHY_NOT}"
        score = mean_score(evaluations)
        yield not_comparable(number, score.value, origin, why, interval=score)


def played() -> pd.DataFrame:
    """Give what each agent came to by the paper's protocol.

    Returns
    -------
    DataFrame
        game, million_frames, mean, std, lowest, highest, n_episodes (games), published (GA3C's mean after a day), share
        (of the way from random play to that); a row an agent.
    """
    rows = [
        {"game": agent.game, "million_frames": agent.million_frames}
        | {key: one[key] for key in ("mean", "std", "lowest", "highest", "n_episodes")}
        | {"published": TABLE_3[agent.game].ga3c, "share": normalised(one["mean"], agent.game, "ga3c")}
        for _, agent, evaluations in _recorded(DATA)
        for one in evaluations
    ]
    return pd.DataFrame(rows)


def ways() -> pd.DataFrame:
    """Give the scores at the ends of phases: variant (the game), seed, frames, score (0 random play, 1 the paper's)."""
    parts = []
    for name, agent, _ in _recorded(DATA):
        for part in filter(None, (agent.goes_on_from, name)):
            frames = Recording.open(DATA / part).frames()
            ends = learning_curves(frames.phases, frames.metrics, "frames").query("phase_end")
            share = [normalised(score, agent.game, "ga3c") for score in ends["score"]]
            one = {"variant": agent.game, "seed": ends["trial"], "frames": ends["x"], "score": share}
            parts.append(pd.DataFrame(one))
    return pd.concat(parts, ignore_index=True)


def _recorded(root: str | Path) -> Iterator[tuple[str, Agent, list[dict[str, Any]]]]:
    for name, evaluations in evaluated(root):
        if name in AGENTS:
            yield name, AGENTS[name], evaluations
