"""Adoptions as values: the jobs that take finished results, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class AdoptedJobs(NamedTuple):
    """Jobs that take the results of finished jobs for the same reason."""

    why: str
    #: Job to the finished job whose result it takes.
    results: Mapping[str, str]
    #: Earlier code, and the code that was declared to be a pure refactor of it, where that is the reason.
    codes: tuple[str, str] | None = None


#: The reason of results that another apply of the project adopted.
ADOPTED_BEFORE = "this project adopted the same results before"
