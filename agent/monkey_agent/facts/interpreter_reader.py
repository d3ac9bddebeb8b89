"""The reader of a Python's facts: it runs in that Python, which may be of any version from 3.7 on, and is not ours.

`python interpreter_reader.py` prints its version, its build, and the library that its NumPy computes with. It imports
no package, so it takes some milliseconds. `python -I interpreter_reader.py --lock` lists the installed packages.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import sys
from pathlib import Path

#: The user and password of a URL, which must not get into the store.
_CREDENTIALS = re.compile(r"//[^/@]*@")
#: How NumPy's own configuration names the library, since 1.26 and before.
_BLAS = re.compile(r'"blas": *\{\s*"name": *"([^"]*)"[^}]*?"version": *"([^"]*)"')
_OLD_BLAS = re.compile(r"(openblas|mkl|blis|atlas|accelerate)", re.IGNORECASE)
_VERSION = re.compile(r"^(?:short_|full_)?version *= *['\"]([^'\"]+)", re.MULTILINE)


def read_python() -> dict[str, str]:
    """Return the version, the build, and what NumPy computes with; "" where there is none."""
    build = ", ".join(part.strip() for part in (*platform.python_build(), platform.python_compiler()) if part.strip())
    version, kind = platform.python_version(), platform.python_implementation()
    return {"python": version, "python_build": f"{kind}: {build}", "blas": _read_blas()}


def _read_blas() -> str:
    """Read NumPy's files, as its import would take ten times as long as all the rest."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or not spec.origin:
        return ""
    directory = Path(spec.origin).parent
    version = _VERSION.search(_read_text(directory / "version.py"))
    config = _read_text(directory / "__config__.py")
    found = _BLAS.search(config)
    older = _OLD_BLAS.search(config)
    library = f"{found[1]} {found[2]}" if found else older[1].lower() if older else "library not known"
    return f"{library} (numpy {version[1]})" if version else library


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def list_packages() -> list[str]:
    """Return each installed package as a line of a lock: "numpy==2.4.0", or "name @ URL" where it came from one."""
    from importlib import metadata

    found = set()
    for package in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"] or "").lower()
        if name:
            found.add(f"{name}=={package.version}{_read_origin(package.read_text('direct_url.json'))}")
    return sorted(found)


def _read_origin(text: str | None) -> str:
    """Return where a package came from if that was no index: " @ git+https://host/repository@commit"."""
    try:
        told = json.loads(text or "{}")
        url = _CREDENTIALS.sub("//", str(told.get("url", "")))
        commit = told.get("vcs_info", {}).get("commit_id", "")
        digest = told.get("archive_info", {}).get("hash", "")
    except (ValueError, AttributeError):
        return ""
    return f" @ {url}" + "".join(f"#{part}" for part in (commit, digest) if part) if url else ""


if __name__ == "__main__":
    # Our own directory is no part of what its programs may import.
    sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]
    print(json.dumps(list_packages() if "--lock" in sys.argv[1:] else read_python()))
