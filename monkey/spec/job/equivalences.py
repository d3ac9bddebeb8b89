"""`equivalences`: what the author of a spec declares to be no change, so that finished results count for today's jobs.

They are no part of a job's identity. What they lead to is found by `monkey.plan.adoption`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monkey.spec.parameters.include_exclude import find_value_indexes, is_same_value
from monkey.spec.parameters.parameters import Parameter
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error, suggest_word

#: What an item may be; each is one of them.
_KINDS = ("renamed", "code", "default")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
#: A hash of code or of a commit, or its beginning.
_HASH = re.compile(r"[0-9a-f]{6,64}")
_HINT = 'write {renamed: {old_name: new_name}}, {code: "1a2b3c4d"} or {default: {name: value}}'
#: Items of one spec.
_MAX_EQUIVALENCES = 100


@dataclass(frozen=True)
class Equivalence:
    """One item of `equivalences`: exactly one of `renamed`, `code` and `default` is there."""

    #: Earlier name of a parameter to its name of today.
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: Hash of earlier code, or of the commit that it was applied from, or the beginning of one.
    code: str = ""
    #: Parameter to the value that jobs had before it was added.
    default: Mapping[str, Any] = field(default_factory=dict)
    #: Line of the spec; 0 while it is not known.
    line: int = 0


def parse_equivalences(raw: Any) -> list[Equivalence]:
    """Read `equivalences`. Raises MistakesError."""
    raw = [raw] if isinstance(raw, dict) else raw
    if not isinstance(raw, list):
        raise make_mistake_error(f"expected a list of equivalences, found {describe_value(raw)}", _HINT)
    if len(raw) > _MAX_EQUIVALENCES:
        raise make_mistake_error(f"expected at most {_MAX_EQUIVALENCES} equivalences, found {len(raw)}", "remove some")
    mistakes = [mistake.under((at,)) for at, one in enumerate(raw) for mistake in _find_item_mistakes(one)]
    if mistakes:
        raise MistakesError(mistakes)
    return [Equivalence(**({"code": one["code"].lower()} if "code" in one else one)) for one in raw]


def _find_item_mistakes(raw: Any) -> list[Mistake]:
    if not isinstance(raw, dict):
        return [Mistake((), f"expected an equivalence, found {describe_value(raw)}", _HINT)]
    if unknown := [key for key in raw if key not in _KINDS]:
        return [Mistake((key,), f"unknown key {key!r}", suggest_word(key, _KINDS, "keys"), True) for key in unknown]
    if len(raw) != 1:
        found = " and ".join(raw) if raw else "nothing"
        return [Mistake((), f"expected one of {', '.join(_KINDS)}, found {found}", "give each an item of its own")]
    (kind, value) = next(iter(raw.items()))
    if kind == "code":
        return _find_code_mistakes(value)
    if not isinstance(value, dict) or not value:
        return [Mistake((kind,), f"expected a mapping, found {describe_value(value)}", _HINT)]
    return _find_rename_mistakes(value) if kind == "renamed" else []


def _find_code_mistakes(value: Any) -> list[Mistake]:
    if isinstance(value, str) and _HASH.fullmatch(value.lower()):
        return []
    what = f"expected a hash of code or of a commit, 6 to 64 hex digits, found {describe_value(value)}"
    number = type(value) in (int, float)
    hint = "put it in quotes" if number else "`monkey info SWEEP` shows the code and the commit of a sweep"
    return [Mistake(("code",), what, hint)]


def _find_rename_mistakes(value: Mapping[str, Any]) -> list[Mistake]:
    mistakes = []
    for old, new in value.items():
        path = ("renamed", old)
        if not isinstance(new, str):
            mistakes.append(Mistake(path, f"expected a parameter's name, found {describe_value(new)}", _HINT))
        if not _NAME.fullmatch(old):
            mistakes.append(Mistake(path, f"{old!r} cannot have been a parameter", "use letters, digits and _", True))
    return mistakes


def find_equivalence_mistakes(
    items: Sequence[Equivalence], parameters: Mapping[str, Parameter], doubtful: Collection[str]
) -> Iterator[Mistake]:
    """Yield what is wrong with the names and values; nothing of `doubtful`, the top names that could not be read."""
    names, before = [*parameters, *doubtful], dict[str, str]()
    for at, item in enumerate(items):
        for old, new in item.renamed.items():
            path = ("equivalences", at, "renamed", old)
            if new not in parameters and new.split(".")[0] not in doubtful:
                hint = suggest_word(new, names, "parameters")
                yield Mistake(path, f"unknown parameter {new!r}: today's name stands on the right", hint)
            if any(f"{name}.".startswith(f"{old}.") for name in parameters):
                yield Mistake(path, f"the name {old!r} is still in use", "remove this item, or that parameter", True)
            elif any(old.startswith(f"{name}.") for name in parameters):
                yield Mistake(path, f"{old!r} cannot have been there beside its own group", "check the name", True)
            elif before.setdefault(old, new) != new:
                what = f"{old!r} was renamed to {before[old]!r} and to {new!r}"
                yield Mistake(path, what, "keep one of them", True)
        for name, value in item.default.items():
            path = ("equivalences", at, "default", name)
            if name not in parameters and name.split(".")[0] not in doubtful:
                yield Mistake(path, f"unknown parameter {name!r}", suggest_word(name, names, "parameters"), True)
            elif name in parameters and not _may_have(parameters[name], value):
                what = f"{describe_value(value)} is not a value of {name!r}, so no job has it"
                yield Mistake(path, what, "write one of its values")


def _may_have(parameter: Parameter, value: Any) -> bool:
    if any(is_same_value(value, other) for other in parameter.otherwise):
        return True
    return parameter.values is None or bool(find_value_indexes(parameter.values, value))
