"""Names of previews and checks: which they are, that they fit, and that no spec takes one."""

from __future__ import annotations

import random

import pytest

from monkey.protocol.layout import is_name
from monkey.spec.sweep.json_schema import build_spec_schema
from monkey.spec.sweep.sweep_names import (
    SWEEP_NAME_PATTERN,
    make_check_name,
    make_preview_name,
    parse_check_name,
    parse_preview_name,
)
from tests.unit.spec.making import problem

LETTERS = "aZ0._-"


def test_a_preview_is_named_after_its_pull_request_and_its_sweep() -> None:
    assert make_preview_name(12, "digits") == "pr-12.digits"
    assert make_preview_name(12, "x" * 57) == "pr-12." + "x" * 57
    assert make_preview_name(12, "x" * 58) == "pr-12." + "x" * 48 + "-0cdadf33"


@pytest.mark.parametrize(
    ("name", "pull"),
    [
        ("pr-12.digits", 12),
        ("pr-1.pr-2.x", 1),
        ("pr-012.x", 12),
        ("pr-12", None),
        ("pr-12-digits", None),
        ("pr-.digits", None),
        ("pr-x.digits", None),
        ("xpr-12.digits", None),
        ("PR-12.digits", None),
        ("pr-١٢.digits", None),
        ("", None),
    ],
)
def test_the_number_is_read_from_the_name(name: str, pull: int | None) -> None:
    assert parse_preview_name(name) == pull


def test_all_names_fit_stay_apart_and_are_read_again() -> None:
    dice, made = random.Random(3), dict[str, tuple[int, str]]()
    for _ in range(2_000):
        name = dice.choice("aZ0") + "".join(dice.choices(LETTERS, k=dice.choice([0, 5, 50, 60, 61, 62])))
        pull = dice.choice([1, 12, 10**9])
        found = make_preview_name(pull, name)
        assert SWEEP_NAME_PATTERN.match(found) and parse_preview_name(found) == pull
        assert made.setdefault(found, (pull, name)) == (pull, name)


def test_no_spec_takes_such_a_name() -> None:
    assert "which only `monkey rerun --check` gives" in problem("name: check-3.digits\ncommand: 'true'\n").message
    found = problem("name: pr-12.digits\ncommand: 'true'\n")
    assert (found.line, found.column) == (1, 7)
    assert (
        found.message == "expected a sweep's own name, found 'pr-12.digits', which only `monkey apply --preview` gives"
    )
    assert found.hint == "use a name that does not begin with pr-, digits and a dot"
    jsonschema = pytest.importorskip("jsonschema")
    schema = build_spec_schema()
    jsonschema.validate({"name": "pr-digits", "command": "true"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "pr-12.digits", "command": "true"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "check-3.digits", "command": "true"}, schema)


def test_a_check_is_named_after_its_number_and_its_sweep() -> None:
    for sweep in ("digits", "pr-12.digits", "check-x", "x" * 63):
        name = make_check_name(12, sweep)
        assert parse_check_name(name) == (12, sweep) and parse_preview_name(name) is None
    assert is_name(make_check_name(10**9 - 1, "x" * 63))
    assert not any(
        map(parse_check_name, ("check-1", "check-1.", "check-.x", "check-1-x", "xcheck-1.x", "CHECK-1.x", ""))
    )
