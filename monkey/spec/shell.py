"""Just enough of sh to know where a parameter stands in a script.

The script comes with PLACE for each parameter. What this reader does not fully understand (heredocs, backticks around a
parameter, `case` inside `$(…)`, …) it refuses: a guess could let a value become code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

#: Stands for a parameter; no process can be given this character, so no text holds it.
PLACE = "\0"

#: Commands that take their arguments for code, or for names that may hold code (bash's a[$(…)]); `risk` names them.
_OPTIONS = r"(?:[-+][A-Za-z]*[oO]\s+\w+\s+|[-+](?!-?\s)\S+\s+)*"
_SHELL = r"(?:\S*/)?(?:sh|bash|dash|ksh|mksh|zsh|ash)"
_EVALUATE = re.compile(
    r"(?:^|[\s;|&(){}])(?:"
    r"(?P<name>eval|trap|let|declare|typeset|unset|read|getopts|alias|mapfile|readarray)\s"
    r"|(?:printf|test|\[)\s(?:.*\s)?(?P<v>-v)\s"
    r"|(?P<ssh>(?:\S*/)?(?:ssh|rsh))\s"
    rf"|(?P<shell>{_SHELL})\s+{_OPTIONS}-[A-Za-z]*c\s"
    rf"|(?P<option>{_SHELL})\s+{_OPTIONS}(?:[-+]\S*)?\Z"
    r"|(?P<place>\S*\0\S*)\s+(?:[-+]\S+\s+)*-[A-Za-z]*c\s+\Z"
    r")",
    re.DOTALL,
)
#: A whole script after `sh -c`: what follows are its arguments.
_SCRIPT_DONE = re.compile(r"\s-[A-Za-z]*c\s+(?:'[^']*'|\"[^\"\\$`\0]*\"|[^\s'\"\\$`\0]+)\s")


class ShellError(ValueError):
    """Not sh, or more of it than we follow; `offset` counts characters."""

    def __init__(self, message: str, hint: str, offset: int) -> None:
        """Say what was found, what to write, and where."""
        super().__init__(message)
        self.message, self.hint, self.offset = message, hint, offset


def script(text: str, variables: Sequence[str], parameters: Collection[str]) -> str:
    """Return the script with an expansion of the n-th variable in the n-th place. Raises ShellError.

    Unquoted places become `"${X}"`, those inside double quotes `${X}`; elsewhere a value could not be kept whole.
    `parameters` are names that `$name` must not mean by mistake.
    """
    reader = _Reader(text, variables, parameters)
    reader.commands(0, closing=None)
    return "".join(reader.out)


class _Reader:
    """Walks a script once, copying it to `out`."""

    def __init__(self, text: str, variables: Sequence[str], parameters: Collection[str]) -> None:
        self.text = text
        self.variables = iter(variables)
        self.parameters = parameters
        self.out: list[str] = []
        #: Where the simple command began that is being read.
        self.begin = 0

    def copy(self, start: int, end: int) -> int:
        self.out.append(self.text[start:end])
        return end

    def commands(self, at: int, closing: int | None) -> int:
        """Read unquoted text to its end, or to the `)` of the `$(` at `closing`; return the place after it."""
        text, depth, outer = self.text, 0, self.begin
        self.begin = at
        fresh = True  # at the start of a word, where # begins a comment
        while at < len(text):
            char = text[at]
            if char == ")" and closing is not None and depth == 0:
                self.begin = outer
                return self.copy(at, at + 1)
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char == PLACE:
                self.refuse_evaluation(at)
                self.out.append(f'"${{{next(self.variables)}}}"')
                at, fresh = at + 1, False
            elif char == "#" and fresh:
                at = self.comment(at)
            else:
                self.refuse_unquoted(at, fresh, closing)
                fresh = fresh and text.startswith("\\\n", at)
                at = self.one(at)
            if char in ";|&\n" and text[at - 2 : at - 1] not in ("<", ">"):
                self.begin = at
            fresh = fresh or char in " \t\n;|&()<>"
        if closing is not None:
            raise ShellError("'$(' is never closed", "add the )", closing)
        return at

    def one(self, at: int) -> int:
        """Copy one unquoted character with what it begins: an escape, quotes, an expansion."""
        match self.text[at]:
            case "\\":
                if self.text[at + 1 : at + 2] == PLACE:
                    raise escaped(at)
                return self.copy(at, min(at + 2, len(self.text)))
            case "'":
                return self.single(at)
            case '"':
                return self.double(at)
            case "$":
                return self.dollar(at, quoted=False)
            case "`":
                return self.backtick(at)
        return self.copy(at, at + 1)

    def single(self, at: int) -> int:
        end = self.text.find("'", at + 1)
        if end < 0:
            raise unclosed("'", at)
        if PLACE in self.text[at:end]:
            hint = "use double quotes: the value is passed whole, whatever it holds"
            raise ShellError("a parameter inside single quotes", hint, self.text.index(PLACE, at))
        return self.copy(at, end + 1)

    def double(self, start: int) -> int:
        at = self.copy(start, start + 1)
        while at < len(self.text):
            match self.text[at]:
                case '"':
                    return self.copy(at, at + 1)
                case "\\":
                    if self.text[at + 1 : at + 2] == PLACE:
                        raise escaped(at)
                    at = self.copy(at, min(at + 2, len(self.text)))
                case "$":
                    at = self.dollar(at, quoted=True)
                case "`":
                    at = self.backtick(at)
                case "\0":
                    self.refuse_evaluation(at)
                    self.out.append(f"${{{next(self.variables)}}}")
                    at += 1
                case _:
                    at = self.copy(at, at + 1)
        raise unclosed('"', start)

    def dollar(self, at: int, *, quoted: bool) -> int:
        """Copy what a `$` begins, and refuse what cannot be followed."""
        text = self.text
        if text.startswith("$((", at):
            return self.arithmetic(at)
        if text.startswith("$(", at):
            return self.commands(self.copy(at, at + 2), closing=at)
        if text.startswith("${", at):
            return self.braces(at)
        if text.startswith("$'", at) and not quoted:
            raise ShellError("$'…' is not sh's", "use '…' or \"…\", or printf", at)
        if text.startswith("$[", at):
            raise ShellError("$[…] is not sh's", "use $((…))", at)
        name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").match(text, at + 1)
        if name and name[0] in self.parameters:
            raise ShellError(f"${name[0]} is a variable of the shell", f"for the parameter, write {{{name[0]}}}", at)
        return self.copy(at, at + 2 if text[at + 1 : at + 2] == "$" else at + 1)

    def braces(self, at: int) -> int:
        end = self.text.find("}", at)
        inside = self.text[at + 2 : end if end >= 0 else None]
        if end < 0 or re.search(r"[\0'\"`\\${]", inside):
            hint = "give it a variable of its own first, or write a script file"
            raise ShellError("a '${…}' with more than a name and plain text in it", hint, at)
        return self.copy(at, end + 1)

    def arithmetic(self, start: int) -> int:
        """Copy `$((…))`. A value there would be evaluated, and bash runs `$(…)` inside of an array's index."""
        depth, at = 0, start + 1
        while at < len(self.text):
            char = self.text[at]
            if char == PLACE:
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
        match = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL).match(self.text, start)
        if not match:
            raise unclosed("`", start)
        if PLACE in match[0]:
            raise ShellError("a parameter inside backticks", "use $(…)", self.text.index(PLACE, start))
        return self.copy(start, match.end())

    def comment(self, at: int) -> int:
        """Leave a comment out; its parameters with it."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        for _ in range(self.text.count(PLACE, at, end)):
            next(self.variables)
        return end

    def refuse_unquoted(self, at: int, fresh: bool, closing: int | None) -> None:
        """Refuse what would change the meaning of the text after it."""
        text = self.text
        if text.startswith("<<", at):
            raise ShellError("'<<' is not followed", "put the text, or the whole script, in a file", at)
        if text.startswith("((", at):
            raise ShellError("'((' is not sh's", "use $((…)), or write '( (' for a subshell", at)
        if fresh and re.compile(r"\[\[\s").match(text, at):
            raise ShellError("'[[' is not sh's", "use [ … ]", at)
        if fresh and closing is not None and re.compile(r"case\s").match(text, at):
            raise ShellError("'case' inside $(…) is not followed", "write a script file", at)

    def refuse_evaluation(self, at: int) -> None:
        """Refuse a parameter among the arguments of a command that takes them for code."""
        before = self.text[self.begin : at]
        found = _EVALUATE.search(re.sub(r"[\"'\\]", "", before))
        if not found or (found["shell"] and _SCRIPT_DONE.search(before)):
            return
        if found["shell"]:
            message, hint = (
                f"{found['shell']} -c would run the value as code",
                "leave it out: this line is sh's already",
            )
        elif found["option"]:
            message, hint = "a value that begins with '-' would be an option of the shell here", "put -- before it"
        elif found["ssh"]:
            message, hint = (
                "ssh would have the value run as code over there",
                "put the command in a script on that host",
            )
        elif found["place"]:
            message, hint = "if the program is a shell, its -c runs the value as code", "name the program"
        else:
            message, hint = f"{found['name'] or found['v']} may run the value as code", "pass it as an argument instead"
        raise ShellError(message, hint, at)


def escaped(at: int) -> ShellError:
    """Return the error of a backslash before a parameter, whose meaning nobody could guess."""
    return ShellError("a backslash before a parameter", "remove it; for a literal brace write {{", at)


def unclosed(quote: str, at: int) -> ShellError:
    """Return the error of a quote without its other one."""
    return ShellError(f"the quote {quote} is never closed", "add the other one", at)
