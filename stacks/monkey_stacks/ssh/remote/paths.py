"""Where things lie on a host.

    WORKDIR/monkey.lock                     held while bundles come and go
    WORKDIR/cache/                          code, environments, datasets: locked, so hosts may share it
    WORKDIR/cache/CACHEDIR.TAG              says that it is ours: a user's own cache may lie in WORKDIR, too
    WORKDIR/bundles/SHA256/                 an agent's code
    WORKDIR/hosts/HOST/FLEET.lock           held while anything of the fleet is changed on this host
    WORKDIR/hosts/HOST/FLEET/secrets        the jobs' secrets (0600)
    WORKDIR/hosts/HOST/FLEET/ssh/           the key to the store's host, and how to get there
    WORKDIR/hosts/HOST/FLEET/N/             the N-th agent's directory; the newest is the one that takes claims

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
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

#: What marks a directory as a cache (https://bford.info/cachedir/), and this one as ours.
TAG = "CACHEDIR.TAG"
_MARK = b"Signature: 8a477f597d28d172789f06886806bc55\n# The cache of monkey's agents. They fill it again.\n"


class DirectoryBusy(Exception):
    """Somebody else is at it."""


def machine_id() -> str:
    """Return what tells this machine from others: "" where nothing does."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            return Path(name).read_text().strip()
    return ""


def name_host() -> str:
    """Return this host's name below `hosts/`."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in os.uname().nodename)
    told = hashlib.sha256(f"{os.uname().nodename}\n{machine_id()}".encode()).hexdigest()[:8]
    return f"{name.strip('.-')[:40] or 'host'}-{told}"


def find_workdir(said: str) -> Path:
    """Return the directory that the user named."""
    path = Path(said).expanduser()
    return path if path.is_absolute() else Path.home() / path


class FleetDirectory:
    """The directories of one fleet on this host."""

    def __init__(self, said: str, fleet: str) -> None:
        """`said`: the working directory as the user named it; `fleet`: a name that no other fleet has."""
        self.workdir, self.fleet = find_workdir(said), fleet
        self.host = self.workdir / "hosts" / name_host()
        self.directory = self.host / fleet
        self.bundles = self.workdir / "bundles"
        self.cache = self.workdir / "cache"
        self.lock = self.workdir / "monkey.lock"
        self.secrets = self.directory / "secrets"
        self.ssh = self.directory / "ssh"

    def bundle(self, sha256: str) -> Path:
        """Return where a bundle lies, or would."""
        return self.bundles / sha256

    def agents(self) -> list[Path]:
        """Return the agents' directories, the newest last."""
        try:
            found = [path for path in self.directory.iterdir() if re.fullmatch("[0-9]+", path.name)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found, key=lambda path: int(path.name))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only one who changes this fleet here; where nothing of it is left, neither is the lock.

        Raises DirectoryBusy, OSError.
        """
        lock = self.host / f"{self.fleet}.lock"
        try:
            with hold_lock(lock, given_up=is_unheard):
                try:
                    yield
                finally:
                    if not self.directory.exists():
                        clear_tree(lock)
        finally:
            remove_empty(self.host, self.host.parent)

    def occupied(self) -> bool:
        """Say whether somebody else's files lie where the cache is to be."""
        try:
            found = [path.name for path in self.cache.iterdir() if not path.name.startswith(f".{TAG}.")]
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return bool(found) and not self.cached()

    def cached(self) -> bool:
        """Say whether there is a cache of ours."""
        try:
            return (self.cache / TAG).read_bytes() == _MARK
        except OSError:
            return False

    def claim_cache(self) -> None:
        """Mark the cache as ours, to be removed with the rest. The caller holds `bundles_locked`. Raises OSError."""
        if self.occupied():
            raise FileExistsError(errno.EEXIST, "there are files that are not monkey's", str(self.cache))
        write_file(self.cache / TAG, _MARK)

    def stray_locks(self) -> list[Path]:
        """Return the lock files of fleets that have no directory on this host: of operations that were killed."""
        return sorted(lock for lock in self.host.glob("*.lock") if not lock.with_suffix("").is_dir())

    def clear_stray_locks(self) -> None:
        """Remove those of them that nobody holds. Raises OSError."""
        for lock in self.stray_locks():
            fd = _try_lock(lock)
            if fd is not None:
                if lock in self.stray_locks():
                    clear_tree(lock)
                os.close(fd)

    @contextlib.contextmanager
    def bundles_locked(self) -> Iterator[None]:
        """Be the only one, of all hosts that share the directory, who counts or removes bundles.

        Raises DirectoryBusy.
        """
        make_directory(self.workdir)
        with hold_lock(self.lock):
            yield


def make_directory(directory: Path) -> None:
    """Make a directory that nobody else may look into, and those above it."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)


@contextlib.contextmanager
def hold_lock(path: Path, patience: float = 60, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock file `path`. It is removed with what it guards, and then made again.

    Raises DirectoryBusy after so many seconds of `patience`, or where it is `given_up` before.
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
    """Say whether nobody hears our reply: a monkey that was killed; the next may have taken all away by now."""
    poller = select.poll()
    poller.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


def _try_lock(path: Path) -> int | None:
    try:
        make_directory(path.parent)
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
    """Write a file aside and rename it over, on disk before it is seen; returns whether anything changed."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == mode:
            return False
    make_directory(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        aside.unlink()
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:  # noqa: PTH123
            os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
        aside.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
    return True


def clear_tree(path: Path) -> None:
    """Remove a tree, also where directories in it may not be written: caches are kept read-only."""
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    for directory, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)  # noqa: PTH101
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        shutil.rmtree(path)


def remove_empty(*directories: Path) -> None:
    """Remove those of the directories that are empty."""
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.rmdir()
