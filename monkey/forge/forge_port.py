"""What is asked of a forge: the port of `monkey.forge`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol

StatusState = Literal["pending", "success", "failure"]


class PullRequest(NamedTuple):
    """A pull request, or GitLab's merge request."""

    number: int
    #: The branch that is to be merged, its newest commit, and the branch that it is to be merged into.
    branch: str
    commit: str
    base: str
    is_open: bool
    is_merged: bool
    #: Is its branch of another repository?
    is_fork: bool


class CommitStatus(NamedTuple):
    """What a commit's status says."""

    state: StatusState
    text: str


class Forge(Protocol):
    """One repository at a forge. All raise ForgeError, with the permission that is lacking where one is."""

    def name_author(self) -> str:
        """Return the login under which comments are written with this token."""
        ...

    def write_comment(self, pull: int, key: str, text: str, others: Collection[str] = ()) -> str:
        """Make the pull request's comment `key` say `text` (Markdown), and return where it is seen.

        There is one, found by its marker and its author: a second one that is found is deleted. `others`: authors
        whose comments are ours as well.
        """
        ...

    def set_status(self, commit: str, context: str, state: StatusState, text: str, url: str = "") -> None:
        """Set a commit's status, unless it is so already; `text` is cut to what the forge takes."""
        ...

    def read_status(self, commit: str, context: str) -> CommitStatus | None:
        """Return the newest status of that context, set by the same author as ours; None where there is none."""
        ...

    def list_pulls_of(self, commit: str) -> list[PullRequest]:
        """Return the pull requests that the commit came from, or is in: those merged first."""
        ...

    def list_open_pulls(self) -> list[PullRequest]:
        """Return all that are open."""
        ...

    def read_pull(self, number: int) -> PullRequest | None:
        """Return a pull request; None where there is none of that number."""
        ...

    def can_write(self, user: str) -> bool:
        """May the user push to the repository?"""
        ...
