"""Machines for tests: Debian roots, booted by systemd-nspawn, with a network, processes, users and files of their own.

Each has a real systemd, sshd, cron, and an unprivileged user. One root is made by `invoke services` and cached by its
recipe; a host is an overlay over it. Nothing of a lab outlives the process that made it, but what kill -9 leaves is
cleared away by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import cable
from tests.cgroups import in_group, remove_group, remove_groups
from tests.contained import SPACE
from tests.host_root import USER, root, run
from tests.sshd import keygen

#: Where labs are made. Their names are random: each run of the tests may have its own numbers of processes.
_PLACE = Path(tempfile.gettempdir())
#: Seconds within which a host must be up, or down.
PATIENCE = 60.0
#: The kernel's limit of inotify instances of one user. Each host has six of root's. With the usual limit of 128, the
#: twenty-second host stands still as it boots, without a word.
_INSTANCES, _ENOUGH = Path("/proc/sys/fs/inotify/max_user_instances"), 4096


@dataclass(frozen=True)
class Kind:
    """What is special about a host."""

    number: int
    #: The user's systemd lives without a login.
    linger: bool = False
    #: There is a systemd of the user's at all.
    user_systemd: bool = True
    #: Another host, which has the same home directory.
    home_of: str = ""


#: The hosts of a lab. `store` holds the store, and is a host like the others.
HOSTS = {
    "h1": Kind(11, linger=True),
    "h2": Kind(12),
    "h3": Kind(13, user_systemd=False),
    "store": Kind(14),
    # As on a cluster: two hosts, one home. The twins are a Slurm's, whose daemons no other test may end.
    "twin1": Kind(15, linger=True),
    "twin2": Kind(16, linger=True, home_of="twin1"),
    "pair1": Kind(17, linger=True),
    "pair2": Kind(18, linger=True, home_of="pair1"),
}


class Machine:
    """One host, seen from outside: booted, cut off, rebooted, killed, and looked into."""

    #: More of nspawn's options.
    options: tuple[str, ...] = ()

    def __init__(self, lab: Lab, name: str) -> None:
        """Make its files; it is not booted yet."""
        self.lab, self.name, self.kind = lab, name, HOSTS[name]
        self.address = f"{lab.network}.{self.kind.number}"
        self.label = f"{lab.bridge}{name[0]}{self.kind.number}"
        self._base = lab.base / name
        #: Its root directory, which may be read and written at any time.
        self.root = self._base / "root"
        self._process: subprocess.Popen[bytes] | None = None
        self._furnish()

    @property
    def home(self) -> Path:
        """The user's home, seen from outside."""
        return self.root / "home" / USER

    def _furnish(self) -> None:
        for part in ("root", "upper", "work"):
            (self._base / part).mkdir(parents=True)
        layers = f"lowerdir={root()},upperdir={self._base}/upper,workdir={self._base}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(self.root))
        etc = self.root / "etc"
        (etc / "hostname").write_text(f"{self.name}\n")
        # Copies of one root must not be one machine; an empty file would make the first boot a long one.
        (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        known = "".join(f"{self.lab.network}.{kind.number} {name}\n" for name, kind in HOSTS.items())
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{known}")
        network = f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\nGateway={self.lab.network}.1\n"
        (etc / "systemd/network/10-host0.network").write_text(f"{network}LinkLocalAddressing=no\n")
        shutil.copy(self.lab.home / f"host_{self.name}", etc / "ssh/ssh_host_ed25519_key")
        shutil.copy(self.lab.home / f"host_{self.name}.pub", etc / "ssh/ssh_host_ed25519_key.pub")
        if self.kind.linger:
            (self.root / "var/lib/systemd/linger").mkdir(parents=True, exist_ok=True)
            (self.root / "var/lib/systemd/linger" / USER).touch()
        if not self.kind.user_systemd:
            (etc / "systemd/system/user@.service").symlink_to("/dev/null")
        if self.kind.home_of:
            run("mount", "--bind", str(self.lab.base / self.kind.home_of / "root/home" / USER), str(self.home))
            return
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        shutil.copy(self.lab.home / "id.pub", ssh / "authorized_keys")
        for path in (ssh, ssh / "authorized_keys"):
            os.chown(path, *self.owner)

    @property
    def owner(self) -> tuple[int, int]:
        """User and group of the user's files."""
        found = self.home.stat()
        return found.st_uid, found.st_gid

    def start(self) -> None:
        """Begin to boot; `ready` waits for it. It goes with us: killed, nspawn alone would leave what it booted."""
        command = [*SPACE, "systemd-nspawn", "-q", "-D", str(self.root), "--register=no", "--keep-unit", "-b"]
        command += [f"--network-bridge={self.lab.bridge}", f"--machine={self.label}", "--console=pipe", *self.options]
        command = in_group(self.label, command)
        with (self._base / "console").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ready(self) -> None:
        """Wait until it is up: whoever was to be started at boot was."""
        deadline = time.monotonic() + PATIENCE
        # Degraded: on a busy machine some unit or other gives up, none of which is asked for here.
        while not (self._answers() and self._has_booted() and self._admits()):
            assert time.monotonic() < deadline, f"{self.name} does not come up\n{self._told()}"
            time.sleep(0.1)

    def _has_booted(self) -> bool:
        return self.systemctl("is-system-running").strip() in ("running", "degraded")

    def _admits(self) -> bool:
        """Say whether users may log in; if it was the unit that lets them that gave up, it tries again."""
        if not self.within("sh", "-c", "ls /run/nologin 2>/dev/null", code=None):
            return True
        self.systemctl("restart", "systemd-user-sessions")
        return False

    def _told(self) -> str:
        said = (self._base / "console").read_text()
        return said + (self.systemctl("list-jobs") + self.systemctl("--failed") if self.leader else "")

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._told()
        return self.leader is not None and "sshd" in self.processes(of="root")

    @property
    def leader(self) -> int | None:
        """Its first process, as seen from outside; None where it is down."""
        pid = self._process.pid if self._process and self._process.poll() is None else None
        with contextlib.suppress(OSError, IndexError):
            for _ in range(2):  # by way of nspawn
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            return pid
        return None

    def within(self, *command: str, code: int | None = 0, patience: float = PATIENCE) -> str:
        """Run a command in the host as root, and return what it printed; `code`: how it must exit, None: anyhow."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.leader), "-a", *command], capture_output=True, text=True, timeout=patience
        )
        assert code is None or done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def systemctl(self, *words: str) -> str:
        """Ask the host's systemd; what it says counts, not how it exits."""
        return self.within("systemctl", *words, code=None)

    def processes(self, of: str = USER) -> str:
        """Return the command lines of a user's processes, one a line."""
        return self.within("ps", "-ww", "-u", of, "-o", "args=", code=None)

    def cut(self) -> None:
        """Cut it off the network: packets vanish, nobody is told."""
        cable.cut(f"vb-{self.label}", self.label)

    def mend(self) -> None:
        """Undo `cut`, if there was one."""
        cable.mend(self.label)

    def reboot(self) -> None:
        """Shut it down as an administrator does, and boot it again."""
        assert self._process is not None
        self.systemctl("reboot")
        self._process.wait(PATIENCE)
        self.start()
        self.ready()

    def kill(self) -> None:
        """Take its power away."""
        if self._process is not None:
            leader = self.leader
            for pid in filter(None, (leader, self._process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
            self._process = None
            # Its end of the cable stays for a moment, and would be in the way of the next boot.
            subprocess.run(["ip", "link", "delete", f"vb-{self.label}"], capture_output=True)
            remove_group(self.label)

    def close(self) -> None:
        """End it and give back what it took."""
        self.mend()
        self.kill()
        if self.kind.home_of:
            _unmount(self.home)
        _unmount(self.root)
        shutil.rmtree(f"/run/systemd/nspawn/propagate/{self.label}", ignore_errors=True)


class Lab:
    """Some hosts on one network, and a home with the keys to them. A host is booted when it is first asked for."""

    def __init__(self) -> None:
        """Make the network and the keys."""
        with contextlib.suppress(OSError):  # where it may not be written, fewer hosts at once boot
            if int(_INSTANCES.read_text()) < _ENOUGH:
                _INSTANCES.write_text(str(_ENOUGH))
        self.bridge = f"mk{secrets.token_hex(3)}"
        self.base = _PLACE / f"monkey-hosts-{self.bridge}"
        self.home = self.base / "home"
        with _lock(_PLACE / "monkey-hosts.lock", wait=True):
            _clear_stale()
            self.home.mkdir(parents=True)
            self.base.chmod(0o755)
            self._lock = contextlib.ExitStack()
            self._lock.enter_context(_lock(self.base / "lock", wait=True))
            self.network = self._connect()
        self._machines: dict[str, Machine] = {}
        keygen(self.home / "id")
        for name in HOSTS:
            keygen(self.home / f"host_{name}")
        self.write_config()

    @property
    def config(self) -> Path:
        """The clients' ssh_config: it knows all hosts by name."""
        return self.home / "config"

    @property
    def known_hosts(self) -> Path:
        """The clients' known hosts."""
        return self.home / "known_hosts"

    def write_config(self) -> None:
        """Write configuration and known hosts (again)."""
        hosts, known = "", ""
        for name, kind in HOSTS.items():
            address = f"{self.network}.{kind.number}"
            hosts += f"Host {name}\n  HostName {address}\n  User {USER}\n  IdentityFile {self.home}/id\n"
            hosts += f"  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {self.known_hosts}\n"
            known += f"{address} {' '.join((self.home / f'host_{name}.pub').read_text().split()[:2])}\n"
        self.config.write_text(hosts)
        self.known_hosts.write_text(known)

    def _connect(self) -> str:
        taken = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
        network = next(f"10.213.{n}" for n in range(250) if f" 10.213.{n}." not in taken)
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"{network}.1/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        return network

    def __call__(self, *names: str) -> list[Machine]:
        """Return these hosts, booted."""
        new = [name for name in names if name not in self._machines]
        for name in new:
            self._machines[name] = Machine(self, name)
            self._machines[name].start()
        for name in new:
            self._machines[name].ready()
        return [self._machines[name] for name in names]

    def close(self) -> None:
        """Take everything away."""
        for machine in self._machines.values():
            machine.close()
        run("ip", "link", "delete", self.bridge)
        shutil.rmtree(self.base, ignore_errors=True)
        self._lock.close()


@contextlib.contextmanager
def _lock(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold a lock that ends with the process. Raises BlockingIOError where another has it, unless that is awaited."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _clear_stale() -> None:
    """Take away what labs left that were killed; their hosts went with them."""
    for path in _PLACE.glob("monkey-hosts-mk*"):
        with contextlib.suppress(OSError), _lock(path / "lock", wait=False):
            for mounted in [*path.glob("*/root/home/*"), *path.glob("*/root")]:
                _unmount(mounted)
            bridge = path.name.rpartition("-")[2]
            subprocess.run(["ip", "link", "delete", bridge], capture_output=True)
            remove_groups(bridge)
            shutil.rmtree(path, ignore_errors=True)


def _unmount(path: Path) -> None:
    subprocess.run(["umount", "--lazy", str(path)], capture_output=True)
