"""A later commit that a sweep was seen to stand for: it wanted just what was applied before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class SeenCommit(NamedTuple):
    """An entry of a sweep's log that changes no job and no setting."""

    #: What `GitInfo` has.
    git: Mapping[str, Any]
    author: str = ""
    #: ISO 8601; for people.
    at: str = ""
    #: The spec as this commit has it; "" where it is the revision's.
    spec_text: str = ""
