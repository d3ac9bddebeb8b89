"""What a checkpoint in the store consists of. It is read as hostile input."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from monkey.errors import CorruptObject
from monkey.protocol.record.history_parts import HistoryPart, parse_parts
from monkey.store.keys import is_encodable
from monkey_agent.checkpoints.directory_scan import is_inner

_SHA256 = re.compile(r"[0-9a-f]{64}").fullmatch


class FileEntry(NamedTuple):
    """A file: its bytes' SHA-256, how many they are, when it was changed (ns since the epoch), its permissions."""

    sha256: str
    size: int
    mtime: int
    mode: int


@dataclass(frozen=True)
class CheckpointManifest:
    """A checkpoint: relative paths to files, directories, links."""

    files: dict[str, FileEntry]
    directories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    #: What its attempt continued, and how much that itself had logged.
    history: tuple[HistoryPart, ...] = ()

    @property
    def pieces(self) -> set[str]:
        """The digests of all files."""
        return {piece.sha256 for piece in self.files.values()}

    def encode(self) -> bytes:
        """Return what is stored."""
        body: dict[str, Any] = {"files": self.files, "directories": self.directories, "links": self.links}
        body["history"] = [part.to_json() for part in self.history]
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode_manifest(key: str, data: bytes) -> CheckpointManifest:
    """Read a manifest; raises CorruptObject for anything that is none, or that would leave the job's directory."""
    try:
        body = json.loads(data)
        files = {_path(path): _piece(*piece) for path, piece in body["files"].items()}
        links = {_path(path): _path(target) for path, target in body["links"].items()}
        history = parse_parts(body.get("history", []))
        return CheckpointManifest(files, [_path(path) for path in body["directories"]], links, history)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise CorruptObject(key, f"is no list of a checkpoint's files ({exc})") from exc


def _path(path: Any) -> str:
    if not isinstance(path, str) or not is_inner(path) or not is_encodable(path):
        raise ValueError(f"{path!r} leads elsewhere")
    return path


def _piece(sha256: Any, size: Any, mtime: Any, mode: Any) -> FileEntry:
    if not isinstance(sha256, str) or not _SHA256(sha256):
        raise ValueError("a digest is none")
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in (size, mtime, mode)):
        raise ValueError("a number is none")
    return FileEntry(sha256, size, mtime, mode & 0o777)
