"""Commands of jobs: parameters reach a process as words or as environment variables, and never become code.

A list is argv. A string without shell syntax is split once, and values are put into the words. A string with shell
syntax runs under a shell (`strict_shell`), and each `{name}` in it becomes a quoted expansion of an environment
variable. So does each `{name}` in the script of `sh -c SCRIPT` that is written as words. `{{` and `}}` are literal
braces. Agents import this module, so it does without pydantic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from monkey.spec.command.injection_risks import INJECTION_RISKS, PARAMETER_PLACEHOLDER, find_shell_words
from monkey.spec.command.shell_error import ShellError
from monkey.spec.command.shell_script import expand_script, may_evaluate_arguments
from monkey.spec.command.strict_shell import STRICT_OPTIONS, STRICT_SHELL
from monkey.spec.command.word_split import split_words
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.yaml.mistakes import suggest_word

_BRACES = re.compile(r"\$\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\{|\{\{|\}\}|\{([^{}]*)\}|[{}]")
_WANDB_MACROS = {"${env}", "${program}", "${interpreter}", "${args}", "${args_no_hyphens}", "${args_no_boolean_flags}",
          "${args_json}", "${args_json_file}"}  # fmt: skip

#: Where bash calculates: sums, parts of texts, names in variables, prompts, and indexes of arrays.
_SUMS = re.compile(r"\$\(\(|\$\{!|@P\}|\$\{\w+[\[:](?![-=?+])|\[(?!\d+\])[^][\n]*\]+\+?=")
#: What it runs there in a value.
_RUN_IN_SUMS = re.compile(r"\$\(|`|\\[0-7]")
_SUM_HINT = "write a sum without $((…)), an index or ${…}: in the program, or in the spec"


class CommandError(ValueError):
    """A mistake in a command; `offset` counts characters from its start, or from that of word `word` of a list."""

    def __init__(self, message: str, hint: str | None = None, offset: int | None = None, word: int | None = None):
        """Keep what was expected and found, what to write, and where."""
        super().__init__(message)
        self.message, self.hint, self.offset, self.word = message, hint, offset, word
        #: The name in braces that is no parameter, if that is the mistake.
        self.unknown: str | None = None


@dataclass(frozen=True)
class RenderedCommand:
    """A job's command, ready to run: `argv`, and variables to add to the environment."""

    argv: list[str]
    env: dict[str, str]


@dataclass(frozen=True)
class JobCommand:
    """A command with holes; `render` fills them for one job."""

    #: Words as alternating text and parameter names: ["--lr=", "lr", ""] is --lr={lr}.
    words: tuple[tuple[str, ...], ...]
    #: Environment variable to the parameter it carries, for scripts.
    variables: dict[str, str] = field(default_factory=dict)
    #: Whether it is a script in which bash may calculate with a value.
    calculates: bool = False

    @cached_property
    def _chooses_program(self) -> bool:
        """Return whether two words or more have holes: a value could then be a shell that gets another value."""
        return sum(len(word) > 1 for word in self.words) > 1

    @property
    def uses(self) -> set[str]:
        """Return the parameters that the command needs."""
        return {name for word in self.words for name in word[1::2]} | set(self.variables.values())

    def _refuse_chosen_shell(self, argv: list[str]) -> None:
        """Raise CommandError for values that name a shell and make another value its script."""
        for at, kind in find_shell_words(argv):
            if kind != "option" and len(self.words[at]) > 1:
                raise CommandError("with these values, a shell would run one of them as code", INJECTION_RISKS[kind][1])

    def render(self, parameters: Mapping[str, ParameterValue]) -> RenderedCommand:
        """Return the command with a job's parameters.

        Raises CommandError where a parameter is missing or contains a NUL, or a shell would run a value as code.
        """
        texts = {}
        for name in self.uses:
            if name not in parameters:
                raise CommandError(f"this job has no parameter {name!r}, which its command uses")
            texts[name] = format_argument(parameters[name])
            if "\0" in texts[name]:
                raise CommandError(f"the value of {name!r} holds the character NUL, which no argument can carry")
        argv = ["".join(texts[part] if at % 2 else part for at, part in enumerate(word)) for word in self.words]
        if self.calculates and any(_RUN_IN_SUMS.search(text) for text in texts.values()):
            raise CommandError("with these values, bash might run what one of them holds", _SUM_HINT)
        if self._chooses_program:
            self._refuse_chosen_shell(argv)
        return RenderedCommand(argv, {variable: texts[name] for variable, name in self.variables.items()})


def format_argument(value: ParameterValue) -> str:
    """Return a value as text for argv: text as it is, true/false/null, shortest floats, JSON for lists and mappings."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def show_command(command: str | list[str], parameters: Mapping[str, ParameterValue]) -> str:
    """Return the line by which a person would run a job's command; the command itself where it cannot be read."""
    import shlex

    try:
        argv = compile_command(command, parameters).render(parameters).argv
    except CommandError:
        return command if isinstance(command, str) else shlex.join(command)
    if tuple(argv[: len(STRICT_SHELL)]) == STRICT_SHELL:
        return f"bash {STRICT_OPTIONS} {shlex.join(argv[len(STRICT_SHELL) : -1])}"
    return shlex.join(argv)


def compile_command(command: str | list[str], names: Collection[str]) -> JobCommand:
    """Return the command compiled for the parameters `names`. Raises CommandError."""
    if isinstance(command, list):
        words = []
        for at, word in enumerate(command):
            try:
                words.append(_Template(word, names))
            except CommandError as error:
                error.word = at
                raise
        if not words or not (words[0].text or words[0].names):
            raise CommandError("expected a command, found nothing", "write the program and its arguments")
        return _compile_words(words, listed=True)
    template = _Template(command, names)
    if not template.text.strip():
        raise CommandError("expected a command, found nothing", "write the program and its arguments")
    try:
        pieces = split_words(template.text)
        if pieces is None:
            text, variables = _compile_script(template, {})
            script = tuple((word,) for word in (*STRICT_SHELL, "-c", text, "sh"))
            return JobCommand(script, variables, bool(_SUMS.search(text)))
    except ShellError as error:
        raise CommandError(error.message, error.hint, template.origin(error.offset)) from error
    holes = iter(zip(template.names, template.starts, strict=True))
    words = [template.piece(text, [next(holes) for _ in range(text.count(PARAMETER_PLACEHOLDER))]) for text in pieces]
    if not words or not words[0].text:
        raise CommandError("expected a program, found an empty word", "begin with the program's name", 0)
    return _compile_words(words, listed=False)


class _Template:
    """A text with holes: `text` has a PARAMETER_PLACEHOLDER for each, `names` and `starts` the name and place."""

    def __init__(self, raw: str, known: Collection[str]) -> None:
        if PARAMETER_PLACEHOLDER in raw:
            raise CommandError("a command cannot hold the character NUL", "remove it", raw.index(PARAMETER_PLACEHOLDER))
        self.known = known
        self.names: list[str] = []
        #: Offset of each hole in the raw text.
        self.starts: list[int] = []
        #: (offset in text, offset in raw) wherever their difference changes.
        self.shifts: list[tuple[int, int]] = [(0, 0)]
        parts: list[str] = []
        length = done = 0
        for match in _BRACES.finditer(raw):
            parts += [raw[done : match.start()], self._hole(match)]
            length += len(parts[-2]) + len(parts[-1])
            done = match.end()
            self.shifts.append((length, done))
        self.text = "".join([*parts, raw[done:]])

    def _hole(self, match: re.Match[str]) -> str:
        """Return the text that replaces a match of braces."""
        found, at = match[0], match.start()
        if found in ("{{", "}}"):
            return found[0]
        if found.startswith("${"):
            return self._shell_variable(found, at)
        name = match[1]
        if name is None:
            raise CommandError(f"a single {found!r}", f"write {{name}} for a parameter, {found * 2} for a brace", at)
        if name not in self.known:
            raise self._unknown(name, at)
        self.names.append(name)
        self.starts.append(at)
        return PARAMETER_PLACEHOLDER

    def _shell_variable(self, found: str, at: int) -> str:
        if found == "${":
            raise CommandError(
                "a '${…}' with more than a name and plain text", "give it a variable of its own first", at
            )
        if found.startswith("${{"):
            inside = found[3:-2]
            if inside.strip() in self.known or inside != inside.strip():
                raise CommandError(f"{found} is not a parameter", "write {name}", at)
            return f"${{{inside}}}"
        if found[2:-1] in self.known:
            raise CommandError(f"{found} is a variable of the shell", f"for the parameter, write {found[1:]}", at)
        if found in _WANDB_MACROS:
            hint = "write the program and each parameter out: python train.py --lr {lr}"
            raise CommandError(f"{found} is W&B's", hint, at)
        return found

    def _unknown(self, name: str, at: int) -> CommandError:
        stripped = name.strip()
        if stripped in self.known:
            return CommandError(f"unknown parameter {name!r}", f"write {{{stripped}}} without spaces", at)
        if not re.match(r"[A-Za-z_][\w.]*\Z", name):
            shown = name if len(name) <= 40 else name[:39] + "…"
            return CommandError(f"{{{shown}}} is not a parameter", f"for literal braces write {{{{{shown}}}}}", at)
        hint = suggest_word(name, self.known, "parameters")
        hint += "" if hint.endswith("?") else "; literal braces are {{ and }}"
        error = CommandError(f"unknown parameter {name!r}", hint, at)
        error.unknown = name
        return error

    def origin(self, offset: int) -> int:
        """Return the offset in the raw text of the character of `text` at `offset`."""
        shift = max((s for s in self.shifts if s[0] <= offset), default=(0, 0))
        return shift[1] + offset - shift[0]

    def piece(self, text: str, holes: list[tuple[str, int]]) -> _Template:
        """Return the template of one word `text`, with its holes (name, offset in the raw text)."""
        part = object.__new__(_Template)
        part.known, part.text, part.shifts = self.known, text, [(0, holes[0][1] if holes else 0)]
        part.names, part.starts = [name for name, _ in holes], [start for _, start in holes]
        return part

    def parts(self) -> tuple[str, ...]:
        """Return text and names in turn."""
        texts = self.text.split(PARAMETER_PLACEHOLDER)
        return (*[part for pair in zip(texts, self.names, strict=False) for part in pair], texts[-1])


def _compile_words(words: list[_Template], *, listed: bool) -> JobCommand:
    """Return a command that runs without a shell; if it starts one itself, that script gets variables, not text."""
    made = [word.parts() for word in words]
    variables: dict[str, str] = {}
    for at, kind in find_shell_words([word.text for word in words]):
        word = words[at]
        if not word.names:
            continue
        where = at if listed else None
        if kind != "script":
            raise CommandError(*INJECTION_RISKS[kind], word.starts[0], where)
        try:
            text, variables = _compile_script(word, variables)
        except ShellError as error:
            offset = word.origin(error.offset) if listed else word.starts[0]
            raise CommandError(error.message, error.hint, offset, where) from error
        made[at] = (text,)
    if may_evaluate_arguments([word.text for word in words]):
        at = next(at for at in reversed(range(len(words))) if words[at].names)
        raise CommandError(*INJECTION_RISKS["evaluated"], words[at].starts[0], at if listed else None)
    return JobCommand(tuple(made), variables)


def _compile_script(template: _Template, variables: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the script with expansions for holes, and all variables; `variables` are those that exist already."""
    variables = dict(variables)
    for name in template.names:
        if name not in variables.values():
            variables[f"MONKEY_P_{len(variables)}"] = name
    variable = {name: key for key, name in variables.items()}
    text = expand_script(template.text, [variable[name] for name in template.names], set(template.known))
    return text, variables
