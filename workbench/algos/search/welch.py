"""Welch's t-test (Biometrika 34, 1947), for PBT's exploit step, without SciPy."""

import math
from collections.abc import Sequence

_TINY = 1e-300


def welch_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p-value of the hypothesis that two samples, of two values or more each, have the same mean.

    With t = (mean a - mean b) / sqrt(va/na + vb/nb) and the Welch-Satterthwaite degrees of freedom v,
    p = I_x(v/2, 1/2) at x = v / (v + t²). Where neither sample varies, p is 1 for equal means and 0 otherwise.
    """
    (mean_a, error_a), (mean_b, error_b) = _mean_and_error(a), _mean_and_error(b)
    error = error_a + error_b
    if error == 0:
        return 1.0 if mean_a == mean_b else 0.0
    t2 = (mean_a - mean_b) ** 2 / error
    v = error**2 / (error_a**2 / (len(a) - 1) + error_b**2 / (len(b) - 1))
    return regularized_beta(v / (v + t2), v / 2, 0.5)


def regularized_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), the regularised incomplete beta function, by its continued fraction (Abramowitz & Stegun, 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - regularized_beta(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + …)), evaluated from the front by the modified Lentz method."""
    value, c, d = 1.0, 1.0, 0.0
    for i in range(1, 500):
        m = i // 2
        if i % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or _TINY)
        c = (1 + term / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its squared standard error."""
    n = len(values)
    mean = math.fsum(values) / n
    return mean, math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n
