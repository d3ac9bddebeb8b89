"""The end of a process."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing: this is loaded before the help is printed

if TYPE_CHECKING:
    from typing import NoReturn


def exit_now(code: int) -> NoReturn:
    """Exit with this code after exit functions and a flush of the output, without the interpreter's own shutdown.

    That shutdown takes a fifth of the time of a plan. It is not safe after a use of obstore, either: the threads of
    obstore outlive their last request by a moment. One that asked for Python then ended the process by SIGABRT, once in
    forty times. A flush that fails makes the code 1 if it was 0.
    """
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)


def drop_output(descriptor: int) -> None:
    """Drop what is written to the descriptor from now on, and what its stream still holds and would write again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def open_closed_streams() -> None:
    """Have /dev/null for standard streams that were closed when we began (`>&-`): our files would take their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # for programs that we start
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
