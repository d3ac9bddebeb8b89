"""Lines of points: what InfluxDB is told of jobs and of machines."""

from __future__ import annotations

import pytest

from monkey.metrics import names
from monkey.metrics.influx_points import (
    escape_tag,
    make_metric_tags,
    parse_agent_machine,
    parse_rank,
    write_job_point,
    write_point,
    write_system_point,
)
from monkey.spec.job.recipe import MetricTake


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


def test_a_job_that_succeeded() -> None:
    summary = {
        "loss": {"last": 0.5, "min": 0.25, "max": 1, "nonfinite": 2},
        "broken": {"last": None, "min": None, "max": None, "nonfinite": 1},
        "huge": {"last": 10**400, "min": 1.0, "max": 10**400, "nonfinite": 0},
    }
    parameters = {"lr": 0.1, "optimizer.name": "sgd", "layers": [1, 2], "amp": True, "none": None}
    line = write_job_point(
        "digits", "0123456789abcdef", names.SUCCEEDED, 1790000000.123, 5, attempt=2, host="gpu1",
        parameters=parameters, exit_code=0, seconds=12, summary=summary,
    )  # fmt: skip
    assert line.decode() == (
        'jobs,job=0123456789abcdef,sweep=digits state="succeeded",attempt=2i,host="gpu1",exit_code=0i,seconds=12.0,'
        'nonfinite=3i,param_lr="0.1",number_lr=0.1,param_optimizer.name="sgd",param_layers="[1, 2]",'
        'param_amp="true",number_amp=1.0,final_loss=0.5,min_loss=0.25,max_loss=1.0,min_huge=1.0 1790000000123000005\n'
    )


def test_a_job_is_ranked_by_what_its_sweep_names() -> None:
    def told(metric: str | None, maximize: bool, last: float | None, take: MetricTake = "last") -> str:
        summary = {"acc": {"last": last, "min": None, "max": 0.75 if take == "best" else None, "nonfinite": 0}}
        line = write_job_point(
            "s", "j", names.SUCCEEDED, 1.0, 1, attempt=1, host="h", parameters={}, summary=summary,
            metric=metric, maximize=maximize, take=take, count=36,
        )  # fmt: skip
        return line.decode().partition("nonfinite=0i,")[2].partition(" ")[0]

    assert told("acc", True, 0.5) == 'jobs=36i,metric="acc",objective=0.5,score=0.5,final_acc=0.5'
    assert told("acc", False, 0.5) == 'jobs=36i,metric="acc",objective=0.5,score=-0.5,final_acc=0.5'
    assert told("acc", True, None) == 'jobs=36i,metric="acc"'
    assert told("acc", True, 0.5, "best").startswith('jobs=36i,metric="acc",objective=0.75,score=0.75,')
    assert told("acc", True, None, "best") == 'jobs=36i,metric="acc",max_acc=0.75', "it has diverged"
    assert told("loss", True, 0.5) == 'jobs=36i,metric="loss",final_acc=0.5'
    assert told(None, False, 0.5) == "jobs=36i,final_acc=0.5"


def test_entries_of_one_instant_are_two_points() -> None:
    def line(state: str, k: int) -> bytes:
        return write_job_point("s", "j", state, 1790000000.0004, k, attempt=1, host="h", parameters={})

    assert line(names.RUNNING, 1).split()[-1] == b"1790000000000000001"
    assert line(names.RELEASED, 2).split()[-1] == b"1790000000000000002"


def test_tags_of_what_a_job_logs() -> None:
    assert make_metric_tags("digits", "ab", 3, parse_agent_machine("lab/gpu1/8f"), "0.jsonl") == {
        "sweep": "digits", "job": "ab", "attempt": "3", "host": "gpu1", "rank": "0",
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
