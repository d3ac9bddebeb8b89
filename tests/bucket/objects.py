"""What is in the bucket."""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Object:
    """What is under a key."""

    data: bytes
    etag: str
    #: Google's number of this version.
    generation: int
    #: Seconds since 1970.
    modified: float = field(default_factory=time.time)


class PreconditionFailed(Exception):
    """What the writer expected under the key is not there."""


class NoSuchUpload(Exception):
    """That multipart upload was ended, or never begun."""


class Objects:
    """Keys to objects; every method is atomic."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._count = itertools.count(1)
        self._objects: dict[str, Object] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        #: Whether it takes conditions and does not keep them.
        self.lies = False

    def put(self, key: str, data: bytes, *, if_absent: bool) -> Object:
        """Write `key`. Raises PreconditionFailed."""
        return self._write(key, data, hashlib.md5(data).hexdigest(), if_absent)

    def _write(self, key: str, data: bytes, etag: str, if_absent: bool) -> Object:
        with self._lock:
            if if_absent and key in self._objects and not self.lies:
                raise PreconditionFailed
            self._objects[key] = Object(data, f'"{etag}"', next(self._count))
            return self._objects[key]

    def get(self, key: str) -> Object | None:
        """Return what is under `key`."""
        return self._objects.get(key)

    def delete(self, key: str) -> None:
        """Remove `key`."""
        with self._lock:
            self._objects.pop(key, None)

    def list(self, prefix: str, after: str, limit: int) -> tuple[list[tuple[str, Object]], bool]:
        """Return up to `limit` keys with `prefix` that sort (by their UTF-8) after `after`, and whether more follow."""
        with self._lock:
            found = sorted(key for key in self._objects if key.startswith(prefix) and key > after)
            return [(key, self._objects[key]) for key in found[:limit]], len(found) > limit

    @property
    def keys(self) -> Sequence[str]:
        """All keys, sorted."""
        return [key for key, _ in self.list("", "", 1_000_000)[0]]

    # -- multipart ----------------------------------------------------------------------------------------------------

    def begin_upload(self) -> str:
        """Return the name of a new upload."""
        with self._lock:
            name = f"upload-{next(self._count)}"
            self._uploads[name] = {}
            return name

    def put_part(self, upload: str, number: int, data: bytes) -> str:
        """Take one part; returns its etag. Raises NoSuchUpload."""
        with self._lock:
            if upload not in self._uploads:
                raise NoSuchUpload
            self._uploads[upload][number] = data
        return f'"{hashlib.md5(data).hexdigest()}"'

    def end_upload(self, upload: str, key: str) -> Object:
        """Make an object of the parts. Raises NoSuchUpload."""
        with self._lock:
            if upload not in self._uploads:
                raise NoSuchUpload
            parts = [data for _, data in sorted(self._uploads.pop(upload).items())]
        digests = b"".join(hashlib.md5(part).digest() for part in parts)
        return self._write(key, b"".join(parts), f"{hashlib.md5(digests).hexdigest()}-{len(parts)}", False)

    def abort_upload(self, upload: str) -> None:
        """Forget an upload."""
        with self._lock:
            self._uploads.pop(upload, None)

    @property
    def uploads(self) -> int:
        """How many uploads were begun and not ended: somebody pays for them."""
        return len(self._uploads)
