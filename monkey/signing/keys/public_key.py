"""A person's public key, as OpenSSH writes it in one line: `ssh-ed25519 AAAA… comment`."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: The only kind of key: OpenSSH's name for it.
KEY_TYPE = "ssh-ed25519"


class BadPublicKey(ValueError):
    """It is no public Ed25519 key; the message says why."""


@dataclass(frozen=True)
class PublicKey:
    """A public key; two are equal whatever their comments say."""

    raw: bytes
    comment: str = field(default="", compare=False)

    @property
    def blob(self) -> bytes:
        """The key in the wire format of SSH."""
        return pack_string(KEY_TYPE.encode()) + pack_string(self.raw)

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` prints it: `SHA256:…`."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @property
    def line(self) -> str:
        """The key in one line, with its comment if it has one."""
        return " ".join([KEY_TYPE, base64.b64encode(self.blob).decode(), *([self.comment] if self.comment else [])])

    def has_signed(self, data: bytes, signature: bytes) -> bool:
        """Return whether this key made the bare Ed25519 signature of these bytes."""
        from cryptography.exceptions import InvalidSignature

        try:
            _load(self.raw).verify(signature, data)
        except (InvalidSignature, ValueError):
            return False
        return True


def pack_string(data: bytes) -> bytes:
    """Return a string of SSH's wire format: its length, and the bytes."""
    return len(data).to_bytes(4, "big") + data


def parse_public_key(line: str) -> PublicKey:
    """Read what `PublicKey.line` has, or a `.pub` file. Raises BadPublicKey."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

    words = line.strip().split(None, 2)
    if len(words) < 2 or len(line.strip().splitlines()) != 1:
        raise BadPublicKey(f"expected one line `{KEY_TYPE} AAAA… comment`, found {line.strip()[:60]!r}")
    if words[0] != KEY_TYPE:
        raise BadPublicKey(f"expected a key of type {KEY_TYPE}, found {words[0][:40]!r}")
    try:
        key = load_ssh_public_key(f"{KEY_TYPE} {words[1]}".encode())
    except ValueError as exc:
        raise BadPublicKey(f"the key {words[1][:40]!r} is damaged, or no {KEY_TYPE} key: {exc}") from exc
    return PublicKey(key.public_bytes(Encoding.Raw, PublicFormat.Raw), words[2] if len(words) == 3 else "")


@lru_cache(maxsize=256)
def _load(raw: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(raw)
