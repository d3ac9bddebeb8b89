"""Ed25519 itself, as the library `cryptography` has it: the only module here that imports it.

It is imported when a signature is made or checked: 7 to 15 ms, which `monkey --help` has no use for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: Bytes of a seed (the private key), of a public key, and of a signature.
SEED, PUBLIC, SIGNATURE = 32, 32, 64


def make_seed() -> bytes:
    """Return a new private key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes_raw()


def compute_public(seed: bytes) -> bytes:
    """Return the public key of a private one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def sign_bytes(seed: bytes, data: bytes) -> bytes:
    """Return the signature: always the same for the same key and bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).sign(data)


def is_signature(public: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether the key made this signature of these bytes."""
    from cryptography.exceptions import InvalidSignature

    try:
        _load(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=256)
def _load(public: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public)
