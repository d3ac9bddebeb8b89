"""Datasets of a spec: names and paths. Whether the files can be taken is found out when they are looked at."""

from __future__ import annotations

import re
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, Mistakes, Path, describe, nearest, wrong

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def variable(name: str) -> str:
    """Return the environment variable in which a job finds the dataset's path."""
    return "MONKEY_DATASET_" + re.sub(r"[.-]", "_", name.upper())


def declare_datasets(raw: Any) -> dict[str, str]:
    """Read {name: path} and {name: {path: …}}; raises Mistakes."""
    if not isinstance(raw, dict):
        raise wrong(f"expected a mapping of names to paths, found {describe(raw)}", "write {digits: data/digits}")
    mistakes: list[Mistake] = []
    paths: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, of in raw.items():
        mistakes += _name(name, variables)
        try:
            paths[name] = _path(of)
        except Mistakes as error:
            mistakes += [mistake.under((name,)) for mistake in error.mistakes]
    if mistakes:
        raise Mistakes(mistakes)
    return paths


def _name(name: str, variables: dict[str, str]) -> list[Mistake]:
    if not _NAME.match(name):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        return [Mistake((name,), f"{name!r} cannot name a dataset", hint, True)]
    other = variables.setdefault(variable(name), name)
    if other == name:
        return []
    message = f"{name!r} and {other!r} would both be found in {variable(name)}"
    return [Mistake((name,), message, "give one of them another name", True)]


def _path(of: Any) -> str:
    at: Path = ()
    if isinstance(of, dict):
        for key in of:
            if key != "path":
                hint = "did you mean 'path'?" if nearest(key, ["path"]) else "a dataset has a path: {path: data/digits}"
                raise wrong(f"unknown key {key!r}", hint, (key,), on_key=True)
        if "path" not in of:
            raise wrong("a dataset needs a path", "write {path: data/digits}")
        of, at = of["path"], ("path",)
    if not isinstance(of, str) or not of.strip() or "\0" in of:
        raise wrong(f"expected a path, found {describe(of)}", "write path: data/digits", at)
    if of.startswith("~"):
        raise wrong("a path with ~ is another one for everybody", "write it from the project's root, or in full", at)
    return of
