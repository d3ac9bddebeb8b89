"""Messages between agent and supervisor: marshalled tuples behind their length. Both ends are the same Python."""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without typing
    from typing import Any


def encode_message(*message: Any) -> bytes:
    """Return a message as it is sent."""
    data = marshal.dumps(message)
    return len(data).to_bytes(4, "little") + data


def _decode(data: bytes) -> tuple[Any, ...]:
    """Return the message; () for bytes that are none: those that follow are read all the same."""
    try:
        message = marshal.loads(data)
    except (ValueError, TypeError, EOFError):
        return ()
    return message if isinstance(message, tuple) else ()


def find_new_key(message: tuple[Any, ...]) -> int:
    """Return the key of the job that a message is to start; 0 for a message of another kind."""
    return message[1] if len(message) > 1 and message[0] == "spawn" and type(message[1]) is int else 0


class Inbox:
    """What came in, until a message is whole."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._data = b""

    def feed(self, data: bytes) -> list[tuple[Any, ...]]:
        """Return the messages that are whole with this."""
        data, found, at = self._data + data, [], 0
        while len(data) >= at + 4 and len(data) >= (end := at + 4 + int.from_bytes(data[at : at + 4], "little")):
            found.append(_decode(data[at + 4 : end]))
            at = end
        self._data = data[at:]
        return found


class Pipe:
    """The supervisor's end of its socket: never waits for the agent, who may hang."""

    def __init__(self, fd: int) -> None:
        """Take a socket that does not block."""
        self._fd, self._inbox, self._outbox = fd, Inbox(), b""

    def receive(self) -> list[tuple[Any, ...]] | None:
        """Return the messages that have come; None: the agent is gone."""
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        return self._inbox.feed(data) if data else None

    def tell(self, *message: Any) -> None:
        """Have a message sent with the next `flush`."""
        self._outbox += encode_message(*message)

    @property
    def blocked(self) -> bool:
        """Is anything left that the agent has yet to read?"""
        return bool(self._outbox)

    def flush(self) -> bool:
        """Send as far as the agent reads; False: it is gone."""
        try:
            if self._outbox:
                self._outbox = self._outbox[os.write(self._fd, self._outbox) :]
        except BlockingIOError:
            pass
        except ConnectionError:
            return False
        return True
