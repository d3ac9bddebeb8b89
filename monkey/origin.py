"""Where the monkey that runs was installed from, and what installs it from there again.

The name of our distribution alone will not do: its owner at an index could have anything installed.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: Our distribution.
_DISTRIBUTION = "monkey-sweep"


def hint_install(extra: str = "") -> str:
    """Return what to run so that the monkey that runs is installed again, with an extra where one is named."""
    extras = f"[{extra}]" if extra else ""
    found = _record()
    if not found:
        return f"run, with the directory of monkey's clone for CLONE: {_installer()} {shlex.quote(f'CLONE{extras}')}"
    url = str(found["url"])
    if "dir_info" in found:
        editable = "-e " if found["dir_info"].get("editable") else ""
        return f"run: {_installer()} {editable}{shlex.quote(unquote(urlsplit(url).path) + extras)}"
    version = found.get("vcs_info", {})
    revision = f"@{version['requested_revision']}" if "requested_revision" in version else ""
    scheme = f"{version['vcs']}+" if version else ""
    # Of one version, pip installs another commit only where it is told to.
    return f"run: {_installer()} --force-reinstall {shlex.quote(f'{_DISTRIBUTION}{extras} @ {scheme}{url}{revision}')}"


def name_requirement(extras: Sequence[str]) -> str:
    """Return the requirement that installs this very monkey anywhere: its commit's; "" where it is of no repository."""
    found = _record()
    version = found.get("vcs_info", {})
    if "commit_id" not in version:
        return ""
    return spell_requirement(extras, f"{version['vcs']}+{found['url']}@{version['commit_id']}")


def spell_requirement(extras: Sequence[str], address: str) -> str:
    """Return the requirement for our distribution at that address."""
    return f"{_DISTRIBUTION}{'[' + ','.join(extras) + ']' if extras else ''} @ {address}"


def locate_clone() -> Path | None:
    """Return the directory that the monkey that runs was installed from; None where it was none."""
    found = _record()
    return Path(unquote(urlsplit(str(found["url"])).path)) if "dir_info" in found else None


def _record() -> dict[str, Any]:
    """Return what the installer wrote down of where it is from (PEP 610); nothing where that was an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found: dict[str, Any] = json.loads(distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return {}
    return found


def _installer() -> str:
    """Return the installer for the Python that runs: an environment that uv made has no pip."""
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
