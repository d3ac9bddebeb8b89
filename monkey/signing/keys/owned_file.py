"""Files that decide whom this user trusts: read only where no other user can have written them.

As OpenSSH does (StrictModes), a private key is read only where no other user can read it, either.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from monkey.errors import SigningError

#: Bytes that such a file may have.
_MOST = 1 << 20


def read_owned_file(path: Path, what: str, *, private: bool = False) -> bytes:
    """Return the bytes of the file, which only this user, or root, can change. Raises SigningError, FileNotFoundError.

    `what`: words for messages, such as "the signing key". `private`: no other user may read it.
    """
    try:
        # A pipe would be waited for.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            _check_owner(path, what, os.fstat(file.fileno()), private)
            data = file.read(_MOST + 1)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise SigningError(f"{what} in {path} cannot be read: {exc.strerror}") from exc
    if len(data) > _MOST:
        raise SigningError(f"expected {what} in {path}, found a file of more than {_MOST:,} bytes")
    return data


def _check_owner(path: Path, what: str, status: os.stat_result, private: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SigningError(f"expected a file with {what}, found something else: {path}")
    if status.st_uid not in (os.geteuid(), 0):
        raise SigningError(f"{what} in {path} belongs to another user (uid {status.st_uid})")
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if private and status.st_mode & 0o077:
        raise SigningError(f"others may read {what} in {path} (its mode is {mode})", hint=f"chmod 600 {path}")
    if status.st_mode & 0o022:
        raise SigningError(f"others may change {what} in {path} (its mode is {mode})", hint=f"chmod go-w {path}")
