"""The numbers of the PBT paper (arXiv 1711.09846): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import numbers_of

_of = partial(numbers_of, "PBT")

TABLE_1 = {  # game → size of the population → score of FuN, and of FuN under PBT
    "amidar": {10: (1742, 1511), 20: (1645, 2454), 40: (1947, 2752), 80: (2055, 3018)},
    "gravitar": {10: (3970, 4110), 20: (3884, 4202), 40: (4018, 4481), 80: (4279, 5386)},
    "ms_pacman": {10: (5635, 5509), 20: (5280, 5714), 40: (6177, 8124), 80: (6506, 9001)},
    "enduro": {10: (1838, 1958), 20: (1881, 2213), 40: (2079, 2228), 80: (2166, 2292)},
}


def pbt_gain(population: int) -> float:
    """Give PBT's score over that without it, mean of the four games of Table 1: what Fig. 5(a) shows."""
    ratios = [with_pbt / without for without, with_pbt in (sizes[population] for sizes in TABLE_1.values())]
    return sum(ratios) / len(ratios)


NUMBERS = [
    *_of("Fig. 2", "Q", {"grid search, about": 0.4, "PBT, about": 1.2}),
    *[
        number
        for game, sizes in TABLE_1.items()
        for size, (without, with_pbt) in sizes.items()
        for number in _of(
            "Table 1",
            "score",
            {f"FuN, {size} members, {game}": without, f"PBT-FuN, {size} members, {game}": with_pbt},
        )
    ],
    *_of(
        "Fig. 5(a)",
        "ratio",
        {f"PBT over random search, {n} members": round(pbt_gain(n), 3) for n in (10, 20, 40, 80)},
        derived=True,
    ),
]
