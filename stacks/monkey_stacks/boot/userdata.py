"""The user data of a machine: our modules that run there as one text of Python's own, and the machine's settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache

from monkey.errors import FleetError
from monkey_stacks.boot.settings import MachineSettings
from monkey_stacks.boot.source_bundling import join_modules

#: Bytes that user data may have on aws.
MAX_USERDATA_BYTES = 16 * 1024
#: The modules that run on a machine of each cloud.
_CLOUDS = {
    "aws": ("monkey.fleet.cloud.signing", "monkey.fleet.cloud.aws_machine"),
    "gcp": ("monkey.fleet.cloud.gcp_machine",),
}
_BOTH = ("monkey.fleet.cloud.http_client", "monkey.fleet.cloud.machine_paths")
_THERE = (
    *("monkey_stacks.boot.remote.boot_report", "monkey_stacks.boot.remote.terminate"),
    *("monkey_stacks.bundle.unpack", "monkey_stacks.boot.remote.install"),
    *("monkey_stacks.boot.remote.dead_man_switch", "monkey_stacks.boot.remote.machine_main"),
)


def write_user_data(settings: MachineSettings) -> str:
    """Return the text that a machine runs as root when it boots: the same for the same settings.

    Raises FleetError where it would be longer than a cloud takes.
    """
    told = json.dumps(asdict(settings), sort_keys=True, separators=(",", ":"))
    text = f"{write_script(settings.cloud)}run_command(json.loads({told!r}), {settings.cloud.capitalize()}Machine)\n"
    if len(text) > MAX_USERDATA_BYTES:
        raise FleetError(
            f"what machines of {settings.fleet!r} are told is "
            f"{len(text) - MAX_USERDATA_BYTES} bytes too long for a cloud",
            hint=f"name fewer secrets in 'secrets:' of provider {settings.fleet!r} in monkey.yaml, or shorter ones",
        )
    return text


@cache
def write_script(cloud: str) -> str:
    """Return the text for machines of a cloud, without their settings."""
    return "#!/usr/bin/env python3\n" + join_modules((*_BOTH, *_CLOUDS[cloud], *_THERE))
