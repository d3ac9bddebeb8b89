"""Files in ends: any bytes come back, from whatever end a reader finds, and what is none spoils no reader."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry, decode_entry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.record.end_files import EndFiles
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.history_parts import HistoryPart, restore_history
from monkey.protocol.record.shipment import METRICS
from monkey.store.memory import MemoryStore
from tests.loops import Run

KEYS, JOB, AGENT = Keys("shop"), "0123456789abcdef", "f/h/b"
PARTS = st.one_of(st.none(), st.binary(max_size=200))
FILES = st.builds(EndFiles, PARTS, st.one_of(st.none(), st.dictionaries(st.text("ab", min_size=1), st.binary())), PARTS)


def end(files: Any, nonce: int = 1) -> EndEntry:
    return EndEntry(ClaimEnd.SUCCEEDED, AGENT, nonce, "a", files=files)


async def fill(store: MemoryStore, *entries: Claim | EndEntry) -> None:
    for k, entry in enumerate(entries, 1):
        await store.put(KEYS.job_log(JOB) + spell_number(k), entry.encode())


@given(FILES)
def test_any_bytes_come_back(files: EndFiles) -> None:
    async def scenario() -> EndFiles:
        store = MemoryStore()
        await fill(store, Claim(AGENT, 1, 1, "a"), end(files.to_json()))
        return await read_end_files(store, KEYS, JOB, 1)

    assert asyncio.run(scenario()) == files


@pytest.mark.parametrize(
    "hostile",
    [
        [], "x", {"log": 1}, {"log": "\ud800"}, {"metrics": []}, {"metrics": {"a": None}}, {"metrics": {"a": "\udc00"}},
        {"more": "x"}, {"samples": {}},
    ],
)  # fmt: skip
def test_an_end_with_other_files_is_none(hostile: Any) -> None:
    assert isinstance(decode_entry("key", end(hostile).encode()), TornEntry)


def test_files_are_found_behind_claims_that_continue_and_nowhere_else(run: Run) -> None:
    files, one = EndFiles(log=b"x"), Claim(AGENT, 1, 1, "a")

    async def scenario() -> None:
        again, other = Claim(AGENT, 2, 1, "a", continues=True), Claim("f/i/b", 1, 1, "a")
        store = MemoryStore()
        await fill(store, one, again, end(files.to_json(), 2))
        assert await read_end_files(store, KEYS, JOB, 1) == files
        await fill(store, one, other, end(files.to_json()))
        assert await read_end_files(store, KEYS, JOB, 1) == EndFiles()
        assert await read_end_files(store, KEYS, JOB, 2) == files
        assert await read_end_files(store, KEYS, JOB, 3) == EndFiles()
        await fill(store, one, end(None))
        assert await read_end_files(store, KEYS, JOB, 1) == EndFiles()

    run(scenario())


def test_a_log_in_memory_keeps_no_contents(run: Run) -> None:
    async def scenario() -> None:
        store, log = MemoryStore(), EntryLog(KEYS.job_log(JOB))
        await fill(store, Claim(AGENT, 1, 1, "a"), end(EndFiles(log=b"x" * 9000).to_json()))
        await log.refresh(store)
        assert isinstance(log.tail, EndEntry)
        assert log.tail.files == {}

    run(scenario())


def test_a_history_takes_metrics_from_ends_and_from_objects(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        store, claim = MemoryStore(), Claim(AGENT, 1, 1, "a")
        odd = {"0.jsonl": b"1", "../esc": b"2", "a/b": b"3", "..": b"4"}
        await fill(store, claim, end(EndFiles(metrics=odd).to_json()), claim, end(EndFiles(log=b"l").to_json()))
        await store.put(f"{KEYS.out(JOB, 3)}{METRICS}0.jsonl", b"5")
        await restore_history(store, KEYS, JOB, [HistoryPart(k, AGENT, {}) for k in (1, 3)], tmp_path / "in")

    run(scenario())
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"in/1/0.jsonl": b"1", "in/3/0.jsonl": b"5"}
