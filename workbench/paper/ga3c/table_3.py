"""Scores by which one game is compared with another (GA3C, Table 3)."""

from typing import Literal, NamedTuple

from workbench.core.errors import unknown


class Reference(NamedTuple):
    """Mean scores of one game."""

    human: float
    random: float
    a3c: float
    ga3c: float


# GA3C, Table 3: a person and random play (after Mnih et al., 2015), A3C after four days on a CPU (after Mnih et al.,
# 2016), GA3C after one day, the mean of 30 games from random seeds.
TABLE_3 = {
    "amidar": Reference(1676, 6, 264, 218),
    "boxing": Reference(10, -2, 60, 92),
    "centipede": Reference(10322, 1926, 3756, 7386),
    "name_this_game": Reference(6796, 198, 10476, 5643),
    "ms_pacman": Reference(15375, 1748, 654, 1978),
    "pong": Reference(16, -18, 6, 18),
    "qbert": Reference(12085, 272, 15149, 14966),
    "seaquest": Reference(40426, 216, 2355, 1706),
    "up_n_down": Reference(9896, 533, 74706, 8623),
}

# Random play of these two stands under each other's name in the paper: by it A3C's 654 of Ms. Pac-Man after four days
# would be far worse than chance, and here agents begin near what the other column says.
_RANDOM = {"name_this_game": TABLE_3["ms_pacman"].random, "ms_pacman": TABLE_3["name_this_game"].random}


def normalised(score: float, game: str, against: Literal["human", "a3c", "ga3c"] = "human") -> float:
    """Place a score between random play, 0, and a reference, 1.

    Parameters
    ----------
    score : float
        Mean raw score.
    game : str
        ROM name, as `Game.name` has it.
    against : {"human", "a3c", "ga3c"}
        The reference's column in Table 3.

    Returns
    -------
    float
        ``(score - random) / (reference - random)``; above 1 is better than the reference, below 0 worse than chance.
        Random play is the paper's; that of Name This Game and Ms. Pac-Man stands under each other's name there.

    Raises
    ------
    InvalidInput
        The game is not in the table.
    """
    if game not in TABLE_3:
        raise unknown("game in GA3C's Table 3", game, TABLE_3)
    reference: float = getattr(TABLE_3[game], against)
    return (score - random_play(game)) / (reference - random_play(game))


def random_play(game: str) -> float:
    """Give the mean score of random play, with what the paper has interchanged put right."""
    return _RANDOM.get(game, TABLE_3[game].random)
