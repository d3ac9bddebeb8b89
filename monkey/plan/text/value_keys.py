"""Values of parameters as dictionary keys: equal exactly where they are the same value of a job."""

from __future__ import annotations

import json

from monkey.spec.job.job_table import ParameterValue


def make_value_key(value: ParameterValue) -> object:
    """Return something hashable. 1, 1.0 and true are three values: they reach a job as three texts."""
    kind = type(value)
    if kind is float or kind is int or kind is str or kind is bool or value is None:
        return (kind, value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
