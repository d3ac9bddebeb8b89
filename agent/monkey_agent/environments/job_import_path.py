"""Where jobs find `import monkey`, whatever environment they run in.

A job's environment holds what its requirements name, so usually not monkey. Our own site-packages on its PYTHONPATH
would bring all our dependencies along, in our versions. So the few modules that a job may import, none of which needs
anything but Python, are copied to a directory of their own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.metrics import metric_log
from monkey.untrusted_files import hold_below

#: What `import monkey` needs inside a job, relative to the package; a test holds the list to account.
_CLIENT_FILES = ("__init__.py", "version.py", "job.py", "metrics/__init__.py", "metrics/metric_log.py")


def install_client(cache: Path) -> Path:
    """Return the directory below `cache` to append to a job's PYTHONPATH, copying the client there if need be.

    It is named by its content: agents of different versions share a cache without a word. Raises OSError where the
    cache cannot be written.
    """
    package = Path(metric_log.__file__).resolve().parent.parent
    sources = {name: (package / name).read_bytes() for name in _CLIENT_FILES}
    target = cache / "client" / _digest(sources)
    for name, data in sources.items():
        path = target / "monkey" / name
        if not _holds(path, data):
            with hold_below(cache, str(path.parent.relative_to(cache)), make=True):
                write_atomically(path, data)
    return target


def _digest(sources: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sources.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file is all there: cleaners of caches remove single old files, and a power loss empties new ones."""
    try:
        return path.read_bytes() == data
    except OSError:
        return False
