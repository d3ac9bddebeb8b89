"""Datasets of a spec: names and paths. Whether the files can be taken is found out when they are looked at."""

from __future__ import annotations

import re
from typing import Any

from monkey.spec.yaml.mistakes import (
    Mistake,
    MistakesError,
    NodePath,
    describe_value,
    find_nearest_word,
    make_mistake_error,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def format_dataset_variable(name: str) -> str:
    """Return the environment variable in which a job finds the dataset's path."""
    return "MONKEY_DATASET_" + re.sub(r"[.-]", "_", name.upper())


def parse_datasets(raw: Any) -> dict[str, str]:
    """Read {name: path} and {name: {path: …}}; raises MistakesError."""
    if not isinstance(raw, dict):
        raise make_mistake_error(
            f"expected a mapping of names to paths, found {describe_value(raw)}", "write {digits: data/digits}"
        )
    mistakes: list[Mistake] = []
    paths: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, of in raw.items():
        mistakes += _find_name_mistakes(name, variables)
        try:
            paths[name] = _parse_path(of)
        except MistakesError as error:
            mistakes += [mistake.under((name,)) for mistake in error.mistakes]
    if mistakes:
        raise MistakesError(mistakes)
    return paths


def _find_name_mistakes(name: str, variables: dict[str, str]) -> list[Mistake]:
    if not _NAME.match(name):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        return [Mistake((name,), f"{name!r} cannot name a dataset", hint, True)]
    other = variables.setdefault(format_dataset_variable(name), name)
    if other == name:
        return []
    message = f"{name!r} and {other!r} would both be found in {format_dataset_variable(name)}"
    return [Mistake((name,), message, "give one of them another name", True)]


def _parse_path(of: Any) -> str:
    at: NodePath = ()
    if isinstance(of, dict):
        for key in of:
            if key != "path":
                hint = (
                    "did you mean 'path'?"
                    if find_nearest_word(key, ["path"])
                    else "a dataset has a path: {path: data/digits}"
                )
                raise make_mistake_error(f"unknown key {key!r}", hint, (key,), on_key=True)
        if "path" not in of:
            raise make_mistake_error("a dataset needs a path", "write {path: data/digits}")
        of, at = of["path"], ("path",)
    if not isinstance(of, str) or not of.strip() or "\0" in of:
        raise make_mistake_error(f"expected a path, found {describe_value(of)}", "write path: data/digits", at)
    if of.startswith("~"):
        raise make_mistake_error(
            "a path with ~ is another one for everybody", "write it from the project's root, or in full", at
        )
    return of
