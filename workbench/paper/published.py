"""The papers' numbers, each with the place it stands in; nothing here was measured by this project.

Where the text of a paper lost a formula, the number is marked as derived from others that stand in it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """One number of a paper.

    Attributes
    ----------
    paper, where, what : str
    value : float
    unit : str
    derived : bool
        Worked out from other numbers of the text, not printed there.
    """

    paper: str
    where: str
    what: str
    value: float
    unit: str = ""
    derived: bool = False


def _of(paper: str, where: str, unit: str, numbers: dict[str, float], *, derived: bool = False) -> list[Published]:
    return [Published(paper, where, what, value, unit, derived) for what, value in numbers.items()]


GAMES = ("boxing", "centipede", "ms_pacman", "pong")

HYPERTRICK = [
    *_of("HyperTrick", "Table 1", "%", {"E[alpha], Np = 10": 37.75, "E[alpha], Np = 5": 61.02}),
    *_of("HyperTrick", "Table 1", "%", {"min alpha, Np = 10": 18.87, "min alpha, Np = 5": 30.51}),
    *_of(
        "HyperTrick",
        "Table 1",
        "%",
        {f"measured alpha, {game}": a for game, a in zip(GAMES, (48.2, 52.2, 46.1, 59.1), strict=True)},
    ),
    *_of(
        "HyperTrick",
        "Table 1",
        "score",
        {f"best score, {game}": s for game, s in zip(GAMES, (98, 8707, 2112, 18), strict=True)},
    ),
    *_of("HyperTrick", "Sec. 5.2.4", "configurations", {"Hyperband, R = 27, eta = 3": 46}),
    *_of(
        "HyperTrick",
        "Table 2",
        "%",
        {"alpha, s = 3": 14.81, "alpha, s = 2": 33.33, "alpha, s = 1": 66.67, "alpha, s = 0": 100, "alpha": 32.61},
    ),
    *_of("HyperTrick", "Sec. 5.2.4", "%", {"r of equal expected alpha, Np = 27": 10.85}, derived=True),
    *_of(
        "HyperTrick",
        "Figs 2, 3, 8, 9",
        "time units",
        {
            "makespan, HyperTrick": 10,
            "makespan, Successive Halving, dynamic": 12.1,
            "makespan, Successive Halving, static": 15.3,
            "makespan, Grid Search": 15.6,
        },
    ),
    *_of(
        "HyperTrick",
        "Table 3",
        "ratio",
        {
            f"wall time, HyperTrick over Hyperband, {game}": round(ours / theirs, 3)
            for game, ours, theirs in zip(GAMES, (38, 38, 27, 39), (51, 42, 31, 48), strict=True)
        },
        derived=True,
    ),
    *_of(
        "HyperTrick",
        "Table 4",
        "%",
        {
            f"importance of {name}, {game}": share
            for game, shares in zip(GAMES, ((54, 24, 22), (34, 35, 31), (43, 37, 20), (55, 31, 14)), strict=True)
            for name, share in zip(("learning rate", "gamma", "t_max"), shares, strict=True)
        },
    ),
]

GA3C_TABLE_2 = {  # network → PPS of A3C and of GA3C; system I: 16 cores and a Titan X
    "small": (352, 1361),
    "large-4": (113, 1271),
    "large-3": (97, 1206),
    "large-2": (43, 874),
    "large-1": (11, 490),
}

GA3C = [
    *_of("GA3C", "Table 2", "PPS", {f"GA3C, {network}": ga3c for network, (_, ga3c) in GA3C_TABLE_2.items()}),
    *_of("GA3C", "Table 2", "PPS", {f"A3C, {network}": a3c for network, (a3c, _) in GA3C_TABLE_2.items()}),
    *_of(
        "GA3C",
        "Table 2",
        "ratio",
        {f"GA3C over A3C, {network}": round(ga3c / a3c, 2) for network, (a3c, ga3c) in GA3C_TABLE_2.items()},
        derived=True,
    ),
    *_of(
        "GA3C",
        "Table 3",
        "score",
        {
            f"after one day, {game}": score
            for game, score in {
                "amidar": 218,
                "boxing": 92,
                "centipede": 7386,
                "name_this_game": 5643,
                "ms_pacman": 1978,
                "pong": 18,
                "qbert": 14966,
                "seaquest": 1706,
                "up_n_down": 8623,
            }.items()
        },
    ),
]

BA3C = [
    *_of(
        "BA3C",
        "Fig. 6",
        "parameters",
        {
            f"fully connected width {w}": n
            for w, n in {256: 538_119, 128: 332_295, 64: 229_383, 32: 177_927, 16: 152_199}.items()
        },
    ),
    *_of(
        "BA3C",
        "Sec. 5",
        "ratio",
        {"speed-up on 64 nodes, Breakout to 300 points": round(14.2 * 60 / 21, 1)},
        derived=True,
    ),
    *_of(
        "BA3C",
        "Table 3",
        "score",
        {
            f"DDRL, {game}": s
            for game, s in {
                "breakout": 350,
                "boxing": 98,
                "pong": 20,
                "seaquest": 1832,
                "space_invaders": 650,
                "beam_rider": 14900,
            }.items()
        },
    ),
]

PBT = [
    *_of("PBT", "Fig. 2", "Q", {"grid search, about": 0.4, "PBT, about": 1.2}),
    *_of(
        "PBT",
        "Table 1",
        "score",
        {
            f"PBT-FuN, {game}": s
            for game, s in {"amidar": 3018, "gravitar": 5386, "ms_pacman": 9001, "enduro": 2292}.items()
        },
    ),
]

HTS_RL = [
    *_of("HTS-RL", "Fig. 4 (left)", "ratio", {"speed-up at low step-time variance, about": 1.5}),
    *_of("HTS-RL", "Fig. 4 (left)", "ratio", {"speed-up at high step-time variance, above": 5}),
]

ALL = [*HYPERTRICK, *GA3C, *BA3C, *PBT, *HTS_RL]


def published(paper: str, where: str, what: str) -> Published:
    """Look a number up.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    for number in ALL:
        if (number.paper, number.where, number.what) == (paper, where, what):
            return number
    raise KeyError((paper, where, what))
