"""Keys and places for tests of signatures, and the real ssh-keygen."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from monkey.signing.keys.private_key import PrivateKey, encode_private_key
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.signed_entry import EntryPlace

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
