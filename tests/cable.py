"""Cutting the cables of tests' machines: packets vanish, nobody is told (nft)."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator


def cut(device: str, name: str) -> None:
    """Drop what comes and goes by a network device; `name`: under which `mend` finds it."""
    rules = f"add table netdev {name}\n"
    for hook in ("ingress", "egress"):
        chain = f"{{ type filter hook {hook} device {device} priority 0; }}"
        rules += f"add chain netdev {name} {hook} {chain}\n"
        # But for who has which address: without an answer, connections would fail at once, and not be silent.
        rules += f"add rule netdev {name} {hook} meta protocol != arp drop\n"
    subprocess.run(["nft", "-f", "-"], input=rules.encode(), check=True)


def mend(name: str) -> None:
    """Undo `cut`, if there was one."""
    subprocess.run(["nft", "delete", "table", "netdev", name], capture_output=True)


@contextlib.contextmanager
def unplugged(device: str) -> Iterator[None]:
    """Cut a device for a while. That of a lab's bridge cuts us off its hosts, which have each other still."""
    cut(device, device)
    try:
        yield
    finally:
        mend(device)
