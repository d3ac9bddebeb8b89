"""The user data of a machine: our modules that run there as one text of Python's own, and what the machine is told."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache

from monkey.errors import FleetError
from monkey_stacks.boot.plain import joined
from monkey_stacks.boot.settings import Settings

#: Bytes that user data may have on aws.
MOST = 16 * 1024
#: The modules that run on a machine of each cloud.
_CLOUDS = {"aws": ("monkey.fleet.cloud.signing", "monkey.fleet.cloud.aws"), "gcp": ("monkey.fleet.cloud.gcp",)}
_BOTH = ("monkey.fleet.cloud.asking", "monkey.fleet.cloud.places")
_THERE = (
    *("monkey_stacks.boot.there.telling", "monkey_stacks.boot.there.goodbye"),
    *("monkey_stacks.ssh.there.unpack", "monkey_stacks.boot.there.install"),
    *("monkey_stacks.boot.there.watch", "monkey_stacks.boot.there.main"),
)


def user_data(settings: Settings) -> str:
    """Return the text that a machine runs as root when it boots: the same for the same settings.

    Raises FleetError where it would be longer than a cloud takes.
    """
    told = json.dumps(asdict(settings), sort_keys=True)
    text = f"{script(settings.cloud)}run(json.loads({told!r}), {settings.cloud.capitalize()})\n"
    if len(text) > MOST:
        raise FleetError(
            f"what machines of {settings.fleet!r} are told is {len(text) - MOST} bytes too long for a cloud",
            hint=f"name fewer secrets in 'secrets:' of provider {settings.fleet!r} in monkey.yaml, or shorter ones",
        )
    return text


@cache
def script(cloud: str) -> str:
    """Return the text for machines of a cloud, but for what they are told."""
    return "#!/usr/bin/env python3\n" + joined((*_BOTH, *_CLOUDS[cloud], *_THERE))
