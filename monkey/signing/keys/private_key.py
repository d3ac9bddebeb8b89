"""A person's private key, in the format of OpenSSH's own private keys.

The library reads it, too, but does not say what else a file is that is no such key. Its module also takes 8 ms to
import, where most processes only want the public half.
"""

from __future__ import annotations

import base64
import os
import textwrap
from dataclasses import dataclass

from monkey.signing.keys.ed25519 import SEED, compute_public, make_seed, sign_bytes
from monkey.signing.keys.public_key import KEY_TYPE, PublicKey, decode_key_blob
from monkey.signing.keys.ssh_wire import WireReader, pack_string

_BEGIN, _END = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
#: Bytes of a block where nothing is encrypted: the private part is padded to a multiple.
_BLOCK = 8


class BadPrivateKey(ValueError):
    """It is no private key that can be used; the message says why, and nothing of what stands there."""


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """A private key, with its public one. Its repr shows no secret."""

    seed: bytes
    public: PublicKey

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    def is_sound(self) -> bool:
        """Return whether the public key is that of the private one: the file has both."""
        return compute_public(self.seed) == self.public.raw

    def sign(self, data: bytes) -> bytes:
        """Return the bare Ed25519 signature of these bytes."""
        return sign_bytes(self.seed, data)


def make_private_key(comment: str) -> PrivateKey:
    """Return a new key."""
    seed = make_seed()
    return PrivateKey(seed, PublicKey(compute_public(seed), comment))


def encode_private_key(key: PrivateKey) -> bytes:
    """Return the content of the file, as ssh-keygen would write it without a passphrase."""
    check = os.urandom(4)
    inside = check + check + pack_string(KEY_TYPE.encode()) + pack_string(key.public.raw)
    inside += pack_string(key.seed + key.public.raw) + pack_string(key.public.comment.encode())
    inside += bytes(range(1, 1 + -len(inside) % _BLOCK))
    none = pack_string(b"none")
    outside = _MAGIC + none + none + pack_string(b"") + (1).to_bytes(4, "big")
    text = base64.b64encode(outside + pack_string(key.public.blob) + pack_string(inside)).decode()
    return "\n".join([_BEGIN, *textwrap.wrap(text, 70), _END, ""]).encode()


def decode_private_key(data: bytes) -> PrivateKey:
    """Read an unencrypted Ed25519 key of OpenSSH's. Raises BadPrivateKey."""
    lines = data.decode(errors="replace").strip().splitlines()
    if len(lines) < 3 or (lines[0].strip(), lines[-1].strip()) != (_BEGIN, _END):
        raise BadPrivateKey("it is no private key in OpenSSH's format")
    try:
        blob = base64.b64decode("".join(map(str.strip, lines[1:-1])), validate=True)
        return _read(WireReader(blob))
    except BadPrivateKey:
        raise
    except ValueError as exc:  # base64, UTF-8, the wire format and the public key each have their own
        raise BadPrivateKey(f"it is damaged, or no Ed25519 key: {exc}") from exc


def _read(outside: WireReader) -> PrivateKey:
    if outside.take(len(_MAGIC)) != _MAGIC:
        raise BadPrivateKey("it is no private key in OpenSSH's format")
    cipher = outside.take_string()
    if cipher != b"none":
        raise BadPrivateKey("it is encrypted with a passphrase, which monkey does not ask for")
    outside.take_string()
    outside.take_string()
    if outside.take_number() != 1:
        raise BadPrivateKey("it does not hold exactly one key")
    raw = decode_key_blob(outside.take_string())
    inside = WireReader(outside.take_string())
    outside.check_end()
    if inside.take(4) != inside.take(4):
        raise BadPrivateKey("it is damaged")
    kind, again, secret = inside.take_string(), inside.take_string(), inside.take_string()
    comment = inside.take_string().decode()
    padding = inside.take_rest()
    sound = kind == KEY_TYPE.encode() and again == raw and len(secret) == 2 * SEED and secret[SEED:] == raw
    if not sound or padding != bytes(range(1, 1 + len(padding))):
        raise BadPrivateKey("it is damaged")
    return PrivateKey(secret[:SEED], PublicKey(raw, comment))
