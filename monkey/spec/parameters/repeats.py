"""Repeats: parameters that run each point of a matrix again, such as seeds and folds."""

from __future__ import annotations

from typing import Any

from monkey.spec.parameters.parameters import Parameter, parse_parameters
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value

#: What a bare number of repeats counts.
_DEFAULT_NAME = "seed"


def parse_repeats(raw: Any) -> dict[str, Parameter]:
    """Read `repeat:`: a number of seeds, or a mapping of names to numbers or lists of values.

    Raises MistakesError.
    """
    named = isinstance(raw, dict)
    forms: dict[str, Any] = {}
    mistakes = []
    for name, body in (raw if named else {_DEFAULT_NAME: raw}).items():
        if type(body) is int and body > 0:
            forms[name] = {"range": [0, body]}
        elif named and (isinstance(body, list) or (isinstance(body, dict) and body.keys() == {"range"})):
            forms[name] = body
        else:
            message = f"expected how often to run each point, found {describe_value(body)}"
            hint = "write repeat: 3, or the values of a parameter, {fold: [a, b]}"
            mistakes.append(Mistake((name,) if named else (), message, hint))
    if mistakes:
        raise MistakesError(mistakes)
    return parse_parameters(forms)
