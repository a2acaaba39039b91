"""The numbers and claims of the PBT paper (arXiv 1711.09846): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import claims_of, numbers_of

_of = partial(numbers_of, "PBT")
_claims = partial(claims_of, "PBT")
_FUN = "Feudal Networks are not among the systems here"
_LAB = "no UNREAL and no DeepMind Lab here"
_STARCRAFT = "no StarCraft II here"
_TRANSLATION = "no machine translation here"
_GAN = "no CIFAR GAN here; `workbench reproduce pbt-digits-gan` has a small one of digits, by another score"

TABLE_1 = {  # game → size of the population → score of FuN, and of FuN under PBT
    "amidar": {10: (1742, 1511), 20: (1645, 2454), 40: (1947, 2752), 80: (2055, 3018)},
    "gravitar": {10: (3970, 4110), 20: (3884, 4202), 40: (4018, 4481), 80: (4279, 5386)},
    "ms_pacman": {10: (5635, 5509), 20: (5280, 5714), 40: (6177, 8124), 80: (6506, 9001)},
    "enduro": {10: (1838, 1958), 20: (1881, 2213), 40: (2079, 2228), 80: (2166, 2292)},
}


SPREADS_1 = {  # what Table 1 prints behind its ±
    "amidar": {10: (174, 400), 20: (158, 160), 40: (80, 81), 80: (113, 269)},
    "gravitar": {10: (145, 225), 20: (362, 113), 40: (180, 540), 80: (161, 306)},
    "ms_pacman": {10: (656, 589), 20: (349, 347), 40: (402, 392), 80: (354, 711)},
    "enduro": {10: (37, 81), 20: (63, 6), 40: (9, 77), 80: (34, 16)},
}

TABLE_2 = {  # level → UNREAL and PBT-UNREAL, 40 members; then with 20 UNREAL, PBT over hypers, over weights, over both
    "emstm_non_match": (66.0, 66.0, 42.6, 14.5, 56.0, 53.2),
    "emstm_watermaze": (39.0, 36.7, 27.9, 33.2, 34.6, 36.8),
    "lt_horse_shoe_color": (75.4, 90.2, 77.4, 44.2, 56.3, 87.5),
    "nav_maze_random_goal_01": (114.2, 149.4, 82.2, 81.5, 74.2, 96.1),
    "lt_hallway_slope": (90.5, 109.7),
    "nav_maze_all_random_01": (59.6, 78.1),
    "nav_maze_all_random_02": (62.0, 92.4),
    "nav_maze_all_random_03": (92.7, 115.3),
    "nav_maze_random_goal_02": (145.4, 173.3),
    "nav_maze_random_goal_03": (127.3, 153.5),
    "nav_maze_static_01": (131.5, 133.5),
    "nav_maze_static_02": (194.5, 220.2),
    "nav_maze_static_03": (588.9, 594.8),
    "seekavoid_arena_01": (42.5, 42.3),
    "stairway_to_melon_01": (189.7, 192.4),
}
_AGENTS_2 = (
    *(("40 members", agent) for agent in ("UNREAL", "PBT-UNREAL")),
    *(("20 members", agent) for agent in ("UNREAL", "PBT-Hypers", "PBT-Weights", "PBT-UNREAL")),
)

TABLE_3 = {  # level → A3C and PBT-A3C, 30 members
    "CollectMineralShards": (93.7, 100.5),
    "FindAndDefeatZerglings": (46.0, 49.9),
    "DefeatRoaches": (121.8, 131.5),
    "DefeatZerglingsAndBanelings": (94.6, 124.7),
    "CollectMineralsAndGas": (3345.8, 3345.3),
    "BuildMarines": (0.17, 0.37),
}

TABLE_4: dict[
    str, tuple[tuple[float, float], ...]
] = {  # Inception score → GAN, PBT with truncation, with binary tournaments; each with its ±
    "CIFAR": ((6.38, 0.03), (6.80, 0.01), (6.77, 0.02)),
    "ImageNet, by CIFAR": ((6.45, 0.05), (6.89, 0.04), (6.74, 0.05)),
    "ImageNet, peak": ((6.48, 0.05), (7.02, 0.07), (6.81, 0.04)),
}


def pbt_gain(population: int) -> float:
    """Give PBT's score over that without it, mean of the four games of Table 1: what Fig. 5(a) shows."""
    ratios = [with_pbt / without for without, with_pbt in (sizes[population] for sizes in TABLE_1.values())]
    return sum(ratios) / len(ratios)


NUMBERS = [
    *_of("Fig. 2", "Q", {"grid search, about": 0.4, "PBT, about": 1.2}),
    *_of("Fig. 3", "% of a person", {"DM Lab, UNREAL": 93, "DM Lab, PBT": 106}, why_not=_LAB),
    *_of("Fig. 3", "% of a person", {"Atari, FuN": 147, "Atari, PBT": 181}, why_not=_FUN),
    *_of("Fig. 3", "% of a person", {"StarCraft II, A3C": 36, "StarCraft II, PBT": 39}, why_not=_STARCRAFT),
    *_of(
        "Sec. 4.2",
        "BLEU",
        {
            "newstest2012, tuned baseline": 23.71,
            "newstest2012, PBT": 24.23,
            "newstest2014, tuned baseline": 22.30,
            "newstest2014, PBT": 22.65,
            "newstest2014, original settings": 21.23,
        },
        why_not=_TRANSLATION,
    ),
    *_of("Sec. 4.3", "CIFAR Inception", {"best baseline, in the text": 6.39}, why_not=_GAN),
    *[
        number
        for game, sizes in TABLE_1.items()
        for size, both in sizes.items()
        for agent, score, spread in zip(("FuN", "PBT-FuN"), both, SPREADS_1[game][size], strict=True)
        for number in _of("Table 1", "score", {f"{agent}, {size} members, {game}": (score, spread)}, why_not=_FUN)
    ],
    *[
        number
        for k, (size, agent) in enumerate(_AGENTS_2)
        for number in _of(
            f"Table 2, {size}",
            "score",
            {f"{agent}, {level}": scores[k] for level, scores in TABLE_2.items() if k < len(scores)},
            why_not=_LAB,
        )
    ],
    *[
        number
        for level, both in TABLE_3.items()
        for number in _of("Table 3", "score", {f"A3C, {level}": both[0], f"PBT, {level}": both[1]}, why_not=_STARCRAFT)
    ],
    *[
        number
        for score, found in TABLE_4.items()
        for number in _of(
            "Table 4",
            "Inception",
            {f"{who}, {score}": pair for who, pair in zip(("GAN", "PBT", "PBT, tournaments"), found, strict=True)},
            why_not=_GAN,
        )
    ],
    *_of(
        "Fig. 5(a)",
        "ratio",
        {f"PBT over random search, {n} members": round(pbt_gain(n), 3) for n in (10, 20, 40, 80)},
        derived=True,
        why_not=_FUN,
    ),
]

STEEPER = "a GAN's discriminator has its rate fall further than its generator"

HIGHER = "PBT ends higher than random search with as many members"
FASTER = "PBT learns faster than random search"
BENEFIT = "all members of a population benefit from the luck of the others"
WEIGHTS_ALONE = "copying weights alone brings some increase"

CLAIMS = [
    *_claims("Sec. 4.1.2", HIGHER, BENEFIT),
    *_claims("Abstract, Sec. 1", FASTER),
    *_claims("Fig. 2", "most of the gain comes from copying, little from exploring"),
    *_claims(
        "Fig. 5(a)",
        "20 members and more gain over random search",
        "small populations, 10 or fewer, gain less than 20",
        "populations larger than 20 fare even better",
    ),
    *_claims("Fig. 5(b)", "truncation does better than binary tournaments"),
    *_claims(
        "Fig. 5(c)",
        "copying weights and hyperparameters does better than weights alone",
        "copying weights and hyperparameters does better than hyperparameters alone",
    ),
    *_claims("Fig. 5(d)", "hyperparameters that adapt do better than PBT's last ones, fixed"),
    *_claims("Sec. 4.4", WEIGHTS_ALONE),
    *_claims("Sec. 4.4", "10 members or fewer vary more", why_not="six repetitions tell no spreads apart"),
    *_claims("Fig. 6", "all final agents descend from one first agent"),
    *_claims("Fig. 7", STEEPER),
    *_claims("Fig. 7", "PBT finds translation's schedule of learning rates, a steeper one", why_not=_TRANSLATION),
    *_claims("Sec. 4.2", "PBT surpasses a tuned schedule of translation", why_not=_TRANSLATION),
    *_claims("Sec. 4.3", "PBT surpasses a tuned GAN", "PBT learns to decay both learning rates"),
]
