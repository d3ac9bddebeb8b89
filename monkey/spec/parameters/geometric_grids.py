"""Geometric grids: values at equal ratios, by their ends and number, or by powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

from monkey.spec.yaml.mistakes import describe_value, make_mistake_error

#: `logspace` means what `geomspace` does, where its ends cannot be exponents, as numpy's are.
GEOMETRIC_FORMS = ("geomspace", "logspace", "log2")
#: Digits that are computed: more than a float has, so that rounding leaves the nearest one on every machine.
_DIGITS = 50
#: Values of a grid.
_MOST_VALUES = 10_000
#: Exponents of ten that a person may mean; and of two that a float has.
_MOST_TENS, _MOST_TWOS = 30, 1000
#: Whole numbers up to here are all floats, too.
_LARGEST_WHOLE = 2**53 - 1


def parse_geometric_grid(form: str, raw: Any) -> list[int | float]:
    """Read `{geomspace: [start, stop, count]}`, `{logspace: …}` or `{log2: [begin, end, step]}`.

    Values are whole numbers if both ends and all values are. Raises MistakesError.
    """
    if form == "log2" and isinstance(raw, list) and len(raw) == 2:
        raw = [*raw, 1]
    good = isinstance(raw, list) and len(raw) == 3
    if not good or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in raw):
        shape = "[begin, end, step]" if form == "log2" else "[start, stop, count]"
        hint = "write {geomspace: [0.0001, 0.1, 4]}, or {log2: [-5, 1, 2]} for 2**-5, 2**-3, 2**-1 and 2**1"
        raise make_mistake_error(f"expected {shape}, found {describe_value(raw)}", hint, (form,))
    wrong = _explain_powers(*raw) if form == "log2" else _explain_ends(form, *raw)
    if wrong:
        raise make_mistake_error(f"{form}: {wrong[0]}", wrong[1], (form,))
    first, second, third = (Decimal(repr(number)) for number in raw)
    with localcontext() as context:
        context.prec = _DIGITS
        if form == "log2":
            values = [2 ** (first + at * third) for at in range(_count_powers(*raw))]
        else:
            inner = [first * (second / first) ** (at / (third - 1)) for at in range(1, int(third) - 1)]
            values = [first, *inner, second]
        return _round_values(values, whole=form == "log2" or type(raw[0]) is type(raw[1]) is int)


def _explain_ends(form: str, start: float, stop: float, count: float) -> tuple[str, str] | None:
    """Return what is wrong with a grid by its ends, and what to write; None for nothing."""
    if form == "logspace" and all(end == int(end) and abs(end) <= _MOST_TENS for end in (start, stop)):
        hint = f"write {{geomspace: [{10.0**start!r}, {10.0**stop!r}, {count}]}}"
        if min(start, stop) > 0:
            hint += f" or {{geomspace: [{start}, {stop}, {count}]}}"
        return f"are {start} and {stop} the ends, or exponents, as in numpy?", hint
    if min(start, stop) <= 0 or start == stop:
        hint = "write the values, not their exponents; or one as {value: 1}"
        return f"expected two different ends above 0, found {start} and {stop}", hint
    if not isinstance(count, int) or not 2 <= count <= _MOST_VALUES:
        hint = "the third number says how many values there are"
        return f"expected a count of 2 to {_MOST_VALUES:,}, found {count}", hint
    return None


def _explain_powers(begin: float, end: float, step: float) -> tuple[str, str] | None:
    """Return what is wrong with powers of two, and what to write; None for nothing."""
    if max(abs(begin), abs(end)) > _MOST_TWOS:
        message = f"expected exponents from -{_MOST_TWOS} to {_MOST_TWOS}, found {begin} and {end}"
        return message, "write the exponents, not the values"
    if step == 0 or not 1 <= _count_powers(begin, end, step) <= _MOST_VALUES:
        message = f"expected 1 to {_MOST_VALUES:,} powers from {begin} to {end}, found none or more in steps of {step}"
        return message, "give the step another sign, or raise it"
    return None


def _count_powers(begin: float, end: float, step: float) -> int:
    first, last, width = (Decimal(repr(number)) for number in (begin, end, step))
    return int((last - first) / width) + 1 if (end - begin) * step >= 0 else 0


def _round_values(values: Sequence[Decimal], *, whole: bool) -> list[int | float]:
    """Return the nearest floats; of whole numbers, if all are and `whole` permits them, themselves."""
    nearest = [int(value.to_integral_value()) for value in values]
    close = Decimal(10) ** (5 - _DIGITS)
    pairs = zip(values, nearest, strict=True)
    if whole and max(nearest) <= _LARGEST_WHOLE and all(abs(value - near) < close * near for value, near in pairs):
        return [*nearest]
    return [float(value) for value in values]
