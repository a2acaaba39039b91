"""The numbers and claims of Distributed BA3C (arXiv 1801.02852): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import claims_of, numbers_of

_of = partial(numbers_of, "BA3C")
_claims = partial(claims_of, "BA3C")
_NODES = "64 nodes of 12 cores"
_BREAKOUT = f"{_NODES}: `workbench run --preset breakout-ba3c-paper`"
_PICTURE = "a picture, values lost"

FIG_6 = {256: 538_119, 128: 332_295, 64: 229_383, 32: 177_927, 16: 152_199}
"""Width of the fully connected layer → parameters, for a game of six actions (Sec. 2.5.1)."""

LEARNING_RATE = 1e-3
"""Of all of its experiments (Table 1, Sec. 3)."""

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


def _of_table_3(game: str, system: str) -> str:
    """Tell why a row of Table 3 was not run."""
    if system != "DDRL":
        return "quoted there from the systems' own papers"
    return _BREAKOUT if game == "breakout" else _NODES


NUMBERS = [
    *_of("Fig. 6", "parameters", {f"fully connected width {w}": n for w, n in FIG_6.items()}),
    *_of(
        "Fig. 6",
        "%",
        {f"of the widest's, width {w}": x for w, x in zip(FIG_6, (100, 61, 43, 33, 28), strict=True)},
    ),
    *_of(
        "Sec. 3.1", "h", {"Breakout to 300 points on 1 node": HOURS_BY_NODES[1]}, why_not="hours of a node of 12 cores"
    ),
    *_of("Sec. 3.1", "h", {"Breakout to 300 points on 64 nodes": HOURS_BY_NODES[64]}, why_not=_BREAKOUT),
    *_of("Abstract", "h", {"Breakout on one node of 24 cores, the single-node code": 10}, why_not="another program"),
    *_of(
        "Fig. 8",
        "ratio",
        {"speed-up on 64 nodes, Breakout to 300 points": round(HOURS_BY_NODES[1] / HOURS_BY_NODES[64], 1)},
        derived=True,
        why_not=f"{_NODES}, and hours of one",
    ),
    *_of(
        "Fig. 3",
        "min",
        {"until the asynchronous score drops to 0, about": 50},
        why_not=f"{_NODES}, without waiting for one another",
    ),
    *[
        number
        for game, systems in TABLE_3.items()
        for system, (score, hours) in systems.items()
        for why_not in (_of_table_3(game, system),)
        for number in (
            *_of("Table 3", "score", {f"{system}, {game}": score}, why_not=why_not),
            *_of("Table 3", "h", {f"{system}, {game}, time": hours}, why_not=why_not),
        )
    ],
]

SMALL_EPSILON = "with batches of 512 a small epsilon is much faster on some games (Breakout, Boxing; Pong is slower)"

CLAIMS = [
    *_claims(
        "Sec. 2.3",
        "asynchronous training collapses, synchronous training does not",
        "waiting for 90 % of the gradients significantly shortens an update",
    ),
    *_claims("Sec. 2.4.3", SMALL_EPSILON, "with smaller effective batches it does not"),
    *_claims("Sec. 2.5.1", "a narrower fully connected layer processes more data points a second"),
    *_claims("Fig. 8", "n nodes come to a score in an n-th of the time, up to 64"),
    *_claims("Fig. 4", "a larger learning rate makes training unstable, up to scores of 0"),
    *_claims("Sec. 2.4.4", "other betas of Adam bring nothing"),
    *_claims("Sec. 2.5.1", "width 128 learns as fast as 256, narrower ones slower", why_not="not measured"),
    *_claims("Fig. 7", "more parameter servers use the network better"),
    *_claims("Sec. 3.3", "much faster than GA3C, with scores as good or better", why_not=_NODES),
    *_claims("Fig. 9", "curves of six games on 64 nodes", why_not=_PICTURE),
]
