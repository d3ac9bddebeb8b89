"""Failures that a script hides though its shell stops where a command fails: where, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from monkey.spec.command.injection_risks import may_run_interpreter
from monkey.spec.command.shell_error import ShellError
from monkey.spec.command.shell_script import ScriptStep, list_steps

#: What names a process in the background, besides `$!`.
_NAMING = ("wait ", "kill", "trap")
#: Commands that always succeed; words that begin a condition, and those that end what holds other commands.
_SUCCEEDING = ("true", ":", "echo", "printf")
_CONDITIONS = ("if", "elif", "while", "until", "!")
#: What leaves a loop or a script: `python a.py && break` decides by what is before it.
_LEAVING = ("break", "continue", "exit", "return")
_CLOSINGS = ("", "fi", "esac", "}")
_SEPARATORS = ("", ";", "\n")
_JOINERS = ("&&", "||", "|", "|&")
#: Characters of the longest script that is looked at: the reader takes minutes for one that fills a file.
_MOST_CHARACTERS = 10_000
#: A use of the last exit code, right at the beginning of a command.
_LOOKS_BACK = re.compile(r"(?:if )?(?:\w+=|exit |test |\[ )[\"]?\$\?")
_WAIT = (
    '`wait` forgets whether what ran in the background failed: write `pids="$pids $!"` after each `&`, and '
    "`for pid in $pids; do wait $pid; done` in place of `wait`"
)
_UNAWAITED = "the job succeeds at once, as nothing waits for what runs in the background: leave out its `&`"
_ALWAYS = (
    "the job succeeds even if what is before `||` fails: leave out `|| {}`, or write `|| [ $? = 3 ]` where exit code 3 "
    "is no failure"
)
_HALF = "what follows runs even if what is before `&&` fails: write each command on a line of its own, without `&&`"
_STATUS = "this is not reached if the command before it fails: write `code=0; COMMAND || code=$?`, or `set +e` first"


def list_lost_failures(command: str | list[str]) -> list[tuple[int, str]]:
    """Return what hides a failure in a spec's command: its offset there, and what to write; only what is certain.

    A script that says `set +e` looks after failures itself.
    """
    if not isinstance(command, str) or "set +e" in command or len(command) > _MOST_CHARACTERS:
        return []
    try:
        # As long as before, so that offsets stay.
        steps = list_steps(command.replace("${{", " ${").replace("{{", " {").replace("}}", "} "))
    except ShellError:
        return []
    # Without blank lines and comments.
    steps = [step for step in steps if step.text[:1] not in ("", "#") or step.operator not in _SEPARATORS]
    lists = _join_steps(steps)
    return [*_find_background(steps), *_find_success(lists), *_find_halves(lists), *_find_statuses(lists)]


def _join_steps(steps: Sequence[ScriptStep]) -> list[list[ScriptStep]]:
    """Return the commands in lists of those that are joined by such as `&&`."""
    lists: list[list[ScriptStep]] = [[]]
    for step in steps:
        lists[-1].append(step)
        if step.operator not in _JOINERS:
            lists.append([])
    return [joined for joined in lists if joined]


def _find_background(steps: Sequence[ScriptStep]) -> Iterator[tuple[int, str]]:
    """Find processes that nothing waits for, unless the script names them: it may wait for them, or end them."""
    started = [at for at, step in enumerate(steps) if step.operator == "&"]
    if not started or any("$!" in step.text or step.text.startswith(_NAMING) for step in steps):
        return
    waits = [step for step in steps[started[0] :] if step.words == ["wait"]]
    if waits:
        yield waits[0].at, _WAIT
        return
    programs = [at for at, step in enumerate(steps) if may_run_interpreter(step.words)]
    if started[-1] == len(steps) - 1 or (programs and set(programs) <= set(started)):
        yield steps[started[-1]].at, _UNAWAITED


def _find_success(lists: Sequence[Sequence[ScriptStep]]) -> Iterator[tuple[int, str]]:
    """Find a script that ends with `|| true`, and does nothing else or runs a program such as python before that."""
    for *before, last in lists[-1:]:
        succeeds = before and before[-1].operator == "||" and "".join(last.words[:1]) in _SUCCEEDING
        if succeeds and (len(lists) == 1 or any(may_run_interpreter(step.words) for step in before)):
            yield last.at, _ALWAYS.format(last.words[0])


def _find_halves(lists: Sequence[Sequence[ScriptStep]]) -> Iterator[tuple[int, str]]:
    """Find `python a.py && python b.py` with more after it: there, `-e` looks at the last of the two alone."""
    for at, joined in enumerate(lists):
        more = any("".join(step.words[:1]) not in _CLOSINGS for later in lists[at + 1 :] for step in later)
        decided = joined[0].text.startswith(_CONDITIONS) or any(step.operator == "||" for step in joined)
        decided = decided or joined[-1].text.startswith(_LEAVING)
        for step in joined:
            if more and not decided and step.operator == "&&" and may_run_interpreter(step.words):
                yield step.at, _HALF


def _find_statuses(lists: Sequence[Sequence[ScriptStep]]) -> Iterator[tuple[int, str]]:
    """Find a `$?` that is always 0, as it follows a command on a line of its own."""
    for before, after in pairwise(lists):
        plain = len(before) == 1 and before[0].words and before[0].operator in _SEPARATORS
        if plain and not before[0].text.startswith(_CONDITIONS) and _LOOKS_BACK.match(after[0].text):
            yield after[0].at, _STATUS
