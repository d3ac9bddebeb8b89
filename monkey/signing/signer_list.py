"""Changes of the user's list of trusted signers: keys are added and removed, and all other lines stay as they are."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.errors import NotFound, SigningError
from monkey.signing.allowed_signers import AllowedSigner, is_signer_name, parse_allowed_signers
from monkey.signing.keys.owned_file import read_owned_file
from monkey.untrusted_files import make_private_directory

#: The name of the list in the configuration directory.
SIGNERS_FILE = "allowed_signers"
#: The name by which a machine's list marks the key of its owner; no other signer can have it.
OWNER = "owner"


def add_signer(path: Path, signer: AllowedSigner) -> bool:
    """Add a signer to the list; return False where its key is there already. Raises SigningError."""
    if not is_signer_name(signer.name) or signer.name == OWNER:
        raise SigningError(
            f"{signer.name!r} cannot be a signer's name",
            hint="give one by --name, of letters, digits and . _ @ + -, such as alice@lab; `owner` is taken",
        )
    with hold_lock(path):
        text = _read(path)
        for other in parse_allowed_signers(text, str(path)):
            if other.key == signer.key:
                if other.name == signer.name:
                    return False
                raise SigningError(
                    f"this key is trusted already, as {other.name}: {other.key.fingerprint}",
                    hint=f"to rename it, first `monkey trust --remove {other.name}`",
                )
        _write(path, text + ("\n" if text and not text.endswith("\n") else "") + f"{signer.line}\n")
        return True


def remove_signers(path: Path, wanted: str) -> list[AllowedSigner]:
    """Remove all signers with this name, or this fingerprint; return them. Raises NotFound, SigningError."""
    with hold_lock(path):
        text = _read(path)
        parse_allowed_signers(text, str(path))
        gone, kept = list[AllowedSigner](), list[str]()
        for line in text.splitlines(keepends=True):
            signers = parse_allowed_signers(line, str(path))
            if signers and wanted in (signers[0].name, signers[0].key.fingerprint):
                gone += signers
            else:
                kept.append(line)
        if not gone:
            raise NotFound(f"no trusted signer is {wanted!r}", hint="`monkey trust` lists names and fingerprints")
        _write(path, "".join(kept))
        return gone


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Keep other processes from changing this file meanwhile; its directory is made if missing. Raises SigningError."""
    try:
        make_private_directory(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(path.with_name(f".{path.name}.lock"), flags, 0o600)
    except OSError as exc:
        raise SigningError(f"{path.parent} cannot be written: {exc.strerror}") from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _read(path: Path) -> str:
    try:
        return read_owned_file(path, "the list of signers").decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as exc:
        raise SigningError(f"the list of signers in {path} is not UTF-8") from exc


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text, mode=0o600, durable=True)
    except OSError as exc:
        raise SigningError(f"the list of signers cannot be written to {path}: {exc.strerror}") from exc
