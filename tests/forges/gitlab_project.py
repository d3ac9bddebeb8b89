"""The project of the double of GitLab with a real repository: branches, merge requests and what merging makes of them.

By docs.gitlab.com, "Merge methods": a merge commit is made of a branch, or of the one commit that squashing made of it.
With fast-forward merges, the branch must have all of the target's commits: GitLab rebases it first, which is a push to
the branch, with a merge request pipeline of its own.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from tests.forges.double import Request
from tests.forges.gitlab_double import REPOSITORY, GitLabDouble

BRANCH = "main"


class GitLabProject(GitLabDouble):
    """GitLab with one project, whose repository is below a directory; the path ends as the project's does."""

    def __init__(self, base: Path) -> None:
        """Make the repository, and begin to listen."""
        super().__init__()
        self.path = base / f"{REPOSITORY}.git"
        self._work, self._kept = base / "work", itertools.count(1)
        self._run("init", "--quiet", "--bare", f"--initial-branch={BRANCH}", str(self.path), at=base)
        self._run("clone", "--quiet", str(self.path), str(self._work), at=base)

    def _run(self, *words: str, at: Path | None = None) -> str:
        who = ["-c", "user.name=gitlab", "-c", "user.email=gitlab@example.org", "-c", "advice.detachedHead=false"]
        done = subprocess.run(["git", *who, *words], cwd=at or self._work, capture_output=True, text=True)
        assert done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def head(self, branch: str) -> str:
        """Return the branch's commit."""
        return self._run("rev-parse", f"refs/heads/{branch}", at=self.path)

    def list_branches(self, commit: str) -> list[str]:
        """See `GitLabDouble`."""
        return self._run("branch", "--contains", commit, "--format=%(refname:short)", at=self.path).splitlines()

    def open_request(self, branch: str) -> int:
        """Open a merge request of a branch that was pushed."""
        number = self.open_pull(branch, "")
        self.update(number)
        return number

    def update(self, number: int) -> str:
        """Take notice of what was pushed to the request's branch, and return the branch's commit."""
        pull = self.pulls[number]
        pull.commit = self.head(pull.branch)
        pull.commits = tuple(self._run("rev-list", f"{BRANCH}..{pull.commit}", at=self.path).splitlines())
        self._run("update-ref", f"refs/merge-requests/{number}/head", pull.commit, at=self.path)
        return pull.commit

    def merge_request(self, number: int, how: str) -> str:
        """Merge the request, "merge", "squash" or "fast-forward", delete its branch, and return the target's commit."""
        pull = self.pulls[number]
        self._begin(BRANCH)
        title = f"Merge branch '{pull.branch}' into '{BRANCH}'"
        if how == "squash":
            self._squash(pull)
        source = "squashed" if how == "squash" else pull.commit
        self._run("merge", "--quiet", *(["--ff-only"] if how == "fast-forward" else ["--no-ff", "-m", title]), source)
        self._run("push", "--quiet", "origin", f"HEAD:{BRANCH}", f":{pull.branch}")
        made = self.head(BRANCH)
        self.merge(number, "" if how == "fast-forward" else made)
        return made

    def _squash(self, pull: Request) -> None:
        self._run("checkout", "--quiet", "-B", "squashed")
        self._run("merge", "--quiet", "--squash", pull.commit)
        self._run("commit", "--quiet", "-m", f"All of {pull.branch}")
        pull.commits = (*pull.commits, self._run("rev-parse", "HEAD"))
        self._begin(BRANCH)

    def rebase(self, number: int) -> str:
        """Put the request's branch on top of its target, and return the branch's commit."""
        pull = self.pulls[number]
        self._begin(pull.branch)
        self._run("rebase", "--quiet", f"origin/{BRANCH}")
        self._run("push", "--quiet", "--force", "origin", f"HEAD:{pull.branch}")
        return self.update(number)

    def _begin(self, branch: str) -> None:
        self._run("fetch", "--quiet", "--prune", "origin")
        self._run("checkout", "--quiet", "--detach", f"origin/{branch}")
