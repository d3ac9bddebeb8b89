"""An entry of a sweep's log with a signature, which holds for one place in one log alone.

The signature is the last field of the entry's JSON object, and stands there in its text. So it is checked before
anything decodes the JSON. Signed are the place, and the bytes of the entry as they were without that field.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import NamedTuple

from monkey.signing.errors import BadSignature, Unsigned
from monkey.signing.keys.private_key import PrivateKey
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.sshsig import sign_message, verify_message

#: What our signatures are for; OpenSSH's `namespaces=` names it.
NAMESPACE = "monkey"
#: How a signed entry ends, and the bytes within which that begins: a signature of ours has 300 of them.
_TAIL, _TAIL_BYTES = re.compile(rb',"signature":"([A-Za-z0-9+/]+={0,2})"\}\Z'), 1024
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


class EntryPlace(NamedTuple):
    """A place in a log: the store's random id, the project, the sweep, the number, and what stands before it."""

    store: str
    project: str
    sweep: str
    number: int
    #: What `hash_entries` made of all entries before, signatures included; "" for the first.
    before: str

    def spell(self) -> bytes:
        """Return the place as bytes: no other place has the same."""
        return _ENCODER.encode(self._asdict()).encode()


def hash_entries(before: str, data: bytes) -> str:
    """Return what the next entry's place says in `before`: a SHA-256 (hex) over this entry and all before it.

    So an altered entry voids all that follow it: no later order can take effect on an earlier revision.
    """
    return hashlib.sha256(before.encode() + b"\n" + data).hexdigest()


def sign_entry(key: PrivateKey, place: EntryPlace, body: bytes) -> bytes:
    """Return the entry with its signature. `body`: a compact JSON object with at least one field; else ValueError."""
    if not (body.startswith(b'{"') and body.endswith(b"}")) or _TAIL.search(body, max(0, len(body) - _TAIL_BYTES)):
        raise ValueError(f"expected a compact JSON object without a signature, found {body[:40]!r}")
    blob = sign_message(key, _join_signed(place, body), NAMESPACE)
    return b"".join([memoryview(body)[:-1], b',"signature":"', base64.b64encode(blob), b'"}'])


def check_signature(place: EntryPlace, data: bytes) -> PublicKey:
    """Return the key that signed the entry for this place. Raises Unsigned, or BadSignature."""
    found = _TAIL.search(data, max(0, len(data) - _TAIL_BYTES))
    if found is None:
        if b'"signature":' in data[-_TAIL_BYTES:]:
            raise BadSignature("its signature is not its last field, or not written as monkey writes it")
        raise Unsigned(
            "it is not signed: an earlier version wrote it, or a stranger; applying the sweep again signs it"
        )
    try:
        blob = base64.b64decode(found[1], validate=True)
    except ValueError as exc:
        raise BadSignature("its signature is no base64") from exc
    if base64.b64encode(blob) != found[1]:  # the last sign may have spare bits: then two texts were one signature
        raise BadSignature("its signature is not written as monkey writes it")
    return verify_message(blob, _join_signed(place, memoryview(data)[: found.start()], b"}"), NAMESPACE)


def _join_signed(place: EntryPlace, *parts: bytes | memoryview) -> bytes:
    return b"".join([place.spell(), b"\n", *parts])
