"""What fields mean to each other: names in commands and conditions, zip, include, exclude, counts, files.

Each check returns mistakes and needs only its own fields, so that a mistake elsewhere hides none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from monkey.spec.command.command import CommandError, compile_command
from monkey.spec.job.equivalences import find_equivalence_mistakes
from monkey.spec.job.expires import find_expiry_mistakes
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.machines.provider_choice import find_choice_mistakes
from monkey.spec.parameters import conditions
from monkey.spec.parameters.include_exclude import find_key_path, find_value_indexes, flatten_row, is_same_value
from monkey.spec.parameters.parameters import Parameter
from monkey.spec.parameters.ranges import count_values
from monkey.spec.project.provider import Provider, find_scarce_counts
from monkey.spec.project_paths import is_project_directory
from monkey.spec.sweep.datasets import format_dataset_variable
from monkey.spec.sweep.models import MAX_JOBS, Spec
from monkey.spec.sweep.python_requirements import PYTHON_OF_IMAGE, read_requirements_file
from monkey.spec.yaml.mistakes import Mistake, describe_value, suggest_word

_NOT_PLAIN = re.compile(r"\s*(-r|--requirement|-c|--constraint|-e|--editable|\.{1,2}/|/|file:)", re.MULTILINE)

_PLAIN_HINT = "only the text itself reaches the machines: list the packages in it"


class SpecChecks:
    """The checks of one spec; silent about `doubtful`, the top names of parameters that could not be read."""

    def __init__(
        self, spec: Spec, doubtful: Collection[str], root: FilePath, providers: Mapping[str, Provider] | None
    ) -> None:
        """Keep what is checked."""
        self.spec = spec
        self.parameters = spec.all_parameters
        self.doubtful = set(doubtful)
        self.root = root
        self.providers = providers
        #: What the requirements file says, once `requirements` has read it.
        self.requirements_text: str | None = None

    def all(self, skip: Collection[str]) -> list[Mistake]:
        """Return the mistakes of all checks but those of fields in `skip`."""
        names, named = [of.name for of in self.spec.provider], "provider" in self.spec.model_fields_set
        checks: dict[str, Callable[[], Iterator[Mistake]]] = {
            "command": self.command,
            "parameters": self.conditions,
            "method": lambda: self.method(capped="run_cap" in skip or self.spec.run_cap is not None),
            "provider": lambda: find_choice_mistakes(self.spec.provider, self.providers, named=named),
            "resources": lambda: find_scarce_counts(self.spec.resources.counted, names, self.providers),
            "expires": lambda: find_expiry_mistakes(self.spec.expires, names, self.providers or {}),
            "repeat": self.repeats,
            "zip": self.zip,
            "include": lambda: self.rows("include", self.spec.include),
            "exclude": lambda: self.rows("exclude", self.spec.exclude),
            "environment": self.requirements,
            "code": self.code,
            "datasets": self.datasets,
            "env": lambda: self.holes("env", self.spec.env),
            "secrets": self.secrets,
            "equivalences": lambda: find_equivalence_mistakes(self.spec.equivalences, self.parameters, self.doubtful),
            "outputs": lambda: self.holes("outputs", dict(enumerate(self.spec.outputs))),
        }
        found = [mistake for field, check in checks.items() if field not in skip for mistake in check()]
        return found if found or skip or self.doubtful else [*self.count()]

    def names(self, text: str = "") -> list[str]:
        """Return the known names; of parameters in doubt, whatever `text` calls them."""
        inside = re.findall(r"[A-Za-z_][\w.]*", text) if self.doubtful else []
        guessed = (word for word in inside if word.split(".")[0] in self.doubtful)
        return list(dict.fromkeys([*self.parameters, *self.doubtful, *guessed]))

    def command(self) -> Iterator[Mistake]:
        """Check that the command can be read and uses only parameters that there are."""
        command = self.spec.command
        names = self.names(command if isinstance(command, str) else " ".join(command))
        guessed: set[str] = set()
        while True:
            try:
                compile_command(command, [*names, *guessed])
            except CommandError as error:
                path = ("command",) if error.word is None else ("command", error.word)
                hint = error.hint
                if error.unknown in self.spec.datasets:
                    hint = f"the path of a dataset is in ${format_dataset_variable(error.unknown)}"
                yield Mistake(path, error.message, hint, offset=error.offset)
                if error.unknown is None or len(guessed) > 20:
                    return
                guessed.add(error.unknown)  # continue: there may be more
            else:
                return

    def conditions(self) -> Iterator[Mistake]:
        """Check every `when`, and that none waits for itself."""
        uses: dict[str, set[str]] = {}
        for parameter in self.parameters.values():
            for path, text in parameter.when:
                try:
                    read = conditions.parse_condition(text, self.names(text))
                    uses.setdefault(parameter.name, set()).update(read.uses)
                    for name in read.uses & self.spec.repeat.keys():
                        message = f"{name!r} repeats each point, so no condition can use it"
                        yield Mistake(("parameters", *path), message, f"put {name} under 'parameters' instead")
                except conditions.ConditionError as error:
                    yield Mistake(("parameters", *path), error.message, error.hint, offset=error.offset)
        for name in uses:
            if name in _find_reachable_names(uses, name):
                path, _ = self.parameters[name].when[-1]
                message = f"whether {name!r} applies depends on {name!r} itself"
                yield Mistake(("parameters", *path), message, "remove one of the conditions that form the circle")

    def method(self, *, capped: bool) -> Iterator[Mistake]:
        """Check that the search can deal with every parameter."""
        random = self.spec.method == "random"
        if random and not capped:
            yield Mistake(("method",), "method: random needs a run_cap", "say how many jobs: run_cap: 100")
        for parameter in self.spec.parameters.values():
            path = ("parameters", *parameter.path)
            if random and parameter.grid_only:
                hint = "write choice, or use method: grid"
                yield Mistake((*path, "grid_search"), "grid_search needs method: grid", hint, on_key=True)
            if not random and parameter.choices is None and parameter.distribution:
                hint = "list values, use a q_uniform, or use method: random with a run_cap"
                drawn = parameter.distribution
                if drawn.is_bounded and "log" in drawn.kind:
                    hint = f"write {{geomspace: [{drawn.low}, {drawn.high}, 5]}}, or method: random with a run_cap"
                message = f"a grid cannot try all of a {drawn.kind}"
                yield Mistake(path, message, hint)
            if not random and parameter.probabilities:
                hint = "remove them, or use method: random with a run_cap"
                yield Mistake((*path, "probabilities"), "a grid has no use for probabilities", hint, on_key=True)
            if not random and not any(parameter.name in group for group in self.spec.zip):
                yield from self.twice("parameters", parameter)

    def repeats(self) -> Iterator[Mistake]:
        """Check that no repeat is a parameter, or lies in one."""
        for name, repeat in self.spec.repeat.items():
            yield from self.twice("repeat", repeat)
            for other in self.spec.parameters:
                if name == other:
                    hint = "remove it from 'parameters', or name what repeats: {fold: 3}"
                    yield Mistake(("repeat", name), f"{name!r} is a parameter already", hint, True)
                elif f"{name}.".startswith(f"{other}.") or other.startswith(f"{name}."):
                    message = f"{name!r} and the parameter {other!r} cannot lie in each other"
                    yield Mistake(("repeat", name), message, "rename one of them", True)

    def twice(self, field: str, parameter: Parameter) -> Iterator[Mistake]:
        """Refuse a value that stands twice: a second equal job would not run."""
        if isinstance(parameter.values, list):
            seen: set[str] = set()
            for value in parameter.values:
                if (text := dump_canonical_json(value)) in seen:
                    hint = "remove one"
                    if type(value) in (int, float):
                        hint += ', or put both in quotes where they are texts, such as "3.10"'
                    if field == "parameters":
                        hint += "; to repeat jobs, write repeat: 5"
                    yield Mistake((field, *parameter.path), f"{text} stands twice in {parameter.name!r}", hint)
                    return
                seen.add(text)

    def zip(self) -> Iterator[Mistake]:
        """Check that zipped parameters exist, once, and are of one length."""
        seen: set[str] = set()
        for at, group in enumerate(self.spec.zip):
            unknown = False
            for n, name in enumerate(group):
                mistake = self.unknown(("zip", at, n), name)
                if mistake is None and name in seen:
                    mistake = Mistake(("zip", at, n), f"{name!r} is zipped twice", "name it once")
                if name in self.spec.repeat:
                    message = f"{name!r} repeats each point, so it varies with no parameter"
                    mistake = Mistake(("zip", at, n), message, f"put {name} under 'parameters', or take it out of zip")
                if mistake:
                    unknown = True
                    yield mistake
                seen.add(name)
            if len(group) < 2 and not unknown:
                yield Mistake(("zip", at), "expected two or more parameters to vary together", "write [[lr, hidden]]")
            elif not unknown:
                yield from self.lengths(at, [self.parameters[name] for name in group if name in self.parameters])

    def lengths(self, at: int, group: Sequence[Parameter]) -> Iterator[Mistake]:
        """Check that the parameters of a group have equally many values."""
        for parameter in group:
            if parameter.choices is None or parameter.probabilities:
                yield Mistake(("zip", at), f"{parameter.name!r} has no list of values to zip", "give it values: […]")
                return
        counts = {p.name: count_values(p.choices) for p in group if p.choices is not None}
        if max(counts.values(), default=0) > MAX_JOBS:
            yield Mistake(("zip", at), f"expected at most {MAX_JOBS:,} values to zip, found more", "use fewer")
        elif len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {n}" for name, n in counts.items())
            hint = "give them equally many, or remove the zip to cross them"
            yield Mistake(("zip", at), f"zipped parameters need equally many values: {listed}", hint)

    def rows(self, field: str, rows: list[dict[str, Any]]) -> Iterator[Mistake]:
        """Check the rows of include or exclude."""
        if field == "include" and rows and not self.names():
            names = list(dict.fromkeys(name for row in rows for name in row))
            hint = f"list values in the same order: parameters: {{{', '.join(f'{name}: […]' for name in names)}}}"
            if len(names) > 1:
                hint += f" and zip: [[{', '.join(names)}]]"
            yield Mistake((field,), "include adds to a matrix, and there are no parameters", hint, on_key=True)
            return
        for at, raw in enumerate(rows):
            row, path = flatten_row(raw, self.parameters), (field, at)
            mistakes = [m for name in row if (m := self.unknown((*path, *find_key_path(raw, name)), name, on_key=True))]
            yield from mistakes
            if not row:
                yield Mistake(path, f"an empty row in {field}", "name at least one parameter, or remove it")
            elif not mistakes and field == "include":
                yield from self.complete(path, row)
            elif not mistakes:
                yield from self.possible(path, raw, row)

    def complete(self, path: tuple[str | int, ...], row: Mapping[str, Any]) -> Iterator[Mistake]:
        """Check that a job to include says every parameter that could have several values."""
        lacking = [
            p.name
            for p in self.spec.parameters.values()
            if p.name not in row
            and (p.otherwise or (not p.when and (p.choices is None or count_values(p.choices) > 1)))
        ]
        if lacking:
            what = f"a job to include needs every parameter; this one lacks {', '.join(lacking)}"
            yield Mistake(path, what, f"add {lacking[0]}: …")

    def possible(
        self, path: tuple[str | int, ...], raw: Mapping[str, Any], row: Mapping[str, Any]
    ) -> Iterator[Mistake]:
        """Check that a row to exclude names values that occur: otherwise it is a slip."""
        for name, value in row.items():
            parameter = self.parameters.get(name)
            values = parameter.values if parameter else None
            if parameter is None or values is None or any(is_same_value(value, v) for v in parameter.otherwise):
                continue
            if not find_value_indexes(values, value):
                what = f"{describe_value(value)} is not a value of {name!r}, so nothing is excluded"
                where = (*path, *find_key_path(raw, name))
                yield Mistake(where, what, "remove the row, or write one of its values")

    def unknown(self, path: tuple[str | int, ...], name: str, *, on_key: bool = False) -> Mistake | None:
        """Return a mistake if there is no parameter of that name."""
        if name in self.parameters or name.split(".")[0] in self.doubtful:
            return None
        return Mistake(path, f"unknown parameter {name!r}", suggest_word(name, self.names(), "parameters"), on_key)

    def requirements(self) -> Iterator[Mistake]:
        """Check that the requirements are there and stand for themselves: only their text travels."""
        if self.spec.environment.image and self.spec.environment.python is not None:
            yield Mistake(("environment", "python"), *PYTHON_OF_IMAGE, on_key=True)
        asked, path = self.spec.environment.requirements, ("environment", "requirements")
        if asked is None:
            return
        if not isinstance(asked, str):
            self.requirements_text = "".join(f"{line}\n" for line in asked)
            for at, line in enumerate(asked):
                if match := _NOT_PLAIN.match(line):
                    yield Mistake((*path, at), f"{match[1]} refers to another file", _PLAIN_HINT)
            return
        try:
            self.requirements_text = text = read_requirements_file(self.root, asked)
        except (OSError, ValueError) as error:
            unreadable = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            reason = getattr(error, "strerror", None) or unreadable
            hint = "give its path below the project's root, or a list: [numpy==2.3.4]"
            yield Mistake(path, f"the file {asked!r} cannot be read: {reason}", hint)
            return
        if match := _NOT_PLAIN.match(text) or re.search(r"\n" + _NOT_PLAIN.pattern, text):
            yield Mistake(
                path, f"{asked!r} has a line beginning with {match[1]}, which refers to another file", _PLAIN_HINT
            )

    def holes(self, field: str, texts: Mapping[str, str] | Mapping[int, str]) -> Iterator[Mistake]:
        """Refuse `{lr}` where nothing would fill it in."""
        for at, text in texts.items():
            for name in self.parameters:
                if f"{{{name}}}" in text:
                    hint = "pass it by the command; a job also finds all its parameters in MONKEY_PARAMS"
                    yield Mistake((field, at), f"{{{name}}} is filled in only in the command, not in {field}", hint)

    def datasets(self) -> Iterator[Mistake]:
        """Refuse `{lr}` in paths; what is not there may be in DVC's cache, or in the store."""
        yield from self.holes("datasets", self.spec.datasets)

    def secrets(self) -> Iterator[Mistake]:
        """Refuse a secret whose value stands in the spec."""
        for name in self.spec.env:
            if name in self.spec.secrets:
                hint = "remove it from env, and let the machine know it"
                yield Mistake(
                    ("env", name), f"{name!r} is one of the secrets: its value must not be in a spec", hint, True
                )

    def code(self) -> Iterator[Mistake]:
        """Check that the code's root is a directory of the project."""
        root = self.spec.code.root
        if not is_project_directory(self.root / root, self.root):
            yield Mistake(("code", "root"), f"there is no directory {root!r} in the project", "write root: .")

    def count(self) -> Iterator[Mistake]:
        """Refuse more jobs than anyone wants, without making one of them."""
        capped = self.spec.method == "random" or self.spec.run_cap is not None
        if capped and not self.spec.repeat:
            return
        zipped = {name for group in self.spec.zip for name in group[1:]}
        counted = self.spec.repeat if capped else self.parameters
        counts = {p.name: count_values(p.choices or ()) for p in counted.values() if p.name not in zipped}
        if capped:
            counts["run_cap"] = self.spec.run_cap or 1
        jobs = 1
        for n in counts.values():
            jobs *= n
        if jobs > MAX_JOBS:
            largest = sorted(counts, key=counts.__getitem__, reverse=True)[:4]
            listed = " × ".join(f"{name} {counts[name]:,}" for name in largest if counts[name] < 10**18)
            many = f"{jobs:,}" if jobs < 10**18 else "more than 10^18"
            message = f"expected at most {MAX_JOBS:,} jobs, found {many} ({listed}{' × …' if len(counts) > 4 else ''})"
            yield Mistake(
                ("repeat" if capped else "parameters",),
                message,
                "use fewer values, a run_cap, or method: random",
                on_key=True,
            )


def _find_reachable_names(uses: Mapping[str, set[str]], start: str) -> set[str]:
    reached, todo = set[str](), [*uses.get(start, ())]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += uses.get(name, ())
    return reached
