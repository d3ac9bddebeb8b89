"""Who may write into a sweep's log, as one process sees it: all that a reader or a writer of the log needs.

On the user's machine the user's own key is always trusted, besides those in the list. On a rented machine the list
alone counts: its line with the name `owner` is the key of the user who rented the machine.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from monkey.config_directory import locate_config_directory
from monkey.errors import SigningError
from monkey.signing.allowed_signers import AllowedSigner, read_allowed_signers
from monkey.signing.errors import UnknownSigner, Unsigned
from monkey.signing.keys.private_key import PrivateKey
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.keys.user_key import UserKeyFile
from monkey.signing.secret_grants import GRANTS_FILE, SecretGrants
from monkey.signing.signed_entry import EntryPlace, check_signature, sign_entry
from monkey.signing.signer_list import OWNER, SIGNERS_FILE

#: Entries whose signatures are remembered: some 10 MB.
REMEMBERED = 1 << 16

#: What of a file changes where its content does; None where there is none.
_Stamp = tuple[int, int, int] | None


class Signer(NamedTuple):
    """Who signed an entry. `is_owner`: the user of this process, or of this rented machine."""

    name: str
    fingerprint: str
    is_owner: bool


#: Who signed, or did not sign, an entry that only counts for readers of strangers' entries.
STRANGER = Signer("", "", is_owner=False)


class EntrySigners:
    """The keys that this process trusts, and its own where it has one. Threads may share it."""

    def __init__(self, path: Path, own: UserKeyFile | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Read the list at `path`. `own`: the user's key; without it, the list must name the owner, as on a machine.

        `clock`: seconds since the epoch. Raises SigningError where the list or the key cannot be used.
        """
        self._path, self._own, self._clock = path, own, clock
        self._verified: dict[bytes, PublicKey] = {}
        self._lock = Lock()
        self._stamps: list[_Stamp] = []
        self._trusted: dict[bytes, AllowedSigner] = {}
        self._grants: SecretGrants
        self._valid: frozenset[bytes] = frozenset()
        self._reads_strangers = False
        self.refresh()

    def refresh(self) -> bool:
        """Read list, grants and key again if their files changed; return whether other entries may count now.

        They also do as a key's time comes, or is over. Raises SigningError.
        """
        grants = self._path.with_name(GRANTS_FILE)
        stamps = [_stamp_file(path) for path in (self._path, grants, *([self._own.path] if self._own else []))]
        if stamps == self._stamps:
            return self._count_valid()
        self._trusted, self._grants = {signer.key.raw: signer for signer in self._read()}, SecretGrants(grants)
        self._stamps = stamps
        self._count_valid()
        return True

    def _count_valid(self) -> bool:
        """Note whose time has come and is not over; return whether that changed."""
        now = self._clock()
        valid = frozenset(raw for raw, signer in self._trusted.items() if signer.is_valid(now))
        changed, self._valid = valid != self._valid, valid
        return changed

    @property
    def signers(self) -> list[AllowedSigner]:
        """All that are trusted, the owner first; also those whose time has not come, or is over."""
        return sorted(self._trusted.values(), key=lambda signer: signer.name != OWNER)

    def check(self, place: EntryPlace, data: bytes) -> Signer:
        """Return who signed this entry for this place. Raises Unsigned, BadSignature, UnknownSigner.

        A copy that reads strangers returns STRANGER for entries that are unsigned, or signed by an unknown key.
        """
        try:
            return self._check(place, data)
        except (Unsigned, UnknownSigner):
            if self._reads_strangers:
                return STRANGER
            raise

    def read_strangers(self) -> EntrySigners:
        """Return a copy for those who look at what others did, and obey none of it. It hears of no changed list."""
        copied = copy.copy(self)
        copied._reads_strangers = True
        return copied

    def _check(self, place: EntryPlace, data: bytes) -> Signer:
        digest = hashlib.sha256(place.spell() + b"\n")
        digest.update(data)
        found = digest.digest()
        key = self._verified.get(found)
        if key is None:
            key = check_signature(place, data)
            self._remember(found, key)
        return self._identify(key)

    def list_refused_secrets(self, project: str, signer: Signer | None, names: Iterable[str]) -> list[str]:
        """Return those of the secrets that a revision by this signer may not name: the owner's may name any."""
        if signer is not None and signer.is_owner:
            return []
        return sorted(name for name in set(names) if not self._grants.may_name(project, name))

    def sign(self, place: EntryPlace, body: bytes) -> bytes:
        """Return the entry, signed by the user's own key, which is made if there is none. Raises SigningError."""
        return sign_entry(self.open_key(), place, body)

    def open_key(self) -> PrivateKey:
        """Return the user's own key, which is made if there is none. Raises SigningError."""
        if self._own is None:
            raise SigningError("this machine has no key to sign with", hint="give the order on your own machine")
        key = self._own.open()
        self.refresh()
        return key

    def format_for_machine(self) -> str:
        """Return the list for a rented machine: who is trusted here, with our own key as its owner's. SigningError."""
        if self._own is not None:
            self._own.open()
        return self.format_for_plan()

    def format_for_plan(self) -> str:
        """Return the same list, and make no key: without one, it names no owner, and no machine would take it.

        Raises SigningError.
        """
        self.refresh()
        return "".join(f"{signer.line}\n" for signer in self.signers)

    def _identify(self, key: PublicKey) -> Signer:
        signer = self._trusted.get(key.raw)
        if signer is None:
            hint = f"`monkey trust '{key.line}' --name NAME` lets its owner run code as you: compare it with them first"
            raise UnknownSigner(f"it is signed by a key that is not trusted here: {key.fingerprint}; {hint}")
        if not signer.is_valid(self._clock()):
            raise UnknownSigner(f"it is signed by {signer.name}, whose key does not count now: {key.fingerprint}")
        return Signer(signer.name, key.fingerprint, signer.name == OWNER)

    def _remember(self, digest: bytes, key: PublicKey) -> None:
        # Only that the signature is good: whether its key is trusted may change at any time.
        with self._lock:
            if len(self._verified) >= REMEMBERED:
                del self._verified[next(iter(self._verified))]
            self._verified[digest] = key

    def _read(self) -> list[AllowedSigner]:
        try:
            listed = read_allowed_signers(self._path)
        except FileNotFoundError:
            if self._own is None:
                raise SigningError(f"the list of signers is missing: {self._path}") from None
            listed = []
        owners = sum(signer.name == OWNER for signer in listed)
        if self._own is None:
            if owners != 1:
                raise SigningError(f"expected one line of {OWNER!r} in {self._path}, found {owners}")
            return listed
        if owners:
            raise SigningError(f"no signer in {self._path} can have the name {OWNER!r}: that is you, without a line")
        key = self._own.read()
        return [*listed, AllowedSigner(OWNER, key.public)] if key else listed


def load_user_signers(
    directory: Path | None = None, environ: Mapping[str, str] | None = None, clock: Callable[[], float] = time.time
) -> EntrySigners:
    """Return the signers of this user: the own key, made when it is first needed, and the list of trusted ones.

    `directory`: the user's configuration by default. Raises SigningError.
    """
    home = locate_config_directory(environ) if directory is None else directory
    return EntrySigners(home / SIGNERS_FILE, UserKeyFile(home, environ), clock=clock)


def load_agent_signers(path: Path, clock: Callable[[], float] = time.time) -> EntrySigners:
    """Return the signers of a rented machine, which has no key: the list at `path` names its owner. SigningError."""
    return EntrySigners(path, clock=clock)


def _stamp_file(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
