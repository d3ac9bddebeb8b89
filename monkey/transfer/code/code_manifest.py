"""What the code hash is computed over, and what may be in a snapshot at all."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from monkey.store.keys import is_encodable

#: Bytes that one file may have; larger ones belong into datasets.
MAX_FILE = 50 * 10**6

#: Bytes and files that a snapshot may have.
MAX_TOTAL = 500 * 10**6
MAX_FILES = 100_000
#: Directories that a file may lie in: what walks over trees recurses, and Python ends that at a thousand.
MAX_TREE_DEPTH = 256


class PathKind(StrEnum):
    """What a path is."""

    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"


class ManifestEntry(NamedTuple):
    """One path of a snapshot; `content` is the SHA-256 of its bytes (64 hex), or a link's target."""

    path: str
    kind: PathKind
    content: str

    @property
    def fingerprint(self) -> str:
        """64 hex that change with kind and content; a plain file's are its SHA-256."""
        if self.kind is PathKind.FILE:
            return self.content
        return hashlib.sha256(f"{self.kind}:{self.content}".encode()).hexdigest()


def hash_manifest(entries: Iterable[ManifestEntry]) -> str:
    """Return the code hash: SHA-256, 64 hex, over the sorted manifest."""
    manifest = sorted([entry.path, str(entry.kind), entry.content] for entry in entries)
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_path(path: str) -> bool:
    """Tell whether `path` is plain: relative, without '.', '..', empty parts or NUL, in UTF-8, and not too deep."""
    parts = path.split("/")
    plain = {"", ".", ".."}.isdisjoint(parts) and "\0" not in path and is_encodable(path)
    return plain and len(parts) <= MAX_TREE_DEPTH + 1


def is_inside(path: str, target: str) -> bool:
    """Tell whether a link at `path` with this target stays below the root, as far as its text says."""
    if not target or target.startswith("/") or "\0" in target or not is_encodable(target):
        return False
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).split("/")[0] != ".."
