"""Changes of a spec's text: comments and all else stay, and what cannot be changed safely is left alone."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.spec_edit import SpecEdit, spell_scalar

SPEC = """\
# What we look for
name: s   # the name
command: python3 train.py --lr {lr}
parameters:
  lr: {min: 0.001, max: 0.1}  # drawn
  batch: [32, 64]
  opt:
    # both
    values: [sgd, adam]

# how it runs
resources: {cpus: 1, memory: 8 GiB}
"""


def test_rows_get_a_key_of_their_own_below_the_parameters() -> None:
    changed = SpecEdit(SPEC).insert_rows("exclude", [{"batch": 64, "opt": "sgd"}])
    assert changed is not None
    assert set(changed.splitlines()) - set(SPEC.splitlines()) == {"exclude: [{batch: 64, opt: sgd}]"}
    assert changed.index("values: [sgd") < changed.index("exclude") < changed.index("# how it runs")


@pytest.mark.parametrize(
    "there",
    [
        "exclude: [{batch: 32}]\n",
        "exclude:\n  - {batch: 32}\n",
        "exclude:\n- batch: 32\n",
        "exclude: [ # why\n  {batch: 32}]\n",
    ],
)
def test_rows_join_those_that_are_there(there: str) -> None:
    changed = SpecEdit(SPEC + there).insert_rows("exclude", [{"batch": 64}, {"batch": 128}])
    assert changed is not None and "# why" in changed + ("" if "why" in there else "# why")
    assert [row["batch"] for row in parse_document(changed, "").data["exclude"]] == [64, 128, 32]


def test_a_scalar_is_replaced_where_it_stands() -> None:
    changed = SpecEdit(SPEC).replace_scalar(("parameters", "lr", "max"), 0.05)
    assert changed == SPEC.replace("max: 0.1}", "max: 0.05}")
    assert SpecEdit(SPEC).replace_scalar(("resources", "memory"), "16GiB") == SPEC.replace("8 GiB", "16GiB")
    assert SpecEdit(SPEC).replace_scalar(("resources", "gpus"), 1) is None
    assert SpecEdit(SPEC).replace_scalar(("parameters", "batch"), 1) is None


def test_keys_go_first_into_a_mapping_of_either_style() -> None:
    added = {"when": "batch < 64", "else": 0.01}
    flow = SpecEdit(SPEC).insert_keys(("parameters", "lr"), added)
    assert flow == SPEC.replace("{min", '{when: "batch < 64", else: 0.01, min')
    block = SpecEdit(SPEC).insert_keys(("parameters", "opt"), added)
    assert block == SPEC.replace("    values", '    when: "batch < 64"\n    else: 0.01\n    values')
    assert SpecEdit(SPEC).insert_keys(("parameters", "batch"), added) is None
    assert SpecEdit(SPEC).insert_keys(("parameters", "lr"), {"max": 1}) is None


@pytest.mark.parametrize("spec", ["{name: s, parameters: {lr: [1]}}", "name: s\nparameters: {lr: [1]}\n...\n"])
def test_a_text_that_cannot_be_changed_by_lines_is_left_alone(spec: str) -> None:
    changed = SpecEdit(spec).insert_rows("exclude", [{"lr": 1}])
    assert changed is None or parse_document(changed, "").data["exclude"] == [{"lr": 1}]


@pytest.mark.parametrize("spec", ["a: [", "\x00"])
def test_what_is_no_spec_is_refused(spec: str) -> None:
    with pytest.raises(ValueError):
        SpecEdit(spec)


@pytest.mark.parametrize(
    "value",
    ["sgd", "true", "null", "1e3", "a b", "é: {", '"', "#", "", "-", "0x1F", "~", 1, 1.0, 1e-05, True, None, "a\nb"],
)
def test_a_value_reads_as_it_was(value: Any) -> None:
    read = parse_document(f"x: [{{v: {spell_scalar(value)}}}]\n", "").data["x"][0]["v"]
    assert read == value and type(read) is type(value)


ORDER = ("name", "command", "parameters", "exclude", "metric", "timeout", "resources")


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        (("name",), "t", "name: s   # the name", "name: t   # the name"),
        (("command",), "x {a} --b '#'", "command: python3 train.py --lr {lr}", "command: x {a} --b '#'"),
        (("command",), "a # b", "command: python3 train.py --lr {lr}", 'command: "a # b"'),
        (("parameters", "batch"), [1, 2.5, "x"], "batch: [32, 64]", "batch: [1, 2.5, x]"),
        (("parameters", "lr", "max"), 1, "max: 0.1}  # drawn", "max: 1}  # drawn"),
        (("parameters", "lr"), [1], "{min: 0.001, max: 0.1}  # drawn", "[1]  # drawn"),
        (("parameters", "opt"), [1], "opt:\n    # both\n    values: [sgd, adam]", "opt: [1]"),
        (("parameters", "seed"), {"range": [0, 3]}, "adam]\n", "adam]\n  seed: {range: [0, 3]}\n"),
        (("parameters", "opt", "when"), "x", "adam]\n", "adam]\n    when: x\n"),
        (("metric", "name"), "loss", "adam]\n", "adam]\nmetric: {name: loss}\n"),
        (("timeout",), "2h", "adam]\n", "adam]\ntimeout: 2h\n"),
        (("resources", "gpus"), 1, "8 GiB}", "8 GiB, gpus: 1}"),
    ],
)
def test_a_value_is_put_where_it_belongs_and_the_rest_stays(
    path: tuple[str, ...], value: Any, before: str, after: str
) -> None:
    assert SPEC.count(before) == 1
    assert SpecEdit(SPEC, ORDER).put_value(path, value) == SPEC.replace(before, after)


def test_a_value_stays_as_the_user_wrote_it() -> None:
    changed = SpecEdit(SPEC).put_value(("parameters", "lr"), [0.0001, 1.0], "[1e-4,  1.0]")
    assert changed == SPEC.replace("{min: 0.001, max: 0.1}", "[1e-4,  1.0]")
    assert SpecEdit(SPEC).put_value(("parameters", "lr"), [1], "[1] # x") == SPEC.replace(
        "{min: 0.001, max: 0.1}  # drawn", "[1] # x  # drawn"
    )


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        (("name",), "name: s   # the name\n"),
        (("parameters", "batch"), "  batch: [32, 64]\n"),
        (("parameters", "opt"), "  opt:\n    # both\n    values: [sgd, adam]\n"),
        (("parameters", "opt", "values"), "  opt:\n    # both\n    values: [sgd, adam]\n"),
        (("resources", "cpus"), "cpus: 1, "),
        (("resources", "memory"), ", memory: 8 GiB"),
    ],
)
def test_a_key_is_removed_with_its_value(path: tuple[str, ...], gone: str) -> None:
    assert SPEC.count(gone) == 1 and SpecEdit(SPEC).remove_key(path) == SPEC.replace(gone, "")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a: |\n  x\n  y\n# c\nb: 1\n", "a: 2\n# c\nb: 1\n"),
        ("a: >-\n  x\n\nb: 1\n", "a: 2\n\nb: 1\n"),
        ("a:\nb: 1\n", "a: 2\nb: 1\n"),
        ("a:  # why\n- 1\n- 2\nb: 1\n", "a: 2  # why\nb: 1\n"),
        ("'a' :  [1,\n  2]  # c\nb: 1\n", "'a' :  2  # c\nb: 1\n"),
        ("a: x\r\nb: 1\r\n", "a: 2\r\nb: 1\r\n"),
        ("a: x y\n  z\nb: 1", "a: 2\nb: 1"),
    ],
)
def test_values_of_all_styles_are_replaced(text: str, after: str) -> None:
    assert SpecEdit(text).put_value(("a",), 2) == after


def test_what_cannot_be_changed_safely_is_left_alone() -> None:
    shared = "a: &x [1]\nb: *x\n"
    assert SpecEdit(shared).put_value(("b",), [2]) is None and SpecEdit(shared).put_value(("a",), [2]) is None
    assert SpecEdit("a: 1\n").remove_key(("b",)) is None
    assert SpecEdit("a: 1\nb: 2\n").rename_key(("a",), "b") is None
    with pytest.raises(ValueError, match="key: value"):
        SpecEdit("- 1\n")


def test_a_text_whose_aliases_stand_for_gigabytes_is_left_alone() -> None:
    bomb = f"a: &s {'x' * 50_000}\nb: [{', '.join(['*s'] * 1_000)}]\n"
    with pytest.raises(ValueError, match="aliases"):
        SpecEdit(bomb)


def test_a_key_is_renamed_in_its_place() -> None:
    assert SpecEdit(SPEC).rename_key(("parameters", "lr"), "rate") == SPEC.replace("  lr: {", "  rate: {")
    assert SpecEdit("{a: 1, 'b': 2}\n").rename_key(("b",), "c") == "{a: 1, c: 2}\n"


SCALARS = [1, 2.5, True, "", "x y", "it's", 'q"q', "a: b", "# no", "1e-3", "two\nlines\n", "long " * 30, "é{x}"]


def make_value(dice: random.Random, depth: int) -> Any:
    """Return a value of any kind, its lists and mappings in either style."""
    kind = dice.random()
    if depth == 0 or kind < 0.5:
        return dice.choice(SCALARS)
    count = dice.randint(1, 3)
    inside = [make_value(dice, depth - 1) for _ in range(count)]
    made = CommentedSeq(inside) if kind < 0.75 else CommentedMap((f"k{at}", of) for at, of in enumerate(inside))
    made.fa.set_flow_style() if dice.random() < 0.5 else made.fa.set_block_style()
    return made


def make_text(dice: random.Random) -> str:
    """Return YAML in a style by chance, with a comment above each key at the top."""
    writer, out = YAML(), io.StringIO()
    writer.width = dice.choice([40, 10_000])
    offset = dice.choice([0, 2])
    writer.indent(mapping=dice.choice([2, 4]), sequence=2 + offset, offset=offset)
    for at in range(dice.randint(2, 5)):
        out.write(f"# c{at}\n")
        writer.dump(CommentedMap({f"f{at}": make_value(dice, 3)}), out)
    return out.getvalue()


def walk(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        yield (*path, key)
        yield from walk(value, (*path, key))


def test_changes_of_random_texts_are_made_and_lose_no_comment_of_others() -> None:
    """That a change says what it should, `SpecEdit` itself checks: here, none is refused."""
    count = 0
    for seed in range(10):
        text = make_text(random.Random(seed))
        edit = SpecEdit(text)
        for path in walk(edit.data):
            values = (edit.put_value(path, value) for value in (7, [1, "a b", {"z": [2]}]))
            added = edit.put_value((*path[:-1], "new"), "v w")
            for changed in (*values, added, edit.rename_key(path, "zz"), edit.remove_key(path)):
                assert changed is not None, f"seed {seed}, {path}: {text}"
                comments = [line for line in text.splitlines() if line.startswith("# c")]
                assert [line for line in changed.splitlines() if line.startswith("# c")] == comments
                count += 1
    assert count > 200
