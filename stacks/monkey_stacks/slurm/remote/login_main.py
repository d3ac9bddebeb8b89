"""One operation on a login node: the request in, the work done, the reply out. The bytes after the request are payload.

Where this machine is the login node, the same operations are called here.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import sysconfig
import time
from collections.abc import Callable
from typing import IO, Any

from monkey_stacks.bundle import unpack
from monkey_stacks.slurm.remote import cluster_inventory, slurm_programs
from monkey_stacks.slurm.remote.pilot_directory import PilotDirectory
from monkey_stacks.ssh.remote.bundles import install_bundle
from monkey_stacks.ssh.remote.host_facts import read_libc
from monkey_stacks.ssh.remote.paths import DirectoryBusy

#: Seconds within which cancelled pilots must be gone, beyond the time that Slurm gives them; and between looks.
_GONE_SECONDS, _LOOK_SECONDS = 300, 2


def _place(asked: dict[str, Any]) -> PilotDirectory:
    return PilotDirectory(asked["workdir"], asked["name"])


def observe_login(asked: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
    """Return what this login node is, and what of the fleet is here.

    If another pilot is foreseen, also what Slurm has of the fleet, and what it says of one more.
    """
    place = _place(asked)
    there = next(path for path in (place.directory, *place.directory.parents) if path.exists())
    disk = os.statvfs(there)
    return {
        "node": os.uname().nodename,
        "python": list(sys.version_info[:2]),
        "executable": sys.executable,
        "platform": sysconfig.get_platform(),
        "libc": read_libc(),
        "home": os.path.expanduser("~"),  # noqa: PTH111
        "workdir": str(place.workdir),
        "writable": os.access(there, os.W_OK | os.X_OK) and there.is_dir(),
        "free": disk.f_bavail * disk.f_frsize,
        "bundles": place.list_bundles(),
        "partition": _said(
            lambda: slurm_programs.run_program("scontrol", "-o", "show", "partition", *asked["partition"])
        ),
        **(_foresee_pilot(place, asked) if asked["handed"] is not None else {}),
    }


def _foresee_pilot(place: PilotDirectory, asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "pilots": slurm_programs.list_queue(asked["name"]),
        "failures": place.list_failures(),
        "signers": place.hash_signers(),
        "stale": place.list_stale(asked["handed"]) if asked["handed"] else [],
        "test": _said(lambda: slurm_programs.run_program("sbatch", "--test-only", *asked["options"], "--wrap=true")),
    }


def _said(ask: Callable[[], str]) -> list[Any]:
    """Return whether a program did as asked, and what it said."""
    try:
        return [True, ask()]
    except slurm_programs.SlurmRefused as exc:
        return [False, exc.args[1]]


def list_pilots(asked: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
    """Return the pilots that Slurm has of the fleet, why others could not begin, and whether anything is here."""
    place = _place(asked)
    found = slurm_programs.list_queue(asked["name"])
    return {"pilots": found, "failures": place.list_failures(), "there": place.directory.exists()}


def receive_bundle(asked: dict[str, Any], payload: IO[bytes]) -> None:
    """Unpack the agents' code that comes as payload."""
    install_bundle(_place(asked), asked["sha256"], payload)


def submit_pilots(asked: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
    """Write what pilots need, count those that Slurm has, and submit the missing ones: one array for all.

    Returns {"bundle": True} where the agents' code is to be sent first. Two that apply at once submit no more than one.
    """
    place = _place(asked)
    with place.locked():
        if not place.bundle(asked["sha256"]).is_dir():
            return {"bundle": True}
        there = slurm_programs.list_queue(asked["name"])
        place.write(asked)
        place.choose_bundle(asked["sha256"], alone=not there)
        place.forget_failures()
        missing = asked["wanted"] - len(there)
        if missing <= 0:
            return {"job": "", "new": 0, "there": len(there)}
        words = ["--parsable", f"--array=0-{missing - 1}", f"--job-name={asked['name']}", *asked["options"]]
        script = asked["script"].replace("@FLEET@", shlex.quote(str(place.directory)))
        said = slurm_programs.run_program("sbatch", *words, f"--output={place.logs}/%A_%a.log", given=script)
        job = said.strip().splitlines()[-1].partition(";")[0]
        return {"job": job, "new": missing, "there": len(there)}


def remove_pilots(asked: dict[str, Any], payload: IO[bytes]) -> int:
    """Cancel all pilots of the fleet, wait until Slurm has none, and remove what is here; return how many there were.

    Pilots that leave meanwhile do not come again, for their settings are gone first.
    """
    place = _place(asked)
    exists = place.directory.exists()
    if exists:
        place.close()
    there = slurm_programs.list_queue(asked["name"])
    until, cancelled = time.monotonic() + _GONE_SECONDS, len(there)
    while there:
        slurm_programs.run_program("scancel", "-u", str(os.getuid()), "-n", asked["name"])
        time.sleep(_LOOK_SECONDS)
        there = slurm_programs.list_queue(asked["name"])
        if there and time.monotonic() > until:
            ids = ", ".join(row["id"] for row in there)
            raise slurm_programs.SlurmRefused("scancel", f"pilots {ids} are still there after {_GONE_SECONDS} s")
    if exists:
        with place.locked():
            place.clear()
    return cancelled


#: What may be asked of a login node.
LOGIN_OPERATIONS: dict[str, Callable[[dict[str, Any], IO[bytes]], Any]] = {
    "describe": cluster_inventory.list_cluster,
    "observe": observe_login,
    "list": list_pilots,
    "install": receive_bundle,
    "submit": submit_pilots,
    "remove": remove_pilots,
}


def run_operation(operation: str, asked: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
    """Do it; return {"value": …}, or {"refused": …} with what hindered."""
    try:
        return {"value": LOGIN_OPERATIONS[operation](asked, payload)}
    except slurm_programs.SlurmMissing:
        return {"refused": "missing", "program": "sbatch", "said": ""}
    except slurm_programs.SlurmRefused as exc:
        return {"refused": "slurm", "program": exc.args[0], "said": exc.args[1]}
    except OSError as exc:
        return {"refused": "file", "program": str(exc.filename or ""), "said": exc.strerror or str(exc)}
    except (DirectoryBusy, unpack.WrongBundle) as exc:
        return {"refused": "busy", "program": "", "said": str(exc)}


def serve_operation(operation: str, asked: dict[str, Any], nonce: str) -> None:
    """Do it and reply, on a line that begins with `nonce`: what a login prints by itself comes before."""
    reply = {"value": run_operation(operation, asked, sys.stdin.buffer)}
    sys.stdout.write(f"\n{nonce} {json.dumps(reply)}\n")
    sys.stdout.flush()
