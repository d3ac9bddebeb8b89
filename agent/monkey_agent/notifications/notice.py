"""A notice, and the error for one that was not delivered."""

from __future__ import annotations

from typing import Any

#: A notice as webhooks get it; "event" names it, the same whoever sends it, and how often.
Notice = dict[str, Any]


class UndeliveredNotice(Exception):
    """It was not taken. Tells of a secret no more than its name."""

    def __init__(self, message: str, *, final: bool) -> None:
        """Say why; `final`: trying again would not help."""
        super().__init__(message)
        self.final = final
