"""Questions, which one Ctrl-C ends with the command."""

from __future__ import annotations

import signal
import sys

import click


def ask_consent(question: str) -> bool:
    """Ask on the terminal, and return whether it was agreed to. Raises Abort at a Ctrl-C or the end of what is typed.

    The loop that this stands in would make of a first Ctrl-C a cancellation, which waits for the answer.
    """
    before = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        # Where stdout goes to a pipe, its reader may show nothing of it, or have left.
        return click.confirm(question, err=sys.stderr.isatty() and not sys.stdout.isatty())
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
