"""The numbers of the Distributed BA3C paper (arXiv 1801.02852): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import numbers_of

_of = partial(numbers_of, "BA3C")

FIG_6 = {256: 538_119, 128: 332_295, 64: 229_383, 32: 177_927, 16: 152_199}
"""Width of the fully connected layer → parameters, for a game of six actions (Sec. 2.5.1)."""

TABLE_3: dict[
    str, dict[str, tuple[float, float]]
] = {  # game → system → score and hours; all but DDRL as that paper quotes them
    "breakout": {"DDRL": (350, 0.5), "GA3C": (350, 21), "BA3C": (400, 15), "A3C": (500, 11)},
    "boxing": {"DDRL": (98, 0.5), "GA3C": (92, 2)},
    "pong": {"DDRL": (20, 4), "GA3C": (18, 1), "BA3C": (17, 24), "A3C": (20, 8)},
    "seaquest": {"DDRL": (1832, 0.5), "GA3C": (1706, 24), "BA3C": (1840, 24), "A3C": (2300, 24)},
    "space_invaders": {"DDRL": (650, 0.5), "GA3C": (600, 24), "BA3C": (700, 24), "A3C": (1400, 15)},
    "beam_rider": {"DDRL": (14900, 2.7), "GA3C": (3000, 24), "A3C": (15000, 15)},
}

HOURS_BY_NODES = {1: 14.2, 64: 0.35}
"""Nodes → hours to 300 points in Breakout (Sec. 3.1 and the title)."""

NUMBERS = [
    *_of("Fig. 6", "parameters", {f"fully connected width {w}": n for w, n in FIG_6.items()}),
    *_of("Sec. 3.1", "h", {f"Breakout to 300 points on {n} nodes": h for n, h in HOURS_BY_NODES.items()}),
    *_of(
        "Fig. 8",
        "ratio",
        {"speed-up on 64 nodes, Breakout to 300 points": round(HOURS_BY_NODES[1] / HOURS_BY_NODES[64], 1)},
        derived=True,
    ),
    *[
        number
        for game, systems in TABLE_3.items()
        for system, (score, hours) in systems.items()
        for number in (
            *_of("Table 3", "score", {f"{system}, {game}": score}),
            *_of("Table 3", "h", {f"{system}, {game}, time": hours}),
        )
    ],
]
