"""The three things that are done with a host: look, make it so, take everything away.

Each may be cut off at any moment, here or there, and called again; each asks first what is there.
"""

from __future__ import annotations

import re
from typing import Any

from monkey.errors import FleetError
from monkey.spec.project.ssh_host import SshHost
from monkey_stacks.bundle.bundle import Bundle, build_bundle
from monkey_stacks.ssh import errors, store_access
from monkey_stacks.ssh.connection import LONG, HostConnection
from monkey_stacks.ssh.host_state import HostInventory, HostPlan, ObservedHost, read_facts

#: Bytes that must be free for a bundle and what an agent writes before its first job.
_MIN_FREE_BYTES = 64 << 20
#: What neither OpenSSH's configuration nor systemd's could tell from what it means to them.
_UNFIT = re.compile(r'["\\\x00-\x1f]')
#: Times that a bundle is sent again which another machine's monkey took away meanwhile.
_MAX_TRIES = 3


def observe_host(host: SshHost, wanted: HostPlan) -> ObservedHost:
    """Return what the host is and what of the fleet is on it; changes nothing.

    Raises HostAway where it does not answer, FleetError where it cannot be used.
    """
    with HostConnection(host) as there:
        return _observe(there, wanted)


def inspect_host(host: SshHost, wanted: HostPlan) -> ObservedHost:
    """Return what a host is that is to have an agent. Raises FleetError, too, where that could not be."""
    seen = observe_host(host, wanted)
    check_host_fits(host, seen, wanted)
    return seen


def list_inventory(host: SshHost, workdir: str = "~/.monkey") -> HostInventory:
    """Return what any fleet has on the host below `workdir`; changes nothing. Raises HostAway, FleetError."""
    with HostConnection(host) as there:
        found = there.ask("inventory", {"workdir": workdir, "fleet": "", "store": ""})
    return HostInventory(**{name: tuple(values) for name, values in found.items()})


def build_host_bundle(seen: ObservedHost, wanted: HostPlan) -> Bundle:
    """Return the bundle that a host is to have. Raises FleetError, OSError."""
    return build_bundle(wanted.scheme, seen.target)


def converge_host(host: SshHost, wanted: HostPlan) -> ObservedHost:
    """See that one agent lives there that was started as wanted, and return what is there then.

    An agent that was started otherwise takes no new claim, and leaves when its jobs have ended; the new one runs beside
    it. Raises HostAway, FleetError, OSError.
    """
    with HostConnection(host) as there:
        seen = _observe(there, wanted)
        check_host_fits(host, seen, wanted)
        bundle = build_host_bundle(seen, wanted)
        if bundle.sha256 not in seen.bundles:
            _install(there, wanted, bundle)
        public = there.ask("prepare", _preparation(seen, wanted))
        if public:
            store_access.authorize_host(wanted.store, public, make_key_mark(seen, wanted))
        for _ in range(_MAX_TRIES):
            if not there.ask("converge", _request(seen, wanted, bundle), limit=LONG):
                return _observe(there, wanted)
            _install(there, wanted, bundle)
    raise FleetError(
        f"{host}: the bundle is taken away as soon as it is there", hint="is another `monkey apply` running?"
    )


def remove_fleet(host: SshHost, wanted: HostPlan) -> None:
    """Take all of the fleet away from the host, once its agents have given back what they work on.

    Raises HostAway, FleetError.
    """
    with HostConnection(host) as there:
        seen = _observe(there, wanted)
        there.ask("remove", wanted.place, limit=LONG)
    if wanted.scheme == "ssh":
        store_access.revoke_host(wanted.store, make_key_mark(seen, wanted))


def make_key_mark(seen: ObservedHost, wanted: HostPlan) -> str:
    """Return what marks a host's key on the store's host."""
    return f"monkey:{wanted.name}:{seen.host}"


def _observe(there: HostConnection, wanted: HostPlan) -> ObservedHost:
    return read_facts(there.ask("observe", wanted.observation))


def check_host_fits(host: SshHost, seen: ObservedHost, wanted: HostPlan) -> None:
    """Raise FleetError where no agent as wanted could be on a host that was seen so."""
    if not seen.target.platform.startswith("linux"):
        raise FleetError(f"{host}: expected Linux, found {seen.target.platform}", hint="agents on SSH hosts need Linux")
    if _UNFIT.search(seen.workdir):
        raise FleetError(
            f"{host}: {seen.workdir!r} cannot be written into a configuration file",
            hint="name a place with 'workdir:' that has no quotation mark, backslash or control character in it",
        )
    if not isinstance(wanted.gpus, str) and max(wanted.gpus, default=-1) >= len(seen.gpus):
        asked = ", ".join(map(str, wanted.gpus))
        raise FleetError(
            f"{host}: expected GPU{'s' * (len(wanted.gpus) > 1)} {asked}, found {len(seen.gpus)} there",
            hint="`nvidia-smi -L` there counts them, from 0; gpus: auto takes those that there are",
        )
    if not seen.writable:
        raise FleetError(
            f"{host}: no right to write to {seen.workdir}",
            hint=f"give the user {seen.user} the right to, or name another place with 'workdir:'",
        )
    if seen.occupied:
        raise FleetError(
            f"{host}: {seen.workdir}/cache holds files that are not monkey's: there agents keep what they fetched",
            hint="name a directory of its own with 'workdir:', as ~/.monkey, which is the default",
        )
    if seen.free < _MIN_FREE_BYTES:
        raise FleetError(
            f"{host}: its disk is full: expected {_MIN_FREE_BYTES >> 20} MiB free at {seen.workdir}, "
            f"found {seen.free >> 20}",
            hint="free some space there, or name another place with 'workdir:'",
        )
    if seen.ends_at_logout:
        raise FleetError(
            f"{host} ends whatever a user runs when he logs out (KillUserProcesses=yes), and lingering is off",
            hint=f"ask its administrator for: loginctl enable-linger {seen.user}",
        )
    if seen.lacks:
        raise errors.make_store_access_error(host, wanted.store, seen.lacks)


def _install(there: HostConnection, wanted: HostPlan, bundle: Bundle) -> None:
    there.ask("install", {**wanted.place, "sha256": bundle.sha256}, payload=bundle.path, limit=LONG)


def _preparation(seen: ObservedHost, wanted: HostPlan) -> dict[str, Any]:
    said: dict[str, Any] = {**wanted.place, "secrets": wanted.secret_lines, "kept": list(wanted.kept)}
    said |= {"signers": wanted.signers, "ssh": None}
    if wanted.scheme == "ssh":
        way = store_access.find_store_access(wanted.store)
        said["ssh"] = {"config": way.config, "known_hosts": way.known_hosts, "comment": make_key_mark(seen, wanted)}
    return said


def _request(seen: ObservedHost, wanted: HostPlan, bundle: Bundle) -> dict[str, Any]:
    return {
        **wanted.place,
        "bundle": bundle.sha256,
        "digest": wanted.digest(bundle.sha256),
        "kept": seen.keeping,
        "store": wanted.store,
        "arguments": wanted.arguments,
        "credentials": dict(wanted.credentials),
    }
