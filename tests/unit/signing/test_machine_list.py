"""A list of signers that came by a store counts if it is the one that was announced."""

from __future__ import annotations

import pytest

from monkey.errors import SigningError
from monkey.signing.machine_list import check_signers, hash_signers


def test_only_the_list_that_was_announced_is_taken() -> None:
    announced = hash_signers("alice\n")
    assert check_signers(b"alice\n", announced) == b"alice\n"
    for came in (b"", b"alice", b"mallory\n"):
        with pytest.raises(SigningError, match=f"signers/{announced} is another list"):
            check_signers(came, announced)
