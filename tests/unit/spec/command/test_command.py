"""Commands: which form is which, and what is refused because it could become code."""

from __future__ import annotations

import shlex
import subprocess
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monkey.spec.command.command import CommandError, show_command
from monkey.spec.command.word_split import split_words
from tests.unit.spec.commands import PRINTF, compiled, output, refused, shell_noise


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
            split_words(line)
        return
    assert split_words(line) in (expected, None)
    if not line.startswith((".", "a=", "b=")) and "=" not in line and expected[:1] != ["."]:
        assert split_words(line) == expected


@settings(max_examples=60)
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
        return split_words(line)
    except ValueError:
        return None


def test_shell_form_passes_values_by_environment() -> None:
    rendered = compiled('echo {x} "{y}{x}" > out').render({"x": "1", "y": 2})
    assert rendered.argv[-3:] == ["-c", 'echo "${MONKEY_P_0}" "${MONKEY_P_1}${MONKEY_P_0}" > out', "sh"]
    assert rendered.env == {"MONKEY_P_0": "1", "MONKEY_P_1": "2"}


def test_a_command_is_shown_as_a_person_would_run_it() -> None:
    script = show_command("false | cat; exit 7", {})
    assert script == "bash --posix -eo pipefail -c 'false | cat; exit 7'"
    assert subprocess.run(["sh", "-c", script]).returncode == 1, "as the job: its first part fails"
    assert show_command("python 'a b' {x}", {"x": "1 2"}) == "python 'a b' '1 2'"
    assert show_command(["sh", "-c", "a; b"], {}) == "sh -c 'a; b'"
    assert show_command("python {gone}", {}) == "python {gone}"


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
        pytest.param("a " + "$(" * 2_000 + "b" + ")" * 2_000, "nested too deeply", "file", 0, id="nested deeply"),
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


@pytest.mark.parametrize("script", ["a {x} | b ", "a "])
def test_a_long_word_is_read_in_no_time(script: str) -> None:
    begun = time.process_time()
    compiled(script + "c" * 100_000)
    assert time.process_time() - begun < 10


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
