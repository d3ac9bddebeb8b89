"""Signatures in OpenSSH's form (its PROTOCOL.sshsig): what `ssh-keygen -Y sign` makes, and `-Y verify` checks.

Only Ed25519 with SHA-512 is known here, without a passphrase. One key and one message have exactly one such signature.
"""

from __future__ import annotations

import base64
import hashlib
import textwrap

from monkey.signing.errors import BadSignature
from monkey.signing.keys.private_key import PrivateKey
from monkey.signing.keys.public_key import KEY_TYPE, PublicKey, pack_string

_MAGIC, _VERSION, _HASH = b"SSHSIG", 1, b"sha512"
#: Where the raw key stands in a signature, and the bare Ed25519 signature.
_KEY, _MADE = slice(33, 65), slice(-64, None)
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def sign_message(key: PrivateKey, message: bytes, namespace: str) -> bytes:
    """Return the signature. `namespace` says what it is for: it holds for nothing else."""
    return _frame(key.public, key.sign(_name_signed(message, namespace)), namespace)


def verify_message(blob: bytes, message: bytes, namespace: str) -> PublicKey:
    """Return the key that signed the message; whether it is trusted is another question. Raises BadSignature."""
    key, made = PublicKey(blob[_KEY]), blob[_MADE]
    # All other bytes of a signature are known: there is nothing to parse.
    if blob != _frame(key, made, namespace):
        raise BadSignature(f"its signature is no SSH signature by an Ed25519 key, with SHA-512, for {namespace!r}")
    if not key.has_signed(_name_signed(message, namespace), made):
        raise BadSignature("its signature does not fit: it was changed, or signed for another place")
    return key


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


def _frame(key: PublicKey, made: bytes, namespace: str) -> bytes:
    """Return the whole signature around the bare one."""
    bare = pack_string(KEY_TYPE.encode()) + pack_string(made)
    # What is reserved is empty: ssh-keygen writes no other.
    parts = (key.blob, namespace.encode(), b"", _HASH, bare)
    return _MAGIC + _VERSION.to_bytes(4, "big") + b"".join(map(pack_string, parts))
