"""What specs will hold some day: refused with what to do until then, never ignored."""

from __future__ import annotations

from typing import Any

from monkey.spec.yaml.mistakes import Mistake

#: Keys that are planned, and what to do until then.
NOT_YET = {
    "image": "until then, use environment: {requirements: requirements.txt}",
    "early_terminate": "until then, stop in the program itself",
    "equivalences": "until then, jobs whose command or code changed run again",
    "replicates": "until then, add a parameter: seed: {range: [0, 5]}",
    "cost_cap": "until then, bound the work with run_cap and timeout",
    "time_cap": "until then, bound the work with run_cap and timeout",
    "target": "until then, rank results by the metric's goal",
}
_METHODS = {
    "sobol": "until then, use method: random",
    "tpe": "until then, use method: random",
    "bayes": "until then, use method: random",
    "bayesian": "until then, use method: random",
    "hyperband": "until then, use method: random",
    "asha": "until then, use method: random",
    "custom": "list the jobs under include:",
}
#: Those that stand only inside another key.
_INSIDE = (("metric", "target"),)


def not_yet(data: dict[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    """Take out what is planned but not there; return the rest and a mistake for each."""
    data, mistakes = dict(data), []
    for key in [key for key in data if key in NOT_YET and key not in dict(_INSIDE).values()]:
        mistakes.append(Mistake((key,), f"{key!r} is not there yet", NOT_YET[key], on_key=True))
        del data[key]
    for parent, key in (("environment", "image"), *_INSIDE):
        inside = data.get(parent)
        if isinstance(inside, dict) and key in inside:
            mistakes.append(Mistake((parent, key), f"{key!r} is not there yet", NOT_YET[key], on_key=True))
            data[parent] = {k: v for k, v in inside.items() if k != key}
    method = data.get("method")
    if isinstance(method, str) and method in _METHODS:
        mistakes.append(Mistake(("method",), f"method {method!r} is not there yet", _METHODS[method]))
        del data["method"]
    return data, mistakes
