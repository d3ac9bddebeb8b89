"""YAML 1.2, less what no spec needs; nothing that is handed in takes long or ends in another error than SpecError."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monkey.errors import Problem, SpecError
from monkey.spec.yaml import document
from monkey.spec.yaml.mistakes import Mistake
from monkey.spec.yaml.parser import MAX_YAML_DEPTH


def data(text: str) -> Any:
    return document.parse_document(text, "it.yaml").data


def refused(text: str) -> Problem:
    with pytest.raises(SpecError) as caught:
        document.parse_document(text, "it.yaml")
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize(
    "text, value",
    [
        ("a", "a"), ("1", 1), ("-7", -7), ("+3", 3), ("007", 7), ("0o17", 15), ("0x1F", 31), ("1.5", 1.5),
        ("1e3", 1000.0), ("1.e-3", 0.001), (".5", 0.5), ("-1E-5", -1e-05), ("true", True), ("False", False),
        ("~", None), ("null", None),
        ("", None),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("1_000", "1_000"), ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"), ("'1'", "1"), ('"true"', "true"), ("1.2.3", "1.2.3"), ("e3", "e3"), ("1e", "1e"),
        ("é", "é"),
        ("١", "١"), ('"\\x41\\u00e9"', "Aé"), ("0b1", "0b1"), ("=", "="), ("- ", [None]),
    ],
)  # fmt: skip
def test_scalars_of_yaml_1_2(text: str, value: Any) -> None:
    found = data(f"k: {text}\n" if text != "- " else "k:\n- \n")["k"]
    assert found == value
    assert type(found) is type(value)


def test_anchors_are_repeated() -> None:
    assert data("a: &x {b: [1]}\nc: *x\nd: [*x, *x]") == {"a": {"b": [1]}, "c": {"b": [1]}, "d": [{"b": [1]}] * 2}


@pytest.mark.parametrize(
    "text, where, message",
    [
        ("a: !!python/object/apply:os.system [ls]", (1, 4), "tags such as"),
        ("a: !x b", (1, 4), "tags such as"),
        ("a: !!str 1", (1, 4), "tags such as"),
        ("a: 1\nb: 2\na: 3", (3, 1), "the key 'a' stands twice; first in line 1"),
        ("x: {a: 1, a: 2}", (1, 11), "the key 'a' stands twice; first in line 1"),
        ("a: &x [*x]", (1, 8), "*x contains itself"),
        ("a: &x {b: {c: *x}}", (1, 15), "*x contains itself"),
        ("a: *x", (1, 4), "*x has no anchor"),
        ("a: &x {b: 1}\nc: {<<: *x}", (2, 5), "merge keys (<<)"),
        ("1: a", (1, 1), "expected text as key, found 1"),
        ("true: a", (1, 1), "expected text as key, found true"),
        ("? [a]\n: b", (1, 3), "expected text as key, found a list"),
        (": a", (1, 1), "expected text as key, found nothing"),
        ("a: 1\n---\nb: 2", (2, 1), "expected one document"),
        ("%YAML 1.1\n---\na: 1", (2, 1), "expected YAML 1.2"),
        ("", (1, 1), "the file is empty"),
        ("# only this\n", (1, 1), "the file is empty"),
        ("a: .inf", (1, 4), "expected a finite number"),
        ("a: .NaN", (1, 4), "expected a finite number"),
        ("a: 1e999", (1, 4), "too large"),
        ("a: 1" + "0" * 200, (1, 4), "expected at most 100 digits"),
        ('a: "\\0"', (1, 4), "NUL"),
        ('a: "\\ud800"', (1, 4), "surrogate"),
        ("a: [1, 2", (1, 9), "not valid YAML"),
        ("a: b: c", (1, 5), "not valid YAML: mapping values are not allowed here"),
        ("a:\n\tb: 1", (2, 1), "not valid YAML"),
        ("a: @b", (1, 4), "not valid YAML"),
        ("a: {x: 1\nb: 2", (2, 2), "not valid YAML"),
        ("a: \x01", (1, 4), "not valid YAML: special characters are not allowed"),
        ('a: "\\UFFFFFFFF"', (1, 1), "not valid YAML"),
    ],
)
def test_what_is_refused(text: str, where: tuple[int, int], message: str) -> None:
    found = refused(text)
    assert message in found.message
    assert (found.line, found.column) == where


def test_what_yaml_1_2_does_not_end_lines_at_is_kept() -> None:
    kept = "a\x85b \u2028 c\u2029"
    assert data(f"a: \"{kept}\"\nb: '{kept}'\nc: {kept}d\nd: |\n  {kept}\n") == {
        "a": kept, "b": kept, "c": f"{kept}d", "d": f"{kept}\n"
    }  # fmt: skip
    assert data("'a\x85': \"\ue000\\N\\L\\P\"") == {"a\x85": "\ue000\x85\u2028\u2029"}
    found = refused("a: '\u2028'\nb: @")
    assert (found.line, found.column, found.source) == (2, 4, "b: @")


def test_halves_of_a_character_as_json_writes_them() -> None:
    assert data(json.dumps({"🐒": ["a🐒"]})) == {"🐒": ["a🐒"]}
    for text in ('a: "\\udc12\\ud83d"', 'a: "\\ud83d-\\udc12"', 'a: "x\\ud83d"'):
        assert "half a surrogate pair" in refused(text).message


@pytest.mark.parametrize("closed", [70, 300, 100_000])
@pytest.mark.parametrize("before", ["a: ", "a: {b: ", "", "x: |\n  [[[\ny:\n- "])
def test_where_nesting_is_too_deep(before: str, closed: int) -> None:
    found = refused(f"{before}{'[' * closed}")
    last = before.split("\n")[-1]
    level = {"a: ": 1, "a: {b: ": 2, "": 0}.get(before, 2)
    assert (found.column, found.line) == (len(last) + MAX_YAML_DEPTH - level + 2, before.count("\n") + 1)
    assert found.source is not None and found.source.startswith(f"{last}[[[")
    assert str(found).splitlines()[2].index("^") == found.column + 1


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 1_000_000,
        "a: " + "{a: " * 250_000,
        "- " * 500_000,
        "a: " + "[" * 500_000 + "]" * 500_000,
        "? " * 500_000,
        "[\n" * 300_000,
        "x: 'y" + "[" * 900_000,
    ],
    ids=["brackets", "braces", "dashes", "balanced", "questions", "lines", "quote"],
)
def test_bombs_are_refused_in_milliseconds(text: str) -> None:
    begin = time.process_time()
    refused(text)
    assert time.process_time() - begin < 0.5


def test_a_billion_laughs_are_refused() -> None:
    text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    begin = time.process_time()
    assert "expected at most 500,000 values" in refused(text).message
    assert time.process_time() - begin < 0.5


def test_large_and_strange_files(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\n" * 300_000)
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        document.read_document(path, "a.yaml")
    path.write_bytes("a: é\n".encode() + b"bc: \xff\xfe\n")
    with pytest.raises(SpecError, match=r"a\.yaml:2:5: expected UTF-8, found the byte 0xff"):
        document.read_document(path, "a.yaml")
    path.write_bytes("\ufeffa: é\r\nb: |\r\n  x\r\n  y\r\n".encode())
    assert document.read_document(path, "a.yaml").data == {"a": "é", "b": "x\ny\n"}


def test_places_of_keys_values_and_what_is_missing() -> None:
    file = document.parse_document("a:\n  b: [1, {c: 2}]\nd: x", "it.yaml")

    def place(*path: str | int, on_key: bool = False, offset: int | None = None) -> tuple[int, int]:
        found = file.place(Mistake(path, "m", on_key=on_key, offset=offset))
        return found.line, found.column

    assert place("a", "b", 1, "c") == (2, 14)
    assert place("a", "b", 1, "c", on_key=True) == (2, 11)
    assert place("a", "b", 1, "x") == (2, 10)
    assert place("a", "b", 7) == (2, 6)
    assert place("a", on_key=True) == (1, 1)
    assert place() == (1, 1)
    assert place("d", offset=0) == (3, 4)


def test_long_lines_are_cut() -> None:
    file = document.parse_document(f"a: {'x' * 500}", "it.yaml")
    source = file.place(Mistake(("a",), "m")).source
    assert source is not None and len(source) == document.MAX_SHOWN_CHARACTERS + 1
    wide = document.parse_document(f"{{{'x' * 500}: 1}}", "it.yaml")
    assert wide.place(Mistake(("x" * 500,), "m")).source is None


yaml_noise = st.text(st.sampled_from(list("ab:-[]{},&*!|>'\"%@`#?\n\t ~<\\0.1\x85\u2028")), max_size=60)


@settings(max_examples=400)
@given(yaml_noise | st.text(max_size=60))
@example("&a *a")
@example("? &a\n: *a")
@example("a: &a\n  *a : b")
@example("!<tag:yaml.org,2002:str> a")
@example('"\\x')
@example("%TAG ! x\n---\na")
@example("\ud800")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document.parse_document(text, "it.yaml")
    except SpecError as error:
        for found in error.problems:
            assert found.line >= 1 and found.column >= 1 and found.message
            str(found)


@settings(max_examples=100)
@given(raw=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(raw)
    try:
        document.read_document(path, "it.yaml")
    except SpecError as error:
        str(error)
