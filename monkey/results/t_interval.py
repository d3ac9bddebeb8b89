"""Student's t: how far a mean of few values may lie from the truth. Written here, as scipy takes a second to import."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt, tan
from statistics import NormalDist

#: How sure an interval is.
CONFIDENCE = 0.95
#: Degrees of freedom from which a series around the normal distribution is exact to nine digits, and quicker.
_MANY = 100


def compute_half_width(std: float, n: int) -> float:
    """Return half the width of the 95 % interval of a mean of `n` values with this sample deviation; `n` at least 2."""
    return find_t_quantile(n - 1) * (std / sqrt(n))


@lru_cache(maxsize=1024)
def find_t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return t such that |T| <= t holds with this probability, where T has so many degrees of freedom."""
    if freedom >= _MANY:
        return _expand_around_normal(freedom, NormalDist().inv_cdf((1 + confidence) / 2))
    low, high = 0.0, pi / 2
    while (middle := (low + high) / 2) not in (low, high):  # until no float lies between
        if _compute_probability(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return tan(high) * sqrt(freedom)


def compute_t_tail(t: float, freedom: int) -> float:
    """Return the probability of T >= t, where T has so many degrees of freedom: right to about 15 decimal places."""
    inside = min(1.0, _compute_probability(atan(abs(t) / sqrt(freedom)), freedom))
    return (1 - inside) / 2 if t >= 0 else (1 + inside) / 2


def _compute_probability(angle: float, freedom: int) -> float:
    """Return the probability of |T| <= sqrt(freedom) · tan(angle): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cos(angle) * cos(angle) * k / (k + 1)
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def _expand_around_normal(freedom: int, z: float) -> float:
    """Return the quantile by the normal one: Abramowitz and Stegun, 26.7.5."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
