"""Splits a line into words as sh does, or says that only a shell can run it."""

from __future__ import annotations

import re

from monkey.spec.command.injection_risks import PARAMETER_PLACEHOLDER
from monkey.spec.command.shell_error import ShellError, make_escape_error, make_unclosed_error

#: Unquoted, these make a line a script wherever they stand.
_OPERATORS = set("|&;<>()$`*?\n")
#: As first word, these are the shell's own.
_BUILTINS = {
    "!", ".", ":", "alias", "break", "case", "cd", "command", "continue", "do", "eval", "exec", "exit", "export",
    "for", "if", "local", "read", "readonly", "return", "set", "shift", "source", "times", "trap", "type", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while", "{",
}  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BLANK = " \t"
_DOUBLE_ESCAPES = '"\\$`\n'


def split_words(text: str) -> list[str] | None:
    """Return the words of a line as sh would, or None if only a shell can run it. Raises ShellError."""
    words: list[str] = []
    word: list[str] | None = None
    first_raw = ""
    at = 0
    while at < len(text):
        char = text[at]
        blank = char in _BLANK or (char == "\n" and (not (words or word) or not text[at:].strip(_BLANK + "\n")))
        if not blank and (char in _OPERATORS or (word is None and char in "#~")):
            return None
        if blank:
            if word is not None:
                words.append("".join(word))
            word, at = None, at + 1
            continue
        if text.startswith("\\\n", at):
            at += 2
            continue
        piece, end = _read_quoted(text, at)
        if piece is None:
            return None
        word = [] if word is None else word
        word.append(piece)
        if not words:
            first_raw += text[at:end]
        at = end
    if word is not None:
        words.append("".join(word))
    if _ASSIGNMENT.match(first_raw) or (words and first_raw in _BUILTINS):
        return None
    return words


def _read_quoted(text: str, at: int) -> tuple[str | None, int]:
    """Return the character or quoted stretch at `at` without its quotes, and its end; None: only a shell can say."""
    char = text[at]
    if char == "\\":
        if at + 1 == len(text):
            raise ShellError("a backslash at the end", "remove it, or double it", at)
        if text[at + 1] == PARAMETER_PLACEHOLDER:
            raise make_escape_error(at)
        return text[at + 1], at + 2
    if char == "'":
        end = text.find("'", at + 1)
        if end < 0:
            raise make_unclosed_error("'", at)
        return text[at + 1 : end], end + 1
    return _read_double_quoted(text, at) if char == '"' else (char, at + 1)


def _read_double_quoted(text: str, at: int) -> tuple[str | None, int]:
    piece, start = [], at
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] in "$`":
            return None, at
        if text[at] == "\\" and text[at + 1 : at + 2] == PARAMETER_PLACEHOLDER:
            raise make_escape_error(at)
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in _DOUBLE_ESCAPES:
            piece.append(text[at + 1] if text[at + 1] != "\n" else "")
            at += 2
        else:
            piece.append(text[at])
            at += 1
    if at >= len(text):
        raise make_unclosed_error('"', start)
    return "".join(piece), at + 1
