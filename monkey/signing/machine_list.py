"""The list of signers on its way to a rented machine: the store has it, and user data, which are short, have its hash.

Who can write to the store can so keep a machine from starting, and cannot tell it whom to obey.
"""

from __future__ import annotations

import hashlib

from monkey.errors import SigningError


def hash_signers(text: str) -> str:
    """Return the hash by which a machine knows its list of signers."""
    return hashlib.sha256(text.encode()).hexdigest()


def spell_signers_key(sha256: str) -> str:
    """Return the key of a list in a store (shared by all projects)."""
    return f"signers/{sha256}"


def check_signers(data: bytes, sha256: str) -> bytes:
    """Return the list that came from the store. Raises SigningError where it is another one."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise SigningError(
            f"what the store has as {spell_signers_key(sha256)} is another list of signers: somebody changed it",
            hint="remove it from the store, and apply again",
        )
    return data
