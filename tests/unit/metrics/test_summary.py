from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from monkey.metrics.record_feed import MAX_LINE, MAX_METRICS
from monkey.metrics.summary import (
    BestValue,
    MetricSummary,
    find_best_value,
    find_job_value,
    has_diverged,
    merge_summaries,
)


def line(value: object, step: object = None, t: object = 0.0, name: str = "loss") -> bytes:
    return json.dumps({"t": t, "step": step, "m": {name: value}}).encode() + b"\n"


def folded(*lines: bytes) -> dict[str, dict[str, object]]:
    summary = MetricSummary()
    summary.feed(b"".join(lines))
    return summary.finish()


def test_last_min_max_and_their_steps() -> None:
    assert folded(line(3, 1), line(1.0, 2), line(4.0, 3), line(2.0, 4)) == {
        "loss": {
            "last": 2.0,
            "min": 1.0,
            "max": 4.0,
            "step": 4,
            "best_min_step": 2,
            "best_max_step": 3,
            "count": 4,
            "nonfinite": 0,
        }
    }


def test_whole_numbers_stay_whole_and_exact() -> None:
    entry = folded(line(2**53, 1), line(2**53 + 1, 2), line(10**400, 3), line(float(2**53), 4))["loss"]
    assert [repr(entry[name]) for name in ("min", "max", "last")] == [repr(2**53), repr(10**400), repr(float(2**53))]
    assert entry["best_max_step"] == 3 and entry["nonfinite"] == 0


def test_a_step_of_more_than_64_bits_is_none() -> None:
    assert folded(line(1.0, 1 << 63))["loss"]["step"] is None


def test_of_equal_values_the_first_is_best() -> None:
    entry = folded(line(1.0, 1), line(1.0, 2))["loss"]
    assert (entry["best_min_step"], entry["best_max_step"], entry["step"]) == (1, 1, 2)


def test_nonfinite_values_are_counted_and_are_never_best() -> None:
    entry = folded(line(0.5, 1), line("nan", 2), line("inf", 3), line(None, 4), b'{"m":{"loss":NaN}}\n')["loss"]
    assert (entry["max"], entry["best_max_step"], entry["count"], entry["nonfinite"]) == (0.5, 1, 1, 4)


def test_a_metric_whose_last_value_is_not_finite_has_diverged_and_has_no_last_value() -> None:
    entry = folded(line(0.05, 1), line("nan", 2))["loss"]
    assert (entry["last"], entry["step"], entry["min"], has_diverged(entry)) == (None, 2, 0.05, True)
    assert [find_job_value(entry, take, maximize=False) for take in ("last", "best")] == [None, 0.05]


def test_a_metric_that_recovers_has_its_last_value_again() -> None:
    entry = folded(line("nan", 1), line("inf", 2), line(0.5, 3))["loss"]
    assert (entry["last"], entry["step"], entry["nonfinite"], has_diverged(entry)) == (0.5, 3, 2, False)


def test_between_sources_a_later_nan_is_last_and_an_earlier_one_is_not() -> None:
    for times, last in (((1.0, 2.0), None), ((2.0, 1.0), 0.5)):
        summary = MetricSummary()
        summary.feed(line(0.5, 1, t=times[0]), "a")
        summary.feed(line("nan", 1, t=times[1]), "b")
        assert summary.result()["loss"]["last"] == last


def test_a_metric_that_was_not_logged_has_not_diverged() -> None:
    assert not has_diverged({})


def test_a_metric_that_was_never_finite_has_no_values() -> None:
    entry = folded(line("-inf"))["loss"]
    assert (entry["last"], entry["min"], entry["max"], entry["nonfinite"]) == (None, None, None, 1)
    assert find_best_value(entry, maximize=True) is None


@given(st.lists(st.integers(1, 30), max_size=20))
def test_pieces_of_any_size_give_the_same(sizes: list[int]) -> None:
    data = b"".join(line(value, step) for step, value in enumerate([3.0, 1.5, "nan", 2.0]))
    summary, at = MetricSummary(), 0
    for size in sizes:
        summary.feed(data[at : at + size])
        at += size
    summary.feed(data[at:])
    assert summary.finish() == folded(data)


def test_each_source_keeps_its_own_partial_line() -> None:
    summary, one, two = MetricSummary(), line(1.0), line(2.0)
    summary.feed(one[:9], "a")
    summary.feed(two[:9], "b")
    summary.feed(one[9:], "a")
    summary.feed(two[9:], "b")
    assert summary.result()["loss"]["count"] == 2 and summary.garbage == 0


def test_between_sources_the_later_record_is_last_whatever_the_order_of_reading() -> None:
    summary = MetricSummary()
    summary.feed(line(2.0, 20, t=20.0), "b")
    summary.feed(line(1.0, 10, t=10.0), "a")
    assert summary.result()["loss"]["last"] == 2.0


def test_a_clock_set_back_does_not_make_an_old_value_last() -> None:
    assert folded(line(1.0, 1, t=1000.0), line(2.0, 2, t=5.0))["loss"]["last"] == 2.0


def test_the_last_line_counts_without_its_newline_once_finished() -> None:
    summary = MetricSummary()
    summary.feed(line(1.0)[:-1])
    assert summary.result() == {}
    assert summary.finish()["loss"]["last"] == 1.0


def test_garbage_is_counted_and_passed_over() -> None:
    garbage = [
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"m":3}\n',
        b'{"m":{"":1}}\n',
        b'{"m":{"\\ud800":1}}\n',
        b'{"m":{"a\\u001b[31m":1}}\n',
        b'{"m":{"x":[1]}}\n',
        b'{"m":{"x":"high"}}\n',
        b"[" * 100_000 + b"\n",
        b'{"m":{"x":1' + b"0" * 5000 + b"}}\n",
    ]
    summary = MetricSummary()
    garbage += [line(2.0, t=t) for t in ("now", True, None, [1], float("nan"), float("inf"))]
    summary.feed(b"".join(garbage) + b"\n  \n" + line(1.0))
    assert summary.garbage == len(garbage)
    assert list(summary.finish()) == ["loss"]
    assert summary.result()["loss"]["count"] == 1


def test_steps_of_64_bits_are_steps() -> None:
    assert [folded(line(1.0, step))["loss"]["step"] for step in (-(1 << 63), (1 << 63) - 1)] == [
        -(1 << 63),
        (1 << 63) - 1,
    ]


def test_a_line_without_end_is_not_kept_in_memory() -> None:
    summary = MetricSummary()
    for _ in range(5):
        summary.feed(b"x" * (MAX_LINE // 2 + 1))
    assert max(map(len, summary._tails.values())) <= MAX_LINE
    summary.feed(b"x\n" + line(1.0))
    assert summary.garbage == 1 and summary.finish()["loss"]["count"] == 1


def test_names_without_end_do_not_grow_the_summary() -> None:
    told: list[str] = []
    summary = MetricSummary(lambda name, value, step: told.append(name), needed={"loss"})
    summary.feed(b"".join(line(1.0, name=f"m{i}") for i in range(MAX_METRICS)))
    assert not summary.crowded
    summary.feed(b"".join(line(1.0, name=f"x{i}") for i in range(5)) + line(0.5))
    found = summary.finish()
    assert len(found) == MAX_METRICS + 1 and summary.crowded and found["loss"]["last"] == 0.5
    assert told[-1] == "loss" and len(told) == MAX_METRICS + 1, "what ends jobs is heard of, whatever else is logged"


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    summary = MetricSummary()
    summary.feed(data)
    summary.feed(data, "other")
    json.dumps(summary.finish(), allow_nan=False)


def test_best_follows_the_goal() -> None:
    entry = folded(line(1.0, 1), line(3.0, 2), line(2.0, 3))["loss"]
    assert find_best_value(entry, maximize=True) == BestValue(3.0, 2)
    assert find_best_value(entry, maximize=False) == BestValue(1.0, 1)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.floats(width=16)), max_size=20), st.integers(0, 20))
def test_two_parts_have_the_summary_of_the_whole(values: list[tuple[str, float]], cut: int) -> None:
    def summarize(part: list[tuple[str, float]], start: int) -> dict[str, dict[str, Any]]:
        summary = MetricSummary()
        for n, (name, value) in enumerate(part, start):
            text = str(value) if value - value else value
            summary.feed(json.dumps({"t": n, "step": n, "m": {name: text}}).encode() + b"\n")
        return summary.finish()

    whole = summarize(values, 0)
    merged = merge_summaries(summarize(values[:cut], 0), summarize(values[cut:], min(cut, len(values))))
    assert merged == whole
