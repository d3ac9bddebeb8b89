"""A reader of sh scripts: just enough of sh to know where a parameter stands.

The script has a PARAMETER_PLACEHOLDER for each parameter. The reader refuses what it does not fully understand
(heredocs, backticks around a parameter, `case` inside `$(…)`, …): a guess could let a value become code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from monkey.spec.command.injection_risks import (
    EXPANSION_PLACEHOLDER,
    PARAMETER_PLACEHOLDER,
    find_script_arguments,
    may_run_input,
)
from monkey.spec.command.shell_error import InjectionError, ShellError, make_escape_error, make_unclosed_error
from monkey.spec.command.simple_command import POSITIONAL, SimpleCommand

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What `$` may name, also the words that a script got.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*]")
#: In a script that the reader does not follow: where a shell may evaluate a variable's value.
_EVALUATES = re.compile(r"\b(?:eval|trap|let|declare|typeset|source)\b|\(\(|\[\[.*-(?:eq|ne|lt|le|gt|ge)\b", re.DOTALL)
#: Operators of two characters that end a command, or redirect its output.
_TWO_CHARACTERS = ("&&", "||", "|&", ";;", ";&", "&>")
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)


class ScriptStep(NamedTuple):
    """A simple command as it stands in a script."""

    text: str
    #: Offset in the script.
    at: int
    #: Without assignments, redirections and such as `if`, quotes taken off.
    words: list[str]
    #: "" at the end of the script.
    operator: str


def list_steps(text: str) -> list[ScriptStep]:
    """Return the simple commands of a script without parameters, but for those inside `$(…)`. Raises ShellError."""
    reader = _ScriptReader(text, (), ())
    reader.read()
    steps: list[ScriptStep] = []
    start = 0
    for end, words in reader.ended:
        if end < start:
            continue  # the second character of an operator
        operator = text[end : end + 1 + text.startswith(_TWO_CHARACTERS, end)]
        own = text[start:end].lstrip()
        steps.append(ScriptStep(own.rstrip(), end - len(own), words, operator))
        start = end + len(operator)
    return steps


def expand_script(text: str, variables: Sequence[str], parameters: Collection[str]) -> str:
    """Return the script with an expansion of the n-th variable in place of the n-th parameter. Raises ShellError.

    Unquoted places become `"${X}"`, those inside double quotes `${X}`; elsewhere a value could not be kept whole.
    `parameters` are names that a `$name` is refused for, as a mistake.
    """
    reader = _ScriptReader(text, variables, parameters)
    reader.read()
    return "".join(reader.out)


def may_evaluate_arguments(words: Sequence[str], tainted: Collection[str] = ()) -> bool:
    """Say whether the script of a `sh -c` among the words makes code of a value that it gets.

    It gets values by its arguments, by variables that are set before it, and by the `tainted` ones.
    """
    for script, first in find_script_arguments(words):
        known = {*tainted, *(word.partition("=")[0] for word in words[:script] if PARAMETER_PLACEHOLDER in word)}
        known |= POSITIONAL if any(PARAMETER_PLACEHOLDER in word for word in words[first:]) else set()
        text = words[script].replace(PARAMETER_PLACEHOLDER, "x")
        reader = _ScriptReader(text, (), ())
        reader.tainted.update(known)
        try:
            reader.read()
        except InjectionError:
            return True
        except ShellError:
            return _EVALUATES.search(text) is not None and any(re.search(rf"\${{?{re.escape(n)}", text) for n in known)
    return False


class _ScriptReader:
    """The reader of one script: it walks the script once, and copies it to `out`."""

    def __init__(self, text: str, variables: Sequence[str], parameters: Collection[str]) -> None:
        self.text = text
        self.variables = iter(variables)
        self.parameters = parameters
        self.out: list[str] = []
        #: The shell's variables that hold a parameter.
        self.tainted: set[str] = set()
        #: Offset of the last parameter, and of the last one before the last `|`.
        self.last: int | None = None
        self.piped: int | None = None
        self.simple = SimpleCommand(self.tainted)
        #: The commands outside of `$(…)`: the offset at which each ends, and its words.
        self.ended: list[tuple[int, list[str]]] = []

    def read(self) -> None:
        """Read the whole script. Raises ShellError."""
        try:
            self.commands(0, closing=None)
        except RecursionError:
            raise ShellError("it is nested too deeply", "put the script in a file", 0) from None

    def copy(self, start: int, end: int) -> int:
        self.out.append(self.text[start:end])
        return end

    def commands(self, at: int, closing: int | None) -> int:
        """Read unquoted text to its end, or to the `)` of the `$(` at `closing`; return the offset after it."""
        text, depth, outer = self.text, 0, self.simple
        self.simple = SimpleCommand(self.tainted)
        while at < len(text):
            char = text[at]
            if char == ")" and closing is not None and depth == 0:
                self.end_command(at)
                self.simple = outer
                return self.copy(at, at + 1)
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char in " \t\n;|&()<>":
                at = self.operator(at)
            elif char == "#" and self.simple.word is None:
                at = self.comment(at)
            else:
                self.refuse_strange(at, closing)
                at = self.one(at)
        if closing is not None:
            raise ShellError("'$(' is never closed", "add the )", closing)
        self.end_command(at)
        return at

    def end_command(self, at: int) -> None:
        """End the command at `at`, start another; refuse the ended one if a parameter is piped into it as a script."""
        self.simple.end_word()
        words = self.simple.words
        self.ended.append((at, words))
        if self.piped is not None and words and may_run_input(words):
            raise InjectionError("piped", self.piped)
        if words and self.last is not None and may_evaluate_arguments(words, self.tainted):
            raise InjectionError("evaluated", self.last)
        if self.piped is not None and "read" in words:
            self.tainted.update(words[words.index("read") + 1 :])
        self.simple = SimpleCommand(self.tainted)

    def operator(self, at: int) -> int:
        """Copy an operator or blank, which ends a word, and perhaps a command; return the offset after it."""
        char, simple = self.text[at], self.simple
        if self.text.startswith("<<", at):
            raise ShellError("'<<' is not followed", "put the text, or the whole script, in a file", at)
        if self.text.startswith("((", at):
            raise ShellError("'((' is not sh's", "use $((…)), or write '( (' for a subshell", at)
        if self.text.startswith(("<(", ">("), at):
            raise ShellError(f"'{char}(' is not sh's", "use a pipe or a file", at)
        if char in "<>":
            if simple.word is not None and simple.word.isdigit():
                simple.word = None  # the number of what is redirected
            simple.end_word()
            duplicates = self.text.startswith("&", at + 1)
            simple.redirects = f"{char}&" if duplicates else char
            return self.copy(at, at + 1 + duplicates)
        redirects = simple.redirects  # >| is one operator
        simple.end_word()
        if char not in " \t" and not (char == "|" and redirects):
            self.end_command(at)
            if char == "|" and "||" not in self.text[max(at - 1, 0) : at + 2]:
                self.piped = self.last
        return self.copy(at, at + 1)

    def one(self, at: int) -> int:
        """Copy one character of a word, with the escape, quotes, expansion or parameter that it begins."""
        match self.text[at]:
            case "\0":
                self.place(at)
                self.out.append(f'"${{{next(self.variables)}}}"')
                return at + 1
            case "\\":
                if self.text[at + 1 : at + 2] == PARAMETER_PLACEHOLDER:
                    raise make_escape_error(at)
                if self.text[at + 1 : at + 2] != "\n":
                    self.simple.add(self.text[at + 1 : at + 2])
                return self.copy(at, min(at + 2, len(self.text)))
            case "'":
                return self.single(at)
            case '"':
                return self.double(at)
            case "$":
                return self.dollar(at, quoted=False)
            case "`":
                return self.backtick(at)
        self.simple.add(self.text[at])
        return self.copy(at, at + 1)

    def single(self, at: int) -> int:
        end = self.text.find("'", at + 1)
        if end < 0:
            raise make_unclosed_error("'", at)
        if PARAMETER_PLACEHOLDER in self.text[at:end]:
            hint = "use double quotes: the value is passed whole, whatever it holds"
            raise ShellError("a parameter inside single quotes", hint, self.text.index(PARAMETER_PLACEHOLDER, at))
        self.simple.add(self.text[at + 1 : end])
        return self.copy(at, end + 1)

    def double(self, start: int) -> int:
        self.simple.add("")
        at = self.copy(start, start + 1)
        while at < len(self.text):
            match self.text[at]:
                case '"':
                    return self.copy(at, at + 1)
                case "\\":
                    if self.text[at + 1 : at + 2] == PARAMETER_PLACEHOLDER:
                        raise make_escape_error(at)
                    self.simple.add(self.text[at + 1 : at + 2])
                    at = self.copy(at, min(at + 2, len(self.text)))
                case "$":
                    at = self.dollar(at, quoted=True)
                case "`":
                    at = self.backtick(at)
                case "\0":
                    self.place(at)
                    self.out.append(f"${{{next(self.variables)}}}")
                    at += 1
                case char:
                    self.simple.add(char)
                    at = self.copy(at, at + 1)
        raise make_unclosed_error('"', start)

    def dollar(self, at: int, *, quoted: bool) -> int:
        """Copy what a `$` begins; refuse forms that the reader does not follow."""
        text = self.text
        if text.startswith("$(", at) and not text.startswith("$((", at):
            return self.substitution(at, quoted=quoted)
        self.variable(at, quoted=quoted)
        if text.startswith("$((", at):
            return self.arithmetic(at)
        if text.startswith("${", at):
            return self.braces(at)
        if text.startswith("$'", at) and not quoted:
            raise ShellError("$'…' is not sh's", "use '…' or \"…\", or printf", at)
        if text.startswith("$[", at):
            raise ShellError("$[…] is not sh's", "use $((…))", at)
        name = _NAME.match(text, at + 1)
        if name and name[0] in self.parameters:
            raise ShellError(f"${name[0]} is a variable of the shell", f"for the parameter, write {{{name[0]}}}", at)
        return self.copy(at, at + 2 if text[at + 1 : at + 2] in ("$", "#") else at + 1)

    def substitution(self, at: int, *, quoted: bool) -> int:
        """Copy a `$(…)`; one with a parameter inside may print it, and counts as one."""
        before, outside = self.last, len(self.ended)
        end = self.commands(self.copy(at, at + 2), closing=at)
        del self.ended[outside:]
        if self.last != before:
            self.hold(at, quoted=quoted)
        else:
            self.simple.add(EXPANSION_PLACEHOLDER)
        return end

    def variable(self, at: int, *, quoted: bool) -> None:
        """Add a variable of the shell to the word; it may hold a parameter."""
        name = _VARIABLE.match(self.text, at + 1 + self.text.startswith("${", at))
        if not name or name[0] not in self.tainted:
            self.simple.add(EXPANSION_PLACEHOLDER)
        else:
            self.hold(at, quoted=quoted)

    def hold(self, at: int, *, quoted: bool) -> None:
        """Add an expansion that may hold a parameter to the word; unquoted, the shell splits it into several words."""
        first = not self.simple.words and self.simple.word is None and not self.simple.redirects
        if first and not quoted:
            raise InjectionError("expanded", at)
        self.place(at)

    def place(self, at: int) -> None:
        """Add a parameter, or what may hold one, to the word; raise ShellError where it would be read as code."""
        if risk := self.simple.risk():
            raise InjectionError(risk, at)
        self.simple.add(PARAMETER_PLACEHOLDER)
        self.last = at

    def braces(self, at: int) -> int:
        end = self.text.find("}", at)
        inside = self.text[at + 2 : end if end >= 0 else None]
        if end < 0 or re.search(r"[\0'\"`\\${]", inside):
            hint = "give it a variable of its own first, or write a script file"
            raise ShellError("a '${…}' with more than a name and plain text in it", hint, at)
        return self.copy(at, end + 1)

    def arithmetic(self, start: int) -> int:
        """Copy `$((…))`, refuse parameters in it: a shell evaluates them, and bash runs `$(…)` in an array's index."""
        depth, at = 0, start + 1
        while at < len(self.text):
            char = self.text[at]
            if char == PARAMETER_PLACEHOLDER:
                hint = "do the sum in the program, or in the spec"
                raise ShellError("a parameter inside $((…)), where the shell evaluates it", hint, at)
            if char in "'\"`\\" or self.text.startswith(("$(", "${"), at):
                raise ShellError("a $((…)) with more than a sum in it", "write a script file", start)
            depth += {"(": 1, ")": -1}.get(char, 0)
            at += 1
            if depth == 0:
                return self.copy(start, at)
        raise ShellError("'$((' is never closed", "add the ))", start)

    def backtick(self, start: int) -> int:
        match = _BACKTICKS.match(self.text, start)
        if not match:
            raise make_unclosed_error("`", start)
        if PARAMETER_PLACEHOLDER in match[0]:
            raise ShellError("a parameter inside backticks", "use $(…)", self.text.index(PARAMETER_PLACEHOLDER, start))
        self.simple.add(EXPANSION_PLACEHOLDER)
        return self.copy(start, match.end())

    def comment(self, at: int) -> int:
        """Skip a comment with its parameters; return the offset of its end."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        for _ in range(self.text.count(PARAMETER_PLACEHOLDER, at, end)):
            next(self.variables)
        return end

    def refuse_strange(self, at: int, closing: int | None) -> None:
        """Refuse words that change how the text after them is read."""
        if self.simple.word is not None:
            return
        word = re.compile(r"[^\s;|&()<>]*").match(self.text, at)
        if word and word[0] == "[[":
            raise ShellError("'[[' is not sh's", "use [ … ]", at)
        if word and word[0] == "case" and closing is not None:
            raise ShellError("'case' inside $(…) is not followed", "write a script file", at)
