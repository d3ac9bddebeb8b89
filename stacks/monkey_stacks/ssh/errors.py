"""What went wrong with a host, and the fix: the one place where OpenSSH's and a host's errors become ours."""

from __future__ import annotations

import re
import shlex
from typing import Any

from monkey.errors import FleetError, HostAway
from monkey.spec.project.ssh_host import SshHost

#: How an operation exits on a host without a Python that is new enough.
NO_PYTHON = 96
#: How `ssh` exits where it is not the operation that failed.
_SSH = 255


def make_slow_error(host: SshHost, limit: float) -> FleetError:
    """Return the error for a host that was connected, and did not answer."""
    return HostAway(f"{host} did not answer for {limit:.0f} s", hint=f"is it very busy? try `{host.command}`")


def is_passing(code: int, said: str) -> bool:
    """Say whether a server may have turned us away only because it was busy. Every operation may be done twice."""
    return code == _SSH and (not said.strip() or re.search(r"Connection (closed|reset) by", said) is not None)


def make_silence_error(host: SshHost, code: int, said: str) -> FleetError:
    """Return the error for an operation that said nothing; `said`: what came on standard error."""
    if code == NO_PYTHON:
        return _no_python(host, said)
    for pattern, make in _SAID:
        found = re.search(pattern, said)
        if found is not None:
            return make(host, found)
    last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
    if code == _SSH:
        return HostAway(f"no connection to {host}: {last[0]}", hint=f"try `{host.command}`")
    return FleetError(f"{host}: the operation there ended without an answer: {last[0]}", hint=f"try `{host.command}`")


def _no_python(host: SshHost, said: str) -> FleetError:
    found = re.search(r"monkey: found Python ([\d.]+)", said)
    there = f"Python {found[1]}" if found else "no python3"
    return FleetError(
        f"{host}: expected Python 3.11 or newer, found {there}",
        hint="install one there, or uv (https://docs.astral.sh/uv), which needs no root: uv python install 3.12",
    )


def _changed(host: SshHost, found: re.Match[str]) -> FleetError:
    place = re.search(r"Offending (\S+) key in (\S+):(\d+)", found.string)
    where = f" (known: {place[2]}, line {place[3]})" if place else ""
    key = re.search(r"(SHA256:\S+?)\.?\n", found.string)
    return FleetError(
        f"{host}: its host key has changed{where}: found {key[1] if key else 'another'}. Somebody may be in between, "
        "or the host was set up anew",
        hint=f"if you know why: {_forget(host, place)}; then `{host.command}` once and compare",
    )


def _forget(host: SshHost, place: re.Match[str] | None) -> str:
    """Return how to remove a known key: by its line, for it need not stand there under the name that we know."""
    if place:
        return f"sed -i {place[3]}d {shlex.quote(place[2])}"
    known = host.name if host.port in (None, 22) else f"[{host.name}]:{host.port}"
    return f"ssh-keygen -R {shlex.quote(known)}"


def _unknown(host: SshHost, found: re.Match[str]) -> FleetError:
    return FleetError(
        f"{host}: its host key is not known here",
        hint=f"run `{host.command}` once, compare the fingerprint with the host's own, and accept it",
    )


def _denied(host: SshHost, found: re.Match[str]) -> FleetError:
    said = found[0].strip(" .\r")
    return FleetError(
        f"{host} accepts none of our keys ({said}). Nobody is asked for a password or passphrase here",
        hint=f"{host.command.replace('ssh ', 'ssh-copy-id ', 1)}; a key with a passphrase needs an agent (ssh-add), "
        "another one IdentityFile in ~/.ssh/config",
    )


def _no_name(host: SshHost, found: re.Match[str]) -> FleetError:
    return HostAway(
        f"there is no host {found[1]!r}",
        hint="check its name here or in monkey.yaml, and HostName in ~/.ssh/config; `ssh NAME` must reach it",
    )


def _closed(host: SshHost, found: re.Match[str]) -> FleetError:
    return HostAway(
        f"{host} refuses connections ({found[0].strip()})",
        hint="is sshd running there, and on this port? is it the right host?",
    )


def _silent(host: SshHost, found: re.Match[str]) -> FleetError:
    return HostAway(
        f"{host} does not answer ({found[0].strip()})",
        hint=f"is it on, and is a firewall in between? try `{host.command}`",
    )


def _not_yet(host: SshHost, found: re.Match[str]) -> FleetError:
    return HostAway(f"{host} lets no users in ({found[1]})", hint="it is booting, or going down: try again in a minute")


def _configuration(host: SshHost, found: re.Match[str]) -> FleetError:
    return FleetError(f"{host}: the SSH configuration cannot be used: {found[0].strip()}", hint="correct ~/.ssh/config")


#: What OpenSSH says, the most telling first.
_SAID = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", _changed),
    (r"No \S+ host key is known|Host key verification failed", _unknown),
    (r"[^\n]*Permission denied \([^\n]*", _denied),
    # What pam_nologin says; the connection is closed after it.
    (r"(System is (?:booting up|going down))\.", _not_yet),
    (r"Could not resolve hostname ([^\s:]+)", _no_name),
    (r"[^\n]*Connection refused", _closed),
    (r"[^\n]*(?:timed out|No route to host|Network is unreachable|Host is down|not responding)[^\n]*", _silent),
    (r"[^\n]*(?:Connection closed|Connection reset|Broken pipe)[^\n]*", _silent),
    (r"[^\n]*(?:Bad configuration option|bad configuration options|Can't open user config file)[^\n]*", _configuration),
)


def make_reply_error(host: SshHost, reply: dict[str, Any]) -> FleetError:
    """Return the error for what a host replied."""
    kind, message = reply["error"], reply["message"]
    where = f" ({reply['path']})" if reply.get("path") else ""
    if kind == "full":
        free = f"; {reply['free'] / 2**20:.0f} MiB are free" if reply.get("free") is not None else ""
        return FleetError(
            f"{host}: its disk is full{where}{free}",
            hint="free some space there, or name another place with 'workdir:'",
        )
    if kind == "denied":
        return FleetError(
            f"{host}: {message.lower()}{where}",
            hint="give the user there the right to write, or name another 'workdir:'",
        )
    if kind == "agent":
        return FleetError(
            f"{host}: the agent was started, and does not live; its last words:\n{message}",
            hint="mend it, then `monkey apply`",
        )
    if kind == "store":
        return make_store_access_error(host, reply["store"], message, reply.get("hint"))
    if kind == "keygen":
        return FleetError(f"{host}: {message}", hint="install OpenSSH's client there (openssh-client)")
    return FleetError(f"{host}: {message}{where}")


def make_store_access_error(host: SshHost, store: str, message: str, hint: str | None = None) -> FleetError:
    """Return the error for a host that cannot use the store, for the reason that `message` gives."""
    if "://" not in store:
        hint = f"a directory here is none of {host}'s; where it is on a machine that all reach by SSH, write "
        hint += f"store: ssh://THAT-MACHINE{store} in monkey.yaml"
    return FleetError(f"{host} cannot use the store: {message}", hint=hint)
