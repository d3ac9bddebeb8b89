"""Facts about a host, and what it permits its user. To ask changes nothing."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from monkey.fleet.gpus import list_gpus
from monkey_stacks.ssh.remote.paths import FleetDirectory, find_workdir, name_host, read_machine_id

#: Seconds that a program may take to answer.
PROGRAM_SECONDS = 20
#: Programs that run crontabs, as the kernel names processes.
CRONS = ("cron", "crond", "fcron", "busybox", "systemd-cron")

#: In the command line of an agent: its bundle, or its module.
_AGENT = re.compile(rb"/bundles/[0-9a-f]{64}|\0monkey_agent\.command_line\0")


def collect_facts(said: str) -> dict[str, Any]:
    """Return all facts about this host; `said`: the working directory as the user named it."""
    directory = find_workdir(said)
    there = next(path for path in (directory, *directory.parents) if path.exists())
    disk = os.statvfs(there)
    lingers = is_lingering()
    return {
        "host": name_host(),
        "name": os.uname().nodename,
        "machine_id": read_machine_id(),
        "user": read_user_name(),
        "python": list(sys.version_info[:3]),
        "executable": sys.executable,
        "platform": sysconfig.get_platform(),
        "libc": read_libc(),
        "workdir": str(directory),
        "writable": os.access(there, os.W_OK | os.X_OK) and there.is_dir() and not disk.f_flag & os.ST_RDONLY,
        "occupied": FleetDirectory(said, "").occupied(),
        "nearest": str(there),
        "free": disk.f_bavail * disk.f_frsize,
        "linger": lingers,
        "user_systemd": has_user_systemd(),
        "ends_at_logout": not lingers and may_kill_at_logout(),
        "cron": may_use_crontab() and is_cron_running(),
        "gpus": list(list_gpus()),
        "groups": list_memory_groups(),
        "others": list_other_users(),
    }


def list_memory_groups() -> list[int]:
    """Return the versions of control groups by which an agent of ours could limit memory.

    Those of version 2 are an agent's only if the user's systemd keeps it.
    """
    uid, groups = os.getuid(), Path("/sys/fs/cgroup")
    found = [1] if uid == 0 and os.access(groups / "memory/cgroup.procs", os.W_OK) else []
    for root in (groups, groups / "unified"):
        controllers = root / f"user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
        with contextlib.suppress(OSError):
            found += [2] if "memory" in controllers.read_text().split() else []
    return found


def list_other_users() -> list[str]:
    """Return the other users with agents on this host, as far as we may see their processes."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            uid = process.stat().st_uid
            if uid != os.getuid() and _AGENT.search((process / "cmdline").read_bytes()):
                found.add(uid)
    return sorted(map(_name_user, found))


def read_user_name() -> str:
    """Return our user's name; the number of a user without a name."""
    return _name_user(os.getuid())


def _name_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def read_libc() -> str:
    """Return the C library: "glibc 2.36", "musl", or "" for another one."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return "musl" if any(Path("/lib").glob("ld-musl-*")) else ""


def read_output(*command: str) -> str | None:
    """Return the output of a program; None where it is missing, fails, or takes too long."""
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        return None
    try:
        run = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_SECONDS,
            env=read_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.decode(errors="replace") if run.returncode == 0 else None


def read_environment() -> dict[str, str]:
    """Return our environment, with the path to the user's systemd, which not every login has."""
    return {"XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}", **os.environ, "LC_ALL": "C"}


def is_lingering() -> bool:
    """Return whether the user's systemd is confirmed to live without a login."""
    said = read_output("loginctl", "show-user", read_user_name(), "--property=Linger")
    return (said or "").strip() == "Linger=yes"


def has_user_systemd() -> bool:
    """Return whether a systemd of the user answers."""
    return read_output("systemctl", "--user", "show", "--property=Version") is not None


def may_kill_at_logout() -> bool:
    """Return whether this host ends all processes of a user at logout."""
    manager = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    said = read_output("busctl", "get-property", *manager, "KillUserProcesses")
    if said is None or said.split()[-1:] != ["true"]:
        return False
    spared = read_output("busctl", "get-property", *manager, "KillExcludeUsers") or ""
    return f'"{read_user_name()}"' not in spared


def may_use_crontab() -> bool:
    """Return whether we may have a crontab."""
    program = shutil.which("crontab")
    if program is None:
        return False
    try:
        run = subprocess.run([program, "-l"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    # Without a crontab it fails, too, and says so in these words everywhere.
    return run.returncode == 0 or b"no crontab for" in run.stderr


def is_cron_running() -> bool:
    """Return whether a program runs that would start what a crontab says."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text().strip() in CRONS:
                return True
    return False
