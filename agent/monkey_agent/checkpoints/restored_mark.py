"""The mark of what was restored for an attempt: by it, the agent's next life knows whether the job changed any of it.

The mark is a digest, and not the list of the files: a job can write to its workspace, and a digest has one size.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.untrusted_files import open_regular
from monkey_agent.checkpoints.directory_scan import DirectoryScan, scan_path

#: Name of the mark, beside the directory.
_NAME = "restored"
#: Characters of a mark: of a SHA-256.
_LENGTH = 64


def mark_restored(directory: str, restored: DirectoryScan) -> None:
    """Write the mark of a directory that holds what was restored. Raises OSError."""
    write_atomically(Path(directory).with_name(_NAME), _digest_scan(restored))


def find_unchanged(directory: str) -> DirectoryScan | None:
    """Return the scan of a directory that still holds what was restored; None if it does not, or has no mark."""
    try:
        with os.fdopen(open_regular(str(Path(directory).with_name(_NAME)), os.O_RDONLY), "rb") as file:
            mark = file.read(_LENGTH)
        scan = scan_path(directory)
    except OSError:
        return None
    return scan if _digest_scan(scan).encode() == mark else None


def _digest_scan(scan: DirectoryScan) -> str:
    """Return the digest of a scan: equal for equal scans."""
    told = [sorted(scan.files.items()), sorted(scan.directories), sorted(scan.links.items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
