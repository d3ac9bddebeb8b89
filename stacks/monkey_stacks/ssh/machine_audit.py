"""What is on hosts of a fleet, and on the store's host, against what Pulumi's state says that there is."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping, Sequence

from monkey.errors import MonkeyError
from monkey.fleet.fleet_records import AuditFinding
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.ssh import operations, store_access
from monkey_stacks.ssh.host_state import HostInventory, HostPlan

_APPLY = "`monkey apply` makes it so"


async def audit_hosts(
    wanted: HostPlan, hosts: Sequence[str], known: Mapping[str, StateResource], *, busy: bool
) -> tuple[AuditFinding, ...]:
    """Look at every host that monkey.yaml or the state names, all at once; `known`: the state, by hosts.

    `busy`: there is work, so that an agent should live on each host of the state.
    """
    asked = dict.fromkeys([*hosts, *known])
    told = await asyncio.gather(
        *(asyncio.to_thread(_on_host, host, wanted, known.get(host), busy) for host in asked),
        *([asyncio.to_thread(_keys, wanted, known)] if wanted.scheme == "ssh" else []),
    )
    return tuple(finding for findings in told for finding in findings)


def _on_host(host: str, wanted: HostPlan, known: StateResource | None, busy: bool) -> list[AuditFinding]:
    workdir = str(known.inputs["workdir"]) if known is not None else wanted.workdir
    try:
        found = operations.list_inventory(parse_ssh_host(host), workdir)
    except MonkeyError as exc:
        return [AuditFinding(host, f"cannot be looked at: {exc.message}", exc.hint or "try again")]
    return list(_compare(host, wanted.name, found, known, busy=busy))


def _compare(
    host: str, name: str, found: HostInventory, known: StateResource | None, *, busy: bool
) -> Iterator[AuditFinding]:
    if known is None and name in found.fleets:
        hint = f"{_APPLY} its own; or `monkey destroy`, once it did"
        yield AuditFinding(host, "an agent of this fleet is set up here that no apply has written down", hint)
    if known is not None and name not in found.directories:
        hint = "`monkey apply` sets it up again; `monkey destroy` forgets it"
        yield AuditFinding(host, "nothing of this fleet is here any more, though it was set up", hint)
    if known is not None and busy and name in found.directories and name not in found.living:
        yield AuditFinding(host, "no agent lives here, though there is work", "`monkey apply` begins it again")
    for unit in sorted({*found.units} - {*found.directories}):
        yield AuditFinding(host, f"an orphan unit of systemd, of the fleet {unit}", _APPLY)
    for line in sorted({*found.crontab} - {*found.directories}):
        yield AuditFinding(host, f"an orphan line in the crontab, of the fleet {line}", "`crontab -e` there removes it")
    if found.processes and not found.directories:
        pids = ", ".join(map(str, found.processes))
        yield AuditFinding(
            host, f"processes of agents that are gone: {pids}", f"`{parse_ssh_host(host).command} kill {pids}`"
        )
    if found.files:
        yield _files(host, found.files)


def _files(host: str, paths: Sequence[str]) -> AuditFinding:
    if all(path.endswith(".lock") for path in paths):
        hint = f"`{parse_ssh_host(host).command} rm {shlex.join(paths)}`"
    else:
        hint = "`monkey apply` uses them again, and `monkey destroy` then takes them away"
    return AuditFinding(host, f"files that no agent needs any more: {', '.join(paths)}", hint)


def _keys(wanted: HostPlan, known: Mapping[str, StateResource]) -> list[AuditFinding]:
    where = wanted.store
    try:
        marks = store_access.list_authorized_hosts(wanted.store, f"monkey:{wanted.name}:")
    except MonkeyError as exc:
        return [AuditFinding(where, f"cannot be looked at: {exc.message}", exc.hint or "try again")]
    ours = {f"monkey:{wanted.name}:{resource.outputs.get('where')}" for resource in known.values()}
    hint = "remove that line from ~/.ssh/authorized_keys there"
    return [
        AuditFinding(where, f"lets a key in that no machine has: {mark}", hint) for mark in marks if mark not in ours
    ]
