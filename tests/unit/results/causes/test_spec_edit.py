"""Changes of a spec's text: comments and all else stay, and what cannot be changed safely is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.results.causes.spec_edit import SpecEdit, spell_scalar
from monkey.spec.yaml.document import parse_document

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
