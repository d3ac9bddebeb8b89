"""Lines of points: what InfluxDB is told of jobs and of machines."""

from __future__ import annotations

import pytest

from monkey.metrics.influx.influx_points import (
    escape_tag,
    make_metric_tags,
    parse_agent_machine,
    parse_rank,
    write_point,
    write_system_point,
)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain.name/5@x", "plain.name/5@x"),
        ("a b,c=d", r"a\ b\,c\=d"),
        ("a\\b", "a\\b"),
        ("a\\", "a/"),
        ("a\\ b", "a/\\ b"),
        ("\\\\", "//"),
        ("two\nlines", "two\\ lines"),
        ("größe 🙈", "größe\\ 🙈"),
    ],
)
def test_names_stand_escaped(text: str, escaped: str) -> None:
    assert escape_tag(text) == escaped


def test_a_point_of_each_type() -> None:
    fields = {"f": 3.0, "i": -4, "b": True, "s": 'say "a\\b"\nand c', "nan": float("nan"), "large": 1 << 63}
    line = write_point("m", {"b": "2", "a": "1 1", "none": ""}, fields, 17)
    assert line == b'm,a=1\\ 1,b=2 f=3.0,i=-4i,b=true,s="say \\"a\\\\b\\" and c" 17\n'
    assert write_point("m", {}, {"x": float("inf")}, 17) == b""


def test_tags_of_what_a_job_logs() -> None:
    assert make_metric_tags("digits", "ab", 3, parse_agent_machine("lab/gpu1/8f"), "0.jsonl", "ana@lab") == {
        "sweep": "digits", "job": "ab", "attempt": "3", "host": "gpu1", "rank": "0", "user": "ana@lab",
    }  # fmt: skip


def test_ranks_are_told_by_the_files_names() -> None:
    assert [parse_rank(name) for name in ("3.jsonl", "3.4711.jsonl", "julia log.jsonl", "x", ".jsonl")] == [
        "3", "3.4711", "julia log", "x", "0",
    ]  # fmt: skip
    assert parse_rank("a\nb\udcff.jsonl") == "a%0Ab%FF"


def test_what_a_machine_does_is_always_floats() -> None:
    told = {"fleet": "lab", "agent": "lab/gpu 1/ab", "host": "gpu 1"}
    line = write_system_point({"cpu_percent": 3, "memory_bytes": 2**53}, 5, gpu="0", **told)
    tags = b"system,agent=lab/gpu\\ 1/ab,fleet=lab,gpu=0,host=gpu\\ 1"
    assert line == tags + b" cpu_percent=3.0,memory_bytes=9007199254740992.0 5\n"
