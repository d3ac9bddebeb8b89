"""Keys and places for tests of signatures, and the real ssh-keygen."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from monkey.signing.entry_signers import EntrySigners, Signer
from monkey.signing.keys.private_key import PrivateKey, encode_private_key
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.keys.user_key import UserKeyFile
from monkey.signing.signed_entry import EntryPlace
from monkey.signing.signer_list import OWNER

PLACE = EntryPlace("0123456789abcdef", "digits", "sweep", 7, "ab" * 32)
BODY = b'{"kind":"pause","nonce":"00","reason":"\xc3\xbc, \\"signature\\":\\"x\\"}"}'


def make_key(number: int = 1) -> PrivateKey:
    """Return a key that is the same each time."""
    return PrivateKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


def make_public(number: int, comment: str) -> PublicKey:
    """Return the public key of that number, with a comment."""
    return PublicKey(make_key(number).public.raw, comment)


def write_key(path: Path, key: PrivateKey, mode: int = 0o600) -> Path:
    """Write the key's file."""
    path.write_bytes(encode_private_key(key))
    path.chmod(mode)
    return path


def keygen(*words: object, said: bytes = b"", code: int = 0) -> str:
    """Run ssh-keygen, and return what it prints."""
    done = subprocess.run(["ssh-keygen", *map(str, words)], input=said, capture_output=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.decode()


#: Where no list of signers is.
_NO_LIST = Path("/nowhere/allowed_signers")


class MemoryKey(UserKeyFile):
    """A user's key that is in no file."""

    def __init__(self, key: PrivateKey) -> None:
        self.path, self._key = _NO_LIST, key

    def read(self) -> PrivateKey:
        return self._key

    def open(self) -> PrivateKey:
        return self._key


class _Anybody(EntrySigners):
    """Trusts whatever is written: for tests of what follows the check of signatures."""

    def check(self, place: EntryPlace, data: bytes) -> Signer:
        return Signer(OWNER, "", is_owner=True)


def make_signers(number: int = 1) -> EntrySigners:
    """Return the signers of a user who trusts nobody else; `number` tells the users apart."""
    return EntrySigners(_NO_LIST, MemoryKey(make_key(number)))


SIGNERS, ANYBODY = make_signers(), _Anybody(_NO_LIST, MemoryKey(make_key()))
