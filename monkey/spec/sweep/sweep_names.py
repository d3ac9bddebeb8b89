"""Names of sweeps, and of previews and checks among them.

`pr-12.digits` is what pull request 12 runs of the sweep `digits`, and `check-3.digits` is its third check.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

from monkey.spec.yaml.mistakes import describe_value, make_mistake_error

SWEEP_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_PREVIEW_NAME = re.compile(r"pr-([0-9]+)\.")
#: Digits that no number of a check exceeds: with the longest sweep's name it makes a name that the store takes.
_CHECK_NAME = re.compile(r"check-([0-9]{1,9})\.(.+)")
#: Characters of a sweep's name at most.
_MAX_CHARACTERS = 63
#: Hex digits that a name gets where it is cut: two long names that begin alike stay two.
_HASH_DIGITS = 8


def parse_sweep_name(raw: Any) -> str:
    """Return the name that a spec gives its sweep. Raises MistakesError."""
    if not isinstance(raw, str) or not SWEEP_NAME_PATTERN.match(raw):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        if isinstance(raw, int | float):
            hint = f'write it in quotes: "{str(raw).lower()}"'
        raise make_mistake_error(f"expected a name, found {describe_value(raw)}", hint)
    if parse_preview_name(raw) is not None:
        message = f"expected a sweep's own name, found {raw!r}, which only `monkey apply --preview` gives"
        raise make_mistake_error(message, "use a name that does not begin with pr-, digits and a dot")
    if parse_check_name(raw) is not None:
        message = f"expected a sweep's own name, found {raw!r}, which only `monkey rerun --check` gives"
        raise make_mistake_error(message, "use a name that does not begin with check-, digits and a dot")
    return raw


class CheckName(NamedTuple):
    """The name of a sweep that runs finished jobs of another once more."""

    number: int
    #: The sweep whose jobs it checks.
    sweep: str


def parse_check_name(name: str) -> CheckName | None:
    """Return what the name of a check says; None for all other sweeps."""
    found = _CHECK_NAME.fullmatch(name)
    return CheckName(int(found[1]), found[2]) if found else None


def make_check_name(number: int, sweep: str) -> str:
    """Return the name of the sweep that checks jobs of `sweep` for the `number`-th time."""
    return f"check-{number}.{sweep}"


def parse_preview_name(name: str) -> int | None:
    """Return the number of the pull request whose preview the sweep `name` is; None for all other sweeps."""
    found = _PREVIEW_NAME.match(name)
    return int(found[1]) if found else None


def make_preview_name(pull: int, name: str) -> str:
    """Return the name of the sweep that a pull request runs of sweep `name`; cut, with a hash, where it is too long."""
    whole = f"pr-{pull}.{name}"
    if len(whole) <= _MAX_CHARACTERS:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{whole[: _MAX_CHARACTERS - _HASH_DIGITS - 1]}-{digest}"
