"""A real OpenSSH server of our own, run by whoever runs the tests, root or not, on a free port."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.services import free_port

_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {home}/host_key
PidFile none
AuthorizedKeysFile {home}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
MaxSessions 20
"""

_CLIENT = """
Host there
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {home}/id
  IdentitiesOnly yes
"""


class Sshd:
    """The server and a HOME for its clients; `ssh://there/…` names it."""

    def __init__(self, home: Path, extra: str = "Subsystem sftp /usr/lib/openssh/sftp-server") -> None:
        self.home = home
        (home / ".ssh").mkdir(parents=True)
        self.port = free_port()
        for name in ("id", "host_key"):
            keygen(home / name)
        shutil.copy(home / "id.pub", home / "authorized_keys")
        (home / "sshd_config").write_text(_CONFIG.format(port=self.port, home=home) + extra + "\n")
        (home / ".ssh" / "config").write_text(_CLIENT.format(port=self.port, user=getpass.getuser(), home=home))
        self.know(home / "host_key.pub")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def known_hosts(self) -> Path:
        return self.home / ".ssh" / "known_hosts"

    def know(self, public: Path) -> None:
        """Let the clients take this for the server's key."""
        kind, key = public.read_text().split()[:2]
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")

    def start(self, around: Sequence[str] = ()) -> None:
        """Start it, `around`: by that command, and wait until it answers."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        command = [*around, str(program()), "-D", "-f", str(self.home / "sshd_config"), "-E", str(self.home / "log")]
        self._process = subprocess.Popen(command)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as asked:
                if asked.recv(4) == b"SSH-":
                    return
            time.sleep(0.02)
        raise AssertionError((self.home / "log").read_text())

    def stop(self) -> None:
        """End it and all its sessions."""
        if self._process is not None:
            self.kill_sessions()
            self._process.kill()
            self._process.wait()
            self._process = None

    def sessions(self) -> list[int]:
        """Return the processes that serve connections now, without what they started."""
        found, layer = [], [self._process.pid] if self._process else []
        while layer:
            layer = [pid for parent in layer for pid in _children(parent) if _name(pid).startswith("sshd")]
            found += layer
        return found

    def kill_sessions(self) -> int:
        """Cut all connections; returns how many processes served them."""
        sessions = self.sessions()
        self._signal(signal.SIGKILL)
        return len(sessions)

    def freeze(self, *, whole: bool = False) -> None:
        """Let all connections be silent; `whole`: and whoever takes new ones."""
        if whole and self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all speak again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def keygen(path: Path, passphrase: str = "") -> None:
    """Make a key pair."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)


@contextlib.contextmanager
def serve(home: Path, extra: str | None = None) -> Iterator[Sshd]:
    """Run one for a while; `extra`: lines of its configuration in place of the subsystem."""
    server = Sshd(home) if extra is None else Sshd(home, extra)
    server.start()
    try:
        yield server
    finally:
        server.thaw()
        server.stop()


def program() -> str | None:
    """Return the server's absolute path, by which alone it wants to be called; None where it is not installed."""
    found = shutil.which("sshd", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    return str(Path(found).absolute()) if found and shutil.which("ssh-keygen") else None


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
