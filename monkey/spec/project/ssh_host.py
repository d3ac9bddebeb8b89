"""How users name a host: `gpu1`, `user@gpu2:2222`, `[fd00::1]:22`. All else belongs in their ~/.ssh/config."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monkey.errors import FleetError

_FORM = re.compile(r"(?:(?P<user>[^:]+)@)?(?:\[(?P<six>[^\[\]]+:[^\[\]]*)\]|(?P<name>[^@:\[\]]+))(?::(?P<port>\d+))?")

#: Narrower than OpenSSH's own: a ProxyCommand puts names into a shell's line, and asyncssh lets any through.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IPV6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]*")


@dataclass(frozen=True)
class SshHost:
    """A host, as the user wrote it; what is None is left to the user's configuration."""

    name: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        """Return it as users write it."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{f'{self.user}@' if self.user else ''}{name}{f':{self.port}' if self.port else ''}"

    @property
    def words(self) -> list[str]:
        """Return it as arguments of `ssh`, the last of them the host."""
        user = ["-l", self.user] if self.user else []
        return [*user, *(["-p", str(self.port)] if self.port else []), "--", self.name]

    @property
    def command(self) -> str:
        """Return what a user types to get there."""
        port = f"-p {self.port} " if self.port else ""
        return f"ssh {port}{f'{self.user}@' if self.user else ''}{self.name}"


def find_host_mistake(name: str, user: str | None) -> str | None:
    """Return what is wrong with the names of a host (an IPv6 address without brackets) and a user; None for nothing."""
    if not (_NAME.fullmatch(name) or _IPV6.fullmatch(name)):
        return "a host's name has letters, digits, '.', '_' and '-', and begins with a letter or digit"
    if user is not None and not _USER.fullmatch(user):
        return "a user's name has letters, digits, '.', '_', '+', '@' and '-', and begins with a letter, digit or '_'"
    return None


def parse_ssh_host(text: str) -> SshHost:
    """Return the host that `text` names; raises FleetError."""
    found = _FORM.fullmatch(text)
    name = (found["name"] or found["six"]) if found else ""
    port = int(found["port"]) if found and found["port"] else None
    if found is None or port not in (None, *_PORTS):
        raise FleetError(f"expected a host, found {text!r}", hint=_HINT)
    if wrong := find_host_mistake(name, found["user"]):
        raise FleetError(f"expected a host, found {text!r}: {wrong}", hint=_HINT)
    return SshHost(name, found["user"], port)


_PORTS = range(1, 65536)
_HINT = "write NAME, USER@NAME or USER@NAME:PORT; all else belongs in ~/.ssh/config"
