"""What reaches a real process: every value arrives whole, in every form of command, and none runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from monkey.spec.command.command import CommandError, format_argument
from monkey.spec.job.job_table import ParameterValue
from tests.unit.spec.commands import PRINTF, compiled, output, shell_noise

NASTY = [
    "", " ", "a b", "'", '"', "it's", '"$(touch owned)"', "$(touch owned)", "`touch owned`", "; touch owned", "\n",
    "a\nb\n", "\\", "\\\\n", "$HOME", "${HOME}", "{lr}", "{{}}", "{x}", "-n", "--help", "-", "*", "?", "[a-z]", "~",
    "#", "!", "&&", "||", "|", ">owned", "<", "\t", "\r", "é", "日本語", "🐒", "\x7f", "\x01", "\u2028", "%s",
    "a'b\"c`d$e", "\\0", "a[$(touch owned)]", "$'\\n'", "x" * 3000,
]  # fmt: skip

#: Each prints its arguments; the value goes in as x, and the expected words come out.
FORMS: list[tuple[str | list[str], str]] = [
    (rf"{PRINTF} '%s\0' {{x}}", "{}"),
    (rf"{PRINTF} '%s\0' --x={{x}}", "--x={}"),
    (rf"{PRINTF} '%s\0' 'a {{x}} b'", "a {} b"),
    (rf'{PRINTF} "%s\0" "a {{x}}"', "a {}"),
    ([PRINTF, r"%s\0", "{x}"], "{}"),
    ([PRINTF, r"%s\0", "<{x}>"], "<{}>"),
    (["sh", "-c", rf"{PRINTF} '%s\0' {{x}}"], "{}"),
    (rf"true && {PRINTF} '%s\0' {{x}}", "{}"),
    (rf"true && {PRINTF} '%s\0' a{{x}}b", "a{}b"),
    (rf'true && {PRINTF} "%s\0" "a {{x}}b"', "a {}b"),
    (rf"""true; /bin/sh -c '{PRINTF} "%s\0" "$1"' sh {{x}}""", "{}"),
    (rf"""V={{x}}; {PRINTF} '%s\0' "$V" """, "{}"),
    (rf"""V={{x}} sh -c '{PRINTF} "%s\0" "$V"'""", "{}"),
    (f"{sys.executable} -ISc 'import os, sys; os.write(1, os.fsencode(sys.argv[1]) + b\"\\0\")' {{x}}", "{}"),
]


@pytest.mark.parametrize("value", NASTY, ids=range(len(NASTY)))
@pytest.mark.parametrize("command, shape", FORMS[:-1], ids=range(len(FORMS) - 1))
def test_nasty_values_arrive_whole(
    command: str | list[str], shape: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert output(command, x=value) == [shape.replace("{}", value)]
    assert not list(tmp_path.iterdir())


#: Where bash calculates with a value, and so runs the `$(…)` in it; dash does not.
SUMS = [
    "X={x}; true $((X))",
    'X={x}; true "$((1 + $X))"',
    "X={x}; true ${!X}",
    'X={x}; true "${X@P}"',
    "A=({x}); true ${A[0]@P}",
    'X={x}; true "${HOME:X}"',
    'X={x}; true "${HOME:1:X}"',
    'X={x}; true "${A[X]}"',
    "A[{x}]=1; true",
    'A["{x}"]+=1; true',
    "X={x}; A[X]=1; true",
    "X={x}; A[$X]=1; true",
    "A=([{x}]=1); true",
    "set -- {x}; true $(($1))",
    'set -- {x}; true "${1@P}"',
    "X={x}; B=([1]=2 [A[X]]=1); true",
]


@pytest.mark.parametrize("command", SUMS)
def test_bash_calculates_with_no_value_that_holds_code(command: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    for value in (
        "A[$(touch owned)]",
        "A[`touch owned`]",
        "a[$(touch owned)]+1",
        r"\\044(touch owned)",
        "$(touch owned)",
    ):
        with pytest.raises(CommandError, match="bash might run"):
            compiled(command).render({"x": value})
    for fine in (7, "x", "a b", "$HOME", "1[2]"):
        compiled(command).render({"x": fine})
    if bash:  # that it would
        script = compiled(command).render({"x": 1}).argv[-2]
        values = ["A[$(touch owned)]", "$(touch owned)"]
        for value in values:
            subprocess.run(
                [bash, "-c", script],
                env={"MONKEY_P_0": value, "HOME": "/", "PATH": os.environ["PATH"]},
                cwd=tmp_path,
                capture_output=True,
            )
        assert [path.name for path in tmp_path.iterdir()] == ["owned"]


def test_values_are_free_where_nothing_is_calculated() -> None:
    for command in (
        "[ {x} = a ] && b",
        'a "${B:-c}" {x}',
        "X={x}; a ${X%.*} | tr '[a-z]' b",
        "a [{x}] | b",
        "a; b --c[0]={x}",
    ):
        compiled(command).render({"x": "$(touch owned)"})


@pytest.mark.parametrize("value", ['it\'s $(a) "b" `c` \n {d} é -', "--help"])
def test_values_arrive_in_python(value: str) -> None:
    assert output(FORMS[-1][0], x=value) == [value]


#: What argv can carry: text that UTF-8 can write, without NUL.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@settings(max_examples=100)
@given(value=texts | shell_noise)
def test_any_value_arrives_whole_in_every_form_at_once(value: str) -> None:
    """One process a form would take minutes: one script holds the shell's forms, one argv the others."""
    # Such a word may be a program that sends what follows to a shell elsewhere: it is refused wherever it stands.
    assume(value.rsplit("/", 1)[-1] not in ("ssh", "rsh"))
    script = (
        rf"""{PRINTF} '%s\0' {{x}} a{{x}} "{{x}}" "a {{x}}b" "$({PRINTF} '<%s>' {{x}})" "$({PRINTF} '<%s>' "{{x}}")" """
    )
    assert output(script, x=value) == [value, f"a{value}", value, f"a {value}b", f"<{value}>", f"<{value}>"]
    words = rf"{PRINTF} '%s\0' {{x}} --a={{x}} '{{x}}' \"{{x}}\""
    assert output(words, x=value) == [value, f"--a={value}", value, f'"{value}"']
    assert output([PRINTF, r"%s\0", "{x}{x}", "{{{x}}}"], x=value) == [value + value, f"{{{value}}}"]


@given(value=texts)
def test_values_are_never_substituted_twice(value: str) -> None:
    rendered = compiled("a {x} {y}").render({"x": "{y}" + value, "y": "{x}"})
    assert rendered.argv == ["a", "{y}" + value, "{x}"]


@pytest.mark.parametrize(
    "value, text",
    [
        ("a b", "a b"),
        (True, "true"),
        (None, "null"),
        (1e-05, "1e-05"),
        (0.1, "0.1"),
        (1.0, "1.0"),
        (10**30, "1" + "0" * 30),
        ([1, "é", None], '[1,"é",null]'),
        ({"b": 1, "a": [0.5]}, '{"b":1,"a":[0.5]}'),
    ],
)
def test_text_of(value: ParameterValue, text: str) -> None:
    assert format_argument(value) == text
    assert compiled("a {x}").render({"x": value}).argv == ["a", text]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_the_same(value: float) -> None:
    assert json.loads(format_argument(value)) == value


PIECES = [
    "{x}",
    '"',
    "'",
    " ",
    "a",
    "\n",
    "$(",
    ")",
    "(",
    "`",
    "\\",
    "#",
    ";",
    "| ",
    "${B}",
    "$B",
    "&& ",
    "{{",
    "}}",
    "=",
    "$",
]

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash") if Path(shell).exists()]


@settings(max_examples=300)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=12))
def test_whatever_script_is_accepted_no_value_runs(pieces: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Values that would leave a file behind if they ran; the scripts themselves write none and find no command."""
    try:
        made = compiled("true " + "".join(pieces))
    except CommandError:
        return
    where = tmp_path_factory.getbasetemp() / "scratch"
    where.mkdir(exist_ok=True)
    for value in ("$(>owned)`>owned`", "\n>owned\n", "';>owned;'\";>owned;\""):
        rendered = made.render(dict.fromkeys(made.uses, value))
        for shell in SHELLS if rendered.env else ():
            subprocess.run(
                [shell, *rendered.argv[1:]],
                env={"PATH": "/nowhere", "B": "b", **rendered.env},
                cwd=where,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=10,
            )
            assert not list(where.iterdir()), rendered.argv
