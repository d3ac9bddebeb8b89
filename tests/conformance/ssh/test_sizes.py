"""Sizes on an SSH host: neither a hole of 60 GB nor a server that lies fills the memory."""

from __future__ import annotations

import asyncio
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import ObjectTooLarge
from monkey.store.object_limits import LIMITS
from monkey.store.sftp.store import SftpStore
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.sftp_requests import SftpRequests
from monkey.store.sftp.wire.transfers import read_remote
from tests.loops import Run


def weigh(work: Callable[[], object]) -> int:
    """Return the bytes that work had at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_hole_of_sixty_gigabytes_is_not_read(store: SftpStore, run: Run, tmp_path: Path) -> None:
    run(store.put("projects/p/sweeps/s/00000001", b"x"))
    os.truncate(tmp_path / "s/projects/p/sweeps/s/00000001", 60 << 30)

    def read() -> None:
        with pytest.raises(ObjectTooLarge, match="64,424,509,440"):
            run(store.get("projects/p/sweeps/s/00000001"))

    assert weigh(read) < 4 << 20


class Liar:
    """A server that says what size it likes, and answers each request for bytes with as many as it likes."""

    def __init__(self, size: int, answer: int) -> None:
        """Say `size`, and answer with `answer` bytes at once."""
        self._size, self._answer = size, answer
        self.calls = SftpRequests(self._take)
        self.reads = 0

    def _take(self, data: bytes) -> None:
        while data:
            size = int.from_bytes(data[:4], "big")
            self._reply(data[4], data[5:9])
            data = data[4 + size :]

    def _reply(self, kind: int, number: bytes) -> None:
        if kind == sftp_protocol.OPEN:
            self._send(sftp_protocol.HANDLE, number, struct.pack(">I", 1) + b"h")
        elif kind == sftp_protocol.FSTAT:
            self._send(105, number, struct.pack(">IQ", 1, self._size))
        elif kind == sftp_protocol.READ:
            self.reads += 1
            self._send(103, number, struct.pack(">I", self._answer) + bytes(self._answer))

    def _send(self, kind: int, number: bytes, body: bytes) -> None:
        self.calls.feed(struct.pack(">IB", 5 + len(body), kind) + number + body)


@pytest.mark.parametrize(("size", "answer"), [(10, 40_000), (60 << 30, 32_768), (0, 5_000_000)])
def test_a_server_that_lies_about_a_size_is_not_believed(size: int, answer: int) -> None:
    async def read() -> int:
        liar = Liar(size, answer)
        with pytest.raises(ObjectTooLarge):
            await read_remote(liar.calls, b"/s/projects/p/bell", "projects/p/bell")
        return liar.reads

    assert asyncio.run(read()) == 1


def test_a_server_that_answers_with_more_than_was_asked_is_cut(run: Run) -> None:
    async def read() -> bytes | None:
        liar = Liar(LIMITS["facts"], 40_000)
        return await read_remote(liar.calls, b"/s/projects/p/facts/x", "projects/p/facts/x")

    found = asyncio.run(read())
    assert found is not None and len(found) <= LIMITS["facts"]
