"""The order of a sync: which branch of which remote it follows, how often, and what it may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from monkey.errors import MonkeyError
from monkey.fleet.user_directories import locate_state_home
from monkey.spec.project.project import find_root
from monkey.transfer.code.git_files import find_work_tree, read_remote_url, strip_credentials

#: The part of a URL that may hold a password, within a sentence.
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class SyncOrder:
    """What was asked for on the command line."""

    #: As git gets it: it may hold a password.
    remote: str
    branch: str
    #: Seconds between looks; 0: look once.
    interval: float
    directory: Path
    #: The project's directory in the repository; "" for its root.
    path: str = ""
    #: Whether to follow a branch whose history was rewritten.
    rewrite: bool = False
    #: Whether to cancel sweeps whose spec left the branch.
    prune: bool = False
    #: Whether to preview pull requests of the branch.
    previews: bool = False
    #: Directories outside of the repository from which data is taken.
    data: tuple[Path, ...] = ()
    #: The file that stands for the repository's monkey.yaml, and the store that stands for its `store:`.
    project_file: Path | None = None
    store: str | None = None
    #: The checkout whose store is used where the repository names one within itself; None: that is refused.
    checkout: Path | None = None

    @property
    def shown(self) -> str:
        """Return the remote as people may see it."""
        return strip_credentials(self.remote, keep_user=True)


def name_repository(remote: str) -> str:
    """Return the repository's name: the last part of its URL."""
    last = re.split(r"[/:]", strip_credentials(remote, keep_user=True).rstrip("/"))[-1].removesuffix(".git")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("._-")[:63] or "repository"


def strip_passwords(text: str) -> str:
    """Return a sentence of git's in which no URL has a user or a password."""
    return _PASSWORD.sub("", text)


def locate_remote(remote: str | None, start: Path) -> tuple[str, Path | None]:
    """Return the remote as git gets it from any directory, and the checkout around `start` if that is its origin.

    `remote`: what the user named; None for the origin of the checkout. Raises MonkeyError where there is none.
    """
    if remote is not None:
        if remote.startswith("-"):
            raise MonkeyError(f"expected a git remote, found {remote!r}", hint="write a URL, or a directory")
        path = Path(remote).expanduser()
        return (str(path.absolute()) if "://" not in remote and path.exists() else remote), None
    top = find_work_tree(start)
    url = read_remote_url(top) if top is not None else ""
    if top is None or not url:
        raise MonkeyError(
            f"expected a git remote to follow, found that {start} has no remote `origin`",
            hint="name one: `monkey sync https://example.org/team/sweeps.git`",
        )
    is_path = "://" not in url and not re.match(r"[^/]+:", url)
    return (str((top / url).resolve()) if is_path else url), top


def locate_path(checkout: Path | None, start: Path) -> str:
    """Return where the project lies in its repository, as it does in this checkout; "" for the root."""
    root = find_root(start).resolve()
    if checkout is None or not root.is_relative_to(checkout):
        return ""
    return "" if root == checkout else root.relative_to(checkout).as_posix()


def check_sync_directory(directory: Path) -> None:
    """Raise MonkeyError where a state directory would lie in a work tree, whose untracked files become code."""
    top = find_work_tree(directory)
    if top is not None:
        raise MonkeyError(
            f"expected a directory outside of every git work tree, found that {directory} is in {top}",
            hint="name another by --directory, or leave that out: the default is in the user's state",
        )


def locate_sync_directory(remote: str, branch: str, path: str) -> Path:
    """Return the state directory of a sync that was given none. Raises FleetError where it may not be ours."""
    place = sha256(f"{strip_credentials(remote, keep_user=True)}\n{branch}\n{path}".encode()).hexdigest()[:12]
    return locate_state_home() / "monkey" / "sync" / place
