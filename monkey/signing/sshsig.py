"""Signatures in OpenSSH's form (its PROTOCOL.sshsig): what `ssh-keygen -Y sign` makes, and `-Y verify` checks.

Only Ed25519 with SHA-512 is known here, without a passphrase. One key and one message have exactly one such signature.
"""

from __future__ import annotations

import base64
import hashlib
import textwrap

from monkey.signing.errors import BadSignature
from monkey.signing.keys.ed25519 import SIGNATURE, is_signature
from monkey.signing.keys.private_key import PrivateKey
from monkey.signing.keys.public_key import KEY_TYPE, BadPublicKey, PublicKey, decode_key_blob
from monkey.signing.keys.ssh_wire import MalformedWire, WireReader, pack_string

_MAGIC, _VERSION, _HASH = b"SSHSIG", 1, b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def sign_message(key: PrivateKey, message: bytes, namespace: str) -> bytes:
    """Return the signature. `namespace` says what it is for: it holds for nothing else."""
    made = pack_string(KEY_TYPE.encode()) + pack_string(key.sign(_name_signed(message, namespace)))
    head = _MAGIC + _VERSION.to_bytes(4, "big") + pack_string(key.public.blob)
    return head + pack_string(namespace.encode()) + pack_string(b"") + pack_string(_HASH) + pack_string(made)


def verify_message(blob: bytes, message: bytes, namespace: str) -> PublicKey:
    """Return the key that signed the message; whether it is trusted is another question. Raises BadSignature."""
    try:
        key, made = _read(WireReader(blob), namespace.encode())
    except (MalformedWire, BadPublicKey) as exc:
        raise BadSignature(f"its signature is no SSH signature by an Ed25519 key: {exc}") from exc
    if not is_signature(key, made, _name_signed(message, namespace)):
        raise BadSignature("its signature does not fit: it was changed, or signed for another place")
    return PublicKey(key)


def add_armor(blob: bytes) -> bytes:
    """Return the signature as the text that ssh-keygen reads."""
    return "\n".join([_BEGIN, *textwrap.wrap(base64.b64encode(blob).decode(), 70), _END, ""]).encode()


def strip_armor(text: bytes) -> bytes:
    """Return the signature in the text that ssh-keygen writes. Raises BadSignature."""
    lines = text.decode("ascii", errors="replace").strip().splitlines()
    if len(lines) < 3 or (lines[0], lines[-1]) != (_BEGIN, _END):
        raise BadSignature(f"expected the lines from {_BEGIN} to {_END}")
    try:
        return base64.b64decode("".join(lines[1:-1]), validate=True)
    except ValueError as exc:
        raise BadSignature("the signature is no base64") from exc


def _name_signed(message: bytes, namespace: str) -> bytes:
    """Return the bytes that the key itself signs."""
    parts = (namespace.encode(), b"", _HASH, hashlib.sha512(message).digest())
    return _MAGIC + b"".join(map(pack_string, parts))


def _read(reader: WireReader, namespace: bytes) -> tuple[bytes, bytes]:
    """Return the raw key and the bare signature."""
    if reader.take(len(_MAGIC)) != _MAGIC or reader.take_number() != _VERSION:
        raise MalformedWire(f"it is none of version {_VERSION}")
    key = decode_key_blob(reader.take_string())
    # What is reserved is signed as an empty string here: ssh-keygen writes no other.
    for expected in (namespace, b"", _HASH):
        if (found := reader.take_string()) != expected:
            raise MalformedWire(f"expected {expected.decode()!r}, found {found.decode(errors='replace')[:40]!r}")
    made = WireReader(reader.take_string())
    reader.check_end()
    kind, signature = made.take_string(), made.take_string()
    made.check_end()
    if kind != KEY_TYPE.encode() or len(signature) != SIGNATURE:
        raise MalformedWire("it was made by another algorithm")
    return key, signature
