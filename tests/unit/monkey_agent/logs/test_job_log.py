"""The last lines of a log that a failure keeps; and a log with a limit, which is shipped without its middle."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from monkey.errors import StoreRefused
from monkey.protocol.record.packed_segments import MAX_LOG_SEGMENT, read_log_segment
from monkey.store.memory import MemoryStore
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.logs.masking import LogMask
from tests.loops import Run

#: Lines of ten bytes: 10 MB.
LONG = b"".join(b"%09d\n" % i for i in range(1_000_000))
LIMIT = 9 << 20
HALF = LIMIT // 2
SECRET = "s3cr3t-s3cr3t-s3cr3t"


def tail(path: Path, written: str) -> list[str]:
    path.write_text(written)
    return AttemptLog(MemoryStore(), "log/", str(path)).tail()


def test_of_a_progress_bar_its_last_state_is_kept(tmp_path: Path) -> None:
    bar = "".join(f"\rTraining: {share}%|{'#' * 40}" for share in range(101))
    assert tail(tmp_path / "log", f"begin\n{bar}\n\x1b[31mOSError\x1b[0m\n") == [
        "begin",
        f"Training: 100%|{'#' * 40}",
        "OSError",
    ]
    # It alone is longer than what is looked at, and its last state was cut short.
    assert tail(tmp_path / "log", f"begin\n{bar * 50}\rTrain") == [f"Training: 100%|{'#' * 40}"]


def cut(whole: bytes) -> bytes:
    """Return what is kept of a log."""
    count = len(whole) - LIMIT
    words = f"\n… {count / 1024:.1f} KiB ({count:,} bytes) of this log were left out here (log_limit: 9 MiB) …\n"
    return whole[:HALF] + words.encode() + whole[-HALF:]


class Failing(MemoryStore):
    """A store that refuses two writes of three, one of which it carries out."""

    def __init__(self, layout: int) -> None:
        super().__init__()
        self.layout, self.writes = layout, 0

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self.writes += 1
        created = self.writes % 3 != 1 and await super().create(key, data, durable=durable)
        if self.writes % 3:
            raise StoreRefused("no")
        return created


async def read(store: MemoryStore) -> bytes:
    """Return what the store has of the log, whose segments say where they are."""
    got, end = b"", 0
    for item in await store.list("log/"):
        segment = await read_log_segment(store, item.key)
        assert len(segment.data) <= MAX_LOG_SEGMENT
        assert segment.at is None or segment.at >= end
        end = (segment.at or 0) + len(segment.data)
        got += segment.data
    assert end == len(LONG) or store.layout < 3
    return got


@pytest.mark.parametrize("layout", [2, 3])
def test_the_middle_is_left_out_however_often_the_store_fails(tmp_path: Path, run: Run, layout: int) -> None:
    store, path = Failing(layout), tmp_path / "log"
    path.write_bytes(LONG)

    async def scenario() -> None:
        log = AttemptLog(store, "log/", str(path), limit=LIMIT)
        for _ in range(3):
            with pytest.raises(StoreRefused):
                await log.ship()
        # Its agent was killed: the next one there brings the rest, and nothing twice.
        log = AttemptLog(store, "log/", str(path), limit=LIMIT)
        for _ in range(20):
            with contextlib.suppress(StoreRefused):
                await log.ship()
        assert await read(store) == cut(LONG)

    run(scenario())


@pytest.mark.parametrize("more", [0, 1024])
def test_a_log_that_is_hardly_longer_stays_whole(tmp_path: Path, run: Run, more: int) -> None:
    store, path = MemoryStore(), tmp_path / "log"
    path.write_bytes(bytes(LIMIT + more))

    async def scenario() -> None:
        await AttemptLog(store, "log/", str(path), limit=LIMIT).ship()
        parts = [(await read_log_segment(store, item.key)).data for item in await store.list("log/")]
        assert b"".join(parts) == bytes(LIMIT + more)

    run(scenario())


@pytest.mark.parametrize("into", [1, len(SECRET) // 2, len(SECRET) - 1])
def test_where_a_log_is_cut_no_part_of_a_secret_is_left(tmp_path: Path, run: Run, into: int) -> None:
    store, path = MemoryStore(), tmp_path / "log"
    text = bytearray(LONG)
    for at in (HALF, len(LONG) - HALF):
        text[at - into : at - into + len(SECRET)] = SECRET.encode()
    path.write_bytes(text)

    async def scenario() -> None:
        await AttemptLog(store, "log/", str(path), LogMask([SECRET]), LIMIT).ship()
        parts = [(await read_log_segment(store, item.key)).data for item in await store.list("log/")]
        kept = b"".join(parts)
        assert b"***" in kept and b"s3c" not in kept and b"r3t" not in kept

    run(scenario())
