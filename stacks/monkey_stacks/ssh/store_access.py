"""How agents on hosts reach a store at ssh://: by a key of the host's own, which may do SFTP there and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from monkey.errors import FleetError
from monkey.spec.project.ssh_host import SshHost
from monkey.store.sftp.url import SftpTarget, parse_sftp_url
from monkey_stacks.ssh.connection import CONNECT, HostConnection, make_ssh_command

#: What a host's ssh_config says of the store's host. It lies in @HERE@; @TOKENS@ is that where % begins a token.
_CONFIG = """\
Host {name}
  HostName {hostname}
  Port {port}
  User {user}
  HostKeyAlias {alias}
  IdentityFile "@TOKENS@/id"
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile "@HERE@/known_hosts"
  GlobalKnownHostsFile none
"""


@dataclass(frozen=True)
class StoreAccess:
    """What a host is given to reach the store's."""

    config: str
    known_hosts: str


def find_store_access(url: str) -> StoreAccess:
    """Return the way to the store at `url`, as this machine knows it. Raises FleetError, StoreError."""
    target = parse_sftp_url(url)
    said = _configuration(target)
    alias = said.get("hostkeyalias") or said["hostname"]
    name = alias if said["port"] == "22" or "hostkeyalias" in said else f"[{alias}]:{said['port']}"
    lines = _known(name, said)
    if not lines:
        raise FleetError(
            f"the host key of the store's host {target.host} is not known here, so agents could not check it",
            hint=f"run `{_host(target).command}` once, compare the fingerprint with the host's own, and accept it",
        )
    config = _CONFIG.format(
        name=target.host, hostname=said["hostname"], port=said["port"], user=said["user"], alias=alias
    )
    known = "".join(f"{line.replace('@NAME@', _names(alias, said['port']))}\n" for line in lines)
    return StoreAccess(config, known)


def _names(alias: str, port: str) -> str:
    """Return the names under which clients look for the key: with an alias, some leave the port away."""
    return alias if port == "22" else f"{alias},[{alias}]:{port}"


def _host(target: SftpTarget) -> SshHost:
    return SshHost(target.host, target.user, target.port)


def _configuration(target: SftpTarget) -> Mapping[str, str]:
    """Return what OpenSSH would do to get there."""
    command = [*make_ssh_command(), "-G", *_host(target).words]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=CONNECT, check=False)
    except FileNotFoundError:
        raise FleetError("there is no ssh here", hint="install OpenSSH's client (openssh-client)") from None
    if run.returncode:
        raise FleetError(f"the SSH configuration cannot be used: {run.stderr.strip()}", hint="correct ~/.ssh/config")
    pairs = (line.partition(" ") for line in run.stdout.splitlines())
    return {name: value for name, _, value in pairs if value}


def _known(name: str, said: Mapping[str, str]) -> list[str]:
    """Return the keys that this machine knows for a host; @NAME@ stands where its name was, which may be hashed."""
    found = []
    files = f"{said.get('userknownhostsfile', '')} {said.get('globalknownhostsfile', '')}".split()
    for file in map(os.path.expanduser, files):
        if not Path(file).is_file():
            continue
        run = subprocess.run(["ssh-keygen", "-F", name, "-f", file], capture_output=True, text=True, check=False)
        for line in run.stdout.splitlines():
            words = line.split()
            marker = words.pop(0) + " " if words and words[0].startswith("@") else ""
            if len(words) >= 3 and not words[0].startswith("#"):
                found.append(f"{marker}@NAME@ {words[1]} {words[2]}")
    return list(dict.fromkeys(found))


def authorize_host(url: str, public: str, mark: str) -> None:
    """Let a host's key in on the store's host. Raises HostAway, FleetError."""
    with HostConnection(_host(parse_sftp_url(url))) as there:
        there.ask("authorize", {"public": public, "mark": mark})


def revoke_host(url: str, mark: str) -> None:
    """Let keys with that mark in no more. Raises HostAway, FleetError."""
    with HostConnection(_host(parse_sftp_url(url))) as there:
        there.ask("revoke", {"mark": mark})


def list_authorized_hosts(url: str, beginning: str = "monkey:") -> list[str]:
    """Return the marks of keys that are let in on the store's host and begin so. Raises HostAway, FleetError."""
    with HostConnection(_host(parse_sftp_url(url))) as there:
        found: list[str] = there.ask("authorized", {"mark": beginning})
        return found
