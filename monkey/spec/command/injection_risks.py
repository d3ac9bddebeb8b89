"""Which words of a command are taken for code by the program that gets them: there, no parameter may stand.

Words come with PARAMETER_PLACEHOLDER for each parameter in them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

#: Stands for a parameter; no process can be given this character, so no text holds it.
PARAMETER_PLACEHOLDER = "\0"
#: Stands for what the shell itself puts in; text holds no half of a character either.
EXPANSION_PLACEHOLDER = "\ud800"

_SHELLS = ("sh", "bash", "dash", "ksh", "mksh", "zsh", "ash")
_REMOTE = ("ssh", "rsh")
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c\Z")
_TAKES_WORD = re.compile(r"(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)\Z")

#: The shell's own commands that run their arguments, or take them for names: bash runs $(…) in the name a[$(…)].
_EVALUATING_COMMANDS = (
    "eval",
    "trap",
    "let",
    "declare",
    "typeset",
    "unset",
    "read",
    "getopts",
    "alias",
    "compgen",
    "mapfile",
    "readarray",
)
_NAMING_COMMANDS = ("export", "readonly", "local")
#: They take the name of a variable after -v.
_VARIABLE_COMMANDS = ("printf", "test", "[")
#: What may stand before a command.
_WRAPPERS = (
    "command", "builtin", "exec", "time", "nohup", "env", "!", "timeout", "nice", "ionice", "stdbuf", "sudo", "setsid",
)  # fmt: skip
#: After a wrapper: its options, numbers and assignments.
_WRAPPER_ARGUMENT = re.compile(r"-.*|[0-9.]+[smhd]?|[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)

#: Programs that run the text after an option.
_INTERPRETERS = [
    (re.compile(r"(python|pypy)[0-9.]*"), re.compile(r"-[A-Za-z]*c")),
    (re.compile(r"perl[0-9.]*"), re.compile(r"-[A-Za-z0-9]*[eE]")),
    (re.compile(r"ruby[0-9.]*"), re.compile(r"-[A-Za-z]*e")),
    (re.compile(r"node|nodejs|deno|bun"), re.compile(r"-[a-z]*[ep]|--eval|--print|eval")),
    (re.compile(r"php[0-9.]*"), re.compile(r"-[rBRE]")),
    (re.compile(r"Rscript|R|lua(jit)?[0-9.]*|julia|osascript|groovy|elixir"), re.compile(r"-[eE]|--eval|--print")),
]
_CODE_TAKES_WORD = re.compile(r"-[WXrIL]|--require")
#: Programs whose first argument is code, unless an option brought it; GNU's sed has `e`, which runs a shell.
_FIRST_IS_CODE = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), (re.compile(r"-[Fvfil]"), re.compile(r"-e|--source"))),
    **dict.fromkeys(("sed", "gsed"), (re.compile(r"-[nErszu]*f|-l"), re.compile(r"-[nErszu]*e|--expression"))),
}
#: Programs that have a shell run the text after an option; the option, and the program's own words (a user, a file).
_SCRIPT_OPTIONS = {
    **dict.fromkeys(("su", "runuser", "flock"), (re.compile(r"-[A-Za-z]*c|--command|--session-command"), 1)),
    "script": (re.compile(r"-[A-Za-z]*c|--command"), 1),
    "sbatch": (re.compile(r"--wrap"), 0),
    "env": (re.compile(r"-[A-Za-z0]*S|--split-string"), 0),
}
#: Programs that make a script of all their words, and the options that forbid it.
_JOINING_PROGRAMS = {"watch": ("-x", "--exec"), "parallel": ("-q", "--quote")}
_SOURCING_COMMANDS = (".", "source")
#: They make commands of what they read.
_FEEDERS = ("xargs", "parallel")
_SCHEDULERS = ("at", "batch")

#: What is wrong with a parameter at a word of each kind, and what to write.
INJECTION_RISKS = {
    "script": ("a shell's -c would run the value as code", "leave out sh -c: this line is sh's already"),
    "option": ("a value that begins with '-' would be an option of the shell here", "put -- before it: sh -- {script}"),
    "remote": ("ssh would have the value run as code over there", "put the command in a script on that host"),
    "code": (
        "the value would be part of the code that the program runs here",
        "pass it as an argument, such as: python -c 'import sys; print(sys.argv[1])' {x}; or write a file",
    ),
    "expanded": (
        "what runs here is the value of a variable: it may be a shell, which would run the value as code",
        "write the program's name out, or set a variable of the job by env: and begin with its directory: $DIR/run",
    ),
    "piped": (
        "the value may run as code after the '|', where a program takes its input for a script",
        "write the script to a file of the project, and pass the value as its argument",
    ),
    "evaluated": ("the value may run as code here", "pass it as an argument of a program instead"),
    "duplicated": ("bash would expand the value a second time after '>&'", "write: > {file} 2>&1"),
}


def find_shell_words(words: Sequence[str], *, any_first: bool = False) -> Iterator[tuple[int, str]]:
    """Yield place and kind of the words that a shell among these reads as script or options, or that ssh sends on.

    `any_first`: if the program's own word holds a parameter, it may be a shell as well.
    """
    at, first = 0, _find_program(words)
    if EXPANSION_PLACEHOLDER in words[first].rsplit("/", 1)[-1]:
        yield from ((later, "expanded") for later in range(first + 1, len(words)))
    yield from ((later, "code") for later in _find_first_code(words, first))
    yield from ((later, "code") for at in range(first + 1) for later in _find_scripts(words, at))
    while at < len(words):
        program, wild = words[at].rsplit("/", 1)[-1], any_first and at == first
        at += 1
        if _may_name(program, _REMOTE, wild):
            yield from ((later, "remote") for later in range(at, len(words)))
        yield from ((later, "code") for later in _find_code_words(program, words, at))
        if not _may_name(program, _SHELLS, wild):
            continue
        certain, runs_script = PARAMETER_PLACEHOLDER not in program, False
        while at < len(words) and _is_option(words[at], runs_script, certain):
            if certain:
                yield at, "option"
            runs_script = runs_script or bool(_SCRIPT_FLAG.match(words[at]))
            at += 2 if _TAKES_WORD.match(words[at]) else 1
        at += at < len(words) and words[at] in ("-", "--")
        if (
            certain and at < len(words) and words[at][:1] == EXPANSION_PLACEHOLDER and "/" not in words[at]
        ):  # perhaps -c
            yield from ((later, "expanded") for later in range(at + 1, len(words)))
        if runs_script and at < len(words):
            yield at, "script"
            return  # what follows are the script's own arguments


def _find_code_words(program: str, words: Sequence[str], at: int) -> Iterator[int]:
    """Yield the places from `at` on of what an interpreter runs because an option says so."""
    flag = next((flag for names, flag in _INTERPRETERS if names.fullmatch(program)), None)
    while flag and at < len(words):
        if flag.fullmatch(words[at]):
            yield at + 1
            return
        if flag.match(words[at]):
            yield at
        elif not words[at].startswith("-"):
            return
        at += 2 if _CODE_TAKES_WORD.fullmatch(words[at]) else 1


def _find_first_code(words: Sequence[str], first: int) -> Iterator[int]:
    """Yield the places of what awk or sed run."""
    takes_word, flag = _FIRST_IS_CODE.get(words[first].rsplit("/", 1)[-1], (None, None))
    at, brought = first + 1, False
    while takes_word and flag and at < len(words):
        word = words[at]
        if word == "--" or not word.startswith("-"):
            if not brought:
                yield at + (word == "--")
            return
        if flag.match(word):
            yield at + bool(flag.fullmatch(word))
        brought = brought or bool(flag.match(word)) or word.startswith(("-f", "--file"))
        at += 2 if takes_word.fullmatch(word) or flag.fullmatch(word) else 1


def _find_scripts(words: Sequence[str], at: int) -> Iterator[int]:
    """Yield the places of what the program there has a shell run, as `su -c` and `watch` do."""
    program = words[at].rsplit("/", 1)[-1]
    if program in _JOINING_PROGRAMS and not {*_JOINING_PROGRAMS[program]} & {*words[at:]}:
        yield from range(at + 1, len(words))
    flag, own = _SCRIPT_OPTIONS.get(program, (None, 0))
    while flag and own >= 0 and at + 1 < len(words):
        at += 1
        if flag.fullmatch(words[at]):
            yield at + 1
        elif flag.match(words[at]):
            yield at
        own -= not _WRAPPER_ARGUMENT.fullmatch(words[at])  # after those, a command begins, with options of its own


def may_run_input(words: Sequence[str]) -> bool:
    """Say whether a script's simple command takes what is piped to it for a script, or for commands."""
    at = _find_program(words)
    program, rest = words[at].rsplit("/", 1)[-1], words[at + 1 :]
    if EXPANSION_PLACEHOLDER in program or _may_name(program, _SCHEDULERS):
        return True
    if program in _SOURCING_COMMANDS or "/dev/stdin" in rest:
        return "/dev/stdin" in rest
    if program in _FEEDERS:
        names = [word.rsplit("/", 1)[-1] for word in rest]
        return any(
            _is_interpreter(name) or name in (*_EVALUATING_COMMANDS, *_REMOTE) or EXPANSION_PLACEHOLDER in name
            for name in names
        )
    if _may_name(program, _REMOTE):
        return sum(not word.startswith("-") for word in rest) < 2
    return _is_interpreter(program) and (all(word.startswith("-") for word in rest) or "-s" in rest or "-" in rest)


def may_run_interpreter(words: Sequence[str]) -> bool:
    """Say whether a script's simple command, which may be empty, runs a shell or an interpreter, such as python."""
    return bool(words) and _is_interpreter(words[_find_program(words)].rsplit("/", 1)[-1])


def _is_interpreter(program: str) -> bool:
    return _may_name(program, _SHELLS) or any(names.fullmatch(program) for names, _ in _INTERPRETERS)


def _is_option(word: str, runs_script: bool, certain: bool) -> bool:
    """Say whether a shell takes a word for an option; a value may look like one, but not once it is in a script."""
    value = word[:1] == PARAMETER_PLACEHOLDER and certain and not runs_script
    return word not in ("-", "--") and (word[:1] in ("-", "+") or value)


def _may_name(word: str, names: Collection[str], wild: bool = True) -> bool:
    if PARAMETER_PLACEHOLDER not in word:
        return word in names
    shape = re.compile(".*".join(map(re.escape, word.split(PARAMETER_PLACEHOLDER))), re.DOTALL)
    return wild and any(shape.fullmatch(name) for name in names)


def _find_program(words: Sequence[str]) -> int:
    """Return the place of the command itself, after such as `nohup`, `exec -a`."""
    at = 0
    while at < len(words) - 1 and (words[at] in _WRAPPERS or (at and _WRAPPER_ARGUMENT.fullmatch(words[at]))):
        at += 1
    return at


def may_evaluate_last_word(words: Sequence[str]) -> bool:
    """Say whether a script's simple command takes its last word, which holds a parameter, for code."""
    at = _find_program(words)
    command, arguments = words[at], words[at + 1 :]
    if not arguments:
        return False
    if _may_name(command, _VARIABLE_COMMANDS) and len(arguments) > 1 and _may_name(arguments[-2], ("-v",)):
        return True
    if _may_name(command, _NAMING_COMMANDS) and "=" not in arguments[-1]:
        return True
    if _may_name(command, _SOURCING_COMMANDS) and arguments[0].startswith(PARAMETER_PLACEHOLDER):
        return len(arguments) == 1
    return _may_name(command, _EVALUATING_COMMANDS)


def find_script_arguments(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of each script that a shell among the words gets by -c, and that of its first argument."""
    for at, word in enumerate(words):
        if word.rsplit("/", 1)[-1] in _SHELLS:
            later = at + 1
            while later < len(words) and words[later][:1] in ("-", "+") and not _SCRIPT_FLAG.match(words[later]):
                later += 2 if _TAKES_WORD.match(words[later]) else 1
            if later + 1 < len(words) and _SCRIPT_FLAG.match(words[later]):
                yield later + 1, later + 2
                return
