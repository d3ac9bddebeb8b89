"""What a checkout remembers: its stores, so that one which vanished is missed, not created again; and its name.

It lies beside the default store, in the project's `.monkey/`: a user who removes it all wants to start again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey.atomic_write import write_atomically
from monkey.errors import StoreMissing
from monkey.spec.project.checkout_memo import MEMO, PROJECT, read_checkout_memo
from monkey.spec.project.store_url import DEFAULT_STORE
from monkey.untrusted_files import hold_below

if TYPE_CHECKING:
    from monkey.spec.project.project import Project

#: The line by which git looks past what monkey keeps in a checkout.
_EXCLUDED = b".monkey/"


class KnownStores:
    """The stores that this checkout has used."""

    def __init__(self, root: Path, *, remember: bool = True) -> None:
        """Read what is remembered in the project at `root`; what cannot be read is forgotten.

        `remember`: write down what is met. A plan does not: a stranger's branch may have a link there.
        """
        self.root = root
        self.path, self._remember = root / MEMO, remember
        self._known: dict[str, Any] = read_checkout_memo(root)

    def expects(self, url: str) -> bool:
        """Was there a store at this URL?"""
        return url in self._known

    def id(self, url: str) -> str:
        """Return the id of the store at this URL, "" where none was met."""
        known: str = self._known.get(url, "")
        return known

    def list_former_places(self, store_id: str) -> list[str]:
        """Return the paths at which this checkout met the store before it was moved: nothing is there any more."""
        met = [url for url, known in self._known.items() if known == store_id]
        return [url for url in met if Path(url).is_absolute() and not Path(url).exists()]

    def meet(self, url: str, store_id: str) -> None:
        """Remember the store that is at this URL. Raises StoreMissing where it is another than it was."""
        if self._known.get(url, store_id) != store_id:
            raise StoreMissing(
                f"the store at {url} is another one than this project used there (found {store_id!r}, "
                f"expected {self._known[url]!r})",
                hint=f"bring the right one back (is its disk mounted?); or remove {self.path} to use this one",
            )
        if url not in self._known:
            self._known[url] = store_id
            if self._remember:
                self._save()

    def keep_project(self, project: Project) -> None:
        """Remember the name of a project that has something in the store, and whose monkey.yaml does not name it.

        Its repository or directory may be renamed, and what it has there is still its own.
        """
        if project.derived_name and self._remember and self._known.get(PROJECT) != project.name:
            self._known[PROJECT] = project.name
            self._save()

    def vanished(self, exc: StoreMissing) -> StoreMissing:
        """Return the error for a store that was there and is not."""
        return StoreMissing(
            f"{exc.message}; this project has used a store there: it was moved, removed, or its disk is not mounted",
            hint=f"bring it back; or, if it is gone for good, remove {self.path} to begin a new one",
        )

    def _save(self) -> None:
        """Write it down; where nothing may be written (a read-only checkout, a link), that is not worth failing for."""
        with suppress(OSError):
            ignore_all(self.path.parent)
            write_atomically(self.path, json.dumps(self._known, indent=1) + "\n")
            if f"{self.root / DEFAULT_STORE}" in self._known:
                _keep_from_cleaning(self.root)


def ignore_all(directory: Path) -> None:
    """Make the directory, one that git looks past whatever the project's .gitignore says.

    Raises OSError for a link in its place: a stranger's branch may have one there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with hold_below(directory.parent, directory.name):
        ignore = directory / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, "*\n")


def _keep_from_cleaning(root: Path) -> None:
    """Let `git clean -fdx` pass over the default store of a checkout: it does so for repositories in repositories.

    It takes the .gitignore that has git look past the store, so another list has that, too. Both are described in
    gitrepository-layout(5). Worktrees have no directory `.git`, and are left alone. Raises OSError.
    """
    git = f"{DEFAULT_STORE}/.git"
    top = next((above for above in (root, *root.parents) if (above / ".git").is_dir()), None)
    if top is None or (root / git).exists():
        return
    exclude = top / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    listed = exclude.read_bytes() if exclude.exists() else b""
    if _EXCLUDED not in listed.splitlines():
        # Added to, so that its rights stay as they are; a line of another encoding is none of ours.
        separator = b"" if listed.endswith(b"\n") or not listed else b"\n"
        with exclude.open("ab") as file:
            file.write(separator + _EXCLUDED + b"\n")
    for name in ("objects", "refs"):
        with hold_below(root, f"{git}/{name}", make=True):
            continue
    write_atomically(root / git / "HEAD", "ref: refs/heads/none\n")
