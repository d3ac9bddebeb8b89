"""A machine of a cloud, made ready for its agent, by root, once the agent's code is there. Each step finds what is.

What comes before is the text that boots it (`monkey_stacks/boot`), which knows no more than it must.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.fleet.agent_state import TAKEN_BACK, UNFIT
from monkey.fleet.cloud.http_client import retry_ask
from monkey.fleet.cloud.machine_paths import AGENT, BYE_FILES, CAUGHT, CODE, GOODBYE, STATE_ROOT
from monkey.signing.entry_signers import load_agent_signers
from monkey.signing.machine_list import check_signers, spell_signers_key
from monkey_agent.bootstrap.agent_directory import CREDENTIALS, SETTINGS
from monkey_agent.bootstrap.machine_mounts import MOUNT_UNIT, SYSTEM_PATH
from monkey_agent.lifecycle import draining
from monkey_agent.lifecycle.cloud_notices import CLOUDS, LATE

USER = "monkey"
#: Whom the agent obeys; beside its code, where all is root's.
SIGNERS = CODE / "signers"
#: What root mounts: it runs commands of this file, so jobs must not change it.
MOUNTS = CODE / "mounts.json"
MOUNT_SERVICE = "monkey-mounts.service"
UNIT = Path("/etc/systemd/system/monkey-agent.service")
#: Variables of this machine that its agent has, too: they say where clouds and proxies are.
_HANDED = re.compile(r"AWS_ENDPOINT_URL\w*|AWS_(EC2_)?METADATA\w+|GCE_METADATA_HOST|CLOUDSDK_\w+|(?i:https?|no)_proxy")
_TEXT = """\
[Unit]
Description=monkey-agent of {fleet}
Wants=network-online.target {mounts}
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
User={user}
ExecStartPre=/bin/rm -f {directory}/{left} {directory}/{goodbye} {directory}/{drain}
ExecStart={python} -I -S {bundle} {directory} --patient
Restart=on-failure
SuccessExitStatus={taken_back}
RestartPreventExitStatus={unfit}
RestartSec=2
KillMode=mixed
TimeoutStopSec=150
# A job that takes too much memory is ended by the kernel, in a control group of its own; the agent tells of it.
Delegate=memory
OOMPolicy=continue
TasksMax=infinity
StandardOutput=append:{caught}
StandardError=inherit

[Install]
WantedBy=multi-user.target
"""


def prepare_machine(settings: Mapping[str, Any], name: str, bundle: Path) -> None:
    """Make the machine `name` ready for the agent whose code is `bundle`.

    Raises SigningError, ApiError, ApiDown, OSError, CalledProcessError.
    """
    write_signers(settings)
    uv = bundle / "tools/uv"
    if uv.exists():
        uv.chmod(0o755)
    _make_user()
    if settings.get("mounts"):
        _start_mounting(settings, bundle)
    _write_settings(settings, name, bundle)
    UNIT.write_text(
        _TEXT.format(
            fleet=settings["fleet"],
            mounts=MOUNT_SERVICE if settings.get("mounts") else "",
            user=USER,
            directory=AGENT,
            left=BYE_FILES,
            goodbye=GOODBYE,
            drain=draining._DRAIN_FILE,
            python=sys.executable,
            bundle=bundle,
            taken_back=TAKEN_BACK,
            unfit=UNFIT,
            caught=CAUGHT,
        )
    )


def _start_mounting(settings: Mapping[str, Any], bundle: Path) -> None:
    """Have root mount what jobs need, beside the agent: servers that hang must not keep a machine from its boot."""
    write_atomically(MOUNTS, json.dumps(settings["mounts"]).encode(), mode=0o600)
    where = {"python": sys.executable, "bundle": bundle, "mounts": MOUNTS, "log": CAUGHT}
    (UNIT.parent / MOUNT_SERVICE).write_text(MOUNT_UNIT.format(**where))


def write_signers(settings: Mapping[str, Any], path: Path = SIGNERS) -> None:
    """Write the list of signers, of which user data has the hash, where only root can change it: jobs could otherwise.

    Raises SigningError where the store has another list, ApiError, ApiDown, OSError.
    """
    sha256 = settings["signers"]
    key = spell_signers_key(sha256)
    data = retry_ask(lambda: CLOUDS[settings["cloud"]](settings).fetch(key), LATE)
    write_atomically(path, check_signers(data, sha256), mode=0o644)
    # An image may have a newer Python than those for which the bundle has compiled modules: said now, not by the agent.
    load_agent_signers(path)


def _make_user() -> None:
    """See that there is a user for the agent, who has nothing but his own directories."""
    STATE_ROOT.mkdir(parents=True, exist_ok=True)
    try:
        pwd.getpwnam(USER)
    except KeyError:
        home = ["--home-dir", str(STATE_ROOT / "home"), "--create-home", "--shell", "/bin/bash"]
        subprocess.run(["useradd", "--system", "--user-group", *home, USER], stdin=subprocess.DEVNULL, check=True)
    for directory in (AGENT, STATE_ROOT / "cache"):
        directory.mkdir(exist_ok=True, mode=0o700)
        shutil.chown(directory, USER, USER)


def _write_settings(settings: Mapping[str, Any], name: str, bundle: Path) -> None:
    """Write down what `hosted` starts the agent with."""
    said = {"--store": settings["store"], "--project": settings["project"], "--fleet": settings["fleet"]}
    said |= {"--name": name, "--cloud": settings["cloud"], "--idle-timeout": settings["idle_timeout"]}
    mounts = settings.get("mounts", ())
    said |= {
        "--cache": STATE_ROOT / "cache",
        "--signers": SIGNERS,
        "--max-slots": settings["max_slots"],
        "--cache-size": settings["cache_size"],
        "--runtime": settings.get("runtime"),
        "--resources": settings.get("resources") or None,
        "--lease": settings.get("lease") or None,
        "--mounts": json.dumps({path: source for path, source, _ in mounts}) if mounts else None,
    }
    told = {
        "store": settings["store"],
        "arguments": [str(word) for flag, value in said.items() if value is not None for word in (flag, value)],
        "environment": {**_environment(settings, bundle), **settings["environment"]},
        "machine": settings,
    }
    for file, contents in ((SETTINGS, told), (CREDENTIALS, {})):
        (AGENT / file).write_text(json.dumps(contents, indent=1))
        shutil.chown(AGENT / file, USER, USER)


def _environment(settings: Mapping[str, Any], bundle: Path) -> dict[str, str]:
    said = {"HOME": f"{STATE_ROOT}/home", "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
    said["PATH"] = f"{bundle}/tools:{SYSTEM_PATH}"
    if settings["cloud"] == "aws":
        said |= {"AWS_REGION": settings["region"], "AWS_DEFAULT_REGION": settings["region"]}
    return said | {each: value for each, value in os.environ.items() if _HANDED.fullmatch(each)}
