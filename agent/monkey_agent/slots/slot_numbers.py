"""Small numbers for jobs, by which those of one machine choose different ports."""

from __future__ import annotations

import errno
import os
import socket
import sys


class SlotNumbers:
    """Gives each job the smallest number that no other running job of the machine has, of any agent.

    Under Linux, a number is taken by an abstract socket of that name (unix(7)). The kernel gives it to one process of
    a network at a time, and takes it back when that ends. Elsewhere, an agent knows of its own jobs alone.
    """

    def __init__(self) -> None:
        """Begin without jobs."""
        #: Number to the descriptor of its socket; -1 for none.
        self._taken: dict[int, int] = {}

    def __del__(self) -> None:
        """Give all back."""
        for number in list(self._taken):
            self.give(number)

    def take(self) -> int:
        """Return a number for a new job."""
        number = 0
        while number in self._taken or not self._claim(number):
            number += 1
        return number

    def _claim(self, number: int) -> bool:
        """Take a number; return False where another agent has it."""
        try:
            self._taken[number] = _bind(number)
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                return False
            self._taken[number] = -1  # a sandbox, or too many open files: a number of our own will do
        return True

    def give(self, number: int) -> None:
        """Give a number back."""
        descriptor = self._taken.pop(number)
        if descriptor >= 0:
            os.close(descriptor)


def _bind(number: int) -> int:
    """Return the descriptor of a socket of that name, -1 where the system has none such. Raises OSError."""
    if sys.platform != "linux":
        return -1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claimed:
        claimed.bind(f"\0monkey-slot-{number}")
        return claimed.detach()
