"""A person's public key, as OpenSSH writes it in one line: `ssh-ed25519 AAAA… comment`."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field

from monkey.signing.keys.ed25519 import PUBLIC
from monkey.signing.keys.ssh_wire import MalformedWire, WireReader, pack_string

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


def decode_key_blob(blob: bytes) -> bytes:
    """Return the raw key in what the wire format has of one. Raises BadPublicKey."""
    reader = WireReader(blob)
    try:
        kind = reader.take_string()
        if kind != KEY_TYPE.encode():
            raise BadPublicKey(f"expected a key of type {KEY_TYPE}, found {kind.decode(errors='replace')[:40]!r}")
        raw = reader.take_string()
        reader.check_end()
    except MalformedWire as exc:
        raise BadPublicKey(f"no {KEY_TYPE} key: {exc}") from exc
    if len(raw) != PUBLIC:
        raise BadPublicKey(f"expected a key of {PUBLIC} bytes, found {len(raw)}")
    return raw


def parse_public_key(line: str) -> PublicKey:
    """Read what `PublicKey.line` has, or a `.pub` file. Raises BadPublicKey."""
    words = line.strip().split(None, 2)
    if len(words) < 2 or len(line.strip().splitlines()) != 1:
        raise BadPublicKey(f"expected one line `{KEY_TYPE} AAAA… comment`, found {line.strip()[:60]!r}")
    if words[0] != KEY_TYPE:
        raise BadPublicKey(f"expected a key of type {KEY_TYPE}, found {words[0][:40]!r}")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except ValueError as exc:
        raise BadPublicKey(f"the key is no base64: {words[1][:40]!r}") from exc
    return PublicKey(decode_key_blob(blob), words[2] if len(words) == 3 else "")
