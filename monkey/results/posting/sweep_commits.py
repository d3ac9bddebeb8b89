"""The commits and the pull request that a sweep was applied from, as the forge knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from monkey.forge.forge_port import Forge, PullRequest
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_state import SweepState

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class CommitPulls:
    """The pull requests of commits, each asked for once."""

    def __init__(self, forge: Forge) -> None:
        """Know none yet."""
        self._forge = forge
        self._by_commit: dict[str, PullRequest | None] = {}
        self._by_number: dict[int, PullRequest | None] = {}

    def find(self, git: Mapping[str, Any]) -> PullRequest | None:
        """Return the pull request that a revision's commit came from. Raises ForgeError."""
        number, commit = git.get("pull"), str(git.get("commit", ""))
        if isinstance(number, int) and number > 0:
            if number not in self._by_number:
                self._by_number[number] = self._forge.read_pull(number)
            if (pull := self._by_number[number]) is not None:
                return pull
        if commit not in self._by_commit:
            found = self._forge.list_pulls_of(commit)
            self._by_commit[commit] = found[0] if found else None
        return self._by_commit[commit]


def read_commit(revision: Revision | None) -> Mapping[str, Any] | None:
    """Return what a revision says of its commit; None where it is of none. Anybody may have written it."""
    return _check(revision.git if revision is not None else None)


def list_commits(state: SweepState) -> list[Mapping[str, Any]]:
    """Return the commits that a sweep stands for: of its newest revision, and the newest that wanted the same."""
    found = [read_commit(state.revision), _check(state.seen.git if state.seen is not None else None)]
    return [git for git in found if git is not None]


def _check(git: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return git if git and _COMMIT.fullmatch(str(git.get("commit", ""))) else None


def is_of_repository(git: Mapping[str, Any], repository: str) -> bool:
    """Was it applied from this repository, as far as is known? Several may share a project."""
    remote = str(git.get("remote") or "").removesuffix("/").removesuffix(".git").lower()
    return not remote or not repository or re.search(rf"[/:]{re.escape(repository.lower())}\Z", remote) is not None


def list_targets(pulls: CommitPulls, commits: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the commits that bear a sweep's status, with whose they are: those applied, and their requests' heads.

    Raises ForgeError.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for git in commits:
        found.setdefault(str(git["commit"]), git)
        if (pull := pulls.find(git)) is not None:
            found.setdefault(pull.commit, git)
    return found
