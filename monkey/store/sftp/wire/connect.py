"""SSH connections to hosts, with a checked host key, as the user's ~/.ssh/config says.

asyncssh reads that file. Three differences from OpenSSH are corrected here. `UserKnownHostsFile none` would switch the
check of host keys off. A missing IdentityFile would be an error. Hosts on the way (ProxyJump) would get asyncssh's own
defaults. monkey never asks for a password or passphrase: encrypted keys work through an SSH agent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import asyncssh
from asyncssh.config import SSHConfig
from asyncssh.known_hosts import SSHKnownHosts

from monkey.errors import StoreRefused
from monkey.store.sftp.url import SftpTarget

#: Files that OpenSSH reads where the configuration names no others.
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")

#: Ciphers where the configuration names none: first AES, which hardware does.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"


@dataclass(frozen=True)
class ConnectTimeouts:
    """The limits of time for a connection; in seconds."""

    #: From the first packet to a usable connection.
    connect: float = 10.0
    #: Silence after which a connection that owes an answer is given up.
    silence: float = 10.0
    #: The same while the server syncs bytes to its disk; `keepalive` then shows whether it lives.
    disk: float = 120.0
    #: Time between keepalive requests; the connection is given up after three without an answer.
    keepalive: float = 5.0
    #: Time for a call to get a new connection after the old one was lost.
    reconnect: float = 15.0


class HostKeyCheck(asyncssh.SSHClient):
    """The check of a host key: it asks no person, and remembers the key that was not trusted."""

    def __init__(self) -> None:
        """Start without a key."""
        self.stranger: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Remember the key, and return False: it is not trusted."""
        self.stranger = key
        return False


@dataclass
class HostHop:
    """One host on the way, as the configuration describes it; errors are explained by it."""

    host: str
    port: int
    user: str
    #: The name under which its key is known.
    alias: str
    known_hosts: SSHKnownHosts
    known_files: list[str]
    #: Existing private keys that the configuration names; empty: those that ssh would try by itself.
    keys: list[str]
    #: Socket of the SSH agent with keys; empty for none.
    agent: str
    greeter: HostKeyCheck = field(default_factory=HostKeyCheck)


class SftpConnector:
    """The connector of one host, which opens connections."""

    def __init__(self, target: SftpTarget, patience: ConnectTimeouts) -> None:
        """Connect to `target`, within these timeouts; nothing is read yet."""
        self._target, self._patience = target, patience
        #: The host of the newest try: the last one, or one on the way.
        self.way: HostHop | None = None

    async def dial(self) -> asyncssh.SSHClientConnection:
        """Return a new connection.

        Raises asyncssh's errors, OSError, ValueError: see `errors.make_connection_error`.
        """
        return await self._dial(self._target.host, self._target.port, self._target.user, 0)

    async def _dial(self, host: str, port: int | None, user: str | None, depth: int) -> asyncssh.SSHClientConnection:
        if depth > 8:
            raise StoreRefused(f"the ProxyJump of {host} leads in a circle", hint="check ~/.ssh/config")
        config = _configuration(host, port, user)
        jumps = [] if config.tunnel in (None, "none") else str(config.tunnel).split(",")
        tunnel = None
        try:
            for jump in jumps:
                before, tunnel = tunnel, await self._jump(jump, depth)
                if before is not None:
                    tunnel.set_tunnel(before)
            return await self._connect(config, host, port, user, tunnel)
        except BaseException:
            if tunnel is not None:
                tunnel.abort()
            raise

    async def _jump(self, jump: str, depth: int) -> asyncssh.SSHClientConnection:
        user, _, place = jump.strip().removeprefix("ssh://").rpartition("@")
        host, colon, port = place.rpartition(":")
        if not colon or not port.isdigit():
            host, port = place, ""
        return await self._dial(host.strip("[]"), int(port) if port else None, user or None, depth + 1)

    async def _connect(
        self,
        config: asyncssh.SSHClientConnectionOptions,
        host: str,
        port: int | None,
        user: str | None,
        tunnel: asyncssh.SSHClientConnection | None,
    ) -> asyncssh.SSHClientConnection:
        way = self.way = _way(config)
        connection = await asyncssh.connect(
            host,
            port or (),
            username=user or (),
            tunnel=tunnel,
            config=_files(),
            known_hosts=way.known_hosts,
            client_factory=lambda: way.greeter,
            client_keys=way.keys,
            agent_path=way.agent,
            ignore_encrypted=True,
            password_auth=False,
            kbdint_auth=False,
            agent_forwarding=False,
            encryption_algs=config.config.get("Ciphers", _CIPHERS),
            connect_timeout=self._patience.connect,
            login_timeout=self._patience.connect,
            keepalive_interval=self._patience.keepalive,
            keepalive_count_max=3,
        )
        if tunnel is not None:
            connection.set_tunnel(tunnel)
        return connection


def _files() -> list[str]:
    """Return the configuration files, the user's first: the first value of a setting counts.

    MONKEY_SSH_CONFIG names one file to read instead, as `ssh -F` does.
    """
    if named := os.environ.get("MONKEY_SSH_CONFIG"):
        return [named]
    candidates = (os.path.expanduser("~/.ssh/config"), "/etc/ssh/ssh_config")  # noqa: PTH111
    return [path for path in candidates if os.access(path, os.R_OK)]


def _configuration(host: str, port: int | None, user: str | None) -> asyncssh.SSHClientConnectionOptions:
    """Return the configuration of a host, without loading a key. Raises ValueError, OSError."""
    return asyncssh.SSHClientConnectionOptions(
        host=host, port=port or (), username=user or (), config=_files(), client_keys=None, known_hosts=b""
    )


def _way(options: asyncssh.SSHClientConnectionOptions) -> HostHop:
    said = options.config
    files = _expanded(cast("Sequence[str]", said.get("UserKnownHostsFile", _KNOWN_HOSTS)))
    known = asyncssh.import_known_hosts("")
    for path in (*files, *_expanded(cast("Sequence[str]", said.get("GlobalKnownHostsFile", _GLOBAL_KNOWN_HOSTS)))):
        with contextlib.suppress(OSError):
            known.load(Path(path).read_text(encoding="utf-8", errors="replace"))
    return HostHop(
        options.host,
        options.port,
        options.username,
        options.host_key_alias or options.host,
        known,
        files,
        _keys(said),
        _agent(cast("str | None", said.get("IdentityAgent", "SSH_AUTH_SOCK"))),
    )


def _keys(said: SSHConfig) -> list[str]:
    """Return the key files to try. Where only the public half exists, it names a key of the SSH agent."""
    named = _expanded(cast("Sequence[str]", said.get("IdentityFile", ())))
    if said.get("IdentitiesOnly"):
        named = [path if os.access(path, os.R_OK) else f"{path}.pub" for path in named]
    return [path for path in named if os.access(path, os.R_OK)]


def _agent(said: str | None) -> str:
    if said is None:
        return ""
    if said == "SSH_AUTH_SOCK" or said.startswith("$"):
        return os.environ.get(said.strip("${}"), "")
    return os.path.expanduser(said)  # noqa: PTH111


def _expanded(paths: Sequence[str]) -> list[str]:
    return [os.path.expanduser(path) for path in paths if path != "none"]  # noqa: PTH111
