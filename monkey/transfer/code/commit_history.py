"""What git knows of a history: which commit descends from which, and whether a content was ever committed.

Nothing is fetched unless that is asked for, and then by git's own credentials.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monkey.plan.commits.place import CommitAncestry
from monkey.transfer.code.code_manifest import ManifestEntry, PathKind
from monkey.transfer.code.git_files import find_work_tree
from monkey.transfer.code.git_process import FETCH_ALONE, run_git

#: Commits that touch a spec or its code, and that are searched for a content.
MAX_COMMITS = 200
#: Paths that git is given by name; of more, it is given their directory.
_MAX_PATHS = 1_000
#: Blobs that are read at once: a content that differs is noticed early.
_BLOBS = 64
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_KINDS = {"100644": PathKind.FILE, "100755": PathKind.EXECUTABLE, "120000": PathKind.LINK}


class CommittedContent(NamedTuple):
    """A spec and its code, as a commit may have them; paths begin in the work tree's own directory."""

    spec: str
    text: str
    #: The directory of the code, "" for all; and path to fingerprint, as `ManifestEntry` has it.
    root: str
    files: Mapping[str, str]


class CommitHistory:
    """The history of one commit of a work tree."""

    def __init__(self, root: Path, commit: str, *, fetches: bool = False) -> None:
        """`root`: a directory in the work tree. `fetches`: git may ask the remote for what is missing here."""
        self._top, self._commit, self._fetches = find_work_tree(root) or root, commit, fetches
        self._compared: dict[str, CommitAncestry] = {}
        self._fingerprints: dict[tuple[str, str], str | None] = {}
        self._deepened = False

    def compare(self, applied: str) -> CommitAncestry:
        """Return how the `applied` commit stands to this one, as far as this clone knows."""
        if applied not in self._compared:
            self._compared[applied] = self._compare(applied)
        return self._compared[applied]

    def _compare(self, applied: str) -> CommitAncestry:
        if _COMMIT.fullmatch(applied) is None:
            return CommitAncestry.MISSING
        code = self._run("merge-base", "--is-ancestor", "--end-of-options", applied, self._commit)[0]
        if code == 0:
            return CommitAncestry.ANCESTOR
        if code != 1:
            return CommitAncestry.MISSING
        back = self._run("merge-base", "--is-ancestor", "--end-of-options", self._commit, applied)[0]
        return CommitAncestry.NEITHER if back else CommitAncestry.DESCENDANT

    def is_shallow(self) -> bool:
        """Does the history end early here?"""
        return self._run("rev-parse", "--is-shallow-repository")[1].strip() == b"true"

    def deepen(self, *, files: bool = False) -> None:
        """Fetch the rest of the history once, if that is allowed; a remote that is away changes nothing.

        `files`: the files of all its commits, too. The commit itself is named, too: a forge's merge of a pull request
        is on no branch.
        """
        if not self._fetches or self._deepened:
            return
        self._deepened, branches = True, "+refs/heads/*:refs/remotes/origin/*"
        fetch = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--unshallow",
            *(() if files else ("--filter=blob:none",)),
            "origin",
        )
        if self._run(*fetch, self._commit, branches)[0]:
            self._run(*fetch)
        self._compared.clear()

    def lacks_files(self) -> bool:
        """Return whether the clone has no files of earlier commits, and may not fetch them."""
        partial = self._run("config", "--get-regexp", r"^remote\..*\.partialclonefilter$")[1]
        return bool(partial) and not self._fetches

    def is_pushed(self) -> bool:
        """Is the commit on a branch of a remote, as far as this clone knows? True where it has no remote at all."""
        of_remotes = ("for-each-ref", "--count=1", "--format=x")
        holding = self._run(*of_remotes, f"--contains={self._commit}", "refs/remotes")[1]
        return bool(holding) or not self._run(*of_remotes, "refs/remotes")[1]

    def has_content(self, content: CommittedContent, *, apart_from: str = "", since: str = "") -> bool:
        """Return whether one of the newest commits that touch these paths has them all, with this content.

        `apart_from`: a commit whose own history does not count. `since`: older commits do not count, in ISO 8601.
        """
        names = [content.spec, content.root, *content.files]
        if any("\n" in name for name in names):
            return False  # git would read it as two
        commits = self._list_commits(content, apart_from, since)
        texts = self._read_at(commits, content.spec)
        text = _normalize(content.text.encode(errors="replace"))
        return any(self._matches(commit, content) for commit in commits if texts.get(commit) == text)

    def has_touched(self, content: CommittedContent, since: str) -> bool:
        """Return whether a commit that the commit `since` does not have touches one of these paths."""
        return bool(self._list_commits(content, since, ""))

    def _list_commits(self, content: CommittedContent, apart_from: str, since: str) -> list[str]:
        paths = [content.spec, *(content.files if len(content.files) <= _MAX_PATHS else [content.root or "."])]
        given = [self._commit, *([f"^{apart_from}"] if apart_from else []), "--", *paths]
        most = (f"--max-count={MAX_COMMITS}", "--full-history", *([f"--since={since}"] if since else []))
        lines = "\n".join(given).encode(errors="surrogateescape") + b"\n"
        return self._run("--literal-pathspecs", "rev-list", *most, "--stdin", given=lines)[1].decode().split()

    def _read_at(self, commits: Sequence[str], path: str) -> dict[str, bytes]:
        """Return what the commits that have the path have there."""
        asked = "".join(f"{commit}:{path}\n" for commit in commits).encode(errors="surrogateescape")
        said = self._run("cat-file", "--batch-check", given=asked)[1].decode(errors="replace").splitlines()
        found = {commit: line.split()[0] for commit, line in zip(commits, said, strict=False) if " blob " in line}
        blobs = dict(self._read_blobs(set(found.values())))
        return {commit: _normalize(blobs[blob]) for commit, blob in found.items() if blob in blobs}

    def _read_blobs(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        said = self._run("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs).encode())[1]
        at = 0
        while (end := said.find(b"\n", at)) >= 0:
            head = said[at:end].split()
            at = end + 1
            if len(head) == 3 and head[1] == b"blob":  # else it is missing, and nothing follows
                yield head[0].decode(), said[at : at + int(head[2])]
                at += int(head[2]) + 1

    def _matches(self, commit: str, content: CommittedContent) -> bool:
        """Return whether the commit has all of the files."""
        below = ("--", content.root) if content.root else ()
        listed = self._run("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, *below)[1]
        found: dict[str, tuple[str, str]] = {}
        for line in os.fsdecode(listed).split("\0"):
            about, _, path = line.partition("\t")
            if path in content.files:
                mode, _, blob = about.split()
                found[path] = mode, blob
        if len(found) < len(content.files):
            return False
        unknown = []
        for path, known in found.items():
            if known not in self._fingerprints:
                unknown.append(path)
            elif self._fingerprints[known] != content.files[path]:
                return False
        for at in range(0, len(unknown), _BLOBS):
            some = unknown[at : at + _BLOBS]
            blobs = dict(self._read_blobs({found[path][1] for path in some}))
            for path in some:
                self._fingerprints[found[path]] = _fingerprint(found[path][0], blobs.get(found[path][1]))
            if any(self._fingerprints[found[path]] != content.files[path] for path in some):
                return False
        return True

    def _run(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes]:
        done = run_git(self._top, *arguments, given=given, online=FETCH_ALONE if self._fetches else None)
        return done.returncode, done.stdout


def _fingerprint(mode: str, data: bytes | None) -> str | None:
    """Return the fingerprint that a file of this mode has in a snapshot; None for what is missing, or no file."""
    kind = _KINDS.get(mode)
    if kind is None or data is None:
        return None
    content = os.fsdecode(data) if kind is PathKind.LINK else hashlib.sha256(data).hexdigest()
    return ManifestEntry("", kind, content).fingerprint


def _normalize(text: bytes) -> bytes:
    """Return a spec's text as it reads, whatever its ends of lines are."""
    return text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
