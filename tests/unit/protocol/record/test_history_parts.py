"""Any history of attempts: the summary has exactly the values that the job continues from, and its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.metrics.history_summary import summarize_history
from monkey.metrics.summary import MetricSummary, merge_summaries
from monkey.protocol.clock import MachineClock
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart, parse_parts, restore_history
from monkey.protocol.record.shipment import METRICS, Piece
from monkey.store.memory import MemoryStore
from tests.loops import Run

KEYS, JOB = Keys("shop"), "0123456789abcdef"
#: Step and value of a record; without a step, the metric is `free`, else `loss`.
Logged = tuple[int | None, float]


@dataclass
class Try:
    """One attempt: how many tries ago the checkpoint was made that it was resumed from, and what it logged."""

    back: int | None
    logged: list[Logged]
    #: After how many records it saved a checkpoint; None: it saved none.
    saved: int | None
    #: Seconds that its machine's clock is wrong.
    skew: float
    #: Was its agent killed, so that only pieces are left of its metrics?
    killed: bool
    #: The steps and values that a checkpoint of it stands on: those without a step.
    free: list[float] = field(default_factory=list)


tries = st.builds(
    Try,
    st.none() | st.integers(1, 3),
    st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(-50, 50).map(float)), max_size=8),
    st.none() | st.integers(0, 8),
    st.sampled_from([0.0, 3600.0, -3600.0]),
    st.booleans(),
)


def encode(attempt: Try, start: float) -> list[bytes]:
    """Return the lines of a metrics file."""
    lines = []
    for n, (step, value) in enumerate(attempt.logged):
        name = "free" if step is None else "loss"
        lines.append(json.dumps({"t": start + n + attempt.skew, "step": step, "m": {name: value}}).encode() + b"\n")
    return lines


def describe(values: Sequence[float]) -> tuple[float | None, ...]:
    return (values[-1], min(values), max(values), len(values)) if values else (None,) * 4


def entry(summary: dict[str, dict[str, Any]], name: str) -> tuple[Any, ...]:
    found = summary.get(name)
    return (found["last"], found["min"], found["max"], found["count"]) if found and found["count"] else (None,) * 4


async def leave(store: MemoryStore, k: int, attempt: Try, data: bytes) -> None:
    """Leave what an attempt logged in the store: as a file, or in pieces that an agent shipped."""
    if not attempt.killed:
        await store.put(f"{KEYS.out(JOB, k)}{METRICS}0.jsonl", data)
        return
    agent = f"local/m/{k}"
    heart = HeartbeatWriter(store, KEYS.beat(agent), MachineClock())
    heart.shipment.add(Piece(JOB, k, f"{METRICS}0.jsonl", 0, data[: len(data) // 2]))
    await store.put(KEYS.shipped_segment(agent, 1), heart.shipment.pending()[1])
    heart.shipment.seal()
    heart.shipment.add(Piece(JOB, k, f"{METRICS}0.jsonl", len(data) // 2, data[len(data) // 2 :]))
    await heart.beat()


@settings(max_examples=60)
@given(st.lists(tries, min_size=1, max_size=6))
def test_any_history_is_truncated_where_an_attempt_began_anew(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[Try]
) -> None:
    stepped: list[tuple[int, float]] = []
    checkpoints: dict[int, tuple[list[tuple[int, float]], list[float], tuple[HistoryPart, ...]]] = {}
    store, parts = MemoryStore(), ()

    for number, attempt in enumerate(attempts, 1):
        k = 2 * number - 1
        from_k = k - 2 * attempt.back if attempt.back else 0
        if from_k in checkpoints:
            base, free, parts = checkpoints[from_k]
            stepped, attempt.free = list(base), list(free)
        else:
            stepped, attempt.free, parts = [], [], ()
        lines = encode(attempt, 1000.0 * number)
        directory = tmp_path_factory.mktemp("history")
        asyncio.run(restore_history(store, KEYS, JOB, parts, directory))
        own = MetricSummary()
        own.feed(b"".join(lines), "0.jsonl")
        summary = merge_summaries(summarize_history(parts, directory, own.first_step), own.finish())
        # The same by the job's own ledger.
        first = next((step for step, _ in attempt.logged if step is not None), None)
        if first is not None:
            stepped = [each for each in stepped if each[0] < first]
        own_free = [value for step, value in attempt.logged if step is None]
        stepped += [(step, value) for step, value in attempt.logged if step is not None]
        assert entry(summary, "loss") == describe([value for _, value in stepped])
        assert entry(summary, "free") == describe(attempt.free + own_free)
        if attempt.saved is not None:
            place = sum(map(len, lines[: attempt.saved]))
            before = [value for step, value in attempt.logged[: attempt.saved] if step is None]
            here = HistoryPart(k, f"local/m/{k}", {"0.jsonl": place})
            # Values with a step count whenever they were logged: a job may save first, and log then.
            checkpoints[k] = stepped, attempt.free + before, (*parts, here)
        asyncio.run(leave(store, k, attempt, b"".join(lines)))


@pytest.mark.parametrize(
    "told",
    [
        [[1]],
        [[0, "a/b/c", {}]],
        [[True, "a/b/c", {}]],
        [[1, "../../x", {}]],
        [[1, "a/b/c", {"../x": 1}]],
        [[1, "a/b/c", {"x": -1}]],
        [[1, "a/b/c", {"x": True}]],
        [[1, "a/b/c", [1]]],
        {"k": 1},
        5,
    ],
)
def test_parts_that_lead_elsewhere_are_refused(told: Any) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, KeyError)):
        parse_parts(told)


def test_files_that_a_stranger_listed_do_not_leave_the_directory(run: Run, tmp_path: Path) -> None:
    store = MemoryStore()
    run(store.put(f"{KEYS.out(JOB, 1)}{METRICS}a/b", b"x"))
    run(restore_history(store, KEYS, JOB, [HistoryPart(1, "local/m/1", {})], tmp_path / "here"))
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "1"]
