"""A machine made ready: watched over first, then its agent's code is fetched, which knows the rest."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monkey.fleet.cloud.http_client import ApiError, retry_ask
from monkey.fleet.cloud.machine_paths import CODE
from monkey_stacks.boot.remote.boot_report import BootFailed, say_line
from monkey_stacks.bundle.unpack import unpack_bundle

SCRIPT = CODE / "machine.py"
UNIT = Path("/etc/systemd/system/monkey-watch.service")
#: Seconds for a network that is not up yet, and for a role that is not known everywhere yet.
LATE = 180.0
#: Oldest Python that an agent runs on.
_PYTHON = (3, 11)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WATCH_UNIT = """\
[Unit]
Description=ends this machine when its monkey-agent has left, or is cut off
After=monkey-agent.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -I {script} watch
Restart=always
RestartSec=2
StandardOutput=journal+console

[Install]
WantedBy=multi-user.target
"""


def keep_watch(text: str) -> None:
    """Have this script, `text`, look whether the machine is still of use. Raises OSError, CalledProcessError."""
    CODE.mkdir(parents=True, exist_ok=True)
    SCRIPT.write_text(text)
    UNIT.write_text(_WATCH_UNIT.format(python=sys.executable, script=SCRIPT))
    _start("monkey-watch.service")


def set_up_agent(settings: Mapping[str, Any], cloud: Any) -> None:
    """Make this machine one with a living agent.

    Raises BootFailed, WrongBundle, ApiError, ApiDown, OSError, CalledProcessError.
    """
    name = retry_ask(cloud.name, LATE)
    python = _python()
    say_line(f"this is {name}, {python}")
    bundle = _bundle(settings, cloud)
    command = [python, "-I", "-S", str(bundle), "--machine", name]
    done = subprocess.run(command, input=json.dumps(settings), stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise BootFailed(f"the agent cannot be set up: {done.stderr[-2000:].strip()}")
    _start("monkey-agent.service")
    say_line("the agent is started")


def _start(unit: str) -> None:
    for command in (["daemon-reload"], ["enable", "--quiet", unit], ["start", unit]):
        subprocess.run(["systemctl", *command], stdin=subprocess.DEVNULL, check=True)


def _python() -> str:
    """Return a Python that is new enough. Raises BootFailed."""
    found = []
    for name in ("python3", *(f"python3.{minor}" for minor in range(19, 10, -1))):
        program = shutil.which(name, path=_PATH)
        ask = "import sys, ssl, ctypes; print(*sys.version_info[:2])"
        run = subprocess.run([program, "-I", "-c", ask], capture_output=True, text=True) if program else None
        if program and run is not None and run.returncode == 0:
            version = tuple(map(int, run.stdout.split()))
            if version >= _PYTHON:
                return program
            found.append(".".join(map(str, version)))
    told = f"expected Python {'.'.join(map(str, _PYTHON))} or newer on the image, found {', '.join(found) or 'none'}"
    raise BootFailed(f"{told}: name another `image:`, or leave it out for Debian's")


def _bundle(settings: Mapping[str, Any], cloud: Any) -> Path:
    """Return where the agent's code is, fetched unless it is there.

    Raises BootFailed, WrongBundle, ApiError, ApiDown, OSError.
    """
    sha256: str = settings["bundle"]
    where = CODE / sha256
    if where.is_dir():
        return where
    try:
        keys = [f"bundle/{sha256}/{number}" for number in range(settings["parts"])]
        data = retry_ask(lambda: b"".join(map(cloud.fetch, keys)), LATE)
    except ApiError as exc:
        if exc.status == 404:
            raise BootFailed(f"the store has no bundle {sha256}: apply again") from exc
        raise
    aside = CODE / f".{sha256}.{os.getpid()}"
    try:
        if unpack_bundle(io.BytesIO(data), aside) != sha256:
            raise BootFailed(f"what the store has as bundle {sha256} is another one: remove it, and apply again")
        for directory, _, _ in os.walk(aside):
            Path(directory).chmod(0o755)
        aside.rename(where)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    say_line("the agent's code is here")
    return where
