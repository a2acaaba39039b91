"""Rounding of quotients and products: what came out a hair off a whole number is that number."""

import math

_HAIR = 1e-12  # of the number itself, so that what is as good as nothing still rounds up to one


def floored(value: float) -> int:
    """Round down.

    >>> 33 / 2.2, floored(33 / 2.2), floored(14.9)
    (14.999999999999998, 15, 14)
    """
    return math.floor(value * (1 + _HAIR))


def ceiled(value: float) -> int:
    """Round up.

    >>> 3 * 1.1 / 0.3, ceiled(3 * 1.1 / 0.3), ceiled(11.1)
    (11.000000000000002, 11, 12)
    """
    return math.ceil(value * (1 - _HAIR))
