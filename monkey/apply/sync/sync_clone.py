"""The clone of a sync: one work tree, which is checked out in place, so that files that stay keep their times.

Credentials are git's own. Nothing that the repository names is run: no hook, filter or file system monitor, and no
submodule is followed. The clone may be killed at any point: the next call continues or repairs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.apply.sync.sync_order import strip_passwords
from monkey.atomic_write import write_atomically
from monkey.errors import MonkeyError, PlanError, RemoteAway
from monkey.removal import remove_file, remove_tree
from monkey.transfer.code.git_files import strip_credentials
from monkey.transfer.code.git_process import run_git

#: Seconds that a look at the remote may take, and a fetch.
_LOOK_SECONDS, _FETCH_SECONDS = 60.0, 3600.0
#: The remote's name in our git's variables. Its URL, which may hold a password, lies in no file.
_REMOTE = "monkey-sync"
_SAFE = (
    *("-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "fetch.recurseSubmodules=false"),
    # A process that outlives its git would write into the clone beside the next one.
    *("-c", "gc.autoDetach=false"),
    *("-c", "maintenance.autoDetach=false"),
    # A server that sends nothing for a minute is away.
    *("-c", "http.lowSpeedLimit=1"),
    *("-c", "http.lowSpeedTime=60"),
)
#: Sets every path's filter aside, whatever .gitattributes says: LFS would fetch, others would run.
_ATTRIBUTES = "* -filter\n"
#: Git's own words behind which its reason stands.
_WORDS = ("fatal: ", "error: ", "ERROR: ", "remote: ")


@dataclass
class SyncClone:
    """A clone of a remote in a sync's state directory, of which one branch is checked out."""

    directory: SyncDirectory
    remote: str
    #: "" for none: commits are checked out alone.
    branch: str
    #: Another clone whose objects this one uses, instead of fetching its own.
    borrow: Path | None = None
    #: Whether to look at all branches, and what the last look found.
    looks_at_all: bool = False
    heads: bytes = b""

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.directory.tree

    def prepare(self) -> None:
        """Make the clone where there is none, and take away the locks of a git that was killed. Raises OSError."""
        made = self.directory.path / "tree.new"
        if (self.tree / ".git").is_dir() and self._read("rev-parse", "--git-dir") is not None:
            self._break_locks()
        else:
            # Renamed when it is whole: a clone that was half made is none.
            remove_tree(made)
            self.directory.forget_tree()
            made.mkdir()
            self._write(made, "init", "-q", "--template=", f"--initial-branch={self.branch or 'none'}")
            self._write(made, "config", "remote.origin.url", strip_credentials(self.remote, keep_user=True))
            (made / ".git" / "info").mkdir(exist_ok=True)
            (made / ".git" / "info" / "attributes").write_text(_ATTRIBUTES)
            if self.borrow is not None:
                there = made / ".git" / "objects" / "info" / "alternates"
                there.write_bytes(os.fsencode(self.borrow / ".git" / "objects") + b"\n")
            self.tree.parent.mkdir(exist_ok=True)
            made.rename(self.tree)
        self.directory.restore_stores()

    def _break_locks(self) -> None:
        """Remove stale locks of git. We hold the directory's lock, and so did each git that writes the work tree."""
        for directory, _, names in os.walk(self.tree / ".git"):
            for name in names:
                if name.endswith(".lock"):
                    remove_file(Path(directory, name))

    def look(self) -> str | None:
        """Return the branch's commit at the remote; None where there is no such branch. Raises RemoteAway."""
        # Not in the clone, which may be damaged: that is found out where it is used.
        which = "refs/heads/*" if self.looks_at_all else f"refs/heads/{self.branch}"
        self.heads = done = self._online(self.directory.path, _LOOK_SECONDS, "ls-remote", _REMOTE, which)
        for line in done.decode(errors="replace").splitlines():
            commit, _, name = line.partition("\t")
            if name == f"refs/heads/{self.branch}":
                return commit
        return None

    def update(self, commit: str) -> None:
        """Bring all branches here, unless this commit is here. Raises RemoteAway."""
        if self.has(commit):
            return
        self._online(
            self.tree,
            _FETCH_SECONDS,
            *_here(self.tree),
            *("fetch", "-q", "--prune", "--no-tags", "--no-write-fetch-head", _REMOTE),
            "+refs/heads/*:refs/remotes/origin/*",
        )
        if not self.has(commit):
            raise RemoteAway(f"commit {commit[:10]} of branch {self.branch} was replaced while it was fetched")

    def has(self, commit: str) -> bool:
        """Is the commit here?"""
        return self._read("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def check_out(self, commit: str) -> None:
        """Make the work tree this commit's; what a person changed in its files is undone. Raises PlanError, OSError.

        A checkout that was cut short is done again first. Else files that only its commit has would stay behind, as
        untracked ones, and become code.
        """
        marker = self.directory.path / "checkout"
        begun = marker.read_text().strip() if marker.exists() else ""
        if begun != commit:
            if begun and self.has(begun):
                self._check_out(begun)
            write_atomically(marker, f"{commit}\n", durable=True)
        self._check_out(commit)
        remove_file(marker)

    def _check_out(self, commit: str) -> None:
        where = ("--no-track", "-B", self.branch) if self.branch else ("--detach",)
        self._write(self.tree, "checkout", "-q", "--force", *where, commit, "--")

    def descends(self, commit: str, ancestor: str) -> bool:
        """Does the commit descend from the other, or is it the same? One that is not here is no ancestor."""
        asked = ("merge-base", "--is-ancestor", "--end-of-options", ancestor, commit)
        return run_git(self.tree, *asked).returncode == 0

    def list_changed(self, base: str, commit: str, *patterns: str) -> list[str]:
        """Return the names that match, and that this commit adds or changes; all, if git cannot tell."""
        asked = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d", base, commit, "--")
        found = self._read(*asked, *(f":(glob){pattern}" for pattern in patterns))
        return list(patterns) if found is None else sorted(os.fsdecode(name) for name in found.split(b"\0") if name)

    def describe_unfollowed(self) -> list[str]:
        """Return sentences on what of the repository is not followed: submodules, and files in LFS."""
        modules = self._list_tracked("160000")
        told = [f"submodules are not followed: {', '.join(modules[:3])}"] if modules else []
        attributes = self.tree / ".gitattributes"
        try:
            lfs = "filter=lfs" in attributes.read_text(errors="replace")
        except OSError:
            lfs = False
        return told + (["files in Git LFS stay pointers: .gitattributes names them"] if lfs else [])

    def list_links(self) -> list[Path]:
        """Return the symbolic links of the commit that is checked out."""
        return [self.tree / name for name in self._list_tracked("120000")]

    def _list_tracked(self, mode: str) -> list[str]:
        """Return the tracked names of this mode, sorted."""
        listed = (self._read("ls-files", "--stage", "-z") or b"").split(b"\0")
        return sorted(os.fsdecode(line.partition(b"\t")[2]) for line in listed if line.startswith(f"{mode} ".encode()))

    def _read(self, *arguments: str) -> bytes | None:
        """Return what a git that only reads prints; None where it fails."""
        done = run_git(self.tree, *_here(self.tree), *arguments)
        return done.stdout if done.returncode == 0 else None

    def _write(self, top: Path, *arguments: str) -> None:
        """Run a git that writes there, with the directory's lock in its hands. Raises PlanError."""
        command = (*_SAFE, *_here(top), *arguments)
        done = run_git(top, *command, timeout=_FETCH_SECONDS, inherit=(self.directory.lock,))
        if done.returncode:
            raise PlanError(f"git {arguments[0]} failed in {top}: {_read_reason(done.stderr)}")

    def _online(self, top: Path, timeout: float, *arguments: str) -> bytes:
        """Run a git that asks the remote, and return what it prints. Raises RemoteAway."""
        known = os.environ.get("GIT_CONFIG_COUNT", "0")
        at = int(known) if known.isdecimal() else 0
        variables = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": str(self.directory.path.parent),
            "GIT_CONFIG_COUNT": str(at + 1),
            f"GIT_CONFIG_KEY_{at}": f"remote.{_REMOTE}.url",
            f"GIT_CONFIG_VALUE_{at}": self.remote,
        }
        try:
            done = run_git(top, *_SAFE, *arguments, online=variables, timeout=timeout)
        except PlanError as exc:
            raise RemoteAway(exc.message) from exc
        if done.returncode:
            raise RemoteAway(_read_reason(done.stderr))
        return done.stdout


def _here(top: Path) -> tuple[str, str]:
    """Return what keeps git to this clone: where it is damaged, git would take a repository around it."""
    return f"--git-dir={top / '.git'}", f"--work-tree={top}"


def _read_reason(said: bytes) -> str:
    """Return git's reason, in one line without passwords: of its last words the first that say why."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(_WORDS)] or lines[-1:] or ["git gave no reason"]
    return strip_passwords(told[0])[:500]


def check_branch_name(branch: str) -> None:
    """Raise MonkeyError for what is no name of a branch."""
    if run_git(Path("/"), "check-ref-format", "--branch", branch).returncode or branch.startswith("-"):
        raise MonkeyError(
            f"expected the name of a branch, found {branch!r}", hint="write it as git does: --branch main"
        )
