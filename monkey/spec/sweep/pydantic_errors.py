"""What pydantic found wrong, in our words: what was expected, what was found, what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, NodePath, describe_value, find_nearest_word, suggest_word

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "some text",
}
#: What to write in place of a value of another type.
_FIXES = {
    "string_type": "put it in quotes",
    "int_type": "write a whole number, such as 2",
    "int_from_float": "write a whole number, such as 2",
    "float_type": "write a number, such as 2 or 0.5",
    "bool_type": "write true or false",
    "list_type": "write [a, b]",
}
#: Texts whose value is meant: in quotes, or as YAML 1.1 and other tools write it.
_MEANT_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_MEANT_BOOLEAN = {"true": "true", "yes": "true", "on": "true", "1": "true"}
_MEANT_BOOLEAN |= {"false": "false", "no": "false", "off": "false", "0": "false"}
_BOUNDS = {"greater_than": "more than {gt:g}", "greater_than_equal": "{ge} or more", "less_than": "less than {lt}",
           "less_than_equal": "at most {le}"}  # fmt: skip

#: The hint of an unknown key, with the key that was meant.
MEANT_KEY = re.compile(r"^did you mean '(\w+)'\?")

#: Words of other tools for ours.
_KEY_SYNONYMS = {
    "program": "command", "entrypoint": "command", "cmd": "command", "run": "command", "args": "command",
    "matrix": "parameters", "params": "parameters", "param_space": "parameters", "hyperparameters": "parameters",
    "searcher": "method", "strategy": "method", "search": "method", "algorithm": "method",
    "num_samples": "run_cap", "max_trials": "run_cap", "maxTrialCount": "run_cap", "n_trials": "run_cap",
    "max_concurrent_trials": "max_concurrent_jobs", "parallelTrialCount": "max_concurrent_jobs",
    "max-parallel": "max_concurrent_jobs", "n_jobs": "max_concurrent_jobs", "concurrency": "max_concurrent_jobs",
    "max_restarts": "max_retries", "retries": "max_retries", "max_failures": "max_retries",
    "fail-fast": "fail_fast", "objective": "metric", "time_limit": "timeout", "max_time": "timeout",
    "providers": "provider", "fleet": "provider", "environment_variables": "env", "artifacts": "outputs",
    "image": "environment", "replicates": "repeat",
}  # fmt: skip


def explain_pydantic_errors(error: ValidationError, model: type[BaseModel], hints: Mapping[str, str]) -> list[Mistake]:
    """Return each of pydantic's errors as a mistake; `hints` say what to write for a missing key."""
    mistakes: list[Mistake] = []
    for detail in error.errors(include_url=False):
        inner = detail.get("ctx", {}).get("error")
        if isinstance(inner, MistakesError):
            mistakes += [m.under(detail["loc"]) for m in inner.mistakes]
        else:
            mistakes.append(_explain_error(detail, model, hints))
    # A key that is written wrongly is one mistake: that the right one is missing says nothing more.
    meant = {(each.path[:-1], f"{key!r} is missing") for each in mistakes for key in MEANT_KEY.findall(each.hint or "")}
    return [mistake for mistake in mistakes if (mistake.path, mistake.message) not in meant]


def _explain_error(detail: ErrorDetails, model: type[BaseModel], hints: Mapping[str, str]) -> Mistake:
    kind, path, found = detail["type"], detail["loc"], detail["input"]
    context: dict[str, Any] = detail.get("ctx", {})
    match kind:
        case "missing":
            key = str(path[-1])
            return Mistake(path[:-1], f"{key!r} is missing", hints.get(key, f"add {key}: …"))
        case "extra_forbidden":
            key = str(path[-1])
            return Mistake(path, f"unknown key {key!r}", _suggest_key(key, _list_keys(model, path[:-1])), on_key=True)
        case "literal_error":
            expected = context["expected"].replace("'", "")
            near = (
                find_nearest_word(found, expected.replace(" or ", ", ").split(", ")) if isinstance(found, str) else None
            )
            hint = f"did you mean {near!r}?" if near else None
            return Mistake(path, f"expected {expected}, found {describe_value(found)}", hint)
        case "string_pattern_mismatch":
            return Mistake(path, f"expected a version such as '3.11', found {describe_value(found)}", 'write "3.11"')
        case "string_type" if path[-1] == "python":
            meant = found if isinstance(found, float) else "3.11"
            if found == 3.1:
                meant = "3.10"  # which YAML takes for that number
            return Mistake(path, f"expected a version in quotes, found {describe_value(found)}", f'write "{meant}"')
    if kind in _BOUNDS:
        hint = f"write {_BOUNDS[kind].format(**context)}"
        return Mistake(path, f"expected {_BOUNDS[kind].format(**context)}, found {describe_value(found)}", hint)
    if path == ("metric",) and isinstance(found, str):
        return Mistake(path, "expected a mapping, found a name", f"write {{name: {found[:60]}, goal: maximize}}")
    if kind in _EXPECTED:
        return Mistake(path, f"expected {_EXPECTED[kind]}, found {describe_value(found)}", _suggest_value(kind, found))
    return Mistake(path, f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, found {describe_value(found)}")


def _suggest_value(kind: str, found: Any) -> str | None:
    """Return what to write in place of a value of another type; None where no one thing is right."""
    text = str(found).strip()
    if kind == "bool_type" and text.lower() in _MEANT_BOOLEAN:
        return f"write {_MEANT_BOOLEAN[text.lower()]}, without quotes"
    if kind in ("int_type", "float_type") and isinstance(found, str) and _MEANT_NUMBER.fullmatch(text):
        return f"write {text} without quotes"
    return _FIXES.get(kind) if isinstance(found, str | int | float) else None


def _suggest_key(key: str, keys: list[str]) -> str:
    synonym = _KEY_SYNONYMS.get(key)
    return f"did you mean {synonym!r}?" if synonym in keys else suggest_word(key, keys, "keys")


def _list_keys(model: type[BaseModel], path: NodePath) -> list[str]:
    """Return the keys that may stand at a path."""
    from pydantic import BaseModel

    for step in path:
        field = model.model_fields.get(str(step))
        inside = [t for t in (field.annotation, *getattr(field.annotation, "__args__", ())) if field] if field else []
        models = [t for t in inside if isinstance(t, type) and issubclass(t, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)
