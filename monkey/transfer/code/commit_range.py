"""The commits between two of a branch: of pushes in quick succession, CI runs for the last alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from monkey.transfer.code.git_files import find_work_tree
from monkey.transfer.code.git_process import run_git

#: Commits that are looked for at most.
_MAX_COMMITS = 20


def list_between(root: Path, older: str, newer: str, paths: Iterable[str]) -> list[str]:
    """Return the commits after `older` and before `newer` on its first line of parents that change one of the paths.

    `paths`: relative to `root`. None are returned where git knows too little, as in a shallow clone. Raises PlanError
    where git is missing.
    """
    if find_work_tree(root) is None:
        return []
    line = ("rev-list", "--first-parent", f"--max-count={_MAX_COMMITS + 1}", "--stdin")
    given = "\n".join([f"{older}..{newer}", "--", *(path for path in paths if "\n" not in path), ""])
    done = run_git(root, "--literal-pathspecs", *line, given=os.fsencode(given))
    found = os.fsdecode(done.stdout).split() if done.returncode == 0 else []
    return [commit for commit in found if commit != newer][:_MAX_COMMITS]
