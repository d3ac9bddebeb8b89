"""The directory of one fleet's pilots, on the file system that a cluster's nodes share.

    WORKDIR/pilots/NAME.lock                Held while the fleet is changed.
    WORKDIR/pilots/NAME/settings.json       The agents' arguments and variables. Without it no pilot comes again.
    WORKDIR/pilots/NAME/credentials.json    Variables that are secret (0600).
    WORKDIR/pilots/NAME/secrets             The jobs' secrets (0600).
    WORKDIR/pilots/NAME/signers             The public keys whose orders agents obey (0600).
    WORKDIR/pilots/NAME/bundles/SHA256/     The agents' code; `bundle` is a link to the newest.
    WORKDIR/pilots/NAME/logs/               What pilots said.
    WORKDIR/pilots/NAME/failed/PILOT        Why a pilot could not begin.

Nothing here is shared with hosts of the same working directory, which have theirs below `hosts/`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monkey.removal import remove_below, remove_file
from monkey.untrusted_files import hold_below, make_private_directory
from monkey_stacks.ssh.remote.paths import (
    clear_tree,
    find_workdir,
    hold_lock,
    remove_empty,
    write_file,
)

#: What file systems say that have no locks.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
#: Failures that are read at most, and characters of each.
_MOST, _LONG = 20, 500
#: Logs that are kept, the newest.
_KEPT_LOGS = 500
#: Secret files that agents read again, as they work or as they begin, and what a plan calls them.
_SECRET = {"credentials.json": "credentials", "secrets": "secrets"}


class PilotDirectory:
    """The directory of one fleet's pilots."""

    def __init__(self, workdir: str, name: str) -> None:
        """Take the working directory as the user named it, and a name that no other fleet has."""
        self.workdir = find_workdir(workdir)
        self.pilots = self.workdir / "pilots"
        self.directory = self.pilots / name
        self.lock = self.pilots / f"{name}.lock"
        self.bundles = self.directory / "bundles"
        self.newest = self.directory / "bundle"
        self.logs = self.directory / "logs"
        self.failed = self.directory / "failed"
        self.settings = self.directory / "settings.json"

    def bundle(self, sha256: str) -> Path:
        """Return the path of a bundle, whether it exists or not."""
        return self.bundles / sha256

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock to change the fleet, where the file system has locks. Raises DirectoryBusy, OSError."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(hold_lock(self.lock))
            except OSError as exc:
                if exc.errno not in _NO_LOCKS:
                    raise
            yield

    def write(self, asked: dict[str, Any]) -> None:
        """Write what pilots need besides their code. Raises OSError."""
        make_private_directory(self.directory)
        for directory in (self.logs, self.failed):
            with hold_below(self.directory, directory.name, make=True):
                pass
        for name, data in self._list_handed(asked).items():
            write_file(self.directory / name, data)
        settings = {
            "arguments": [*asked["arguments"], "--signers", str(self.directory / "signers")],
            "environment": {"MONKEY_SECRETS_FILE": str(self.directory / "secrets")},
            "project": asked["project"],
            "fleet": asked["fleet"],
            "store": asked["store"],
        }
        write_file(self.settings, json.dumps(settings, indent=1, sort_keys=True).encode())

    def hash_signers(self) -> str:
        """Return the SHA-256 of the list of signers; "" where no pilot may come. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            return (
                hashlib.sha256((self.directory / "signers").read_bytes()).hexdigest() if self.settings.exists() else ""
            )
        return ""

    def list_stale(self, asked: dict[str, Any]) -> list[str]:
        """Return which secret files are not as asked: "credentials", "secrets". Raises OSError."""
        if not self.settings.exists():
            return []
        here = {name: (self.directory / name).read_bytes() for name in _SECRET if (self.directory / name).exists()}
        due = self._list_handed(asked)
        return [called for name, called in _SECRET.items() if here.get(name) != due[name]]

    def _list_handed(self, asked: dict[str, Any]) -> dict[str, bytes]:
        return {
            "credentials.json": json.dumps(asked["credentials"], sort_keys=True).encode(),
            "signers": asked["signers"].encode(),
            "secrets": self._merge_secrets(asked["secrets"], asked["kept"]),
        }

    def _merge_secrets(self, lines: dict[str, str], kept: list[str]) -> bytes:
        """Return the file of secrets: these lines by name, and those of `kept` that are there."""
        with contextlib.suppress(FileNotFoundError):
            there = (self.directory / "secrets").read_text().split("\n")
            lines = {**{line.partition("=")[0]: line for line in there if line.partition("=")[0] in kept}, **lines}
        return "".join(f"{line}\n" for _, line in sorted(lines.items())).encode()

    def choose_bundle(self, sha256: str, *, alone: bool) -> None:
        """Have new pilots use a bundle that is there; `alone`: no pilot uses another. Raises OSError."""
        aside = self.directory / f".bundle.{os.getpid()}"
        remove_file(aside)
        aside.symlink_to(f"bundles/{sha256}")
        aside.replace(self.newest)
        for other in self.list_bundles() if alone else ():
            if other != sha256:
                clear_tree(self.bundle(other), self.directory)

    def list_bundles(self) -> list[str]:
        """Return the bundles that are here."""
        try:
            return sorted(path.name for path in self.bundles.iterdir() if re.fullmatch("[0-9a-f]{64}", path.name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def list_failures(self) -> list[str]:
        """Return why pilots could not begin, the newest last: "n1-23: …"."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.failed.iterdir(), key=lambda path: path.lstat().st_mtime)[-_MOST:]:
                with contextlib.suppress(OSError):
                    found.append(f"{path.name}: {path.read_text(errors='replace').strip()[:_LONG]}")
        return found

    def forget_failures(self) -> None:
        """Remove the notes of pilots that could not begin, and the oldest logs. Raises OSError."""
        for path in self.failed.iterdir() if self.failed.is_dir() else ():
            remove_below(self.directory, f"{self.failed.name}/{path.name}")
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self.logs.iterdir(), key=lambda path: path.lstat().st_mtime)[:-_KEPT_LOGS]:
                remove_below(self.directory, f"{self.logs.name}/{path.name}")

    def close(self) -> None:
        """Have no pilot come again: those that leave now see that they are not wanted. Raises OSError."""
        remove_file(self.settings)

    def clear(self) -> None:
        """Remove all of the fleet. The caller holds the lock. Raises OSError."""
        clear_tree(self.directory, self.workdir)
        clear_tree(self.lock, self.workdir)
        remove_empty(self.pilots, self.workdir)
