"""A second reader of a store and of clones: what a plan must change, from their files alone. No code of monkey's.

Specs are written as JSON, with a command of their own each, so that no two sweeps share a job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.clones.person import Person

#: The project's name, and the branch that all is merged into.
PROJECT, MAIN = "threes", "main"
#: How the reason begins with which a sweep ends whose spec is gone.
PRUNED = "its spec left git"


class Wanted(NamedTuple):
    """What a spec wants: values of its one parameter, a setting, and the code."""

    values: tuple[int, ...]
    retries: int
    code: str


@dataclass
class Logged:
    """A sweep as its log says it is."""

    entries: list[bytes] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    #: The number of the newest revision, and that entry.
    revision: int = 0
    newest: dict[str, Any] = field(default_factory=dict)
    #: The newest commit that it is known for, and the spec that this has.
    git: Mapping[str, Any] = field(default_factory=dict)
    spec: str = ""
    cancelled: str | None = None

    def add(self, data: bytes) -> None:
        """Follow one more entry."""
        body = json.loads(data)
        self.entries.append(data)
        self.bodies.append(body)
        kind = body["kind"]
        if kind == "seen":
            self.git, self.spec = body["git"], body.get("spec") or self.spec
        elif kind == "cancel":
            self.cancelled = body.get("reason") or "cancelled"
        elif kind == "revision":
            self.revision, self.newest, self.cancelled = len(self.entries), body, None
            self.git, self.spec = body["git"], body["spec"]
        elif kind in ("resume", "retry"):
            self.cancelled = None

    @property
    def wanted(self) -> Wanted:
        """What the newest revision wants."""
        spec, files = json.loads(self.newest["spec"]), self.newest["code_files"]
        (code,) = files.values()
        return Wanted(tuple(spec["parameters"]["i"]), spec["max_retries"], code)

    @property
    def jobs(self) -> list[str]:
        """The ids of its jobs, in the order of the values."""
        ids = self.newest["table"]["ids"]
        return [ids[at : at + 16] for at in range(0, len(ids), 16)]


def read_logs(store: Path) -> dict[str, Logged]:
    """Read the logs of all sweeps. Their entries are numbered without a gap."""
    found: dict[str, Logged] = {}
    for directory in sorted((store / "projects" / PROJECT / "sweeps").glob("*")):
        log = found[directory.name] = Logged()
        for number, path in enumerate(sorted(directory.iterdir()), 1):
            assert path.name == f"{number:08d}", path
            log.add(path.read_bytes())
    return found


def read_wanted(root: Path) -> dict[str, Wanted]:
    """Read what the specs of a work tree want. Raises ValueError for one that is no JSON."""
    found = {}
    for path in sorted((root / "specs").glob("*.yaml")):
        spec = json.loads(path.read_text())
        (code,) = spec["code"]["include"]
        at = sha256((root / code).read_bytes()).hexdigest()
        found[spec["name"]] = Wanted(tuple(spec["parameters"]["i"]), spec["max_retries"], at)
    return found


@dataclass(frozen=True)
class Foretold:
    """What a plan must be: a key, the same for the same changes alone, and what it is made of."""

    key: frozenset[Any]
    revised: frozenset[str]
    refused: frozenset[str]
    pruned: frozenset[str]
    kept: frozenset[str]


def foretell(person: Person, logs: Mapping[str, Logged], ended: frozenset[str], *, prune: bool = False) -> Foretold:
    """Say what a plan of a person's work tree must be; `ended`: the jobs that are over."""
    wanted, key = read_wanted(person.root), set[Any]()
    revised, refused, pruned = set[str](), set[str](), set[str]()
    for name, want in wanted.items():
        log = logs.get(name)
        if log is not None and want == log.wanted and not (log.cancelled or "").startswith(PRUNED):
            continue
        if log is not None and not may_follow(person, name, log):
            refused.add(name)
            continue
        revised.add(name)
        # What stood there before: a number alone may be that of another history.
        before = (log.revision, log.wanted._replace(retries=0), log.cancelled is not None) if log else ()
        key.add((name, before, want))
    branch = person.branch
    for name in logs.keys() - wanted.keys() if prune else ():
        log = logs[name]
        if branch is not None and log.git["branch"] == branch and log.cancelled is None and set(log.jobs) - ended:
            pruned.add(name)
            key.add((name, log.revision))
    kept = wanted.keys() - revised - refused
    return Foretold(frozenset(key), *map(frozenset, (revised, refused, pruned, kept)))


def may_follow(person: Person, name: str, log: Logged) -> bool:
    """Say whether the commit that is checked out may be applied after the one that the sweep is known for."""
    applied, head = log.git["commit"], person.git("rev-parse", "HEAD")
    there = person.tries("cat-file", "-e", f"{applied}^{{commit}}")
    if there and person.tries("merge-base", "--is-ancestor", applied, head):
        return True
    if there and person.tries("merge-base", "--is-ancestor", head, applied):
        return False
    theirs, ours = log.git["branch"], person.branch
    if theirs is None or ours is None or theirs in (ours, MAIN):
        return False
    since = [head, *([f"^{applied}"] if there else [])]
    commits = [line.split() for line in person.git("rev-list", "--parents", *since).splitlines()]
    content = log.spec, next(iter(log.newest["code_files"].values()))
    return any(
        _read_at(person, commit, name) == content
        and all(_read_at(person, parent, name) != content for parent in parents)
        for commit, *parents in commits
    )


def _read_at(person: Person, commit: str, name: str) -> tuple[str, str] | None:
    """Return the spec and the hash of its code at a commit."""
    try:
        spec, code = (person.show(commit, path) for path in (f"specs/{name}.yaml", f"{name}.sh"))
    except LookupError:
        return None
    return spec.decode(), sha256(code).hexdigest()
