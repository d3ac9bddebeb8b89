"""Paths of monkey's files on a host.

    WORKDIR/monkey.lock                     Held while bundles come and go.
    WORKDIR/cache/                          Code, environments, datasets: locked, so hosts may share it.
    WORKDIR/cache/CACHEDIR.TAG              Says that the cache is ours: a user's own may lie in WORKDIR, too.
    WORKDIR/bundles/SHA256/                 An agent's code.
    WORKDIR/hosts/HOST/FLEET.lock           Held while files of the fleet are changed on this host.
    WORKDIR/hosts/HOST/FLEET/secrets        The jobs' secrets (0600).
    WORKDIR/hosts/HOST/FLEET/signers        The public keys whose orders agents obey (0600).
    WORKDIR/hosts/HOST/FLEET/ssh/           The key to the store's host, and the configuration to reach it.
    WORKDIR/hosts/HOST/FLEET/N/             The N-th agent's directory: the newest agent takes claims.

HOST is the machine's own name and identity: hosts may share one home directory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import select
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from monkey.removal import remove_below, remove_empty_directory, remove_file
from monkey.untrusted_files import make_private_directory

#: Arguments of agents that a host adds: they are paths on it.
HOST_ARGUMENTS = ("--cache", "--signers")
#: File that marks a directory as a cache (https://bford.info/cachedir/), and this one as ours.
TAG = "CACHEDIR.TAG"
_MARK = b"Signature: 8a477f597d28d172789f06886806bc55\n# The cache of monkey's agents. They fill it again.\n"


class DirectoryBusy(Exception):
    """Another process holds the lock of the directory."""


def read_machine_id() -> str:
    """Return the identity of this machine; "" where it has none."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            return Path(name).read_text().strip()
    return ""


def name_host() -> str:
    """Return this host's name below `hosts/`."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in os.uname().nodename)
    told = hashlib.sha256(f"{os.uname().nodename}\n{read_machine_id()}".encode()).hexdigest()[:8]
    return f"{name.strip('.-')[:40] or 'host'}-{told}"


def find_workdir(said: str) -> Path:
    """Return the absolute path of the working directory that the user named; a relative one is below the home."""
    path = Path(said).expanduser()
    return path if path.is_absolute() else Path.home() / path


class FleetDirectory:
    """The directories of one fleet on this host."""

    def __init__(self, said: str, fleet: str) -> None:
        """Take the working directory `said`, as the user named it, and `fleet`, a name that no other fleet has."""
        self.workdir, self.fleet = find_workdir(said), fleet
        self.host = self.workdir / "hosts" / name_host()
        self.directory = self.host / fleet
        self.bundles = self.workdir / "bundles"
        self.cache = self.workdir / "cache"
        self.lock = self.workdir / "monkey.lock"
        self.secrets = self.directory / "secrets"
        self.signers = self.directory / "signers"
        self.ssh = self.directory / "ssh"

    def bundle(self, sha256: str) -> Path:
        """Return the path of a bundle, whether it exists or not."""
        return self.bundles / sha256

    @property
    def arguments(self) -> list[str]:
        """The arguments that agents here have besides those that they have everywhere."""
        paths = (str(self.cache), str(self.signers))
        return [word for pair in zip(HOST_ARGUMENTS, paths, strict=True) for word in pair]

    def hash_signers(self) -> str:
        """Return the hash of the list of signers; "" where there is none, or one that others may have changed."""
        try:
            mode, data = stat.S_IMODE(self.signers.stat().st_mode), self.signers.read_bytes()
        except FileNotFoundError:
            return ""
        return hashlib.sha256(data).hexdigest() if mode == 0o600 else ""

    def agents(self) -> list[Path]:
        """Return the agents' directories, the newest last."""
        try:
            found = [path for path in self.directory.iterdir() if re.fullmatch("[0-9]+", path.name)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found, key=lambda path: int(path.name))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock to change this fleet here; remove the lock file if nothing of the fleet is left.

        Raises DirectoryBusy, OSError.
        """
        lock = self.host / f"{self.fleet}.lock"
        try:
            with hold_lock(lock, given_up=is_unheard):
                try:
                    yield
                finally:
                    if not self.directory.exists():
                        clear_tree(lock, self.workdir)
        finally:
            remove_empty(self.host, self.host.parent)

    def occupied(self) -> bool:
        """Return whether foreign files lie where the cache is to be."""
        try:
            found = [path.name for path in self.cache.iterdir() if not path.name.startswith(f".{TAG}.")]
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return bool(found) and not self.cached()

    def cached(self) -> bool:
        """Return whether there is a cache of ours."""
        try:
            return (self.cache / TAG).read_bytes() == _MARK
        except OSError:
            return False

    def claim_cache(self) -> None:
        """Mark the cache as ours, so that it is removed with the rest. The caller holds `bundles_locked`.

        Raises OSError.
        """
        if self.occupied():
            raise FileExistsError(errno.EEXIST, "there are files that are not monkey's", str(self.cache))
        write_file(self.cache / TAG, _MARK)

    def stray_locks(self) -> list[Path]:
        """Return the lock files of fleets without a directory on this host, which killed operations left."""
        return sorted(lock for lock in self.host.glob("*.lock") if not lock.with_suffix("").is_dir())

    def clear_stray_locks(self) -> None:
        """Remove those lock files that no process holds. Raises OSError."""
        for lock in self.stray_locks():
            fd = _try_lock(lock)
            if fd is not None:
                if lock in self.stray_locks():
                    clear_tree(lock, self.workdir)
                os.close(fd)

    @contextlib.contextmanager
    def bundles_locked(self) -> Iterator[None]:
        """Hold the lock to count or remove bundles, over all hosts that share the directory. Raises DirectoryBusy."""
        make_private_directory(self.workdir)
        with hold_lock(self.lock):
            yield


@contextlib.contextmanager
def hold_lock(path: Path, patience: float = 60, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock file `path`. It may be removed with what it guards, and is then made again.

    Raises DirectoryBusy after `patience` seconds, or as soon as `given_up` returns True.
    """
    until = time.monotonic() + patience
    while not given_up():
        if (fd := _try_lock(path)) is not None:
            break
        if time.monotonic() > until:
            raise DirectoryBusy(f"another monkey has been changing {path.parent} for {patience:.0f} s")
        time.sleep(0.05)
    else:
        raise DirectoryBusy("nobody waits for this any more")
    try:
        yield
    finally:
        os.close(fd)


def is_unheard() -> bool:
    """Return whether our reply has no reader: that monkey was killed, and the next may have removed all by now."""
    poller = select.poll()
    poller.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


def _try_lock(path: Path) -> int | None:
    try:
        make_private_directory(path.parent)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), path.stat()):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def write_file(path: Path, data: bytes, mode: int = 0o600) -> bool:
    """Write a file aside, sync it and rename it into place; return whether bytes or mode changed. Raises OSError."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == mode:
            return False
    make_private_directory(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    remove_file(aside)
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:  # noqa: PTH123
            os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
        aside.replace(path)
    finally:
        remove_file(aside)
    return True


def clear_tree(path: Path, root: Path) -> None:
    """Remove a tree below `root`, even with read-only directories, as caches have them. Raises OSError."""
    if not remove_below(root, str(path.relative_to(root))):
        why = "cannot be removed wholly (it has another user's files, a mount, or lies behind a link)"
        raise OSError(errno.ENOTEMPTY, why, str(path))


def remove_empty(*directories: Path) -> None:
    """Remove those of the directories that are empty."""
    for directory in directories:
        with contextlib.suppress(OSError):
            remove_empty_directory(directory)
