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

HYPERTRICK_TABLE_3: dict[
    str, dict[str, tuple[float, float, float]]
] = {  # game → method → best score, wall time and time to the best score, in hours
    "boxing": {"Hyperband": (96, 51, 29), "HyperTrick": (95, 38, 13)},
    "centipede": {"Hyperband": (8521, 42, 2), "HyperTrick": (8667, 38, 29)},
    "ms_pacman": {"Hyperband": (2456, 31, 26), "HyperTrick": (2243, 27, 16)},
    "pong": {"Hyperband": (17.5, 48, 47), "HyperTrick": (17.8, 39, 22)},
}

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
    *[
        number
        for game, methods in HYPERTRICK_TABLE_3.items()
        for method, (score, wall_h, best_h) in methods.items()
        for number in (
            *_of("HyperTrick", "Table 3", "score", {f"best score, {method}, {game}": score}),
            *_of("HyperTrick", "Table 3", "h", {f"wall time, {method}, {game}": wall_h}),
            *_of("HyperTrick", "Table 3", "h", {f"time to best score, {method}, {game}": best_h}),
        )
    ],
    *_of(
        "HyperTrick",
        "Table 3",
        "ratio",
        {
            f"{what}, HyperTrick over Hyperband, {game}": round(both["HyperTrick"][k] / both["Hyperband"][k], 3)
            for k, what in ((1, "wall time"), (2, "time to best score"))
            for game, both in HYPERTRICK_TABLE_3.items()
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
    *_of("GA3C", "Fig. 7", "experiences", {"best least training batch, from": 20, "best least training batch, to": 40}),
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

BA3C_FIG_6 = {256: 538_119, 128: 332_295, 64: 229_383, 32: 177_927, 16: 152_199}
"""Width of the fully connected layer → parameters, for a game of six actions (Sec. 2.5.1)."""

BA3C_TABLE_3: dict[
    str, dict[str, tuple[float, float]]
] = {  # game → system → score and hours; all but DDRL as that paper quotes them
    "breakout": {"DDRL": (350, 0.5), "GA3C": (350, 21), "BA3C": (400, 15), "A3C": (500, 11)},
    "boxing": {"DDRL": (98, 0.5), "GA3C": (92, 2)},
    "pong": {"DDRL": (20, 4), "GA3C": (18, 1), "BA3C": (17, 24), "A3C": (20, 8)},
    "seaquest": {"DDRL": (1832, 0.5), "GA3C": (1706, 24), "BA3C": (1840, 24), "A3C": (2300, 24)},
    "space_invaders": {"DDRL": (650, 0.5), "GA3C": (600, 24), "BA3C": (700, 24), "A3C": (1400, 15)},
    "beam_rider": {"DDRL": (14900, 2.7), "GA3C": (3000, 24), "A3C": (15000, 15)},
}

BA3C_NODES = {1: 14.2, 64: 0.35}
"""Nodes → hours to 300 points in Breakout (Sec. 3.1 and the title)."""

BA3C = [
    *_of("BA3C", "Fig. 6", "parameters", {f"fully connected width {w}": n for w, n in BA3C_FIG_6.items()}),
    *_of("BA3C", "Sec. 3.1", "h", {f"Breakout to 300 points on {n} nodes": h for n, h in BA3C_NODES.items()}),
    *_of(
        "BA3C",
        "Fig. 8",
        "ratio",
        {"speed-up on 64 nodes, Breakout to 300 points": round(BA3C_NODES[1] / BA3C_NODES[64], 1)},
        derived=True,
    ),
    *[
        number
        for game, systems in BA3C_TABLE_3.items()
        for system, (score, hours) in systems.items()
        for number in (
            *_of("BA3C", "Table 3", "score", {f"{system}, {game}": score}),
            *_of("BA3C", "Table 3", "h", {f"{system}, {game}, time": hours}),
        )
    ],
]

PBT_TABLE_1 = {  # game → size of the population → score of FuN, and of FuN under PBT
    "amidar": {10: (1742, 1511), 20: (1645, 2454), 40: (1947, 2752), 80: (2055, 3018)},
    "gravitar": {10: (3970, 4110), 20: (3884, 4202), 40: (4018, 4481), 80: (4279, 5386)},
    "ms_pacman": {10: (5635, 5509), 20: (5280, 5714), 40: (6177, 8124), 80: (6506, 9001)},
    "enduro": {10: (1838, 1958), 20: (1881, 2213), 40: (2079, 2228), 80: (2166, 2292)},
}


def pbt_gain(population: int) -> float:
    """Give PBT's score over that without it, mean of the four games of Table 1: what Fig. 5(a) shows."""
    ratios = [with_pbt / without for without, with_pbt in (sizes[population] for sizes in PBT_TABLE_1.values())]
    return sum(ratios) / len(ratios)


PBT = [
    *_of("PBT", "Fig. 2", "Q", {"grid search, about": 0.4, "PBT, about": 1.2}),
    *[
        number
        for game, sizes in PBT_TABLE_1.items()
        for size, (without, with_pbt) in sizes.items()
        for number in _of(
            "PBT",
            "Table 1",
            "score",
            {f"FuN, {size} members, {game}": without, f"PBT-FuN, {size} members, {game}": with_pbt},
        )
    ],
    *_of(
        "PBT",
        "Fig. 5(a)",
        "ratio",
        {f"PBT over random search, {n} members": round(pbt_gain(n), 3) for n in (10, 20, 40, 80)},
        derived=True,
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
