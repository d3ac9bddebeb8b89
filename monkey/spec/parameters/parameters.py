"""What `parameters:` may hold: short and long forms, nested groups, each read into one Parameter."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from monkey.spec.job.job_table import ParameterValue
from monkey.spec.parameters import distributions
from monkey.spec.parameters.geometric_grids import GEOMETRIC_FORMS, parse_geometric_grid
from monkey.spec.parameters.ranges import SteppedRange, count_values
from monkey.spec.parameters.sampling import Distribution
from monkey.spec.yaml.mistakes import Mistake, MistakesError, NodePath, describe_value, make_mistake_error, suggest_word

#: Bytes of one value as JSON: Linux carries at most 128 KiB in one argument or environment variable.
_MAX_VALUE_BYTES = 65_536
#: Bytes of all values of a job: they also travel in one variable, MONKEY_PARAMS.
_MAX_PARAMETERS_BYTES = 98_304

_T = TypeVar("_T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
#: Words of conditions.
_RESERVED = {"and", "or", "not", "in", "is", "true", "false", "null", "True", "False", "None"}
PARAMETER_FORMS = (
    *("value", "values", "range", "parameters", "choice", "grid_search"),
    *GEOMETRIC_FORMS,
    *distributions.RAY_DISTRIBUTIONS,
)
PARAMETER_KEYS = (*PARAMETER_FORMS, *distributions.DISTRIBUTION_KEYS, "probabilities", "when", "else")
_NESTED_HINT = "nested parameters stand under 'parameters:'; a mapping as value is {value: {a: 1}}"
_PARAMETER_HINT = (
    "write a list, {values: [a, b]}, {value: a}, {range: [0, 5]}, {min: 0, max: 1} or {parameters: {a: [1, 2]}}"
)


@dataclass(frozen=True)
class Parameter:
    """One dimension of the sweep: either its `values` or a `distribution`."""

    #: Dotted where nested.
    name: str
    #: Where it stands in the file.
    path: NodePath
    #: A list, or a range that may be too long to hold.
    values: Sequence[ParameterValue] | range | None = None
    probabilities: tuple[float, ...] | None = None
    distribution: Distribution | None = None
    #: Conditions that must all hold, with their places; its own and its groups'.
    when: tuple[tuple[NodePath, str], ...] = ()
    #: (value,) that it takes where `when` does not hold; () to be absent there.
    otherwise: tuple[ParameterValue, ...] = ()
    #: Ray's `grid_search`, which means nothing to a random search.
    grid_only: bool = False

    @property
    def choices(self) -> Sequence[ParameterValue] | range | None:
        """Return all values it can take, or None where they have no end or no list."""
        d = self.distribution
        if d is not None and d.kind == "int_uniform":
            return range(int(d.low), int(d.high) + 1)
        if d is not None and d.kind in ("q_uniform", "qrandint"):
            return SteppedRange(d.multiples(), d.multiple)
        return self.values


def parse_parameters(raw: Any) -> dict[str, Parameter]:
    """Read `parameters:` into parameters by dotted name, in the file's order. Raises MistakesError."""
    mistakes: list[Mistake] = []
    found: dict[str, Parameter] = {}
    for parameter in _parse_group(raw, "", (), (), mistakes):
        if parameter.name in found:
            mistakes.append(Mistake(parameter.path, f"the parameter {parameter.name!r} is declared twice", None, True))
        found[parameter.name] = parameter
    for name, parameter in found.items():
        above = next((o for o in found if name.startswith(f"{o}.")), None)
        if above:
            message = f"{above!r} is a parameter, so {name!r} cannot lie in it"
            mistakes.append(Mistake(parameter.path, message, "rename one of them", True))
    if sum(map(_measure_longest, found.values())) > _MAX_PARAMETERS_BYTES:
        message = f"the parameters of one job may be longer than {_MAX_PARAMETERS_BYTES // 1024} KiB together"
        mistakes.append(Mistake((), message, "put long values in files and pass the files' names", True))
    if mistakes:
        raise MistakesError(mistakes)
    return found


def _measure_longest(parameter: Parameter) -> int:
    """Return the bytes of the longest value as JSON, where it may be long at all."""
    listed = parameter.values if isinstance(parameter.values, list) else []
    texts = [value for value in (*listed, *parameter.otherwise) if isinstance(value, str | list | dict)]
    return max((_measure_value(value) for value in texts), default=0)


def _measure_value(value: ParameterValue) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _parse_group(
    raw: Any, prefix: str, path: NodePath, when: tuple[tuple[NodePath, str], ...], mistakes: list[Mistake]
) -> Iterator[Parameter]:
    if not isinstance(raw, dict):
        message = f"expected a mapping of names to values, found {describe_value(raw)}"
        mistakes.append(Mistake(path, message, "write lr: [0.1, 0.01]"))
        return
    for key, body in raw.items():
        here = (*path, key)
        if not _NAME.match(key) or _RESERVED & set(key.split(".")):
            message = f"{quote_name(key)} cannot be a parameter's name"
            mistakes.append(Mistake(here, message, _name_hint(key), on_key=True))
            continue
        if (own := _collect_mistakes(mistakes, here, partial(_parse_conditions, body, here))) is None:
            own = ()
        if isinstance(body, dict) and "parameters" in body:
            mistakes += [m.under(here) for m in _find_group_mistakes(body)]
            inside, prefixed = (*here, "parameters"), f"{prefix}{key}."
            yield from _parse_group(body["parameters"], prefixed, inside, (*when, *own), mistakes)
        elif parameter := _collect_mistakes(mistakes, here, partial(_parse_parameter, body)):
            yield replace(parameter, name=prefix + key, path=here, when=(*when, *own))


def _collect_mistakes(mistakes: list[Mistake], here: NodePath, read: Callable[[], _T]) -> _T | None:
    """Return what is read, or None once its mistakes are with the others."""
    try:
        return read()
    except MistakesError as error:
        mistakes += [m.under(here) for m in error.mistakes]
        return None


def quote_name(key: str) -> str:
    """Quote a name for a message."""
    return repr(key if len(key) <= 60 else key[:59] + "…")


def _name_hint(key: str) -> str:
    fixed = re.sub(r"[^A-Za-z0-9_.]+", "_", key).strip("._")
    if fixed in _RESERVED:
        fixed += "_"
    good = _NAME.match(fixed) and fixed != key
    return f"write {fixed} (letters, digits and _)" if good else "use letters, digits and _, not first a digit"


def _find_group_mistakes(body: dict[str, Any]) -> list[Mistake]:
    hint = "a group has only 'parameters' and 'when'"
    others = [key for key in body if key not in ("parameters", "when")]
    return [Mistake((key,), f"a group of parameters has no {key!r}", hint, on_key=True) for key in others]


def _parse_conditions(body: Any, here: NodePath) -> tuple[tuple[NodePath, str], ...]:
    if not isinstance(body, dict) or "when" not in body:
        return ()
    text = body["when"]
    if isinstance(text, bool):
        text = "true" if text else "false"
    if not isinstance(text, str):
        raise make_mistake_error(
            f"expected a condition, found {describe_value(text)}", 'write it like "lr < 0.1"', ("when",)
        )
    return (((*here, "when"), text),)


def _parse_parameter(body: Any) -> Parameter:
    """Read one parameter but for its name. Raises MistakesError, whose paths begin at `body`."""
    blank = Parameter("", ())
    if isinstance(body, list):
        return replace(blank, values=_parse_values(body, ()))
    if body is None:
        raise make_mistake_error(
            "expected a parameter, found nothing", f"{_PARAMETER_HINT}; for null itself, {{value: null}}"
        )
    if not isinstance(body, dict):
        return replace(blank, values=_parse_values([body], ()))
    mistakes = [
        Mistake((k,), f"unknown key {quote_name(k)}", _key_hint(k, _NESTED_HINT), True)
        for k in body
        if k not in PARAMETER_KEYS
    ]
    if "else" in body and "when" not in body:
        hint = "say when the parameter applies, or remove it"
        mistakes.append(Mistake(("else",), "'else' needs a 'when'", hint, on_key=True))
    otherwise = (
        _collect_mistakes(mistakes, (), lambda: _parse_values([body["else"]], ("else",))) if "else" in body else None
    )
    known = {key: value for key, value in body.items() if key in PARAMETER_KEYS}
    forms = {key for key in known if key not in ("when", "else", "probabilities")}
    parameter = (
        _collect_mistakes(mistakes, (), lambda: _parse_form(_find_form(known), known))
        if forms or not mistakes
        else None
    )
    if parameter and "probabilities" in body:
        shares = _collect_mistakes(mistakes, (), partial(_parse_probabilities, body, parameter))
        parameter = replace(parameter, probabilities=shares)
    if mistakes or parameter is None:
        raise MistakesError(mistakes)
    return replace(parameter, otherwise=tuple(otherwise or ()))


def _key_hint(key: str, otherwise: str) -> str:
    if form := distributions.format_example(key.removeprefix("tune.")):
        return f"write {form}"
    hint = suggest_word(key, PARAMETER_KEYS, "keys")
    return hint if hint.startswith("did you") else otherwise


def _find_form(body: dict[str, Any]) -> str:
    forms = [key for key in body if key in PARAMETER_FORMS]
    words = [key for key in body if key in distributions.DISTRIBUTION_KEYS]
    listed = body.get("distribution") in ("categorical", "categorical_w_probabilities", "constant", "choice")
    if listed and not forms:
        need = "value" if body["distribution"] == "constant" else "values"
        raise make_mistake_error(f"{body['distribution']} needs {need!r}", f"add {need}: …", ("distribution",))
    extra = [key for key in words if not (forms and listed and key == "distribution")]
    if len(forms) + bool(extra) != 1:
        if not forms + extra:
            raise make_mistake_error("expected the parameter's values, found none", _PARAMETER_HINT)
        second = [key for key in body if key in forms + extra][1]
        raise make_mistake_error(f"{second!r} cannot stand beside {next(k for k in body if k in forms + extra)!r}",
                    _PARAMETER_HINT, (second,), on_key=True)  # fmt: skip
    return forms[0] if forms else "distribution"


def _parse_form(form: str, body: dict[str, Any]) -> Parameter:
    blank = Parameter("", ())
    match form:
        case "value":
            return replace(blank, values=_parse_values([body["value"]], ("value",)))
        case "values" | "choice" | "grid_search":
            return replace(blank, values=_parse_values(body[form], (form,)), grid_only=form == "grid_search")
        case "range":
            return replace(blank, values=_parse_range(body["range"]))
        case "geomspace" | "logspace" | "log2":
            return replace(blank, values=parse_geometric_grid(form, body[form]))
        case "distribution":
            words = {key: value for key, value in body.items() if key in distributions.DISTRIBUTION_KEYS}
            return replace(blank, distribution=distributions.parse_distribution(words))
        case _:
            return replace(blank, distribution=distributions.parse_ray_distribution(form, body[form]))


def _parse_values(raw: Any, path: NodePath) -> list[ParameterValue]:
    if not isinstance(raw, list):
        raise make_mistake_error(
            f"expected a list of values, found {describe_value(raw)}", "write [a, b, c], or {value: a} for one", path
        )
    if not raw:
        raise make_mistake_error(
            "expected at least one value, found an empty list", "add a value or remove the parameter", path
        )
    for value in raw:
        if isinstance(value, str | list | dict) and _measure_value(value) > _MAX_VALUE_BYTES:
            message = f"a value is longer than {_MAX_VALUE_BYTES // 1024} KiB"
            raise make_mistake_error(message, "put it in a file and pass the file's name", path)
    return raw


def _parse_range(raw: Any) -> Sequence[ParameterValue] | range:
    fix = "write [from, to) as {range: [0, 5]}, or with a step {range: [0, 10, 2]}"
    good = isinstance(raw, list) and len(raw) in (2, 3)
    if not good or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in raw):
        raise make_mistake_error(
            f"expected [from, to] or [from, to, step], found {describe_value(raw)}", fix, ("range",)
        )
    start, stop, step = (*raw, 1)[:3]
    if step == 0:
        raise make_mistake_error("expected a step other than 0", fix, ("range", 2))
    if all(isinstance(x, int) for x in raw):
        values: Sequence[ParameterValue] | range = range(start, stop, step)
    else:
        values = _make_decimal_range(*(Decimal(repr(x)) for x in (start, stop, step)))
    if not count_values(values):
        raise make_mistake_error(f"the range {raw} is empty: it ends before its second number", fix, ("range",))
    return values


def _make_decimal_range(start: Decimal, stop: Decimal, step: Decimal) -> Sequence[ParameterValue]:
    """Return a range of decimals, as exact as they were written (0.3, not 0.30000000000000004)."""
    many = max(0, math.ceil((stop - start) / step))
    return SteppedRange(range(many), lambda n: float(start + n * step))


def _parse_probabilities(body: dict[str, Any], parameter: Parameter) -> tuple[float, ...]:
    raw, path = body["probabilities"], ("probabilities",)
    if parameter.values is None:
        raise make_mistake_error("'probabilities' needs 'values'", "list the values", path, on_key=True)
    if not isinstance(raw, list) or not all(isinstance(p, int | float) and not isinstance(p, bool) for p in raw):
        raise make_mistake_error(f"expected a list of numbers, found {describe_value(raw)}", "one for each value", path)
    if len(raw) != count_values(parameter.values):
        raise make_mistake_error(
            f"{count_values(parameter.values)} values, but {len(raw)} probabilities", "one for each value", path
        )
    if min(raw) < 0 or not math.isclose(math.fsum(raw), 1, abs_tol=1e-6):
        raise make_mistake_error(
            f"probabilities must not be negative and must sum to 1; these sum to {math.fsum(raw):.6g}", None, path
        )
    return tuple(map(float, raw))
