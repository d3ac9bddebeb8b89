"""A user without rights, who has ranges of user ids, in a mount namespace: the rest of this machine never sees him."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: His number, which is also his group's, and the first of the 65,536 that are his in containers.
USER, _FIRST = 61234, 700_000
_NAME = "monkeytest"
_LINES = {
    "passwd": f"{_NAME}:x:{USER}:{USER}::/:/bin/sh",
    "group": f"{_NAME}:x:{USER}:",
    "subuid": f"{_NAME}:{_FIRST}:65536",
    "subgid": f"{_NAME}:{_FIRST}:65536",
}


class RootlessUser:
    """The user, and how to run programs as him. Only root can."""

    def __init__(self, directory: Path) -> None:
        """Write what he needs into `directory`."""
        lines = ["set -e"]
        for name, line in _LINES.items():
            known = Path(f"/etc/{name}")
            (directory / name).write_text((known.read_text() if known.exists() else "") + f"{line}\n")
            lines.append(f"test -e /etc/{name} || touch /etc/{name}")
            lines.append(f"mount --bind {shlex.quote(str(directory / name))} /etc/{name}")
        python = Path(sys.base_prefix)
        if python.is_relative_to("/root"):  # he may not enter there
            kept = directory / "python"
            kept.mkdir()
            lines += [f"mount --bind {python} {kept}", "mount -t tmpfs -o mode=755 none /root"]
            lines += [f"mkdir -p {python}", f"mount --bind {kept} {python}"]
        lines.append(f'exec setpriv --reuid={USER} --regid={USER} --clear-groups -- "$@"')
        self._script = directory / "as-user.sh"
        self._script.write_text("\n".join(lines) + "\n")

    def give(self, *paths: Path) -> None:
        """Make these trees his, and let him reach them."""
        for path in paths:
            subprocess.run(["chown", "-R", "--no-dereference", f"{USER}:{USER}", str(path)], check=True)
        self.reach(*paths)

    def reach(self, *paths: Path) -> None:
        """Let him enter the directories of a test's in which these are."""
        for above in {above for path in (self._script, *paths) for above in path.parents}:
            mode = above.stat().st_mode
            if above.is_relative_to("/tmp") and not mode & 0o001:
                above.chmod(mode | 0o011)

    def run(self, command: list[str], directory: Path, env: Mapping[str, str]) -> str:
        """Run a command as him, and return what it said."""
        words = ["unshare", "--mount", "/bin/sh", str(self._script), *command]
        done = subprocess.run(words, cwd=directory, env=env, capture_output=True, text=True)
        assert not done.returncode, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
