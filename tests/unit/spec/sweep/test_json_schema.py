"""The JSON schema: complete, described, and of one mind with the reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from monkey.errors import SpecError
from monkey.spec.parameters.parameters import PARAMETER_FORMS
from monkey.spec.sweep.json_schema import build_spec_schema
from monkey.spec.sweep.load import parse_spec
from monkey.spec.sweep.models import Spec
from monkey.spec.yaml import document

SCHEMA = build_spec_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def accepts(text: str) -> bool:
    return bool(VALIDATOR.is_valid(document.parse_document(text, "it.yaml").data))


def test_it_is_a_schema_that_json_can_say() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_field_is_there_and_described() -> None:
    assert set(SCHEMA["properties"]) == set(Spec.model_fields)
    assert all(field["description"] for field in SCHEMA["properties"].values())
    assert all(field.keys() & {"type", "enum", "anyOf", "$ref"} for field in SCHEMA["properties"].values())


def forms(tree: Any) -> Iterator[str]:
    for form in tree["$defs"]["parameter"]["anyOf"]:
        yield from form.get("properties", ())


def test_every_form_of_a_parameter_is_there() -> None:
    assert set(forms(SCHEMA)) >= set(PARAMETER_FORMS)


GOOD = [
    "lr: [0.1, a, null]",
    "lr: 0.1",
    "lr: adam",
    "lr: {values: [1, 2], when: x > 1, else: 3}",
    "lr: {value: null}",
    "lr: {range: [0, 5]}",
    "lr: {range: [0, 1, 0.1]}",
    "o: {parameters: {lr: [1]}}",
    "lr: {min: 1, max: 3}",
    "lr: {randint: 3}",
    "lr: {geomspace: [0.1, 1, 4]}",
    "lr: {log2: [-5, 1]}",
    "lr: {values: [1], distribution: categorical}",
]
BAD = ["lr: []", "lr: {}", "lr: {vlaues: [1]}", "lr: {range: [1]}", "lr: {min: 1}", "l-r: [1]", "lr:"]
BAD += ["lr: {values: 3}", "lr: {values: [1], x: 2}"]


@pytest.mark.parametrize("parameter", [*GOOD, *BAD])
def test_it_agrees_with_the_reader(parameter: str) -> None:
    text = f"command: 'true'\nparameters:\n  x: [1]\n  {parameter}\n"
    try:
        parse_spec(text, "it.yaml", Path())
        read = True
    except SpecError:
        read = False
    assert read == (parameter in GOOD)
    assert accepts(text) == read


@pytest.mark.parametrize(
    "line",
    ["timeout: soon", "resources: {memory: 2G}", "x: 1", "method: sobol", "env: {MONKEY_A: b}", "run_cap: 0",
     "metric: acc", "provider: []", "zip: [[a]]", "fail_fast: 'yes'", "name: a b", "max_retries: -1", "priority: x",
     "equivalences: [{}]", "equivalences: [{code: abc}]", "equivalences: [{renamed: {}}]", "equivalences: [{code: 1}]"],
)  # fmt: skip
def test_it_refuses_what_the_reader_refuses(line: str) -> None:
    assert not accepts(f"command: 'true'\n{line}\n")
    with pytest.raises(SpecError):
        parse_spec(f"command: 'true'\n{line}\n", "it.yaml", Path())


def test_the_repository_s_own_spec_is_valid() -> None:
    for path in sorted((Path(__file__).parents[4] / "specs").glob("*.yaml")):
        VALIDATOR.validate(document.read_document(path, path.name).data)


@pytest.mark.parametrize("repeat", ["3", "{fold: [a, b]}", "{fold: 2, seed: 3}", "{fold: {range: [0, 3]}}"])
def test_it_takes_what_repeats(repeat: str) -> None:
    text = f"command: a\nrepeat: {repeat}\n"
    assert accepts(text) and parse_spec(text, "specs/it.yaml", Path()).repeat


@pytest.mark.parametrize("repeat", ["0", "[0, 1]", "true", "2.5", "a", "{fold: 0}", "{fold: []}", "{fold: a}"])
def test_it_refuses_what_repeats_nothing(repeat: str) -> None:
    text = f"command: a\nrepeat: {repeat}\n"
    assert not accepts(text)
    with pytest.raises(SpecError):
        parse_spec(text, "specs/it.yaml", Path())
