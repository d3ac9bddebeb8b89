"""A Debian with a kernel of its own (user-mode Linux), systemd, and control groups of version 2. Root is needed.

It boots in seconds, runs one script as the unprivileged user, whose systemd lives without a login, and goes down. Its
root is that of tests' hosts. It has this repository and our Python at the places where they are here. The user's home
is in its memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import host_root
from tests.host_root import USER

#: Seconds in which it must have booted, run the script, and gone down.
PATIENCE = 240.0
PROJECT = Path(__file__).parents[1]
_HOME = Path("/home") / USER
_UNIT = """\
[Unit]
After=multi-user.target systemd-logind.service
[Service]
Type=oneshot
StandardOutput=append:/told
StandardError=inherit
ExecStart=/bin/sh -c 'until systemctl -q is-active user@1000; do sleep 0.1; done'
ExecStart=-/usr/sbin/runuser -u {user} -- env XDG_RUNTIME_DIR=/run/user/1000 HOME={home} {python} /script.py
ExecStart=/usr/bin/systemctl poweroff -ff
"""
_START = """
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root" || exit 1
for place in "$3" "$4"; do mkdir -p "$2/root$place"; mount -o bind,ro "$place" "$2/root$place" || exit 1; done
chmod 755 "$2/root/root"
exec linux.uml mem=512M uml_dir=$2/tmp/ root=/dev/root rootfstype=hostfs rootflags="$2/root" rw quiet \
    con0=null,fd:1 con=null systemd.unified_cgroup_hierarchy=1 init=/lib/systemd/systemd
"""


def available() -> bool:
    """Say whether such a machine can be started here."""
    return host_root.available() and all(map(shutil.which, ("linux.uml", "gcc")))


def build_preload(directory: Path) -> Path:
    """Build what user-mode Linux is to preload, for processors with AMX; returns its path in `directory`."""
    library, source = directory / "xstate.so", PROJECT / "tests/tools/xstate.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def run_script(place: Path, script: str) -> str:
    """Run a Python script as the user of a machine whose files lie below `place`; returns what it printed."""
    upper = place / "upper"
    units = upper / "etc/systemd/system"
    for path in (units / "multi-user.target.wants", upper / "var/lib/systemd/linger"):
        path.mkdir(parents=True)
    for name in ("work", "root", "tmp"):
        (place / name).mkdir()
    (upper / "script.py").write_text(script)
    owner = (host_root.root() / _HOME.relative_to("/")).stat()
    options = f"uid={owner.st_uid},gid={owner.st_gid},mode=755"
    (upper / "etc/fstab").write_text(f"home {_HOME} tmpfs {options} 0 0\n")
    (upper / "var/lib/systemd/linger" / USER).touch()
    (upper / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n")
    (units / "script.service").write_text(_UNIT.format(user=USER, home=_HOME, python=sys.executable))
    (units / "multi-user.target.wants/script.service").symlink_to("../script.service")
    (units / "ssh.service").symlink_to("/dev/null")
    words = ["unshare", "--mount", "sh", "-c", _START, "sh"]
    with (place / "console").open("wb") as console:
        done = subprocess.run(
            [*words, host_root.root(), place, PROJECT, sys.base_prefix],
            env={**os.environ, "TMPDIR": f"{place}/tmp", "LD_PRELOAD": str(build_preload(place))},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            timeout=PATIENCE,
        )
    assert done.returncode == 0, (place / "console").read_text(errors="replace")[-2000:]
    return (upper / "told").read_text(errors="replace")
