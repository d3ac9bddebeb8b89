"""The error for a notice that was not delivered."""

from __future__ import annotations


class UndeliveredNotice(Exception):
    """It was not taken. Tells of a secret no more than its name."""

    def __init__(self, message: str, *, final: bool) -> None:
        """Say why; `final`: trying again would not help."""
        super().__init__(message)
        self.final = final
