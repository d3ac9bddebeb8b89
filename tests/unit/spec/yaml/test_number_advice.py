"""Scalars that are other than they look; what a spec's plan says of them."""

from __future__ import annotations

import pytest

from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.number_advice import list_number_advice

#: What is written, what a job gets of it, and the number that is offered.
DOUBTFUL = [
    ("2**-5", "a text", "0.03125"),
    ("10^-3", "a text", "0.001"),
    ("1e-4 * 2", "a text", "0.0002"),
    ("-2 ** 3", "a text", "-8"),
    ("1_000", "a text", "1000"),
    ("1_000_000.5", "a text", "1000000.5"),
    ("08", "the number 8", "8"),
    ("010824", "the number 10824", "10824"),
    ("-007", "the number -7", "-7"),
    ("00.5", "the number 0.5", "0.5"),
    ("1E234", "the number 1e+234", "1e+234"),
    ("12e56", "the number 1.2e+57", "1.2e+57"),
    ("3.10", "the number 3.1", "3.1"),
]


def advice(value: str, field: str = "parameters") -> list[str]:
    return list_number_advice(parse_document(f"command: a\n{field}:\n  p: {value}\n", "specs/it.yaml"))


@pytest.mark.parametrize(("written", "what", "number"), DOUBTFUL)
def test_a_scalar_that_is_other_than_it_looks_is_named(written: str, what: str, number: str) -> None:
    said = f"{written} is {what}: write {number}, or '{written}' in quotes"
    assert advice(written) == [f"specs/it.yaml:3:6: {said}"]
    assert advice(f"{{values: [a, {written}], when: x > 1}}") == [f"specs/it.yaml:3:19: {said}"]
    assert advice(f"[{{a: {written}}}]", "include") == [f"specs/it.yaml:3:11: {said}"]
    for quote in "'\"":
        assert not advice(f"[{quote}{written}{quote}, 1]"), "quotes say that it is a text"
    assert not advice(number)
    assert not advice(written, "env")


@pytest.mark.parametrize(
    "written",
    ["0", "0.10", "-0", "1.0", "0.50", "1e-4", "1E-4", "1e3", "2e10", "5e+40", "0x1f", "0o17", "2023_10_01", "a_1",
     "1/2", "2 * x", "a**2", "1-2", "1.2.30", "9**999999999999", "0**-1", "10**400", "x08", "1.5", "", "~", "16x16",
     "1e99999999999999999999*2"],
)  # fmt: skip
def test_other_scalars_are_what_they_are(written: str) -> None:
    assert not advice(f"[{written}]")


def test_a_long_text_is_passed_over_at_once() -> None:
    """Of 20,000 digits, a pattern tried for a minute how they could be two numbers."""
    assert not advice("1" * 20_000 + "x")


def test_a_list_of_equally_many_decimals_is_one_of_numbers() -> None:
    assert not advice("[1.25, 1.50, 1.75]")
    assert len(advice("[3.8, 3.9, 3.10, 3.20]")) == 2


def test_a_few_are_named_of_many() -> None:
    assert len(advice(f"[{', '.join(f'0{n}' for n in range(1, 50))}]")) == 5
