"""The check of a record: whatever order an attempt's files were folded in is right, and any other number is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.apply.verify.object_reader import ObjectReader
from monkey.apply.verify.record_check import RecordFault, check_record, compare_summary
from monkey.metrics.record_feed import MAX_METRICS
from monkey.metrics.summary import MetricSummary
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.layout import Keys
from monkey.protocol.record.end_files import EndFiles
from monkey.store.memory import MemoryStore
from tests.loops import Run

VALUES = st.one_of(
    st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["nan", "inf", None, True])
)
RECORDS = st.fixed_dictionaries(
    {
        "t": st.sampled_from([1.0, 2.0, 3.0]),
        "step": st.one_of(st.none(), st.integers(0, 5)),
        "m": st.dictionaries(st.sampled_from(["loss", "acc"]), VALUES, max_size=2),
    }
)
FILES = st.lists(st.lists(RECORDS, min_size=1, max_size=8), min_size=1, max_size=3)


def fold(*files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for records in files:
        summary = MetricSummary()
        summary.feed(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        found.append(summary.finish())
    return found


def record(loss: float, step: int | None = None, t: float = 1.0) -> dict[str, Any]:
    return {"t": t, "step": step, "m": {"loss": loss}}


@settings(max_examples=150, deadline=None)
@given(FILES, st.randoms())
def test_any_order_in_which_files_grew_gives_a_record_that_is_right(files: list[Any], random: Any) -> None:
    summary, left = MetricSummary(), {str(i): list(records) for i, records in enumerate(files)}
    while left:
        name = random.choice(sorted(left))
        summary.feed(json.dumps(left[name].pop(0)).encode() + b"\n", name)
        left = {name: records for name, records in left.items() if records}
    recorded = json.loads(json.dumps(summary.finish()))
    assert compare_summary(recorded, fold(*files)) is None


@settings(max_examples=60, deadline=None)
@given(FILES, st.sampled_from(["last", "min", "max", "count", "nonfinite"]))
def test_any_other_number_is_wrong(files: list[Any], field: str) -> None:
    for name, entry in (recorded := fold(files[0])[0]).items():
        changed = {**recorded, name: {**entry, field: (entry[field] or 0) - 0.125}}
        fault = compare_summary(changed, fold(files[0]))
        too_large_to_differ = entry[field] is not None and abs(entry[field]) > 1e15
        assert too_large_to_differ or (fault is not None and field in fault.expected)


def test_what_two_files_share_has_more_than_one_right_answer() -> None:
    files = fold([record(1, 3), record(5, 4)], [record(1, 7)])
    first = files[0]
    both = {"last": 1, "step": 7, "min": 1, "max": 5, "best_max_step": 4, "count": 3, "nonfinite": 0}
    for step in (3, 7):
        assert compare_summary({"loss": {**both, "best_min_step": step}}, files) is None
    wrong = compare_summary({"loss": {**both, "best_min_step": 4}}, files)
    assert wrong == RecordFault("loss: best_min_step 4", "loss: best_min_step 3 or 7")
    assert compare_summary(first, [first, first]) == RecordFault("loss: count 2", "loss: count 4")


def test_metrics_that_only_one_side_has_are_wrong() -> None:
    (found,) = fold([record(1)])
    assert compare_summary({**found, "acc": {"last": 1, "count": 1}}, [found]) == RecordFault(
        "acc: last 1, count 1", "acc is in none of its metric files"
    )
    fault = compare_summary({}, [found])
    assert fault is not None and fault.found == "also loss"
    crowd = {f"m{i:04}": found["loss"] for i in range(MAX_METRICS)}
    assert compare_summary(crowd, [{**crowd, "beyond": found["loss"]}]) is None, "an end has only so many"


def test_a_hostile_record_is_a_fault_and_no_crash() -> None:
    (found,) = fold([record(1)])
    for entry in ({}, {"last": [1]}, {"last": {"a": 1}, "count": "many"}, {"count": "x" * 10_000}):
        fault = compare_summary({"loss": entry}, [found])
        assert fault is not None and len(fault.expected) < 100


KEYS, JOB = Keys("shop"), "0123456789abcdef"


def test_a_record_is_held_against_the_files_in_the_store(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        reader = ObjectReader(store, tmp_path, lambda objects, size: None)
        (summary,) = fold([record(1, 0), record(2, 1)])
        end = EndEntry(ClaimEnd.SUCCEEDED, "f/h/b", 1, metrics=summary)
        assert await check_record(end, KEYS, JOB, reader) == RecordFault("loss", "no metric file")
        data = b"".join(json.dumps(record(loss, step)).encode() + b"\n" for step, loss in enumerate((1, 2)))
        await store.put(f"{KEYS.out(JOB, 0)}metrics/1.jsonl", data)
        await store.put(f"{KEYS.out(JOB, 0)}metrics/deeper/no-metrics", b"nothing")
        assert await check_record(end, KEYS, JOB, reader) is None
        await store.put(f"{KEYS.out(JOB, 0)}metrics/1.jsonl", data[:-20])
        assert await check_record(end, KEYS, JOB, reader) == RecordFault("loss: count 2", "loss: count 1")
        silent = EndEntry(ClaimEnd.SUCCEEDED, "f/h/b", 1)
        assert await check_record(silent, KEYS, JOB, reader) == RecordFault("no metrics", "files of metrics: 1")
        failed = EndEntry(ClaimEnd.FAILED, "f/h/b", 1, reason="what it made could not be read: Input/output error")
        assert await check_record(failed, KEYS, JOB, reader) is None
        assert await check_record(silent, KEYS, "another", reader) is None
        for taken, fault in ((data, None), (data[:-20], RecordFault("loss: count 2", "loss: count 1"))):
            held = replace(end, files=EndFiles(metrics={"1.jsonl": taken}).to_json())
            await store.put(f"{KEYS.job_log(JOB)}00000001", held.encode())
            assert await check_record(held, KEYS, JOB, reader) == fault

    run(scenario())
    assert not list(tmp_path.iterdir()), "nothing that was brought stays"
