"""What specs will hold some day: refused with what to do until then, never ignored."""

from __future__ import annotations

from typing import Any

from monkey.spec.yaml.mistakes import Mistake

#: Keys that are planned, and what to do until then.
_PLANNED_FIELDS = {
    "early_terminate": "until then, stop in the program itself",
    "cost_cap": "until then, bound the work with run_cap and timeout",
    "time_cap": "until then, bound the work with run_cap and timeout",
    "target": "until then, rank results by the metric's goal",
}
_PLANNED_METHODS = {
    "sobol": "until then, use method: random",
    "tpe": "until then, use method: random",
    "bayes": "until then, use method: random",
    "bayesian": "until then, use method: random",
    "hyperband": "until then, use method: random",
    "asha": "until then, use method: random",
    "custom": "list the jobs under include:",
}
#: Those that stand only inside another key.
_NESTED_FIELDS = (("metric", "target"),)


def remove_planned_fields(data: dict[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    """Take out what is planned but not there; return the rest and a mistake for each."""
    data, mistakes = dict(data), []
    for key in [key for key in data if key in _PLANNED_FIELDS and key not in dict(_NESTED_FIELDS).values()]:
        mistakes.append(Mistake((key,), f"{key!r} is not there yet", _PLANNED_FIELDS[key], on_key=True))
        del data[key]
    for parent, key in _NESTED_FIELDS:
        inside = data.get(parent)
        if isinstance(inside, dict) and key in inside:
            mistakes.append(Mistake((parent, key), f"{key!r} is not there yet", _PLANNED_FIELDS[key], on_key=True))
            data[parent] = {k: v for k, v in inside.items() if k != key}
    method = data.get("method")
    if isinstance(method, str) and method in _PLANNED_METHODS:
        mistakes.append(Mistake(("method",), f"method {method!r} is not there yet", _PLANNED_METHODS[method]))
        del data["method"]
    return data, mistakes
