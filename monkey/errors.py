"""Every error that a user can meet.

MonkeyError
├── SpecError               what users wrote is wrong: one or many Problems, each with file:line:col
├── PlanError
│   ├── StalePlan           a saved plan no longer fits the world
│   ├── DatasetError        data that cannot be taken as it is, or changes while it is
│   │   ├── DatasetElsewhere DVC knows its hash, and it is not on this machine
│   │   └── DvcMissing      data of a DVC repository, and DVC is not installed
│   └── NotADescendant      this commit is behind the one that was applied last
├── NotFound                a sweep or a job that does not exist
├── StoreError
│   ├── KeyMissing          no such key (the store itself is there)
│   ├── StoreMissing        nothing, or something else, where a store was expected
│   │   └── StoreReplaced   another store is where one was
│   ├── StoreUnavailable    no answer, or one that says nothing about the outcome
│   │   └── CreateUnresolved  a create whose outcome could not be found out
│   ├── StoreRefused        rights, quota, a full disk: trying again will not help by itself
│   ├── StoreUnsafe         its put-if-absent lies: two writers won one key
│   └── StoreFormat         written by a newer monkey
├── CorruptObject           stored bytes that are not what their key promises
├── ConcurrentApply         Another apply came first
├── FleetError              a machine or its agent could not be started
│   └── HostAway            a host does not answer: others continue without it
└── JobFailed               a job could not be run; its message becomes the attempt's reason
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class MonkeyError(Exception):
    """Something went wrong."""

    #: What `monkey` exits with when this error ends it.
    exit_code = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        """Keep the message (default: the class's docstring) and, where there is one, what to do about it."""
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        super().__init__(f"{self.message} (hint: {hint})" if hint else self.message)


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in a file: where it is, what was expected and found, and what to write instead.

    `line` and `column` count from 1; `source` is the text of that line, shown above a caret.
    """

    file: str
    line: int
    column: int
    message: str
    hint: str | None = None
    source: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.file}:{self.line}:{self.column}: {self.message}"]
        if self.source is not None:
            lines += [f"  {self.source}", "  " + " " * (self.column - 1) + "^"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class SpecError(MonkeyError):
    """The spec is not valid."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Report all problems at once, in the order of the file."""
        self.problems = sorted(set(problems), key=lambda p: (p.file, p.line, p.column, p.message))
        super().__init__("\n".join(map(str, self.problems)))


class PlanError(MonkeyError):
    """The plan cannot be made or applied."""


class StalePlan(PlanError):
    """The saved plan is stale."""


class DatasetError(PlanError):
    """The data cannot be taken as it is."""


class DatasetElsewhere(DatasetError):
    """The data is not on this machine."""

    def __init__(self, message: str, oid: str, by: str, *, hint: str | None = None) -> None:
        """Take its hash `oid`, too, and who names it: "data.dvc names"."""
        self.oid, self.by = oid, by
        super().__init__(message, hint=hint)


class DvcMissing(DatasetError):
    """DVC is not installed here."""


class NotADescendant(PlanError):
    """This commit does not descend from the one that was applied last."""


class NotFound(MonkeyError):
    """There is nothing of that name."""


class StoreError(MonkeyError):
    """The store did not do what it was asked."""


class KeyMissing(StoreError):
    """There is no such key."""

    def __init__(self, key: str) -> None:
        """Name the key that is missing."""
        self.key = key
        super().__init__(f"there is no {key!r} in the store")


class StoreMissing(StoreError):
    """There is no store where one was expected."""


class StoreReplaced(StoreMissing):
    """Another store is where one was: what this one held is gone from there for good."""


class StoreUnavailable(StoreError):
    """The store does not answer."""


class CreateUnresolved(StoreUnavailable):
    """Whether the entry was written is not known."""


class StoreRefused(StoreError):
    """The store refused."""


class StoreUnsafe(StoreError):
    """The store let two writers win the same key."""


class StoreFormat(StoreError):
    """The store was written by a newer monkey."""


class CorruptObject(MonkeyError):
    """Stored bytes are not what their key promises."""

    def __init__(self, key: str, why: str, hint: str | None = None) -> None:
        """Name the key, what is wrong with its bytes, and what to do."""
        self.key = key
        super().__init__(f"{key}: {why}", hint=hint)


class ConcurrentApply(MonkeyError):
    """Another apply came first."""


class FleetError(MonkeyError):
    """A machine or its agent could not be started."""


class HostAway(FleetError):
    """A host does not answer."""


class JobFailed(MonkeyError):
    """The job could not be run."""

    def __init__(self, message: str | None = None, *, hint: str | None = None, log_tail: Iterable[str] = ()) -> None:
        """Take `log_tail`, too: the last lines of whatever failed before the job could write any."""
        self.log_tail = list(log_tail)
        super().__init__(message, hint=hint)
