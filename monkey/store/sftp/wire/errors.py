"""What went wrong, in words and with the fix: the one place where asyncssh's and SFTP's errors become ours."""

from __future__ import annotations

import errno
import socket
import stat

import asyncssh

from monkey.errors import MAKE_ROOM, StoreError, StoreForbidden, StoreMissing, StoreRefused, StoreUnavailable
from monkey.store.keys import shorten_key
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.connect import HostHop
from monkey.store.sftp.wire.sftp_protocol import SftpConnectionLost, SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, is_directory

#: What asyncssh and the system raise where no connection comes about.
NO_CONNECTION = (asyncssh.Error, OSError, ValueError)


def make_connection_error(exc: BaseException, url: str, way: HostHop | None) -> StoreError:
    """Return the error to raise for `exc`, met on the way to the store at `url` while speaking with `way`."""
    what = f"the store {url}"
    if way is None:
        return StoreRefused(f"{what}: the SSH configuration cannot be used: {exc}", hint="correct ~/.ssh/config")
    if isinstance(exc, asyncssh.HostKeyNotVerifiable):
        return _stranger(exc, what, way)
    if isinstance(exc, asyncssh.PermissionDenied):
        return _denied(what, way)
    if isinstance(exc, asyncssh.KeyExchangeFailed):
        return StoreRefused(
            f"{what}: {way.host} and this client have no method in common: {exc.reason}",
            hint=f"compare with `ssh -v {_ssh(way)}`; Ciphers, MACs, KexAlgorithms and HostKeyAlgorithms in "
            "~/.ssh/config choose",
        )
    if isinstance(exc, asyncssh.ChannelOpenError | asyncssh.ProtocolError | asyncssh.ProtocolNotSupported):
        return StoreUnavailable(f"{what}: {way.host} does not answer as an SSH server should: {exc.reason}")
    if isinstance(exc, asyncssh.KeyImportError):
        return StoreRefused(f"{what}: a key cannot be read: {exc}", hint="correct IdentityFile in ~/.ssh/config")
    if isinstance(exc, OSError):
        return _network(exc, what, way)
    return StoreUnavailable(f"{what}: no connection to {way.host}: {exc}")


def _network(exc: OSError, what: str, way: HostHop) -> StoreError:
    where = f"{way.host} port {way.port}"
    if isinstance(exc, socket.gaierror):
        if exc.errno == socket.EAI_AGAIN:
            return StoreUnavailable(f"{what}: the name {way.host!r} could not be looked up: {exc.strerror}")
        return StoreUnavailable(
            f"{what}: there is no host {way.host!r}", hint="check the URL, and HostName in ~/.ssh/config"
        )
    if isinstance(exc, ConnectionRefusedError) or exc.errno == errno.ECONNREFUSED:
        return StoreUnavailable(
            f"{what}: {where} refuses connections",
            hint="is sshd running there, and on this port? is it the right host?",
        )
    if isinstance(exc, TimeoutError):
        return StoreUnavailable(
            f"{what}: {where} does not answer", hint=f"is it on, and is a firewall in between? try `ssh {_ssh(way)}`"
        )
    return StoreUnavailable(f"{what}: no connection to {where}: {exc.strerror or exc}")


def _stranger(exc: asyncssh.HostKeyNotVerifiable, what: str, way: HostHop) -> StoreError:
    key = way.greeter.stranger
    seen = f"{key.get_algorithm()} {key.get_fingerprint()}" if key else exc.reason
    known = way.known_hosts.match(way.alias, "", way.port if way.port != 22 else None)[0]
    name = way.alias if way.port == 22 else f"[{way.alias}]:{way.port}"
    file = way.known_files[0] if way.known_files else "~/.ssh/known_hosts"
    if known:
        expected = ", ".join(sorted(key.get_fingerprint() for key in known))
        return StoreRefused(
            f"{what}: the host key of {name} has changed: expected {expected} (known hosts), found {seen}. "
            "Somebody may be in between, or the host was set up anew",
            hint=f"if you know why, remove the old key: ssh-keygen -R '{name}' -f {file}; "
            f"then `ssh {_ssh(way)}` once and compare",
        )
    return StoreRefused(
        f"{what}: the host key of {name} is not known here: found {seen}, and nothing in {file}",
        hint=f"run `ssh {_ssh(way)}` once, compare the fingerprint with the host's own, and accept it",
    )


def _denied(what: str, way: HostHop) -> StoreError:
    tried = ", ".join(way.keys) if way.keys else "the default keys in ~/.ssh"
    agent = f" and those of the agent at {way.agent}" if way.agent else " (no agent: SSH_AUTH_SOCK is not set)"
    return StoreRefused(
        f"{what}: {way.user}@{way.host} accepts none of our keys; tried {tried}{agent}. "
        "Nobody is asked for a password or passphrase here",
        hint=f"ssh-copy-id {_ssh(way)}; a key with a passphrase needs an agent (ssh-add), another one IdentityFile in "
        "~/.ssh/config",
    )


def _ssh(way: HostHop) -> str:
    port = f"-p {way.port} " if way.port != 22 else ""
    return f"{port}{way.user}@{way.host}"


def make_lost_error(exc: SftpConnectionLost, url: str) -> StoreUnavailable:
    """Return the error for a connection that ended in the middle."""
    return StoreUnavailable(f"the store {url}: the connection ended: {exc}")


async def explain_failure(
    exc: SftpStatusError, calls: SftpRequests, url: str, root: bytes, key: str, path: bytes
) -> StoreError:
    """Return the error to raise for `exc`, met at `key`, which lies at `path`; asks the server what its word hides.

    Most things that go wrong are "failure" in SFTP. Raises SftpConnectionLost.
    """
    what = f"the store {shorten_key(url)}" + (f", key {shorten_key(key)!r}" if key else "")
    if exc.code == sftp_protocol.DENIED:
        return StoreForbidden(f"{what}: permission denied", hint="give the user there rights to read and write")
    if exc.code == sftp_protocol.BAD_MESSAGE:
        return StoreRefused(f"{what}: the name is too long, or none that the file system there can hold")
    if exc.code == sftp_protocol.UNSUPPORTED:
        return StoreRefused(f"{what}: the SFTP server or its file system cannot do this: {exc}")
    try:
        return await _look(exc, calls, what, root, key, path)
    except SftpStatusError:
        return StoreUnavailable(f"{what}: {exc}")


async def _look(exc: SftpStatusError, calls: SftpRequests, what: str, root: bytes, key: str, path: bytes) -> StoreError:
    above = await calls.look(root)
    if above is None or not is_directory(above):
        return explain_missing_root(what, root, above is not None)
    for end in [*(n for n, byte in enumerate(path) if byte == 0x2F and n > len(root)), len(path)]:
        found = await calls.look(path[:end])
        if found is None:
            break
        if end == len(path) and is_directory(found):
            return StoreRefused(f"{what}: the key is a directory: other keys lie below it")
        if end < len(path) and stat.S_ISREG(found.mode):
            return StoreRefused(f"{what}: a part of the key is an object, not a directory")
    free = await calls.free(root)
    if free is not None and free.read_only:
        return StoreForbidden(f"{what}: the file system is read-only", hint="mount it for writing")
    if exc.full or (free is not None and free.none):
        return StoreRefused(f"{what}: no space left on the device", hint=MAKE_ROOM)
    if exc.code == sftp_protocol.NO_SUCH_FILE:
        return StoreUnavailable(f"{what}: a file or directory vanished in the middle of it")
    return StoreUnavailable(
        f"{what}: {exc}", hint="the disk quota, the file system (it must know hard links) or the server's log may tell"
    )


def explain_missing_root(what: str, root: bytes, something: bool) -> StoreMissing:
    """Return the error for a directory that was expected at `root` on the host."""
    there = "something that is no directory" if something else "nothing"
    return StoreMissing(
        f"{what}: expected a directory at {root.decode()}, found {there}",
        hint="bring it back (is it mounted? was it renamed?), or name another with 'store:' in monkey.yaml",
    )
