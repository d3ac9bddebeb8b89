"""Keys by which agents reach a store on an SSH host: made where they are used, let in on the store's host."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from monkey.removal import remove_file
from monkey.untrusted_files import make_private_directory
from monkey_stacks.ssh.remote.host_facts import PROGRAM_SECONDS
from monkey_stacks.ssh.remote.paths import hold_lock, write_file

#: What a key may do on the store's host: SFTP, and nothing else.
RESTRICTED = 'restrict,command="internal-sftp"'


class KeygenMissing(Exception):
    """This host has no ssh-keygen."""


def make_pair(private: Path, comment: str) -> str:
    """Return the public key, making the pair if need be: the private one never leaves this host."""
    public = private.with_name(f"{private.name}.pub")
    if not (private.exists() and public.exists()):
        program = shutil.which("ssh-keygen")
        if program is None:
            raise KeygenMissing("there is no ssh-keygen")
        remove_file(private)
        remove_file(public)
        command = [program, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(private)]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS)
        if run.returncode:
            raise OSError(f"ssh-keygen failed: {run.stderr.decode(errors='replace').strip()}")
    return " ".join(public.read_text().split()[:2])


def authorize_key(public: str, mark: str) -> bool:
    """Let a key in for SFTP, in place of whatever bears that mark; returns whether anything changed. Raises OSError."""
    return _change(mark, f"{RESTRICTED} {public} {mark}")


def revoke_key(mark: str) -> bool:
    """Let no key with that mark in any more; returns whether anything changed. Raises OSError."""
    return _change(mark, None)


def list_authorized(beginning: str) -> list[str]:
    """Return the marks of keys that are let in and begin so. Raises OSError."""
    try:
        lines = (Path.home() / ".ssh/authorized_keys").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [mark for line in lines for mark in line.split()[-1:] if mark.startswith(beginning)]


def _change(mark: str, line: str | None) -> bool:
    path = Path.home() / ".ssh/authorized_keys"
    if not path.exists() and line is None:
        return False
    make_private_directory(path.parent)
    with hold_lock(path.with_name(".authorized_keys.monkey")):
        before = path.read_bytes().decode(errors="surrogateescape") if path.exists() else ""
        kept = [one for one in before.splitlines() if one.split()[-1:] != [mark]]
        after = "".join(f"{one}\n" for one in [*kept, *([line] if line else [])])
        changed = after.splitlines() != before.splitlines()
        if changed:
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            # A link to where an administrator keeps it stays one.
            write_file(path.resolve(), after.encode(errors="surrogateescape"), mode)
        remove_file(path.with_name(".authorized_keys.monkey"))
    return changed
