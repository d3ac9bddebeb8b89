"""The end of a process."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing: this is loaded before the help is printed

if TYPE_CHECKING:
    from typing import NoReturn


def exit_now(code: int) -> NoReturn:
    """Exit with this code.

    Without taking the interpreter apart: that is a fifth of what a plan takes. Where obstore was used it is not safe
    either: its threads outlive their last request by a moment, and one that still asks for Python then took the whole
    process down by SIGABRT, once in forty times.
    """
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)
