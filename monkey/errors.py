"""Every error that a user can meet.

MonkeyError
├── SpecError               A spec or monkey.yaml is wrong: one or many Problems, each with file:line:col.
├── PlanError               A plan cannot be made or applied.
│   ├── StalePlan           A saved plan no longer fits the world.
│   ├── UnexpectedPlan      The plan is not the one whose digest was given.
│   ├── ImageError          Which container image a name means cannot be found out.
│   ├── DatasetError        Data cannot be taken as it is, or changes meanwhile.
│   │   ├── DatasetElsewhere DVC knows the data's hash, and the data is not on this machine.
│   │   └── DvcMissing      Data lies in a DVC repository, and DVC is not installed.
│   └── SweepRefused        Sweeps are left as they are: by an older commit, or by what a person decided.
├── NotFound                A sweep or a job does not exist.
├── SigningError            A signing key, or a list of signers, cannot be used.
├── EndpointRefused         Credentials would go where no user wanted them.
├── StoreError              The store did not do what it was asked.
│   ├── KeyMissing          No such key exists (the store itself is there).
│   ├── StoreMissing        Nothing, or something else, is where a store was expected.
│   │   └── StoreReplaced   Another store is where one was.
│   ├── StoreUnavailable    The store does not answer, or its answer says nothing about the outcome.
│   │   └── CreateUnresolved  Whether a create took effect could not be found out.
│   ├── StoreRefused        Rights, quota or disk space are lacking: to try again does not help by itself.
│   │   ├── StoreForbidden    Rights are lacking, and nothing else.
│   │   └── StoreLinked       A link is in the way: nothing in a store is reached through one.
│   ├── StoreUnsafe         The store's put-if-absent lies: two writers won one key.
│   └── StoreFormat         A newer monkey wrote the store.
├── CorruptObject           Stored bytes are not what their key promises.
│   └── ObjectTooLarge      An object is larger than any that monkey writes under its key.
├── ConcurrentApply         Another apply came first.
├── RemoteAway              A git remote does not answer, or refuses.
├── ForgeError              A forge (GitHub, Gitea, GitLab) did not do what it was asked.
│   ├── ForgeAway           It does not answer at all.
│   └── ForgeRefused        It refused, or its answer makes no sense: trying again changes nothing.
├── FleetError              A machine or its agent could not be started.
│   ├── MachineUnfit        An agent cannot work on this machine, and another try would end the same.
│   └── HostAway            A host does not answer: the others continue without it.
├── MachineFault            A machine cannot run a job now, which is no fault of the job: it is released.
└── JobFailed               A job could not be run; the message becomes the attempt's reason.
    └── OneName             Two names are one on some disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class MonkeyError(Exception):
    """Something went wrong."""

    #: Exit code of `monkey` when this error ends it.
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


class UnexpectedPlan(PlanError):
    """The plan is not the one whose digest was given."""


class ImageError(PlanError):
    """Which container image a name means cannot be found out."""


class DatasetError(PlanError):
    """The data cannot be taken as it is."""


class DatasetElsewhere(DatasetError):
    """The data is not on this machine."""

    def __init__(self, message: str, oid: str, by: str, *, hint: str | None = None) -> None:
        """Keep also the data's hash `oid`, and words for what names it: "data.dvc names"."""
        self.oid, self.by = oid, by
        super().__init__(message, hint=hint)


class DvcMissing(DatasetError):
    """DVC is not installed here."""


class SweepRefused(PlanError):
    """Sweeps are left as they are."""


class NotFound(MonkeyError):
    """There is nothing of that name."""


class SigningError(MonkeyError):
    """A signing key, or a list of signers, cannot be used."""


class EndpointRefused(MonkeyError):
    """Credentials would go to an endpoint that no user chose."""

    def __init__(self, message: str | None = None, *, hint: str | None = None, problem: Problem | None = None) -> None:
        """Keep also the place in the file that names the endpoint; it has message and hint of its own."""
        self.problem = problem
        super().__init__(message if problem is None else str(problem), hint=hint)


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

    #: Was it there before, and is the file system there that it was on? Then no mount brings it back.
    removed = False


class StoreReplaced(StoreMissing):
    """Another store is where one was: what this one held is gone from there for good."""


class StoreUnavailable(StoreError):
    """The store does not answer."""


class CreateUnresolved(StoreUnavailable):
    """Whether the entry was written is not known."""


#: What to do where the disk of a store is full: no verb removes results.
MAKE_ROOM = "free some space there: docs/stores.md (A full store) says what may go"


class StoreRefused(StoreError):
    """The store refused."""


class StoreForbidden(StoreRefused):
    """The store is there, and this machine lacks the rights to read or write it, until a person grants them."""


class StoreLinked(StoreRefused):
    """A link is in the way in the store."""

    def __init__(self, where: str, link: str) -> None:
        """Name the store and the key in question, in words, and the link by its path below the store's root."""
        super().__init__(
            f"{where}: expected a directory or an object, found that {link!r} in it is a link",
            hint="find out who made it, and put what was there back; only the whole store may lie behind a link",
        )


class StoreUnsafe(StoreError):
    """The store let two writers win the same key."""


class StoreFormat(StoreError):
    """The store was written by a newer monkey."""


class CorruptObject(MonkeyError):
    """Stored bytes are not what their key promises."""

    def __init__(self, key: str, why: str, hint: str | None = None) -> None:
        """Name the key, what is wrong with its bytes, and what to do."""
        self.key = key
        self.why = why
        super().__init__(f"{key}: {why}", hint=hint)


class ObjectTooLarge(CorruptObject):
    """The object is larger than any that monkey writes under its key."""

    def __init__(self, key: str, size: int, limit: int) -> None:
        """Name the key, the size as far as it is known, and the limit, both in bytes."""
        why = f"it is too large to be read: expected at most {limit:,} bytes, found {size:,} or more"
        # Not removed: entries that follow in a log would be lost with it, and they hold for an empty one.
        super().__init__(key, f"{why}; monkey did not write it: put an empty object in its place")


class ConcurrentApply(MonkeyError):
    """Another apply came first."""


class ForgeError(MonkeyError):
    """A forge did not do what it was asked, or does not answer."""


class ForgeAway(ForgeError):
    """A forge does not answer: what else there is to ask is left to a later run."""


class ForgeRefused(ForgeError):
    """A forge refused what it was asked: the token is wrong, or may not do that. Or its answer makes no sense."""


class RemoteAway(MonkeyError):
    """A git remote does not answer, or refuses."""


class FleetError(MonkeyError):
    """A machine or its agent could not be started."""


class MachineUnfit(FleetError):
    """An agent cannot work on this machine."""


class HostAway(FleetError):
    """A host does not answer."""


class MachineFault(MonkeyError):
    """This machine cannot run the job now."""


class JobFailed(MonkeyError):
    """The job could not be run."""

    def __init__(self, message: str | None = None, *, hint: str | None = None, log_tail: Iterable[str] = ()) -> None:
        """Keep also `log_tail`: the last lines of what failed before the job could write any."""
        self.log_tail = list(log_tail)
        super().__init__(message, hint=hint)


class OneName(JobFailed):
    """Two names are one on some disk."""

    def __init__(self, one: str, other: str, where: str) -> None:
        """Name both, and `where` they are one."""
        super().__init__(
            f"{one!a} and {other!a} are one name in {where}, which does not tell case or Unicode forms apart: "
            "rename one, or use another disk"
        )
