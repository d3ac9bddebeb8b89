"""The list of signers on its way to a rented machine: the store has it, and user data, which are short, have its hash.

Who can write to the store can so keep a machine from starting, and cannot tell it whom to obey.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from monkey.errors import SigningError
from monkey.signing.allowed_signers import AllowedSigner, parse_allowed_signers
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.signer_list import OWNER


def hash_signers(text: str) -> str:
    """Return the hash by which a machine knows its list of signers."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_same_list(sha256: str, planned: str) -> bool:
    """Return whether a machine's list, known by its hash, is the one that a plan wants.

    A plan that is made without a key, as in CI, names no owner: any of the signers may be the one who applies.
    Raises SigningError.
    """
    return hash_signers(planned) == sha256 or any(hash_signers(each) == sha256 for each in _name_owners(planned))


def _name_owners(planned: str) -> Iterator[str]:
    if planned.startswith(f"{OWNER} "):  # it is the first where there is one
        return
    signers = parse_allowed_signers(planned, "the list of signers")
    for owner in signers:
        first = AllowedSigner(OWNER, PublicKey(owner.key.raw))
        yield "".join(f"{each.line}\n" for each in (first, *(other for other in signers if other != owner)))


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
