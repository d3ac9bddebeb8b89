# ruff: noqa: PTH101, PTH116
# Paths are plain strings here, as those of workspaces are.
"""The two sockets of an attempt, by which programs in any language send its metrics.

They are opened with a workspace, and handed on with it until a job has used them: to open both costs 60 µs. The agent
reads of them only what comes before the receiver is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from monkey.removal import remove_file, remove_tree
from monkey_agent.machine import read_boot_id

#: The file in a workspace, and the variables that name the sockets.
SOCKET_FILE = "metrics.sock"
SOCKET_VARIABLE, UDP_VARIABLE = "MONKEY_METRICS_SOCKET", "MONKEY_METRICS_UDP"
#: Bytes of the longest path of a socket: the kernel's 108 with the byte that ends it; macOS has 104.
_LONGEST_PATH = 103
#: Bytes that the kernel is asked to keep of datagrams until they are read. It gives net.core.rmem_max at most, but root
#: may force it to (SO_RCVBUFFORCE of Linux).
_KERNEL_BYTES, _FORCE = 4 << 20, 33
#: Bytes of UDP that the agent keeps until the receiver is ready. Beyond that, the kernel keeps some, and counts losses.
_HELD_BYTES = 4 << 20
#: Bytes of the largest datagram of UDP.
_DATAGRAM = 1 << 16
#: Number of datagrams that the agent reads at once: some milliseconds.
_MOST_AT_ONCE = 1_000


class MetricSockets:
    """A unix and a UDP socket for datagrams."""

    def __init__(self, root: str) -> None:
        """Open both, for the workspace at `root`. Raises OSError."""
        self._aside = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_first: Callable[[], None] | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._came = False
        #: Their descriptors; -1 once they are closed.
        self.unix = self.udp = -1
        try:
            self.unix = self._open_unix(root)
            self.udp, self.address = _open_udp()
        except BaseException:
            self.close()
            raise
        self._poll = select.poll()
        for each in (self.unix, self.udp):
            self._poll.register(each, select.POLLIN)

    def _open_unix(self, root: str) -> int:
        path = f"{root}/{SOCKET_FILE}"
        if len(os.fsencode(path)) > _LONGEST_PATH:
            self._aside = tempfile.mkdtemp(prefix=_name_aside())
            path = f"{self._aside}/{SOCKET_FILE}"
        remove_file(path)  # of an earlier job, which used it
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
            opened.setblocking(False)
            _ask_for_room(opened)
            opened.bind(path)
            os.chmod(path, 0o600)
            self._inode = os.stat(path).st_ino
            return opened.detach()

    def name_variables(self, root: str) -> dict[str, str]:
        """Return the variables of a job whose workspace is at `root` now."""
        return {SOCKET_VARIABLE: f"{self._aside or root}/{SOCKET_FILE}", UDP_VARIABLE: self.address}

    def is_used(self) -> bool:
        """Return whether anything was ever sent."""
        return self._came or bool(self._poll.poll(0))

    def is_fresh(self, root: str) -> bool:
        """Return whether another job may have them: nothing was sent, and the file is still where it was."""
        if self.is_used():
            return False
        try:
            status = os.lstat(f"{self._aside or root}/{SOCKET_FILE}")
        except OSError:
            return False
        return status.st_ino == self._inode and stat.S_IMODE(status.st_mode) == 0o600

    def listen(self, on_first: Callable[[], None] | None) -> None:
        """Call `on_first` when the first datagram comes; keep those of UDP until `take_held`."""
        self._on_first = on_first
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self.unix, self._come)
            self._loop.add_reader(self.udp, self._hold)

    def _come(self) -> None:
        self._stop_reading(self.unix)
        self._begin()

    def _hold(self) -> None:
        self._begin()
        with contextlib.suppress(OSError):  # nothing is left
            for _ in range(_MOST_AT_ONCE):
                if self._on_first is None or self._held_bytes >= _HELD_BYTES:
                    self._stop_reading(self.udp)
                    return
                data = os.read(self.udp, _DATAGRAM)
                self._held.append(data)
                self._held_bytes += len(data) + 64  # an empty one takes memory, too

    def _begin(self) -> None:
        if not self._came:
            self._came = True
            if self._on_first is not None:
                self._on_first()

    def take_held(self) -> list[bytes]:
        """Return what came by UDP meanwhile, and read nothing from now on."""
        self._hold()
        for each in (self.unix, self.udp):
            self._stop_reading(each)
        held, self._held, self._held_bytes = self._held, [], 0
        return held

    def _stop_reading(self, which: int) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(which)

    def close(self) -> None:
        """Close both; the file stays in its workspace."""
        for each in (self.unix, self.udp):
            if each >= 0:
                self._stop_reading(each)
                os.close(each)
        self.unix = self.udp = -1
        if self._aside:
            remove_tree(self._aside)

    def __del__(self) -> None:
        """Leave no descriptor behind where an agent's life ends without a `close`."""
        self.close()


def remove_dead_sockets() -> None:
    """Remove the sockets beside workspaces that killed agents of this user left; those of living agents answer."""
    try:
        found = [*Path(tempfile.gettempdir()).glob(f"{_name_aside()}*/{SOCKET_FILE}")]
    except OSError:  # a full disk has no temporary directory, and agents wait for room
        return
    for path in found:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            try:
                asking.connect(str(path))
            except ConnectionRefusedError:
                if path.parent.lstat().st_uid == os.geteuid():  # no other user can put anything in its place
                    remove_tree(str(path.parent))


def _name_aside() -> str:
    """Return how directories of sockets begin. On a temporary directory that machines share, each knows its own."""
    return f"monkey-{read_boot_id()[:8]}-"


def _open_udp() -> tuple[int, str]:
    """Return the descriptor of a UDP socket on this machine alone, and its "127.0.0.1:PORT"."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.setblocking(False)
        _ask_for_room(opened)
        opened.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*opened.getsockname())
        return opened.detach(), address


def _ask_for_room(opened: socket.socket) -> None:
    """Ask the kernel to keep more than it does by itself: macOS keeps 4 KiB of a unix socket's datagrams."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, _FORCE, _KERNEL_BYTES)
            return
    with contextlib.suppress(OSError):  # macOS refuses more than kern.ipc.maxsockbuf
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
