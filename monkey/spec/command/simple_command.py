"""A shell's simple command, word by word, as far as it matters for what a parameter in it would be."""

from __future__ import annotations

import re

from monkey.spec.command.injection_risks import PARAMETER_PLACEHOLDER, find_shell_words, may_evaluate_last_word

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
#: A command follows them.
#: The words that a script or a function got, as `$` names them.
POSITIONAL = frozenset("0123456789@*")
_RESERVED = ("if", "then", "elif", "else", "while", "until", "do", "!", "{", "}")


class SimpleCommand:
    """A simple command as far as it was read: its whole words, and the one being read; quotes are taken off."""

    def __init__(self, tainted: set[str]) -> None:
        """Begin; `tainted` are the variables of the shell that hold a parameter, to which this command may add."""
        self.tainted = tainted
        self.words: list[str] = []
        self.word: str | None = None
        #: The operator whose target comes next: "<", ">", ">&", ….
        self.redirects = ""

    def add(self, text: str) -> None:
        """Continue the word being read."""
        self.word = (self.word or "") + text

    def end_word(self) -> None:
        """Put the word being read with the others, unless it only tells the shell how to continue."""
        word, self.word = self.word, None
        if word is None:
            return
        self.taint(word)
        if self.redirects:
            self.redirects = ""
        elif self.words or not (word in _RESERVED or _ASSIGNMENT.match(word)):
            self.words.append(word)

    def taint(self, word: str) -> None:
        """Note a variable that gets a parameter."""
        if PARAMETER_PLACEHOLDER in word and (assigned := _ASSIGNMENT.match(word)):
            self.tainted.add(assigned[0].rstrip("+="))
        elif PARAMETER_PLACEHOLDER in word and self.words[:1] == ["for"]:
            self.tainted.update(self.words[1:2])
        elif PARAMETER_PLACEHOLDER in word and self.words[:1] == ["set"]:
            self.tainted.update(POSITIONAL)

    def risk(self) -> str | None:
        """Return why no parameter may stand in the word being read, a key of RISKS."""
        if self.redirects:
            return "duplicated" if self.redirects.endswith("&") else None
        words = [*self.words, (self.word or "") + PARAMETER_PLACEHOLDER]
        if may_evaluate_last_word(words):
            return "evaluated"
        return next((kind for at, kind in find_shell_words(words, any_first=True) if at == len(words) - 1), None)
