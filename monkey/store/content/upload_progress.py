"""Upload progress: what is called with bytes that are hashed or sent."""

from __future__ import annotations

from collections.abc import Callable

from monkey.store.content.objects import Moved

#: Is told what begins ("digits: uploading"), of how many bytes and objects; returns what is told of progress.
Begin = Callable[[str, int, int], Moved]


def report_nothing(objects: int, size: int) -> None:
    """Ignore progress."""


def show_no_progress(what: str, size: int, objects: int) -> Moved:
    """Show nothing."""
    return report_nothing
