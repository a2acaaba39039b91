"""The numbers of the GA3C paper (Babaeizadeh et al., ICLR 2017): nothing here was measured by this project."""

from functools import partial

from workbench.paper.ga3c.table_3 import TABLE_3
from workbench.paper.numbers import numbers_of

_of = partial(numbers_of, "GA3C")

TABLE_2 = {  # network → PPS of A3C and of GA3C; system I: 16 cores and a Titan X
    "small": (352, 1361),
    "large-4": (113, 1271),
    "large-3": (97, 1206),
    "large-2": (43, 874),
    "large-1": (11, 490),
}

NUMBERS = [
    *_of("Table 2", "PPS", {f"GA3C, {network}": ga3c for network, (_, ga3c) in TABLE_2.items()}),
    *_of("Table 2", "PPS", {f"A3C, {network}": a3c for network, (a3c, _) in TABLE_2.items()}),
    *_of(
        "Table 2",
        "ratio",
        {f"GA3C over A3C, {network}": round(ga3c / a3c, 2) for network, (a3c, ga3c) in TABLE_2.items()},
        derived=True,
    ),
    *_of("Fig. 7", "experiences", {"best least training batch, from": 20, "best least training batch, to": 40}),
    *_of(
        "Table 3",
        "score",
        {f"after one day, {game}": scores.ga3c for game, scores in TABLE_3.items()},
    ),
]
