"""The questions of `monkey init --provider ssh`: each host is asked by OpenSSH's client, as a plan asks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from monkey.errors import FleetError, HostAway
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.ssh.connection import HostConnection
from monkey_stacks.ssh.descriptions import check_apart
from monkey_stacks.ssh.host_state import HostPlan
from monkey_stacks.ssh.operations import check_host_fits
from monkey_stacks.ssh.reachability import check_reachability
from monkey_stacks.ssh.setup.host_entry import HostFinding, read_finding, write_host_entry
from monkey_stacks.ssh.store_access import find_store_access

#: Hosts that are asked at once.
_MAX_CONNECTIONS = 16


def ask_for_host_entry(hosts: Sequence[str], store: str, say: Callable[[str], None]) -> str:
    """Ask all hosts what they have, and return the lines of an entry of monkey.yaml, without the provider's name.

    `store`: its URL in its one form, or a directory; `say` gets a line for each host that can be used. Raises
    FleetError, with what hinders each of the others.
    """
    check_reachability(store, hosts)
    if store.startswith("ssh://"):
        find_store_access(store)
    wanted = HostPlan(_find_there(store), "init", "init")
    with ThreadPoolExecutor(min(len(hosts), _MAX_CONNECTIONS)) as pool:
        answers = list(pool.map(lambda host: _ask(host, wanted), hosts))
    found = [each for each in answers if isinstance(each, HostFinding)]
    for each in found:
        say(f"{each.name}: {each.describe()}")
    if refused := [each for each in answers if isinstance(each, FleetError)]:
        raise _join(refused)
    check_apart(
        {each.name: {"where": each.seen.host, "user": each.seen.user, "machine": each.seen.name} for each in found}
    )
    return write_host_entry(found)


def _find_there(store: str) -> str:
    """Return what hosts are asked for: of a directory that is not there yet, the nearest one above that is."""
    if "://" in store:
        return store
    path = Path(store)
    return str(next(each for each in (path, *path.parents) if each.exists()))


def _ask(host: str, wanted: HostPlan) -> HostFinding | FleetError:
    try:
        known = parse_ssh_host(host)
        with HostConnection(known) as there:
            found = read_finding(host, there.ask("describe", wanted.place))
        check_host_fits(known, found.seen, wanted)
    except FleetError as exc:
        return exc
    return found


def _join(refused: Sequence[FleetError]) -> FleetError:
    """Return one error for all hosts that cannot be used; the hint of a single one stays as it is."""
    if len(refused) == 1:
        return type(refused[0])(f"{refused[0].message}; nothing was written", hint=refused[0].hint)
    kind = HostAway if all(isinstance(each, HostAway) for each in refused) else FleetError
    lines = "".join(f"\n  {each.message}" + (f" (hint: {each.hint})" if each.hint else "") for each in refused)
    return kind(
        f"{len(refused)} hosts cannot be used; nothing was written:{lines}",
        hint="leave them out with their --host; `hosts:` in monkey.yaml takes them later",
    )
