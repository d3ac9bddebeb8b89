"""What a checkout remembers in its own `.monkey/`, which git does not have: its stores, and its project's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from monkey.spec.project.provider import STORE_NAME_PATTERN
from monkey.spec.project_paths import read_regular_file

#: Where it lies in the project: a store's URL to its id, and `PROJECT` to the project's name, as JSON.
MEMO = Path(".monkey", "stores.json")
#: No store has this URL.
PROJECT = "project"
#: Bytes of it that are read: in a stranger's branch it may be a link to what has no end.
_MOST = 1 << 20


def read_checkout_memo(root: Path) -> dict[str, Any]:
    """Return what the checkout of the project at `root` remembers; what cannot be read is forgotten."""
    try:
        said = json.loads(read_regular_file(root / MEMO, _MOST))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def recall_project_name(root: Path) -> str:
    """Return the name that the project at `root` had when something was applied; "" where none is remembered."""
    name = read_checkout_memo(root).get(PROJECT)
    return name if isinstance(name, str) and STORE_NAME_PATTERN.match(name) else ""
