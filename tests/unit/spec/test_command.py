"""Commands: which form is which, what reaches a real process, and what is refused because it could become code."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monkey.spec.command import Command, CommandError, compile_command, text_of
from monkey.spec.table import Value
from monkey.spec.words import split

PRINTF = shutil.which("printf") or "/usr/bin/printf"
NAMES = ["x", "y", "lr", "optimizer.lr"]


def compiled(command: str | list[str]) -> Command:
    return compile_command(command, NAMES)


def output(command: str | list[str], **parameters: Value) -> list[str]:
    """Run a command that prints its arguments, each ended by NUL, and return them."""
    rendered = compiled(command).render(parameters)
    done = subprocess.run(rendered.argv, env={"PATH": "/usr/bin:/bin", **rendered.env}, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def refused(command: str | list[str]) -> CommandError:
    with pytest.raises(CommandError) as caught:
        compiled(command)
    return caught.value


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


@pytest.mark.parametrize("value", ['it\'s $(a) "b" `c` \n {d} é -', "--help"])
def test_values_arrive_in_python(value: str) -> None:
    assert output(FORMS[-1][0], x=value) == [value]


#: What argv can carry: text that UTF-8 can write, without NUL.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
shell_noise = st.text(st.sampled_from(list("$(){}`'\"\\;&|<>*?[]~#!\n\t -=abx%")), max_size=25)


@settings(max_examples=100, deadline=None)
@given(value=texts | shell_noise)
def test_any_value_arrives_whole_in_every_form_at_once(value: str) -> None:
    """One process a form would take minutes: one script holds the shell's forms, one argv the others."""
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
def test_text_of(value: Value, text: str) -> None:
    assert text_of(value) == text
    assert compiled("a {x}").render({"x": value}).argv == ["a", text]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_the_same(value: float) -> None:
    assert json.loads(text_of(value)) == value


@pytest.mark.parametrize(
    "command, argv",
    [
        ("python train.py", ["python", "train.py"]),
        ("\n a b \n \n", ["a", "b"]),
        ("  a   b\t c \n", ["a", "b", "c"]),
        ("a 'b  c' \"d e\" f\\ g", ["a", "b  c", "d e", "f g"]),
        ("a '' \"\"", ["a", "", ""]),
        ("a b'c'\"d\"e", ["a", "bcde"]),
        (r'a "\$HOME \" \\ \n"', ["a", '$HOME " \\ \\n']),
        ("a '$HOME | b'", ["a", "$HOME | b"]),
        (r"a \| \$b \* \# \;", ["a", "|", "$b", "*", "#", ";"]),
        ("a \\\n  b", ["a", "b"]),
        ("a model.layers=[64,32]", ["a", "model.layers=[64,32]"]),
        ("a x=1 b#c d~e", ["a", "x=1", "b#c", "d~e"]),
        ("a {{}} {{b}}", ["a", "{}", "{b}"]),
        ("a '{{\"b\": 1}}'", ["a", '{"b": 1}']),
        ("a '${B}' '${{B}}'", ["a", "${B}", "${B}"]),
        ("awk '{{print $1}}' f", ["awk", "{print $1}", "f"]),
        ("/bin/echo é", ["/bin/echo", "é"]),
    ],
)
def test_words_without_shell(command: str, argv: list[str]) -> None:
    assert compiled(command).render({}).argv == argv


@pytest.mark.parametrize(
    "command",
    [
        "a | b", "a && b", "a; b", "a > b", "a < b", "a &", "a $HOME", 'a "$HOME"', "a `b`", 'a "`b`"', "a *.csv",
        "a b?", "a\nb", "(a)", "a ~/b", "~/a", "# a", "a # b", "A=1 b", "cd a", "exec a", ". a", "! a", "a $(b)",
    ],
)  # fmt: skip
def test_shell_syntax_runs_under_sh(command: str) -> None:
    assert compiled(command).render({}).argv[:2] == ["sh", "-c"]


@given(st.text(st.sampled_from(list("ab '\"\\é=-./")), max_size=30))
@example("a\\\\ b")
def test_words_are_shlex_s(line: str) -> None:
    """Where shlex and sh agree, we do."""
    try:
        expected = shlex.split(line)
    except ValueError:
        with pytest.raises(ValueError):
            split(line)
        return
    assert split(line) in (expected, None)
    if not line.startswith((".", "a=", "b=")) and "=" not in line and expected[:1] != ["."]:
        assert split(line) == expected


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from(list("ab '\"\\$é")), max_size=20))
def test_words_are_sh_s(line: str) -> None:
    r"""What we split, sh splits the same way."""
    words = _split_or_none(line)
    if words is None or not words:
        return
    done = subprocess.run(["sh", "-c", rf"{PRINTF} '%s\0' {line}"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def _split_or_none(line: str) -> list[str] | None:
    try:
        return split(line)
    except ValueError:
        return None


def test_shell_form_passes_values_by_environment() -> None:
    rendered = compiled('echo {x} "{y}{x}" > out').render({"x": "1", "y": 2})
    assert rendered.argv == ["sh", "-c", 'echo "${MONKEY_P_0}" "${MONKEY_P_1}${MONKEY_P_0}" > out']
    assert rendered.env == {"MONKEY_P_0": "1", "MONKEY_P_1": "2"}


def test_script_of_a_shell_in_words_gets_variables_too() -> None:
    for command in ("bash -euc 'echo {x}' sh {y}", ["bash", "-eu", "-o", "pipefail", "-c", "echo {x}", "sh", "{y}"]):
        rendered = compiled(command).render({"x": "$(touch owned)", "y": "-c"})
        assert rendered.argv[-3:] == ['echo "${MONKEY_P_0}"', "sh", "-c"]
        assert rendered.env == {"MONKEY_P_0": "$(touch owned)"}
    plain = compiled(["bash", "train.sh", "-c", "{x}"]).render({"x": "a"})
    assert plain.argv == ["bash", "train.sh", "-c", "a"] and plain.env == {}


def test_uses_names_what_is_needed() -> None:
    assert compiled("a {x} {optimizer.lr}").uses == {"x", "optimizer.lr"}
    assert compiled("a {x} | b {lr}").uses == {"x", "lr"}
    assert compiled(["sh", "-c", "{y}"]).uses == {"y"}
    with pytest.raises(CommandError, match="no parameter 'x'"):
        compiled("a {x}").render({})
    with pytest.raises(CommandError, match="NUL"):
        compiled("a {x}").render({"x": "a\0b"})


@pytest.mark.parametrize(
    "command, message, hint, offset",
    [
        ("a {lrr}", "unknown parameter 'lrr'", "did you mean 'lr'?", 2),
        ("a { lr }", "unknown parameter ' lr '", "{lr} without spaces", 2),
        ("a {lr", "a single '{'", "{name}", 2),
        ("a lr}", "a single '}'", "}}", 4),
        ("a {}", "{} is not a parameter", "{{}}", 2),
        ('a {"b": 1}', "is not a parameter", '{{"b": 1}}', 2),
        ("awk '{print $1}'", "{print $1} is not a parameter", "{{print $1}}", 5),
        ("a | b '{lr}'", "a parameter inside single quotes", "double quotes", 7),
        ("a 'b", "the quote ' is never closed", "add", 2),
        ('a | "b', 'the quote " is never closed', "add", 4),
        ("a $(b", "'$(' is never closed", "add the )", 2),
        ("a $((1 + {x}))", "inside $((…))", "program", 9),
        ("a `b {x}`", "inside backticks", "$(…)", 5),
        ("a ${B:-{x}}", "more than a name", "variable", 2),
        ("a $lr", "$lr is a variable of the shell", "{lr}", 2),
        ("a ${lr}", "${lr} is a variable of the shell", "{lr}", 2),
        ("a ${{ lr }}", "is not a parameter", "{name}", 2),
        ("a ${args}", "W&B", "{lr}", 2),
        ("a $'b'", "is not sh's", "printf", 2),
        ("a <<EOF\nb\nEOF", "'<<' is not followed", "file", 2),
        ("a; [[ {x} == 1 ]]", "'[[' is not sh's", "[ … ]", 3),
        ("a <(b)", "'<(' is not sh's", "pipe", 2),
        ("((x=1))", "'((' is not sh's", "$((…))", 0),
        ("a \\{x}", "a backslash before a parameter", "{{", 2),
        ("a | b \\{x}", "a backslash before a parameter", "{{", 6),
        ('a "${B:-"c"}"', "more than a name", "file", 3),
        ("a $(case b in b) echo {x};; esac)", "'case' inside $(…)", "file", 4),
        ("", "expected a command", "program", None),
        ("''", "expected a program", "name", 0),
        ("a \\", "a backslash at the end", "remove", 2),
    ],
)
def test_what_is_not_a_command(command: str, message: str, hint: str, offset: int | None) -> None:
    error = refused(command)
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.offset == offset


def test_comments_are_left_out() -> None:
    assert output(rf"{PRINTF} '%s\0' a # it's {{x}}" + "\n", x="b") == ["a"]
    assert output("a() {{ :; }}; # it's {x}\n" + rf"{PRINTF} '%s\0' {{x}}", x="b") == ["b"]


def test_a_script_inside_words_is_located() -> None:
    error = refused(["sh", "-c", "a '{x}'"])
    assert (error.word, error.offset) == (2, 3)
    error = refused("sh -c \"a '{x}'\"")
    assert (error.word, error.offset) == (None, 10)
    assert "single quotes" in error.message


def test_words_of_a_list_are_located() -> None:
    error = refused(["python", "a {b}"])
    assert (error.word, error.offset) == (1, 2)
    assert refused([]).message == "expected a command, found nothing"


@given(st.text(max_size=60) | shell_noise | st.lists(st.text(max_size=20), max_size=4))
@example("\\\n")
@example("$" * 50)
@example("{" * 60)
@example("$(" * 30)
@example('"$(' * 30)
def test_any_text_is_compiled_or_refused(command: str | list[str]) -> None:
    try:
        made = compiled(command)
    except CommandError as error:
        assert error.message
        word = command if isinstance(command, str) else command[error.word or 0] if command else ""
        assert error.offset is None or 0 <= error.offset <= len(word)
    else:
        made.render(dict.fromkeys(made.uses, "v"))


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


@settings(max_examples=300, deadline=None)
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
