"""Reads a distribution: W&B's words, and Ray's as aliases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeGuard

from monkey.spec.parameters.sampling import MAX_DRAW_SIGMAS, RAY_INTEGERS, Distribution
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error, suggest_word

#: What each kind needs, and may have besides.
DISTRIBUTION_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "uniform": (("min", "max"), ()),
    "log_uniform_values": (("min", "max"), ()),
    "int_uniform": (("min", "max"), ()),
    "normal": ((), ("mu", "sigma")),
    "log_normal": ((), ("mu", "sigma")),
    "q_uniform": (("min", "max", "q"), ()),
    "q_log_uniform_values": (("min", "max", "q"), ()),
    "q_normal": (("q",), ("mu", "sigma")),
    "q_log_normal": (("q",), ("mu", "sigma")),
    "qrandint": (("min", "max", "q"), ()),
    "lograndint": (("min", "max"), ()),
    "qlograndint": (("min", "max", "q"), ()),
}

#: Keys of the long form.
DISTRIBUTION_KEYS = ("distribution", "min", "max", "mu", "sigma", "q")

#: Ray's `{name: [arguments]}`; the words its arguments stand for here.
RAY_DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "uniform": ("min", "max"),
    "quniform": ("min", "max", "q"),
    "loguniform": ("min", "max"),
    "qloguniform": ("min", "max", "q"),
    "randint": ("min", "max"),
    "qrandint": ("min", "max", "q"),
    "lograndint": ("min", "max"),
    "qlograndint": ("min", "max", "q"),
    "randn": ("mu", "sigma"),
    "qrandn": ("mu", "sigma", "q"),
}

#: Other names for a kind, as `distribution:`.
DISTRIBUTION_ALIASES = {
    "quniform": "q_uniform",
    "loguniform": "log_uniform_values",
    "qloguniform": "q_log_uniform_values",
    "randint": "int_uniform",
    "randn": "normal",
    "qrandn": "q_normal",
    "lognormal": "log_normal",
}
#: Whole numbers, of which Ray leaves the upper end out where they have no q, or one of 1.
_RAY_INTEGERS = ("randint", *RAY_INTEGERS)

_NOT_YET = (
    "beta", "q_beta", "inv_log_uniform", "inv_log_uniform_values", "q_inv_log_uniform", "sample_from",
)  # fmt: skip


def parse_ray_distribution(name: str, arguments: Any) -> Distribution:
    """Read `{loguniform: [1e-4, 1e-1]}`. Raises MistakesError."""
    words = RAY_DISTRIBUTIONS[name]
    if name == "randint" and isinstance(arguments, int):
        arguments = [0, arguments]
    fewest = 0 if name == "randn" else len(words)
    if not isinstance(arguments, list) or not fewest <= len(arguments) <= len(words):
        want = f"[{', '.join(words)}]"
        raise make_mistake_error(
            f"expected {want}, found {describe_value(arguments)}", f"write {{{name}: {want}}}", (name,)
        )
    return parse_distribution({"distribution": name, **dict(zip(words, arguments, strict=False))}, lambda _: (name,))


def parse_distribution(
    raw: dict[str, Any], where: Callable[[str], tuple[str, ...]] = lambda key: (key,)
) -> Distribution:
    """Read `{distribution: …, min: …, max: …}`; `where` says where a key stands. Raises MistakesError."""
    word = raw["distribution"] if "distribution" in raw else _guess_kind(raw)
    kind = _parse_kind(word, raw, where)
    numbers = _parse_numbers(kind, raw, where)
    if kind == "int_uniform" or word in _RAY_INTEGERS:
        numbers = _require_whole_numbers(kind, numbers, where)
    if word in _RAY_INTEGERS:
        _check_order(numbers["min"], numbers["max"], where)
        if numbers.get("q", 1) == 1:
            numbers["max"] -= 1
    if kind in RAY_INTEGERS:
        numbers = {"q": 1, **numbers}
    made = Distribution(
        kind,
        low=numbers.get("min", 0),
        high=numbers.get("max", 0),
        mu=numbers.get("mu", 0),
        sigma=numbers.get("sigma", 1),
        q=numbers.get("q"),
    )
    _check_distribution(made, where)
    return made


def _parse_numbers(kind: str, raw: dict[str, Any], where: Callable[[str], tuple[str, ...]]) -> dict[str, int | float]:
    """Read all that stands beside the kind. Raises all mistakes at once."""
    needed, optional = DISTRIBUTION_KINDS[kind]
    hint = f"write {format_example(kind)}"
    mistakes = [Mistake((), f"{kind} needs {key!r}", hint) for key in needed if key not in raw]
    numbers = {}
    for key, value in raw.items():
        if key in (*needed, *optional):
            try:
                numbers[key] = _parse_number(key, value, where)
            except MistakesError as error:
                mistakes += error.mistakes
        elif key != "distribution":
            mistakes.append(Mistake(where(key), f"{kind} has no {key!r}", hint, on_key=True))
    if mistakes:
        raise MistakesError(mistakes)
    return numbers


def _guess_kind(raw: dict[str, Any]) -> str:
    """Name the distribution of a bare {min, max}, as W&B does: whole numbers if both are."""
    if "q" in raw:
        return "q_uniform"
    if "mu" in raw or "sigma" in raw:
        raise make_mistake_error(
            "expected a distribution with 'mu' and 'sigma'", "add: distribution: normal (or log_normal)"
        )
    whole = all(isinstance(raw.get(key), int) for key in ("min", "max"))
    return "int_uniform" if whole else "uniform"


def _parse_kind(word: Any, raw: dict[str, Any], where: Callable[[str], tuple[str, ...]]) -> str:
    at = where("distribution")
    if not isinstance(word, str):
        raise make_mistake_error(
            f"expected a distribution's name, found {describe_value(word)}",
            suggest_word("", DISTRIBUTION_KINDS, "they are"),
            at,
        )
    if word in ("log_uniform", "q_log_uniform"):
        raise make_mistake_error(
            f"{word!r} is ambiguous: its min and max are exponents in W&B, values elsewhere",
            _suggest_log_uniform(raw),
            at,
        )
    if word in _NOT_YET:
        raise make_mistake_error(
            f"the distribution {word!r} is not there yet", suggest_word("", DISTRIBUTION_KINDS, "use one of"), at
        )
    kind = DISTRIBUTION_ALIASES.get(word, word)
    if kind not in DISTRIBUTION_KINDS:
        words = [*DISTRIBUTION_KINDS, "categorical", "constant", *DISTRIBUTION_ALIASES]
        raise make_mistake_error(f"unknown distribution {word!r}", suggest_word(word, words, "distributions"), at)
    return kind


def _suggest_log_uniform(raw: dict[str, Any]) -> str:
    """Show both readings of an ambiguous log_uniform with the file's own numbers."""
    low, high = raw.get("min"), raw.get("max")
    name = "q_log_uniform_values" if "q" in raw else "log_uniform_values"
    if not (_is_number(low) and _is_number(high)) or max(abs(low), abs(high)) > 600:
        return f"use {name}, whose min and max are the values themselves"
    exponents = f"{name} with min: {math.exp(low):.4g}, max: {math.exp(high):.4g}"
    if min(low, high) <= 0:
        return f"write distribution: {exponents}"
    return f"write distribution: {name} if {low} and {high} are the values, or {exponents}"


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_example(word: str) -> str:
    """Return a whole parameter of the distribution that is called this or so, to be copied; "" if there is none."""
    kind = DISTRIBUTION_ALIASES.get(word, word)
    if kind not in DISTRIBUTION_KINDS:
        return ""
    numbers = {"min": "1", "max": "9", "mu": "0", "sigma": "1", "q": "2"}
    words = [f"{key}: {numbers[key]}" for key in (*DISTRIBUTION_KINDS[kind][0], *DISTRIBUTION_KINDS[kind][1])]
    return "{" + ", ".join([f"distribution: {kind}", *words]) + "}"


def _parse_number(key: str, value: Any, where: Callable[[str], tuple[str, ...]]) -> int | float:
    if not _is_number(value):
        hint = "remove the quotes" if isinstance(value, str) else None
        raise make_mistake_error(f"expected a number for {key!r}, found {describe_value(value)}", hint, where(key))
    if abs(value) > 1e300:
        raise make_mistake_error(f"{key!r} is too large", "stay below 1e300", where(key))
    return value


def _require_whole_numbers(
    kind: str, numbers: dict[str, int | float], where: Callable[[str], tuple[str, ...]]
) -> dict[str, int | float]:
    for key, value in numbers.items():
        if value != int(value):
            smooth = ("q_" if "q" in numbers else "") + ("log_uniform_values" if "log" in kind else "uniform")
            written = ", ".join(f"{name}: {number}" for name, number in numbers.items())
            hint = f"write {{distribution: {smooth}, {written}}}"
            raise make_mistake_error(f"expected a whole number for {key!r}, found {value}", hint, where(key))
    return {key: int(value) for key, value in numbers.items()}


def _check_distribution(d: Distribution, where: Callable[[str], tuple[str, ...]]) -> None:
    if d.is_bounded and not (d.low == d.high and d.kind in ("int_uniform", *RAY_INTEGERS)):
        _check_order(d.low, d.high, where)
    if d.is_bounded and "log" in d.kind and d.low <= 0:
        hint = "min and max are the values, not their exponents"
        raise make_mistake_error(f"a logarithm needs min > 0, found {d.low}", hint, where("min"))
    if d.sigma <= 0:
        raise make_mistake_error(
            f"expected sigma > 0, found {d.sigma}", "sigma is the standard deviation", where("sigma")
        )
    far = abs(d.mu) + MAX_DRAW_SIGMAS * d.sigma
    if "log_normal" in d.kind and far > 690:
        raise make_mistake_error(
            f"exp({far:.4g}) is too large: mu and sigma are of the logarithm", "lower them", where("mu")
        )
    if d.q is not None:
        _check_steps(d, math.exp(far) if "log_normal" in d.kind else far, where)


def _check_order(low: int | float, high: int | float, where: Callable[[str], tuple[str, ...]]) -> None:
    if not low < high:
        hint = f"swap them, or write {{value: {low}}}"
        raise make_mistake_error(f"expected min < max, found {low} and {high}", hint, where("max"))


def _check_steps(d: Distribution, far: float, where: Callable[[str], tuple[str, ...]]) -> None:
    """Refuse a `q` that leaves nothing, or steps that floats can no longer tell apart."""
    assert d.q is not None
    if d.q <= 0:
        raise make_mistake_error(f"expected q > 0, found {d.q}", "q is the step between values", where("q"))
    furthest = max(abs(d.low), abs(d.high)) if d.is_bounded else far
    if furthest / d.q > 1e12:
        raise make_mistake_error(
            f"q: {d.q} is too fine for values up to {furthest:.4g}", "use a larger q, or none", where("q")
        )
    if d.is_bounded and not d.multiples():
        raise make_mistake_error(
            f"no multiple of q: {d.q} lies between {d.low} and {d.high}", "use a smaller q", where("q")
        )
