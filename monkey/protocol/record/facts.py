"""Facts: what the result of an attempt came from, in one small object that is stored once under its hash.

They are of the machine (CPU, kernel, libc, GPUs), the Python, the packages of the environment, and variables that
change what numbers come out. They are no part of a job's identity: else a new driver would run every job again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from monkey.errors import CorruptObject
from monkey.protocol import entry_shape

#: Bytes of the largest object that is written or read.
MAX_FACTS_BYTES = 64 * 1024
#: Characters of the longest text in it.
MAX_FACT_LENGTH = 300
#: Bytes that the lines of a lock may have together; the lines beyond become one, with their hash.
MAX_LOCK_BYTES = 48 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")

_SHAPE = {
    #: Version and build of the Python that the job's command begins with, or else of `python` on its PATH.
    "python": entry_shape.is_text,
    "python_build": entry_shape.is_text,
    #: Packages of the environment that was built for the job: "numpy==2.4.0". Missing without `environment:`.
    "lock": entry_shape.is_texts,
    #: The library that NumPy computes with, and NumPy's version.
    "blas": entry_shape.is_text,
    #: Operating system, kernel, architecture, C library.
    "os": entry_shape.is_text,
    "kernel": entry_shape.is_text,
    "machine": entry_shape.is_text,
    "libc": entry_shape.is_text,
    #: Model of the CPU, hash of its flags, and the number of CPUs that the agent may use.
    "cpu": entry_shape.is_text,
    "cpu_flags": entry_shape.is_text,
    "cpus": entry_shape.is_count,
    #: Models of the job's GPUs, and the version of their driver.
    "gpus": entry_shape.is_texts,
    "driver": entry_shape.is_text,
    #: Variables of the job that set numbers of threads, or how exactly libraries compute.
    "variables": entry_shape.is_text_map,
}


#: The names of facts.
FACT_NAMES = tuple(_SHAPE)


def encode_facts(facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of facts: the same for the same facts."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def decode_facts(key: str, data: bytes) -> dict[str, Any]:
    """Return facts; fields that are not known are left out. Raises CorruptObject for anything that is no facts."""
    if len(data) > MAX_FACTS_BYTES:
        raise CorruptObject(key, f"expected at most {MAX_FACTS_BYTES:,} bytes of facts, found {len(data):,}")
    try:
        body = entry_shape.parse_object(data)
        known = {name: value for name, value in body.items() if name in _SHAPE}
        entry_shape.check_shape(known, _SHAPE)
    except ValueError as exc:
        raise CorruptObject(key, f"expected facts as JSON ({str(exc)[:80]})") from exc
    return known


def hash_facts(data: bytes) -> str:
    """Return what facts are known by: the SHA-256 of their bytes."""
    return hashlib.sha256(data).hexdigest()


def is_facts_hash(text: str) -> bool:
    """Is it a hash that may be part of a key? An end comes from the store, and may name anything."""
    return _SHA256.fullmatch(text) is not None


def bound_lock(lines: list[str]) -> list[str]:
    """Return the lines of a lock, sorted; of one that is very long, the first, and the hash of the others."""
    lines, kept, size = sorted({line[:MAX_FACT_LENGTH] for line in lines}), list[str](), 0
    for line in lines:
        size += len(line.encode(errors="replace")) + 3
        if size > MAX_LOCK_BYTES:
            rest = "\n".join(lines[len(kept) :]).encode(errors="replace")
            return [*kept, f"and {len(lines) - len(kept)} more, sha256 {hashlib.sha256(rest).hexdigest()}"]
        kept.append(line)
    return kept


def name_package(line: str) -> str:
    """Return the package that a line of a lock names: of "numpy==2.4.0" or "torch @ https://…"."""
    return line.partition("==")[0].partition(" @ ")[0].strip()
