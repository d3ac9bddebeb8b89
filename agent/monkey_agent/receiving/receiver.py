"""The receiver: a process beside a job that reads what the job sends to its sockets, into a metrics file.

`python -m monkey_agent.receiving.receiver ORDER`: ORDER is JSON, `{"metrics": directory, "unix": fd, "udp": fd}`. It
writes a line when it is ready. The first line on stdin is JSON, a list of datagrams that came before. Each further
line asks for a look, and is answered when all that was sent by then is in the metrics file. At the end of stdin it
looks once more. An answer is JSON, a list of what is to be said in the job's log.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
from collections import deque

from monkey_agent.receiving.line_protocol import parse_lines
from monkey_agent.receiving.received_records import ReceivedRecords

#: Datagrams that are read at once, and that are parsed before the sockets are read again: a millisecond, in which
#: 10,000 datagrams a second fill little of the least room that Linux gives a socket.
_READ, _SLICE = 256, 64
#: Bytes of datagrams that wait here. Beyond that they wait in the kernel: senders to the unix socket wait, too.
_MOST_WAITING = 32 << 20
#: Datagrams that one look waits for: somebody may send for ever.
_MOST_A_LOOK = 100_000
#: Bytes of the largest datagram: the kernel takes no larger ones from a socket of default size.
_LARGEST = 1 << 18
#: SO_MEMINFO of Linux, the bytes of its answer, and where in it the number of datagrams is that found no room.
_MEMORY, _MEMORY_BYTES, _DROPS = 55, 36, 8


class MetricReceiving:
    """Reads two sockets, and appends what they bring to a metrics file."""

    def __init__(self, metrics: str, unix: socket.socket, udp: socket.socket) -> None:
        """Read `unix` and `udp`, which do not block; write into the directory `metrics`. Raises OSError."""
        self._sockets, self._udp = (udp, unix), udp
        self._records = ReceivedRecords(metrics)
        self._waiting: deque[bytes] = deque()
        #: Bytes that wait, and number of datagrams that were ever read.
        self._waiting_bytes = self._taken = 0
        self._buffer = memoryview(bytearray(_LARGEST))

    def add(self, datagram: bytes) -> None:
        """Take a datagram that was read."""
        self._waiting.append(datagram)
        self._waiting_bytes += len(datagram)
        self._taken += 1

    def turn(self) -> int:
        """Read what there is, and write some of it, in the order that it came; return how many datagrams were read."""
        count = sum(map(self._read, self._sockets))
        for _ in range(min(_SLICE, len(self._waiting))):
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
            for point in parse_lines(data.decode("utf-8", "replace")):
                self._records.add(point)
        if not self._waiting:
            self._records.flush()
        return count

    def is_behind(self) -> bool:
        """Return whether anything waits that was read."""
        return bool(self._waiting)

    def look(self, *, over: bool = False) -> list[str]:
        """Have all in the file that was sent by now; `over`: the job has ended. Return what its log is to say."""
        last = self._taken + _MOST_A_LOOK
        while self.turn() and self._taken < last:
            pass
        last = self._taken
        while self._taken - len(self._waiting) < last:
            self.turn()
        self._records.flush()
        return self._records.tell(_count_drops(self._udp), over=over)

    def _read(self, source: socket.socket) -> int:
        count = 0
        try:
            while count < _READ and self._waiting_bytes < _MOST_WAITING:
                size = source.recv_into(self._buffer, 0, socket.MSG_TRUNC)
                count += 1
                if size > _LARGEST:
                    self._records.refuse_datagram()
                else:
                    self.add(bytes(self._buffer[:size]))
        except OSError:
            return count  # there is no more
        return count


def _count_drops(udp: socket.socket) -> int:
    """Return how many datagrams found no room; 0 where the system does not say."""
    try:
        told = udp.getsockopt(socket.SOL_SOCKET, _MEMORY, _MEMORY_BYTES)
    except OSError:
        return 0
    return int(struct.unpack(f"{len(told) // 4}I", told)[_DROPS]) if len(told) == _MEMORY_BYTES else 0


def run_receiver() -> None:
    """Receive as the order in the first argument says, until stdin ends."""
    order = json.loads(sys.argv[1])
    unix, udp = (socket.socket(fileno=order[name]) for name in ("unix", "udp"))
    receiving = MetricReceiving(order["metrics"], unix, udp)
    _answer([])
    poll = select.poll()
    for each in (sys.stdin, unix, udp):
        poll.register(each, select.POLLIN)
    rest, greeted = b"", False
    while True:
        asked = any(fd == sys.stdin.fileno() for fd, _ in poll.poll(0 if receiving.is_behind() else None))
        if asked:
            data = os.read(sys.stdin.fileno(), 1 << 20)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if not greeted:
                    greeted = True
                    for held in json.loads(line):
                        receiving.add(held.encode("latin-1"))
                else:
                    _answer(receiving.look())
        receiving.turn()
    _answer(receiving.look(over=True))


def _answer(notes: list[str]) -> None:
    print(json.dumps(notes), flush=True)


if __name__ == "__main__":
    run_receiver()
