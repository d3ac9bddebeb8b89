"""From a file to a Spec, with all of its mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monkey.errors import Problem, SpecError
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.project.provider import Provider
from monkey.spec.project_paths import resolve_in_project
from monkey.spec.sweep.future_fields import remove_planned_fields
from monkey.spec.sweep.models import Spec
from monkey.spec.sweep.partial_validation import ValidPart, extract_valid_part
from monkey.spec.sweep.pydantic_errors import MEANT_KEY, explain_pydantic_errors
from monkey.spec.sweep.spec_validation import SpecChecks
from monkey.spec.sweep.sweep_names import SWEEP_NAME_PATTERN
from monkey.spec.yaml import document
from monkey.spec.yaml.mistakes import Mistake, describe_value

_HINTS = {
    "command": "add a line such as: command: python train.py --lr {lr}",
    "name": "add a line such as: name: digits",
}

#: Fields that cannot be checked where `parameters` is no mapping at all.
_NEED_NAMES = {"command", "zip", "include", "exclude", "env", "outputs", "equivalences"}


def load_specs(
    paths: Iterable[Path],
    root: Path,
    providers: Mapping[str, Provider] | None = None,
    drafts: Mapping[Path, str] | None = None,
) -> list[Spec]:
    """Read the sweeps in these files, as `load_spec` does; `drafts`: texts that are read in place of files.

    Raises SpecError with all that is wrong with all of them.
    """
    specs, problems, sources = list[Spec](), list[Problem](), dict[str, str]()
    for path in paths:
        try:
            file = _read_draft(path, root, drafts[path]) if drafts and path in drafts else _read_file(path, root)
            problems += _find_equal_name(file, path.stem, sources)
            specs.append(_make_spec(file, root, path.stem, providers))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return specs


def _find_equal_name(file: document.YamlDocument, stem: str, sources: dict[str, str]) -> list[Problem]:
    """Return that another file names its sweep the same, if one does; keep which file has this name in `sources`."""
    name = file.data.get("name", stem) if isinstance(file.data, dict) else None
    if not isinstance(name, str):
        return []
    if name not in sources:
        sources[name] = file.file
        return []
    what = f"two specs are named {name!r}: {sources[name]} and {file.file}"
    return file.error([Mistake(("name",), what, "give one of them another `name:`")]).problems


def load_spec(path: Path, root: Path, providers: Mapping[str, Provider] | None = None) -> Spec:
    """Read the sweep in `path`, of the project at `root` with these `providers` (None: any will do).

    A path that leads out of the project only by a link is refused. Raises SpecError with all that is wrong.
    """
    return _make_spec(_read_file(path, root), root, path.stem, providers)


def _read_file(path: Path, root: Path) -> document.YamlDocument:
    path = Path(os.path.abspath(path))  # noqa: PTH100 - without '..', by which a user names what is outside
    top = os.path.realpath(root)
    inside = top in map(os.path.realpath, path.parents)
    try:
        source = resolve_in_project(path, root).relative_to(top).as_posix()
    except ValueError:
        source = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    return document.read_document(path, source, root if inside else None)


def _read_draft(path: Path, root: Path, text: str) -> document.YamlDocument:
    return document.parse_document(text, path.relative_to(root).as_posix())


def parse_spec(text: str, source: str, root: Path, providers: Mapping[str, Provider] | None = None) -> Spec:
    """Read a spec's text, such as a revision holds; `source` is the path that errors name."""
    return _make_spec(document.parse_document(text, source), root, Path(source).stem, providers)


def place_equivalences(spec: Spec) -> tuple[Equivalence, ...]:
    """Return the spec's `equivalences` with their lines."""
    places = (spec.document.place(Mistake(("equivalences", at), "")) for at in range(len(spec.equivalences)))
    return tuple(replace(item, line=place.line) for item, place in zip(spec.equivalences, places, strict=True))


def _make_spec(
    file: document.YamlDocument, root: Path, stem: str, providers: Mapping[str, Provider] | None = None
) -> Spec:
    if not isinstance(file.data, dict):
        found = describe_value(file.data)
        raise file.error(
            [Mistake((), f"expected a mapping, found {found}", "write key: value lines; see: monkey init")]
        )
    data, mistakes = remove_planned_fields(file.data)
    if SWEEP_NAME_PATTERN.match(stem):
        data.setdefault("name", stem)
    spec, invalid = _validate(data)
    mistakes += invalid
    sound = ValidPart(data) if spec is not None else extract_valid_part(data, invalid, _find_invalid_fields)
    if spec is None:
        spec, _ = _validate(sound.data)
    if spec is not None:
        checks = SpecChecks(spec, sound.doubtful, root, providers)
        top = [mistake for mistake in mistakes if len(mistake.path) == 1]
        lost = sound.lost | {str(m.path[0]) for m in top}
        lost |= {key for m in top for key in MEANT_KEY.findall(m.hint or "")}
        nameless = not lost.isdisjoint(("parameters", "repeat"))
        mistakes += map(sound.place, checks.all(lost - {"parameters"} | (_NEED_NAMES if nameless else set())))
        spec._document, spec._requirements, spec._providers = file, checks.requirements_text, providers
    if mistakes or spec is None:
        raise file.error(mistakes)
    return spec


def _find_invalid_fields(data: dict[str, Any]) -> set[str]:
    """Return the fields that are not valid."""
    return {str(mistake.path[0]) for mistake in _validate(data)[1] if mistake.path}


def _validate(data: dict[str, Any]) -> tuple[Spec | None, list[Mistake]]:
    try:
        return Spec.model_validate(data), []
    except ValidationError as error:
        return None, explain_pydantic_errors(error, Spec, _HINTS)
