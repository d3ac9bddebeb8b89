"""Copies of the files that an engine hands over, and replaces while a pilot works: those of a Secret of Kubernetes.

Those files are open to a group, and secrets must not be: agents read copies with mode 0600.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import MutableMapping
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey_agent.bootstrap.agent_directory import CREDENTIALS

#: What agents read again while they work.
FOLLOWED_FILES = ("secrets", "signers", CREDENTIALS)
#: Amazon's variables for keys, and what its own file calls them.
_KEYS = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
}
#: Variables that choose a profile of that file: it has one.
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_KEY_FILE, _KEY_FILE_VARIABLE = "amazon_keys", "AWS_SHARED_CREDENTIALS_FILE"
#: Seconds between two looks.
_PAUSE_SECONDS = 5.0


def watch_handed_files(handed: Path, directory: Path) -> None:
    """Copy the files that change in `handed` to `directory`, from now on, in a thread that ends with the process."""
    threading.Thread(target=_copy_forever, args=(handed, directory), daemon=True).start()


def move_keys(directory: Path, environment: MutableMapping[str, str]) -> None:
    """Have Amazon's keys in a file, which is read again, and in no variable, which stays. Raises OSError, ValueError.

    Other clouds' credentials stay variables: their clients read them once.
    """
    if _write_key_file(directory):
        for name in (*_KEYS, *_PROFILES):
            environment.pop(name, None)
        environment[_KEY_FILE_VARIABLE] = str(directory / _KEY_FILE)


def _write_key_file(directory: Path) -> bool:
    """Write the keys as Amazon's tools read them; return whether there are any. Raises OSError, ValueError."""
    known = json.loads((directory / CREDENTIALS).read_bytes())
    lines = [f"{called} = {known[name]}\n" for name, called in _KEYS.items() if known.get(name)]
    if lines:
        write_atomically(directory / _KEY_FILE, "".join(["[default]\n", *lines]).encode(), mode=0o600)
    return bool(lines)


def _copy_forever(handed: Path, directory: Path) -> None:
    while True:
        with contextlib.suppress(OSError, ValueError):
            if changed := copy_handed_files(handed, directory):
                print(f"got other {' and '.join(changed)}", file=sys.stderr, flush=True)
        time.sleep(_PAUSE_SECONDS)


def copy_handed_files(handed: Path, directory: Path) -> list[str]:
    """Copy the files that differ; return their names. Raises OSError, ValueError."""
    changed = []
    for name in FOLLOWED_FILES:
        data, target = (handed / name).read_bytes(), directory / name
        if not target.exists() or data != target.read_bytes():
            write_atomically(target, data, mode=0o600)
            changed.append(name)
    if CREDENTIALS in changed:
        _write_key_file(directory)
    return changed
