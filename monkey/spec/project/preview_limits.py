"""`previews:` in monkey.yaml: what a pull request may run before it is merged, at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.spec.project.cloud import CLOUD_KEYS, MIN_LIFETIME_SECONDS
from monkey.spec.yaml.environment_names import VARIABLE_NAME_PATTERN, is_system_variable
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, suggest_word
from monkey.spec.yaml.units import format_duration, parse_duration

_KEYS = ("sweeps", "jobs", "max_concurrent_jobs", "expires", "providers", "max_cost", "secrets")
_EXAMPLE = "write previews: {jobs: 8, max_concurrent_jobs: 2, expires: 4h}"
#: Jobs of one preview, and previews of one pull request: a look at the extremes of a matrix, and no sweep.
_MOST = 256
#: Seconds.
_DEFAULT_EXPIRES_SECONDS, _MAX_EXPIRES_SECONDS = 4 * 3600.0, 7 * 86400.0
#: USD.
_MOST_COST = 1e6


@dataclass(frozen=True)
class PreviewLimits:
    """The limits of each pull request's previews, as the project sets them."""

    #: Sweeps that are previewed at the same time: a branch that adds specs must not multiply the other limits.
    sweeps: int = 4
    #: Jobs of one sweep's preview, and how many of them run at once.
    jobs: int = 8
    max_concurrent_jobs: int = 2
    #: Seconds after which a preview ends, counted from its last apply.
    expires: float = _DEFAULT_EXPIRES_SECONDS
    #: Names of the providers on which previews run.
    providers: tuple[str, ...] = ()
    #: USD that the rented machines of a pull request's previews may cost at worst; None where none are rented.
    max_cost: float | None = None
    #: Names of the secrets that jobs of previews may have.
    secrets: tuple[str, ...] = ()


def parse_preview_limits(raw: Mapping[str, Any] | None, providers: Mapping[str, Any]) -> PreviewLimits | None:
    """Return the limits that a `previews:` without mistakes sets; None for none.

    `providers`: those of the file, as written. Without a choice, all take part that cost nothing.
    """
    if raw is None:
        return None
    plain = PreviewLimits()
    free = [name for name, body in providers.items() if not _is_rented(body)]
    return PreviewLimits(
        raw.get("sweeps", plain.sweeps),
        raw.get("jobs", plain.jobs),
        raw.get("max_concurrent_jobs", plain.max_concurrent_jobs),
        parse_duration(raw.get("expires", plain.expires)),
        _as_names(raw.get("providers", free)),
        float(raw["max_cost"]) if "max_cost" in raw else None,
        _as_names(raw.get("secrets", [])),
    )


def find_preview_mistakes(raw: Any, providers: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `previews:`, in a file with these `providers:`."""
    path = ("previews",)
    if not isinstance(raw, dict):
        return [Mistake(path, f"expected a mapping of limits, found {describe_value(raw)}", _EXAMPLE)]
    known = providers if isinstance(providers, dict) else {}
    return [mistake.under(path) for mistake in _find_limit_mistakes(raw, known)]


def _find_limit_mistakes(raw: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in raw:
        if key not in _KEYS:
            yield Mistake(
                (key,), f"unknown key {key!r} of previews", suggest_word(str(key), _KEYS, "keys"), on_key=True
            )
    for key in ("sweeps", "jobs", "max_concurrent_jobs"):
        if key in raw and not (type(raw[key]) is int and 1 <= raw[key] <= _MOST):
            message = f"expected a whole number from 1 to {_MOST}, found {describe_value(raw[key])}"
            yield Mistake((key,), message, f"write {key}: {getattr(PreviewLimits(), key)}")
    if "max_cost" in raw and not _is_amount(raw["max_cost"]):
        message = f"expected USD, more than 0 and below {_MOST_COST:,.0f}, found {describe_value(raw['max_cost'])}"
        yield Mistake(("max_cost",), message, "write 5")
    if "secrets" in raw:
        yield from _find_secret_mistakes(raw["secrets"])
    rented = list[str]()
    if "providers" in raw:
        yield from _find_name_mistakes(raw["providers"], known)
        rented = [name for name in _as_names(raw["providers"]) if _is_rented(known.get(name))]
    if rented and "max_cost" not in raw:
        message = f"machines of provider {rented[0]!r} are paid for: expected max_cost, found none"
        yield Mistake(("providers",), message, "say what a pull request may cost at worst, in USD: max_cost: 5")
    yield from _find_expiry_mistakes(raw, rented)


def _find_expiry_mistakes(raw: Mapping[str, Any], rented: list[str]) -> Iterator[Mistake]:
    least = MIN_LIFETIME_SECONDS if rented else 60.0
    try:
        expires = parse_duration(raw.get("expires", _DEFAULT_EXPIRES_SECONDS))
    except MistakesError as error:
        yield from (mistake.under(("expires",)) for mistake in error.mistakes)
        return
    if not least <= expires <= _MAX_EXPIRES_SECONDS:
        said = f"{format_duration(least)} to {format_duration(_MAX_EXPIRES_SECONDS)}"
        yield Mistake(("expires",), f"expected {said}, found {describe_value(raw['expires'])}", "write 4h")


def _find_name_mistakes(raw: Any, known: Mapping[str, Any]) -> Iterator[Mistake]:
    named = [raw] if isinstance(raw, str) else raw
    if not isinstance(named, list) or not named:
        hint = "name those on which previews may run: [local]"
        yield Mistake(("providers",), f"expected a list of providers, found {describe_value(raw)}", hint)
        return
    for at, name in enumerate(named):
        path = ("providers",) if isinstance(raw, str) else ("providers", at)
        if not isinstance(name, str) or name not in known:
            hint = suggest_word(str(name), [str(one) for one in known], "providers")
            yield Mistake(path, f"expected one of the project's providers, found {describe_value(name)}", hint)
        elif name in named[:at]:
            yield Mistake(path, f"provider {name!r} is listed twice", "name it once")


def _find_secret_mistakes(raw: Any) -> Iterator[Mistake]:
    if not isinstance(raw, list):
        yield Mistake(("secrets",), "expected a list of names of secrets", "write secrets: [WANDB_API_KEY]")
        return
    for at, name in enumerate(raw):
        if not isinstance(name, str) or not VARIABLE_NAME_PATTERN.match(name):
            # What was found is not shown: it may be the value itself.
            hint = "write the name alone: its value is never in monkey.yaml"
            yield Mistake(("secrets", at), "expected the name of an environment variable", hint)
        elif is_system_variable(name):
            yield Mistake(("secrets", at), f"{name!r} is no secret: programs need it to run", "take it out")


def _is_amount(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and 0 < raw < _MOST_COST


def _is_rented(body: Any) -> bool:
    kind = body.get("type") if isinstance(body, dict) else None
    return isinstance(kind, str) and kind in CLOUD_KEYS


def _as_names(raw: Any) -> tuple[str, ...]:
    named = [raw] if isinstance(raw, str) else raw
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()
