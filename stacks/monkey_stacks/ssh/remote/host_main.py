"""One operation on this host: the request in, the work done, the reply out. The bytes after the request are payload."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from monkey.fleet.container_runtime import find_runtime
from monkey_stacks.bundle import unpack
from monkey_stacks.ssh.remote import agents, authorized_keys, bundles, host_inventory, host_setup
from monkey_stacks.ssh.remote.paths import DirectoryBusy, FleetDirectory

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
#: Errors of ours → their names in a reply.
_REFUSALS: dict[type[Exception], str] = {
    DirectoryBusy: "busy",
    agents.AgentNotAlive: "agent",
    unpack.WrongBundle: "bundle",
    authorized_keys.KeygenMissing: "keygen",
}


def _place(asked: dict[str, Any]) -> FleetDirectory:
    return FleetDirectory(asked["workdir"], asked["fleet"])


def _explain_missing_runtime(named: str | None) -> str:
    """Return why an agent of ours could run no image here, by the runtime that is `named` or by any; "" if it could."""
    try:
        find_runtime(os.environ, named)
    except LookupError as exc:
        return str(exc)
    return ""


OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "observe": lambda asked: {
        **host_setup.observe_fleet(_place(asked), asked["workdir"], asked["store"]),
        "lacks_runtime": _explain_missing_runtime(asked["runtime"]) if asked["images"] else "",
    },
    "describe": lambda asked: host_inventory.describe_host(_place(asked), asked["workdir"], asked["store"]),
    "inventory": lambda asked: host_setup.list_fleets(_place(asked)),
    "install": lambda asked: bundles.install_bundle(_place(asked), asked["sha256"], sys.stdin.buffer),
    "prepare": lambda asked: host_setup.prepare_store_access(_place(asked), asked),
    "converge": lambda asked: host_setup.converge_agent(_place(asked), asked),
    "remove": lambda asked: host_setup.remove_agents(_place(asked)),
    "authorize": lambda asked: authorized_keys.authorize_key(asked["public"], asked["mark"]),
    "authorized": lambda asked: authorized_keys.list_authorized(asked["mark"]),
    "revoke": lambda asked: authorized_keys.revoke_key(asked["mark"]),
}


def serve_operation(operation: str, asked: dict[str, Any], nonce: str) -> None:
    """Do it and reply, on a line that begins with `nonce`: what a login prints by itself comes before."""
    try:
        reply: dict[str, Any] = {"value": OPERATIONS[operation](asked)}
    except OSError as exc:
        reply = {"error": _kind(exc), "message": exc.strerror or str(exc), "path": str(exc.filename or "")}
        reply["free"] = _free(str(exc.filename or os.path.expanduser("~")))  # noqa: PTH111
    except tuple(_REFUSALS) as exc:
        reply = {"error": _REFUSALS[type(exc)], "message": str(exc)}
    except host_setup.StoreUnreachableHere as exc:
        reply = {"error": "store", "message": exc.args[0], "hint": exc.args[1], "store": asked["store"]}
    sys.stdout.write(f"\n{nonce} {json.dumps(reply)}\n")
    sys.stdout.flush()


def _kind(exc: OSError) -> str:
    if exc.errno in _FULL:
        return "full"
    return "denied" if exc.errno in _DENIED else "other"


def _free(path: str) -> int | None:
    while path:
        try:
            disk = os.statvfs(path)
            return disk.f_bavail * disk.f_frsize
        except OSError:
            path = path.rpartition("/")[0]
    return None
