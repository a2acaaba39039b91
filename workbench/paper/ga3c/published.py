"""The numbers and claims of GA3C (Babaeizadeh et al., ICLR 2017): nothing here was measured by this project."""

from functools import partial

from workbench.paper.ga3c.table_3 import TABLE_3
from workbench.paper.numbers import claims_of, numbers_of

_of = partial(numbers_of, "GA3C")
_claims = partial(claims_of, "GA3C")
_MACHINES = "other machines of the paper's"
_NOT_MEASURED = "not measured"

TABLE_2 = {  # network → PPS of A3C and of GA3C; system I: 16 cores and a Titan X
    "small": (352, 1361),
    "large-4": (113, 1271),
    "large-3": (97, 1206),
    "large-2": (43, 874),
    "large-1": (11, 490),
}

UTILISATION = {  # network → % of the CPU and of the GPU, system I
    "small": (32, 56),
    "large-4": (27, 68),
    "large-3": (27, 77),
    "large-2": (26, 82),
    "large-1": (17, 90),
}
OTHER_SYSTEMS: dict[
    str, dict[str, tuple[float, ...]]
] = {  # system → network → PPS of A3C and of GA3C, speed-up as printed, % of CPU and GPU
    "II": {"small": (116, 728, 6, 62, 33), "large-1": (12, 336, 28, 49, 78)},
    "III": {"small": (300, 1248, 4, 31, 60), "large-1": (38, 256, 6, 17, 82)},
}

NUMBERS = [
    *_of("Table 2", "PPS", {f"GA3C, {network}": ga3c for network, (_, ga3c) in TABLE_2.items()}),
    *_of("Table 2", "PPS", {f"A3C, {network}": a3c for network, (a3c, _) in TABLE_2.items()}),
    *_of(
        "Table 2",
        "ratio",
        {f"GA3C over A3C, {network}": x for network, x in zip(TABLE_2, (4, 11, 12, 20, 45), strict=True)},
    ),
    *_of(
        "Table 2",
        "%",
        {
            f"{unit} used, {network}": both[k]
            for k, unit in enumerate(("CPU", "GPU"))
            for network, both in UTILISATION.items()
        },
        why_not="how busy the CPU is was not measured",
    ),
    *[
        number
        for system, networks in OTHER_SYSTEMS.items()
        for network, (a3c, ga3c, ratio, cpu, gpu) in networks.items()
        for unit, numbers in (
            ("PPS", {"A3C": a3c, "GA3C": ga3c}),
            ("ratio", {"GA3C over A3C": ratio}),
            ("%", {"CPU used": cpu, "GPU used": gpu}),
        )
        for number in _of(
            f"Table 2, system {system}", unit, {f"{w}, {network}": n for w, n in numbers.items()}, why_not=_MACHINES
        )
    ],
    *_of(
        "Sec. 5.1",
        "%",
        {
            "GPU used by the fastest": 56,
            "its average occupancy": 76,
            "its peak occupancy": 98,
            "TPS lost with a layer more": 7,
            "GPU used more, with it": 12,
            "occupancy more, with it": 0.5,
            "share of the GPU in waiting for a prediction": 10,
            "share of overhead in it": 90,
            "share of overhead in an update": 59,
            "TPS lost from the best to the worst of Fig. 3": 14,
        },
        why_not=_NOT_MEASURED,
    ),
    *_of("Sec. 5.1", "ms", {"an agent waits for a prediction": 108, "an update takes": 11.1}, why_not=_NOT_MEASURED),
    *_of(
        "Sec. 5.1",
        "times slower, small to large-1",
        {"A3C, system III": 7, "A3C, system I": 32, "GA3C, III": 4.9, "GA3C, II": 2.2, "GA3C, I": 2.7},
        why_not=_MACHINES,
    ),
    *_of(
        "Sec. 5.1",
        "agents",
        {"in the fastest mix, with 2 predictors and 2 trainers": 128},
        why_not="128 and 256 alone were tried",
    ),
    *_of(
        "Table 3",
        "score",
        {f"after one day, {game}": scores.ga3c for game, scores in TABLE_3.items()},
        why_not="a day on a GPU for each game",
    ),
    *_of("Table 3", "days", {"GA3C's training": 1}, why_not="a day on a GPU for each game"),
    *[
        number
        for who in ("human", "random", "a3c")
        for number in _of(
            "Table 3",
            "score",
            {f"{who}, {game}": getattr(scores, who) for game, scores in TABLE_3.items()},
            why_not="quoted there from Mnih et al. (2015, 2016)",
        )
    ],
    *_of("Table 3", "days", {"A3C's training": 4}, why_not="quoted there from Mnih et al. (2015, 2016)"),
]

CLAIMS = [
    *_claims("Sec. 6", "GA3C is significantly faster than A3C on the same machine"),
    *_claims("Sec. 5.1", "the larger the network, the more GA3C gains over A3C"),
    *_claims("Fig. 3", "more agents bring more TPS"),
    *_claims(
        "Sec. 5.2",
        "adjustment comes to nearly the score of the fastest fixed mix",
        "adjustment plays only slightly fewer frames than the fastest fixed mix",
        "who plays more frames in the same time scores higher",
        "it is robust to the learning rate (1e-4, 3e-4)",
    ),
    *_claims("Fig. 2", "adjustment finds the fastest mix"),
    *_claims(
        "Sec. 5.3",
        "a least training batch of 20 to 40 learns faster than none",
        "20 to 40 is best, larger ones learn slower",
        "a larger training batch lessens the policy lag",
    ),
    *_claims("Eq. 3", "RMSProp's epsilon stands inside the root"),
    *_claims("Eq. 5", "epsilon in the logarithm steadies learning", "with it gradients need not be clipped"),
    *_claims("Sec. 5.2", "a day of GA3C comes to the scores of four of A3C", why_not="a day on a GPU for each game"),
    *_claims("Fig. 6", "the curves of five games, two learning rates, three runs", why_not="a picture, values lost"),
]
