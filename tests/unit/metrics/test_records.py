"""Records as points: exactly, each once, and the same however the file was cut."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from monkey.metrics.records import MAX_FIELDS, MAX_SERIES, NOTHING_KEPT, RecordCut, Records

HEAD = b"metrics,job=j,sweep=s kept=true,"
TAGS = {"sweep": "s", "job": "j"}


def line(metrics: str, step: str = "1", at: str = "1790000000000000001e-9") -> bytes:
    return f'{{"m":{{{metrics}}},"step":{step},"t":{at}}}\n'.encode()


def converted(data: bytes) -> list[bytes]:
    lines = Records(TAGS).convert(data).splitlines()
    assert all(told.startswith(HEAD) for told in lines)
    return [told.removeprefix(HEAD) for told in lines]


def parsed(told: bytes) -> tuple[dict[str, float], int]:
    fields, ns = told.removeprefix(HEAD).rsplit(b" ", 1)
    pairs = (pair.rsplit(b"=", 1) for pair in fields.split(b","))
    return {name.decode(): float(value.rstrip(b"i")) for name, value in pairs}, int(ns)


def test_what_monkey_log_writes_is_sent_as_it_stands(tmp_path: Path) -> None:
    code = """if True:
        import monkey
        for step in range(3): monkey.log("loss", 0.1 * step, step=step)
        monkey.log({"loss": 0.5, "acc": 1, "big": 1e16, "bigger": 1.5e17, "tiny": 5e-324}, step=3)
        for step in range(2): monkey.log({"loss": 0.25, "big": 1e16}, step=step)
        monkey.log("lr", 1e-8)
        monkey.log("lr", -1e16)
        monkey.log({"bad": float("nan"), "loss": 0.75}, step=5)
        monkey.log("bad", float("inf"))
        monkey.log("val loss, mean=1", 2.0, step=-1)
    """
    subprocess.run([sys.executable, "-c", code], env={"MONKEY_METRICS_DIR": str(tmp_path)}, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["0.jsonl"]
    records = Records(TAGS)
    lines = records.convert((tmp_path / "0.jsonl").read_bytes()).splitlines()
    told = [parsed(line.replace(rb"\,", b";")) for line in lines]
    assert [metrics for metrics, _ in told] == [
        {"loss": 0.0, "step": 0},
        {"loss": 0.1, "step": 1},
        {"loss": 0.2, "step": 2},
        {"loss": 0.5, "acc": 1, "big": 1e16, "bigger": 1.5e17, "tiny": 5e-324, "step": 3},
        {"loss": 0.25, "big": 1e16, "step": 0},
        {"loss": 0.25, "big": 1e16, "step": 1},
        {"lr": 1e-8},
        {"lr": -1e16},
        {"loss": 0.75, "step": 5},
        {"val\\ loss;\\ mean\\=1": 2.0, "step": -1},
    ]
    times = [at for _, at in told]
    assert times == sorted(set(times))
    assert (records.nonfinite, records.garbage) == (2, 0)


def test_a_line_of_another_language() -> None:
    assert converted(b'{"t": 1790000000.000000001, "step": 10, "m": {"loss": 0.30, "n": 3}}\n') == [
        b"loss=0.3,n=3.0,step=10i 1790000000000000001"
    ]
    assert converted(b'{"t": 1790000000, "m": {"loss": 1e-3}}\n') == [b"loss=0.001 1790000000000000000"]


def test_names_that_queries_could_not_tell_from_others() -> None:
    assert converted(line('"step":1.5,"time":2.5,"host":3,"t":4,"m":5')) == [
        b"step_=1.5,time_=2.5,host_=3.0,t=4.0,m=5.0,step=1i 1790000000000000001"
    ]


def test_timestamps_grow_whatever_the_clock_does() -> None:
    t = 1790000000000000000
    times = [t, t, t + 1, t - 3_600_000_000_000, t + 10]
    told = converted(b"".join(line('"a":1', at=f"{ns}e-9") for ns in times))
    assert [parsed(one)[1] - t for one in told] == [0, 1, 2, 3, 10]


def test_a_record_without_a_time_follows_the_one_before_it() -> None:
    data = b'{"m": {"a": 1}}\n' + line('"a":2') + b'{"m": {"a": 3}}\n' + b'{"m": {"a": 4}, "t": 1e999999999}\n'
    records = Records(TAGS)
    assert [parsed(told) for told in records.convert(data).splitlines()] == [
        ({"a": 2, "step": 1}, 1790000000000000001),
        ({"a": 3}, 1790000000000000002),
        ({"a": 4}, 1790000000000000003),
    ]
    assert records.garbage == 1


@pytest.mark.parametrize("at", ['"now"', "true", "null", "NaN", "[1]"])
def test_a_time_that_is_no_number_is_passed_over(at: str) -> None:
    records = Records(TAGS)
    assert records.convert(line('"a":1') + line('"a":2', at=at)) == HEAD + b"a=1.0,step=1i 1790000000000000001\n"
    assert records.garbage == 1


def test_what_is_no_record_is_passed_over() -> None:
    garbage = [
        b"loss 0.3\n", b"\n", b"[1]\n", b'{"m": 3}\n', b'{"m":{"a":"x","b":[1],"c":1e999}}\n', b"\xff\xfe{\n",
        b'{"m":{"a":' + b"9" * 5000 + b"}}\n", b"[" * 100_000 + b"\n", line('"a\\nb":1'), line('"":1'), line(""),
        b'{"m":{"a":1},"step":1,"t":1790000000000000001e-9', b"x" * (1 << 20) + b"\n",
    ]  # fmt: skip
    records = Records(TAGS)
    assert records.convert(b"".join(garbage[:-2]) + line('"a":2', step="1.5") + garbage[-1] + garbage[-2]) == (
        HEAD + b"a=2.0 1790000000000000001\n"
    )
    assert records.garbage == 12
    assert records.nonfinite == 1


def test_no_metric_takes_the_place_of_another() -> None:
    data = b"".join(
        line('"time":1.5,"time_":2.5,"step":3.5,"step_":4.5', at=f"17900000000000000{i:02}e-9") for i in range(3)
    )
    for told in Records(TAGS).convert(data).decode().splitlines():
        assert told.split(" ")[1].split(",") == [
            "kept=true", "time_=1.5", "time__=2.5", "step_=3.5", "step__=4.5", "step=1i",
        ], told  # fmt: skip


def test_a_metric_of_a_name_that_records_use_themselves_leaves_later_records_whole() -> None:
    records = Records(TAGS)
    data = line('"loss":0.5,"step":7,"t":8,"m":9', at="1790000000000000001e-9")
    data += line('"loss":0.25', step="null", at="1790000000000000002e-9")
    data += line('"loss":0.125', step="3", at="1790000000000000003e-9")
    assert records.convert(data).decode().splitlines()[1:] == [
        HEAD.decode() + "loss=0.25 1790000000000000002",
        HEAD.decode() + "loss=0.125,step=3i 1790000000000000003",
    ]


def test_a_record_unlike_those_before_it_is_sent_whole_and_so_are_its_neighbours() -> None:
    usual = [f'"loss":0.5{i},"acc":1' for i in range(3)]
    for unlike, sent in (
        ('"loss":0.25,"val":0.75', {"loss": 0.25, "val": 0.75}),
        ('"loss":0.25,"acc":"nan"', {"loss": 0.25}),
        ('"loss":"inf","acc":1', {"acc": 1}),
        ('"loss":0.25,"acc":1e+300', {"loss": 0.25, "acc": 1e300}),
        ('"loss":0.25,"acc":1234567890123456789012', {"loss": 0.25, "acc": 1234567890123456789012.0}),
        ('"loss":0.25,"acc":1e-05,"val":2', {"loss": 0.25, "acc": 1e-05, "val": 2}),
    ):
        # Twice: the second time, all names are known.
        bodies = [*usual, unlike, *usual] * 2
        lines = [line(one, at=f"17900000000000000{at:02}e-9") for at, one in enumerate(bodies)]
        found = [parsed(told)[0] for told in converted(b"".join(lines))]
        expected = [{"loss": float(f"0.5{i}"), "acc": 1, "step": 1} for i in range(3)]
        assert found == [*expected, {**sent, "step": 1}, *expected] * 2, unlike


def test_names_that_look_like_a_record_are_sent_as_they_are() -> None:
    names = ["train:loss", "a,t", "a,t:b", "},step", "{m={", "e-9}", "x=y", "::", ",", "t=", "step:", "m:{"]
    for name in names:
        data = b"".join(line(f'"{name}":0.{i},"loss":1.5', at=f"17900000000000000{i}1e-9") for i in range(1, 4))
        escaped = re.sub(r"([,= ])", r"\\\1", name)
        assert converted(data) == [
            f"{escaped}=0.{i},loss=1.5,step=1i 17900000000000000{i}1".encode() for i in range(1, 4)
        ], name


def test_a_job_that_invents_names_gets_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_FIELDS == 10_000
    monkeypatch.setattr("monkey.metrics.records.MAX_FIELDS", 2000)
    data = b"".join(line(f'"n{i}":1', at=f"17900000000000{i:05}e-9") for i in range(2500))
    records = Records(TAGS)
    half = data.index(b'"n500"') - 6
    sent = records.convert(data[:half])
    records = Records(TAGS, json.loads(json.dumps(records.state())))
    sent += records.convert(data[half:])
    assert len(sent.splitlines()) == 2000
    assert records.garbage == 500


def tagged(metrics: str, tags: str, at: int) -> bytes:
    return f'{{"m":{{{metrics}}},"step":{at},"t":179000000000000{at:04}e-9,"tags":{tags}}}\n'.encode()


def test_tags_of_a_record_are_tags_of_its_point_and_never_take_the_place_of_ours() -> None:
    data = tagged('"loss":1', '{"layer": "conv 1", "job": "other", "host_": "x"}', 1) + line('"loss":2', step="2")
    data += tagged('"loss":3', '{"n": 3, "empty": "", "ctrl": "a\\nb", "long": "' + "v" * 201 + '"}', 3)
    data += tagged('"loss":4', "[1]", 4)
    own, plain, *others = Records(TAGS).convert(data).decode().splitlines()
    assert (
        own == "metrics,host__=x,job=j,job_=other,layer=conv\\ 1,sweep=s kept=true,loss=1.0,step=1i 1790000000000000001"
    )
    assert all(each.startswith(HEAD.decode()) for each in (plain, *others)) and len(others) == 2


def test_a_job_that_invents_tags_gets_so_many_series_and_loses_no_point() -> None:
    data = b"".join(tagged('"a":1', f'{{"n": "{at % 250}"}}', at) for at in range(500))
    records = Records(TAGS)
    half = data.index(b'"step":123')
    half = data.rindex(b"\n", 0, half) + 1
    sent = records.convert(data[:half])
    records = Records(TAGS, json.loads(json.dumps(records.state())))
    points = (sent + records.convert(data[half:])).decode().splitlines()
    assert len(points) == 500
    series = {point.partition(" ")[0] for point in points}
    assert len(series) == MAX_SERIES + 1 and sum(",n=" in point for point in points) == 2 * MAX_SERIES


def test_abandoned_points_are_those_with_tags_too() -> None:
    data = tagged('"a":1', '{"n": "1"}', 1) + tagged('"a":2', '{"n": "1"}', 2) + line('"a":3', step="3")
    abandoned = Records(TAGS, cut=RecordCut(2, 0)).convert_abandoned(data).decode().splitlines()
    assert [point.partition(" ")[0] for point in abandoned] == ["metrics,job=j,n=1,sweep=s", "metrics,job=j,sweep=s"]
    assert all("kept=false" in point for point in abandoned)


NUMBERS = st.one_of(st.floats(), st.integers(), st.integers(-(10**330), 10**330))
NAMES = st.one_of(st.sampled_from(["loss", "acc", "step", "time", "t", "m", "a/b", "val loss", "x,y=z\\"]), st.text())


@st.composite
def files(draw: st.DrawFn) -> list[bytes]:
    now, lines = 1790000000000000000, []
    for _ in range(draw(st.integers(0, 12))):
        now += draw(st.sampled_from([1, 1, 1, 0, 1000, -5000]))
        metrics = draw(st.dictionaries(NAMES, NUMBERS, max_size=4))
        step = draw(st.one_of(st.none(), st.integers(-(2**65), 2**65)))
        written = ",".join(f"{json.dumps(n)}:{f'{v:#.17g}' if type(v) is float else v}" for n, v in metrics.items())
        lines.append(line(written, "null" if step is None else str(step), f"{now}e-9"))
        if draw(st.booleans()) and draw(st.booleans()):
            lines.append(draw(st.binary(max_size=20)).replace(b"\n", b"") + b"\n")
    return lines


@hypothesis.settings(max_examples=60)
@hypothesis.given(files(), st.integers(0, 12))
def test_it_does_not_matter_where_the_file_was_cut_or_how_it_was_read(lines: list[bytes], cut: int) -> None:
    at_once, by_line, in_two = Records(TAGS), Records(TAGS), Records(TAGS)
    whole = meaning(at_once.convert(b"".join(lines)))
    # A blank before it makes a line one that is read the slow way, which writes numbers shorter.
    assert whole == meaning(b"".join(by_line.convert(b" " + one) for one in lines))
    first = in_two.convert(b"".join(lines[:cut]))
    in_two = Records(TAGS, json.loads(json.dumps(in_two.state())))
    assert meaning(first + in_two.convert(b"".join(lines[cut:]))) == whole
    assert in_two.state() == at_once.state() == by_line.state()


def meaning(points: bytes) -> list[object]:
    return [_number(part) for part in re.split(rb"(?<=[=, \n])", points)]


def _number(part: bytes) -> object:
    try:
        return float(part.rstrip(b", "))
    except ValueError:
        return part


def test_what_a_later_attempt_abandoned_is_sent_as_such() -> None:
    lines = [
        line('"a":1.5', step=step, at=f"179000000000000000{at}e-9")
        for at, step in enumerate(["1", "null", "3", "2", "null", "1.5"], 1)
    ]
    place = len(b"".join(lines[:4]))
    for cut, kept in [
        (RecordCut(3, place), [True, True, False, True, False, False]),
        (RecordCut(float("inf"), place), [True, True, True, True, False, False]),
        (NOTHING_KEPT, [False] * 6),
    ]:
        told = Records(TAGS, cut=cut).convert(b"".join(lines)).splitlines(keepends=True)
        assert [b" kept=true," in one for one in told] == kept
        gone = Records(TAGS, cut=cut).convert_abandoned(b"".join(lines))
        assert gone == b"".join(one for one, stays in zip(told, kept, strict=True) if not stays)
    as_sent = Records(TAGS).convert(b"".join(lines)).replace(b" kept=true,", b" kept=false,")
    assert Records(TAGS, cut=NOTHING_KEPT).convert(b"".join(lines)) == as_sent, "points of the same series and time"
