"""Which words of a command are taken for code by the program that gets them: there, no parameter may stand.

Words come with PLACE for each parameter in them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

#: Stands for a parameter; no process can be given this character, so no text holds it.
PLACE = "\0"

_SHELLS = ("sh", "bash", "dash", "ksh", "mksh", "zsh", "ash")
_REMOTE = ("ssh", "rsh")
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c\Z")
_TAKES_WORD = re.compile(r"(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)\Z")

#: The shell's own commands that run their arguments, or take them for names: bash runs $(…) in the name a[$(…)].
_EVALUATE = ("eval", "trap", "let", "declare", "typeset", "unset", "read", "getopts", "alias", "mapfile", "readarray")
_NAMES = ("export", "readonly", "local")
#: They take the name of a variable after -v.
_VARIABLE = ("printf", "test", "[")
#: What may stand before a command.
_WRAPPERS = ("command", "builtin", "exec", "time", "nohup", "env", "!")

#: What is wrong with a parameter at a word of each kind, and what to write.
RISKS = {
    "script": ("a shell's -c would run the value as code", "leave out sh -c: this line is sh's already"),
    "option": ("a value that begins with '-' would be an option of the shell here", "put -- before it: sh -- {script}"),
    "remote": ("ssh would have the value run as code over there", "put the command in a script on that host"),
    "evaluated": ("the value may run as code here", "pass it as an argument of a program instead"),
    "duplicated": ("bash would expand the value a second time after '>&'", "write: > {file} 2>&1"),
}


def shell_words(words: Sequence[str], *, any_first: bool = False) -> Iterator[tuple[int, str]]:
    """Yield place and kind of the words that a shell among these reads as script or options, or that ssh sends on.

    `any_first`: if the program's own word holds a parameter, it may be a shell as well.
    """
    at, first = 0, _program(words)
    while at < len(words):
        program, wild = words[at].rsplit("/", 1)[-1], any_first and at == first
        at += 1
        if _may_be(program, _REMOTE, wild):
            yield from ((later, "remote") for later in range(at, len(words)))
        if not _may_be(program, _SHELLS, wild):
            continue
        certain, runs_script = PLACE not in program, False
        while at < len(words) and _is_option(words[at], runs_script, certain):
            if certain:
                yield at, "option"
            runs_script = runs_script or bool(_SCRIPT_FLAG.match(words[at]))
            at += 2 if _TAKES_WORD.match(words[at]) else 1
        at += at < len(words) and words[at] in ("-", "--")
        if runs_script and at < len(words):
            yield at, "script"
            return  # what follows are the script's own arguments


def _is_option(word: str, runs_script: bool, certain: bool) -> bool:
    """Say whether a shell takes a word for an option; a value may look like one, but not once it is in a script."""
    value = word[:1] == PLACE and certain and not runs_script
    return word not in ("-", "--") and (word[:1] in ("-", "+") or value)


def _may_be(word: str, names: Collection[str], wild: bool = True) -> bool:
    if PLACE not in word:
        return word in names
    shape = re.compile(".*".join(map(re.escape, word.split(PLACE))), re.DOTALL)
    return wild and any(shape.fullmatch(name) for name in names)


def _program(words: Sequence[str]) -> int:
    """Return the place of the command itself, after such as `nohup`, `exec -a`."""
    at = 0
    while at < len(words) - 1 and (words[at] in _WRAPPERS or (at and words[at].startswith("-"))):
        at += 1
    return at


def evaluates(words: Sequence[str]) -> bool:
    """Say whether a script's simple command takes its last word, which holds a parameter, for code."""
    at = _program(words)
    command, arguments = words[at], words[at + 1 :]
    if not arguments:
        return False
    if _may_be(command, _VARIABLE) and len(arguments) > 1 and _may_be(arguments[-2], ("-v",)):
        return True
    if _may_be(command, _NAMES) and "=" not in arguments[-1]:
        return True
    return _may_be(command, _EVALUATE)
