"""JSON for the page: whatever jobs, specs and the store hold becomes JSON that every browser reads."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from monkey.plan.text.credential_forms import mask_credentials

#: Whole numbers beyond this become floats: Python refuses to spell those of thousands of digits.
_WHOLE = 1 << 63


def make_json_number(value: Any) -> Any:
    """Return a number that JSON has: "nan", "inf" and "-inf" for others, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) >= _WHOLE:
        return "inf" if value > 0 else "-inf"
    return value if isfinite(value) else str(float(value))


def encode_json(data: Any) -> bytes:
    """Return JSON of plain data. Numbers that JSON lacks become text, and so does what is no plain data."""
    try:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"), default=str)
    except ValueError:
        text = json.dumps(_clean(data), separators=(",", ":"), default=str)
    return text.encode()


def encode_shown_json(data: Any) -> bytes:
    """Return the same JSON without credentials of known forms: for what is only shown, and never saved."""
    return mask_credentials(encode_json(data).decode()).encode()


def _clean(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _clean(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_clean(value) for value in data]
    return make_json_number(data) if isinstance(data, int | float) and not isinstance(data, bool) else data
