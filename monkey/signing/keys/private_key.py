"""A person's private key, in the file of OpenSSH's that `cryptography` reads and writes.

As everywhere in this package, the library is imported when a key is used: `monkey --help` has no use for it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monkey.signing.keys.public_key import PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class BadPrivateKey(ValueError):
    """It is no private key that can be used; the message says why, and nothing of what stands there."""


@dataclass(frozen=True, repr=False, eq=False)
class PrivateKey:
    """A private key. Its repr shows no secret."""

    secret: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    @property
    def public(self) -> PublicKey:
        """The public key, without a comment: the library reads none."""
        return PublicKey(self.secret.public_key().public_bytes_raw())

    def sign(self, data: bytes) -> bytes:
        """Return the bare Ed25519 signature of these bytes: always the same."""
        return self.secret.sign(data)


def make_private_key() -> PrivateKey:
    """Return a new key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return PrivateKey(Ed25519PrivateKey.generate())


def encode_private_key(key: PrivateKey) -> bytes:
    """Return the content of the file, without a passphrase."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.secret.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def decode_private_key(data: bytes) -> PrivateKey:
    """Read an unencrypted Ed25519 key of OpenSSH's. Raises BadPrivateKey."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        secret = load_ssh_private_key(data, None)
        stored = base64.b64decode(data.split(b"-----")[2])
    except TypeError:  # so the library asks for a passphrase
        raise BadPrivateKey("it is encrypted with a passphrase, which monkey does not ask for") from None
    except UnsupportedAlgorithm:  # its message has bytes of the file: of a damaged one, they may be secret
        raise BadPrivateKey("it is damaged, or of a kind that is not known here") from None
    except ValueError as exc:
        raise BadPrivateKey(f"it is damaged, or no private key in OpenSSH's format: {exc}") from exc
    if not isinstance(secret, Ed25519PrivateKey):
        raise BadPrivateKey("it is of another kind than Ed25519")
    key = PrivateKey(secret)
    if key.public.blob not in stored:  # the library does not compare them
        raise BadPrivateKey("it is damaged: its two halves do not fit")
    return key
