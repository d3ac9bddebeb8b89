"""Reading a requirements file: a plain one of the project, for its text is stored with the sweep."""

from __future__ import annotations

from pathlib import Path

from monkey.spec.project_paths import read_regular_file, resolve_in_project

#: Bytes of it at most.
_MAX_REQUIREMENTS_BYTES = 1_000_000

#: Why `python:` does not go with `image:`, and what to do.
PYTHON_OF_IMAGE = "an image brings its own Python", "remove it, or choose an image by its tag: python:3.12"


def read_requirements_file(root: Path, name: str) -> str:
    """Return what a file of the project says. Raises OSError, and ValueError with why it is not read."""
    try:
        path = resolve_in_project(root / name, root)
    except ValueError as error:
        raise ValueError(f"{error}, and its text would be stored with the sweep") from error
    raw = read_regular_file(path, _MAX_REQUIREMENTS_BYTES + 1)
    if len(raw) > _MAX_REQUIREMENTS_BYTES:
        raise ValueError(f"it has {path.stat().st_size:,} bytes, and at most {_MAX_REQUIREMENTS_BYTES:,} are taken")
    return raw.decode()
