"""Conditions: what they mean, and that nothing but them can be said."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monkey.spec.parameters.conditions import ConditionError, parse_condition

JOB: dict[str, Any] = {"lr": 0.1, "n": 3, "opt": "sgd", "flag": True, "none": None, "o.lr": 2}
JOB |= {"tags": ["a", "b"], "lambda": 7}
NAMES = [*JOB, "gone", "also.gone"]


@pytest.mark.parametrize(
    "text",
    [
        "lr == 0.1", "lr < 0.2", "n >= 3 and n <= 3", "0 < lr < n < 4", "n != 4", "opt == 'sgd'", 'opt == "sgd"',
        "opt in ['sgd', 'adam']",
        "opt not in ('adam',)", "'gd' in opt", "'a' in tags", "flag", "not (n == 4)", "none == null", "none == None",
        "flag == true",
        "true", "not false", "n + 1 == 4", "n * 2 - 1 == 5", "n / 2 == 1.5", "n // 2 == 1 and n % 2 == 1",
        "-n == -3", "+n == 3",
        "o.lr == 2", "o . lr == 2", "lambda == 7", "n == 3 or gone", "gone > 1 or n == 3", "  n\n== 3 ",
        "n in {1, 3}", "tags == ['a', 'b']",
        "opt == 'sgd' and (n == 3 or lr > 1)", "n == 0x3", "flag != 'lambda'",
    ],
)  # fmt: skip
def test_holds(text: str) -> None:
    assert parse_condition(text, NAMES).holds(JOB)
    assert not parse_condition(f"not ({text.strip()})", NAMES).holds(JOB)


@pytest.mark.parametrize(
    "text",
    ["gone", "gone == 1", "gone != 1", "not gone", "not (gone == 1)", "gone > 1 and flag", "gone + 1 > 0",
     "gone in [1]", "1 in [gone]", "also.gone == 'x'", "gone == gone", "-gone < 1"],
)  # fmt: skip
def test_what_a_job_does_not_have_is_unknown(text: str) -> None:
    assert not parse_condition(text, NAMES).holds(JOB)


def test_uses() -> None:
    assert parse_condition("o.lr > 1 and lambda == n or true", NAMES).uses == {"o.lr", "lambda", "n"}
    assert parse_condition("val_acc > 0.9", None).uses == {"val_acc"}


@pytest.mark.parametrize(
    "text, message, offset",
    [
        ("lrr < 1", "unknown parameter 'lrr'", 0),
        ("n < 1 and o.x == 1", "unknown parameter 'o.x'", 10),
        ("opt == sgd", "unknown parameter 'sgd'", 7),
        ("n = 3", "not a condition", 2),
        ("n == 3 && flag", "not a condition", 8),
        ("n == )", "not a condition", 5),
        ("", "not a condition", 0),
        ("n; n", "not a condition", 1),
        ("f(1)", "a call cannot stand", 0),
        ("__import__('os').system('ls')", "a call cannot stand", 0),
        ("opt.__class__", "unknown parameter 'opt.__class__'", 0),
        ("'a'.upper == n", "an attribute cannot stand", 0),
        ("tags[0] == 'a'", "an index cannot stand", 0),
        ("n ** 2 == 9", "this operator cannot stand", 0),
        ("n << 2 == 9", "this operator cannot stand", 0),
        ("~n == 9", "this operator cannot stand", 0),
        ("n if flag else n", "if … else cannot stand", 0),
        ("[x for x in tags]", "listcomp cannot stand", 0),
        ("f'{n}' == '3'", "an f-string cannot stand", 0),
        ("{1: 2} == n", "a mapping cannot stand", 0),
        ("(y := 3) == n", "namedexpr cannot stand", 1),
        ("n is 3", "'is' is not there", 0),
        ("n == 1j", "this literal cannot stand", 5),
        ("n == b'a'", "this literal cannot stand", 5),
        ("n == ...", "this literal cannot stand", 5),
        ("n == 9" + "9" * 200, "too many digits", 5),
        (" é == 1 and rx == 1", "unknown parameter 'é'", 1),
        ("'é' == opt and rx == 1", "unknown parameter 'rx'", 15),
    ],
)
def test_what_is_no_condition(text: str, message: str, offset: int) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text, NAMES)
    assert message in caught.value.message
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "text, message",
    [
        ("opt < 1", "where opt = 'sgd'"),
        ("n / 0 == 1", "division by zero"),
        ("n % 0 == 1", "zero"),
        ("opt * 3 == 'x'", "cannot calculate with 'sgd'"),
        ("tags + tags == 1", "cannot calculate with"),
        ("flag + 1 == 2", "cannot calculate with True"),
        ("n", "expected true or false from 'n', found 3"),
        ("n and flag", "expected true or false, found 3"),
        ("not opt", "expected true or false, found 'sgd'"),
        ("1 in opt", "where opt = 'sgd'"),
        ("n in n", "where n = 3"),
    ],
)
def test_what_cannot_be_decided(text: str, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text, NAMES).holds(JOB)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "text",
    ["(" * 900 + "n" + ")" * 900, "not " * 400 + "flag", "-" * 1900 + "n", "n+" * 900 + "n", "[" * 900, "n" * 3000,
     "n*" * 30 + "n > 1",
     "n <" * 600 + "n", "o." * 900 + "x", "9**9**9**9 > 1", "'a' * 9999999999 == 1", "\0", "n\r== 3", "\x0cn == 3",
     "'\\d' == opt"],
    ids=range(15),
)  # fmt: skip
def test_bombs_end_at_once(text: str) -> None:
    begin = time.process_time()
    try:
        parse_condition(text, NAMES).holds(JOB)
    except ConditionError as error:
        assert error.message
    # A bomb takes minutes; a garbage collection of all that the other tests left takes a tenth of a second.
    assert time.process_time() - begin < 1


TOKENS = ["lr", "n", "opt", "gone", "flag", "o.lr", "1", "0.5", "'a'", "and", "or", "not", "in", "(", ")", "[", "]",
          ",", "<", "==", "+", "-", "*", "/", "%", "**", ".", "is", "if", "else", "lambda",
          "None", "true", "{", "}", ":", "=", "f''", "\\", "#",
          "\n"]  # fmt: skip


@given(st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join) | st.text(max_size=30))
@example("lambda: 1")
@example("o.lambda")
@example("1_0 == n")
@example("\ud800")
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        parse_condition(text, NAMES).holds(JOB)
    except ConditionError as error:
        assert error.message
        assert error.offset is None or 0 <= error.offset <= len(text)
