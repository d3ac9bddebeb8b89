"""Line protocol: what its writers write is read as InfluxDB reads it, and what is none harms nothing beside it."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from influxdb_client.client.write.point import Point

from monkey_agent.receiving.line_protocol import ReceivedPoint, parse_lines

T = 1790000000000000001


def parse(text: str) -> list[Any]:
    return [point and (dict(point.metrics), point.step, point.ns, dict(point.tags)) for point in parse_lines(text)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # What pytelegraf 0.3.3 writes, of a number and of a dict.
        ("loss value=0.3125", ({"loss": 0.3125}, None, None, {})),
        (
            f"train,a\\=b=c\\,d,layer=conv\\ 1 loss=0.5,note=\"fine, so far\",ok=True,step=10i {T}",
            ({"train/loss": 0.5, "train/ok": 1}, 10, T, {"a=b": "c,d", "layer": "conv 1"}),
        ),
        ("val\\ loss\\,\\ x\\=1 value=3i", ({"val loss, x=1": 3}, None, None, {})),
        ("m a\\ b=1e-07,other=-inf", ({"a b": 1e-7, "other": -math.inf}, None, None, {})),
        # What others may write.
        ("m a=1i,b=2u,c=3,d=t,e=FALSE", ({"a": 1, "b": 2, "c": 3, "d": 1, "e": 0}, None, None, {})),
        ("m f=.5,g=-1.,h=1e3", ({"f": 0.5, "g": -1, "h": 1000}, None, None, {})),
        ("m loss=1,iteration=7", ({"loss": 1}, 7, None, {})),
        ("m loss=1,iteration=7,step=8.0", ({"loss": 1, "iteration": 7}, 8, None, {})),
        ("m loss=1,step=8.5", ({"loss": 1}, None, None, {})),
        ("m loss=1,step=nan", ({"loss": 1}, None, None, {})),
        ("m loss=1,step=9223372036854775808i", ({"loss": 1}, None, None, {})),
        ('m s="a \\"b\\", c=3\nd e=4",loss=1', ({"loss": 1}, None, None, {})),
        ('m s="two\nlines"', ({}, None, None, {})),
        ("m,t= loss=1", ({"loss": 1}, None, None, {})),
        ("a\\b,c\\d=e\\f g\\h=1", ({"g\\h": 1}, None, None, {"c\\d": "e\\f"})),
        ("   m   loss=1   5   \r", ({"loss": 1}, None, None, {})),
        ("m loss=1 1790000000", ({"loss": 1}, None, None, {})),
        (f"m loss=1 {1 << 63}", ({"loss": 1}, None, None, {})),
        ("m loss=1 " + "9" * 5000, ({"loss": 1}, None, None, {})),
        ("größe wert=1", ({"wert": 1}, None, None, {})),
    ],
)  # fmt: skip
def test_a_line_is_read_as_its_writer_meant_it(line: str, expected: object) -> None:
    assert parse(line) == parse(f"# a comment\n\n{line}\n \n") == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "loss", "loss ", "loss 0.3", "loss value", "loss value=", "loss =1", ",a=b c=1", "m,a c=1", "m,=b c=1",
        'm c=1"', "m c=1 now", "m c=1 2 3", "m c=1,", "m c=1x", "m c=1_0", "m c=0x1f", "m c=١", "m c=" + "1" * 65,
        'm c="1', "m c=1ii", "m c=i", "m c=1.5i", "m\\", "m c=\\", '{"loss": 1}', "\x00\x01", "\ufffd",
    ],
)  # fmt: skip
def test_a_line_that_is_none_costs_no_other(line: str) -> None:
    assert parse(f"a b=1\n{line}\nc d=2") == [({"b": 1}, None, None, {}), None, ({"d": 2}, None, None, {})]


# A backslash at a name's end, or before what it would escape, cannot be written; nor can a newline.
NAMES = st.text(st.characters(exclude_characters="\\\n\r\t", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
VALUES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1), st.booleans())


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    st.lists(
        st.tuples(
            NAMES.filter(lambda name: name[0] not in "# "),
            st.dictionaries(NAMES, st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1)),
            st.dictionaries(NAMES, st.one_of(VALUES, st.text()), min_size=1),
            st.integers(10**18, 2**63 - 3),
        ),
        max_size=5,
    )
)
def test_it_reads_what_influxdbs_own_client_writes(points: list[Any]) -> None:
    lines, expected = [], []
    for measurement, tags, fields, ns in points:
        tags = {name: value for name, value in tags.items() if "\\" not in value}
        point = Point(measurement).time(ns)
        for name, value in tags.items():
            point = point.tag(name, value)
        for name, value in fields.items():
            point = point.field(name, value)
        lines.append(point.to_line_protocol())
        numbers = sorted(value for value in fields.values() if not isinstance(value, str))
        expected.append((numbers, ns, tags, len(fields) - len(numbers)))
    found = list(parse_lines("\n".join(lines)))
    assert [point and describe(point) for point in found] == expected, lines


def describe(point: ReceivedPoint) -> object:
    steps = [] if point.step is None else [point.step]
    return sorted([*point.metrics.values(), *steps]), point.ns, dict(point.tags), point.texts


@hypothesis.given(st.text(st.sampled_from('a1=", \\\n\r#i.')))
def test_whatever_comes_it_raises_nothing(text: str) -> None:
    list(parse_lines(text))
