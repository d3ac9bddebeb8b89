"""The wire format of SSH, of which its keys and signatures are made: numbers of 32 bits, and strings with a length."""

from __future__ import annotations


class MalformedWire(ValueError):
    """The bytes are not what this format promises."""


def pack_string(data: bytes) -> bytes:
    """Return a string with its length in front."""
    return len(data).to_bytes(4, "big") + data


class WireReader:
    """A reader that takes one piece after another, and no byte twice. It raises MalformedWire where one is missing."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        """Return so many bytes."""
        end = self._at + count
        if end > len(self._data):
            raise MalformedWire("it is cut short")
        taken, self._at = self._data[self._at : end], end
        return taken

    def take_number(self) -> int:
        """Return a number of 32 bits."""
        return int.from_bytes(self.take(4), "big")

    def take_string(self) -> bytes:
        """Return a string without its length."""
        return self.take(self.take_number())

    def take_rest(self) -> bytes:
        """Return all that is left."""
        return self.take(len(self._data) - self._at)

    def check_end(self) -> None:
        """Raise MalformedWire where anything is left."""
        if self._at != len(self._data):
            raise MalformedWire("bytes follow its end")
