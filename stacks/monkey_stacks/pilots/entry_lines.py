"""Lines of entries of monkey.yaml that `monkey init` writes for pilots. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

#: Words that YAML does not take for texts.
_NO_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def quote_yaml_word(text: str) -> str:
    """Return a word as YAML has it: one that would be a number or nothing there, or a list, in quotes."""
    plain = re.fullmatch(r"[A-Za-z][\w.@:-]*", text) and not text.endswith(":") and text.lower() not in _NO_TEXTS
    return text if plain else json.dumps(text)


def join_entry_lines(lines: Iterable[str]) -> str:
    """Return the lines below a provider's name."""
    return "".join(f"    {line}\n" for line in lines)
