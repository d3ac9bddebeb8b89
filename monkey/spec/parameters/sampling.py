"""Random draws of parameters that never reshuffle: draw i of parameter p is ppf(u), with u from SHA-256(seed, p, i)."""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

#: Bits of a draw k: for every k, (k + 0.5) / 2**52 is a float strictly between 0 and 1.
DRAW_BITS = 52

_SCALE = 2.0**-DRAW_BITS

#: Number of draws that are made together, and the first eight bytes of each of their digests.
_DRAWS_PER_BATCH = 64
_FIRST_WORDS = struct.Struct(">" + "Q24x" * _DRAWS_PER_BATCH)

#: Ray's whole numbers: multiples of q, of which none is rounded to.
RAY_INTEGERS = ("qrandint", "lograndint", "qlograndint")

#: No draw lies further out than this many sigmas (8.2 for 52 bits).
MAX_DRAW_SIGMAS = 9.0


@dataclass(frozen=True)
class Distribution:
    """The distribution of a parameter's draws. `kind` is W&B's word, or Ray's; both bounds are included.

    `low` and `high` bound the values themselves, not their exponents. In log_normal and q_log_normal, `mu` and `sigma`
    are those of the logarithm. Values are rounded to multiples of `q`, which are whole numbers if `q` is an int.
    """

    kind: str
    low: int | float = 0
    high: int | float = 0
    mu: float = 0
    sigma: float = 1
    q: int | float | None = None

    @property
    def is_bounded(self) -> bool:
        """Say whether `low` and `high` mean anything."""
        return "normal" not in self.kind

    def multiples(self) -> range:
        """Return all n whose n * q is within the bounds, which are the numbers that their digits say."""
        assert self.q is not None
        q = Fraction(repr(self.q))
        return range(math.ceil(Fraction(repr(self.low)) / q), math.floor(Fraction(repr(self.high)) / q) + 1)

    def multiple(self, n: int) -> int | float:
        """Return n * q as people write it: 0.3, not 0.30000000000000004."""
        assert self.q is not None
        if isinstance(self.q, int):
            return n * self.q
        value = float(f"{n * self.q:.12g}") + 0.0  # no -0.0
        # 12 digits of a bound that has more may lie beyond it.
        return min(max(value, self.low), self.high) if self.is_bounded else value


def generate_draws(seed: int, name: str) -> Iterator[int]:
    """Yield draws 0, 1, 2, … of the parameter `name`, each a whole number of 52 bits."""
    sha256, start, at = hashlib.sha256, f"{seed}\0{name}\0".encode(), 0
    while True:
        digests = b"".join([sha256(start + b"%d" % i).digest() for i in range(at, at + _DRAWS_PER_BATCH)])
        for word in _FIRST_WORDS.unpack(digests):
            yield word >> (64 - DRAW_BITS)
        at += _DRAWS_PER_BATCH


def convert_to_fraction(unit: int) -> float:
    """Return a draw as a number between 0 and 1, both excluded."""
    return (unit + 0.5) * _SCALE


def make_choice_sampler(count: int, probabilities: Sequence[float] | None = None) -> Callable[[int], int]:
    """Return the function from a draw to an index below `count`."""
    if probabilities is None:
        return lambda unit: (unit * count) >> DRAW_BITS
    bounds = list(accumulate(probabilities))
    total = bounds[-1]
    last = max(at for at, p in enumerate(probabilities) if p > 0)
    return lambda unit: min(bisect_right(bounds, convert_to_fraction(unit) * total), last)


def make_sampler(distribution: Distribution) -> Callable[[int], int | float]:
    """Return the function from a draw to a value."""
    d = distribution
    if d.kind == "int_uniform":
        low, count = int(d.low), int(d.high) - int(d.low) + 1
        return lambda unit: low + ((unit * count) >> DRAW_BITS)
    if d.kind in RAY_INTEGERS:
        return _make_ray_integer_sampler(d)
    smooth = _SMOOTH[d.kind.removeprefix("q_")](d)
    return _quantised(d, smooth) if d.kind.startswith("q_") else smooth


def _make_ray_integer_sampler(d: Distribution) -> Callable[[int], int | float]:
    """Return the function from a draw to one of the multiples of q.

    Ray draws n itself and rounds nothing: each multiple of a `qrandint` is as likely as the others, also the outermost
    (ray-project/ray#65864). A logarithmic n is the whole part of a number up to the next n.
    """
    multiples = d.multiples()
    if d.kind == "qrandint":
        return lambda unit: d.multiple(multiples[(unit * len(multiples)) >> DRAW_BITS])
    draw = _log_uniform(Distribution("log_uniform_values", multiples.start, multiples.stop))
    return lambda unit: d.multiple(min(math.floor(draw(unit)), multiples[-1]))


def _portable(value: float) -> float:
    """Return the value with 10 digits: libraries for exp and log differ in the last ones, and jobs must not."""
    return float(f"{value:.10g}")


def _uniform(d: Distribution) -> Callable[[int], float]:
    low, high = float(d.low), float(d.high)

    def draw(unit: int) -> float:
        u = (unit + 0.5) * _SCALE
        value = low * (1 - u) + high * u  # high - low may be too large for a float
        return low if value < low else min(value, high)

    return draw


def _log_uniform(d: Distribution) -> Callable[[int], float]:
    low, high = float(d.low), float(d.high)
    start, exp = math.log(low), math.exp
    width = math.log(high) - start

    def draw(unit: int) -> float:
        value = _portable(exp(start + width * ((unit + 0.5) * _SCALE)))
        return low if value < low else min(value, high)

    return draw


def _normal(d: Distribution) -> Callable[[int], float]:
    from statistics import NormalDist  # slow to import, seldom needed

    z = NormalDist().inv_cdf
    mu, sigma = float(d.mu), float(d.sigma)
    return lambda unit: mu + sigma * _portable(z((unit + 0.5) * _SCALE))


def _log_normal(d: Distribution) -> Callable[[int], float]:
    normal = _normal(d)
    return lambda unit: _portable(math.exp(normal(unit)))


_SMOOTH: dict[str, Callable[[Distribution], Callable[[int], float]]] = {
    "uniform": _uniform,
    "log_uniform_values": _log_uniform,
    "normal": _normal,
    "log_normal": _log_normal,
}


def _quantised(d: Distribution, smooth: Callable[[int], float]) -> Callable[[int], int | float]:
    q = d.q
    assert q is not None
    if "uniform" not in d.kind:
        return lambda unit: d.multiple(round(smooth(unit) / q))
    first, last = d.multiples()[0], d.multiples()[-1]
    return lambda unit: d.multiple(min(max(round(smooth(unit) / q), first), last))
