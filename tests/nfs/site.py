"""Two machines (user-mode Linux, a kernel each) that mount one NFS server (nfs-ganesha), in seconds. Root is needed.

Each machine sees the host's files read-only; `directory` can be written, and has the same path there. Its mount is
/mnt. What the server serves lies in `directory/export`: the evidence of tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.own_kernel import build_preload

HERE = Path(__file__).parent
#: Program → the Debian package that has it. rpcbind is for NFSv3.
PROGRAMS = {
    "linux.uml": "user-mode-linux",
    "ganesha.nfsd": "nfs-ganesha nfs-ganesha-vfs",
    "mount.nfs": "nfs-common",
    "rpcbind": "rpcbind",
    "ip": "iproute2",
    "gcc": "gcc",
}
#: Mount options of a default mount by its version; the server has no portmapper that clients could ask.
V4, V3 = "vers=4.1", "vers=3,nolock,port=2049,mountport=20048"
#: Seconds within which anything here must have happened.
PATIENCE = 120.0


def available() -> bool:
    """Say whether such machines can be started here."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return os.geteuid() == 0 and all(shutil.which(name, path=path) for name in PROGRAMS)


def wait_for(what: Callable[[], object], message: str, patience: float = PATIENCE) -> None:
    """Wait until `what` is true; fails after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not what():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)


class NfsSite:
    """The server, the network between, and the machines m1 and m2."""

    def __init__(self, directory: Path, options: str = V4) -> None:
        """Keep everything in `directory`, on a disk whose files have handles (ext4, xfs); mount with `options`."""
        self.directory, self.options = directory, options
        self.export = directory / "export"
        # Names of taps and paths of sockets are short.
        self.tag = f"{zlib.crc32(os.fsencode(directory)) % 10**5:05}"
        self.namespace = f"nfs{self.tag}"
        self.server: subprocess.Popen[bytes] | None = None
        self.rpcbind: subprocess.Popen[bytes] | None = None
        self.machines: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self) -> None:
        """Make the directories, the network, and what the machines start from."""
        for path in (self.export, self.directory / "server/recovery"):
            path.mkdir(parents=True)
        for name in ("machine_init.sh", "load_modules.py", "command_server.py"):
            shutil.copy(HERE / name, self.directory / name)
        (self.directory / "machine_init.sh").chmod(0o755)
        conf = (HERE / "ganesha.conf").read_text().format(directory=self.directory)
        (self.directory / "server/ganesha.conf").write_text(conf)
        self.preload = build_preload(self.directory)
        _run("ip", "netns", "add", self.namespace)
        self._ip("link set lo up")
        self._ip("link add br0 type bridge")
        self._ip("addr add 10.99.0.1/24 dev br0")
        self._ip("link set br0 up")
        for number in (1, 2):
            _run("ip", "netns", "exec", self.namespace, "ip", "tuntap", "add", f"tap{number}", "mode", "tap")
            self._ip(f"link set tap{number} master br0 up")

    def _ip(self, words: str) -> None:
        _run("ip", "-n", self.namespace, *words.split())

    def inside(self, *command: str | Path) -> list[str | Path]:
        """Return a command that runs in the machines' network."""
        return ["ip", "netns", "exec", self.namespace, *command]

    def start_server(self) -> None:
        """Start the NFS server, and wait until it answers."""
        server = self.directory / "server"
        # An rpcbind in a /run of its own, which the host does not see: the server registers NFSv3 there.
        script = 'mount -t tmpfs run /run; rpcbind -f -h 10.99.0.1 & echo $! >"$1/rpcbind.pid"; sleep .3; exec '
        script += 'ganesha.nfsd -F -f "$1/ganesha.conf" -L "$1/log" -p "$1/ganesha.pid"'
        with (server / "out").open("ab") as out:
            self.server = subprocess.Popen(
                self.inside("bash", "-c", script, "-", server), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        wait_for(self._answers, f"the NFS server answers: {server}/log")

    def _answers(self) -> bool:
        look = "import socket; socket.create_connection(('10.99.0.1', 2049), 1)"
        return not subprocess.run(self.inside("python3", "-c", look), stderr=subprocess.DEVNULL).returncode

    def kill_server(self) -> None:
        """kill -9 the NFS server."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self.directory / "server/rpcbind.pid").read_text()), signal.SIGKILL)
            (self.directory / "server/ganesha.pid").unlink(missing_ok=True)
        self.server = None

    def boot(self, *names: str) -> None:
        """Start machines, and wait until they have mounted."""
        for name in names:
            home = self.directory / name
            (home / "tmp").mkdir(parents=True, exist_ok=True)
            # TMPDIR: a machine's memory is a file there, which is removed at once.
            env = {**os.environ, "TMPDIR": f"{home}/tmp", "LD_PRELOAD": str(self.preload)}
            words = f"mem=512M umid={self.tag}{name} uml_dir={home}/tmp/ root=/dev/root rootfstype=hostfs rootflags=/"
            network = f"vec0:transport=tap,ifname=tap{name[1:]},depth=64,gro=1"
            ours = [f"init={self.directory}/machine_init.sh", f"dir={self.directory}", f"name={name}"]
            command = [
                "linux.uml",
                *words.split(),
                "ro",
                "quiet",
                network,
                "con0=null,fd:1",
                "con=null",
                *ours,
                f"opts={self.options}",
            ]
            with (home / "console").open("wb") as console:
                self.machines[name] = subprocess.Popen(
                    self.inside(*command),
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    start_new_session=True,
                )
        for name in names:
            console_of = self.directory / name / "console"
            wait_for(lambda text=console_of: "\nUP " in text.read_text(errors="replace"), f"{name} is up: {console_of}")
            assert "MOUNTED" in console_of.read_text(errors="replace"), console_of.read_text(errors="replace")[-2000:]

    def kill(self, name: str) -> None:
        """Take a machine's power away. Its kernel is many processes here, all in one session."""
        process = self.machines.pop(name)
        listed = subprocess.run(["ps", "-o", "pid=", "-s", str(process.pid)], capture_output=True, text=True)
        for pid in {process.pid, *map(int, listed.stdout.split())}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def run(self, name: str, command: str, *, code: int | None = 0) -> str:
        """Run a shell's command in a machine, and return its output; it must exit with `code` (None: anything)."""
        client = (
            "import json, socket, sys; c = socket.create_connection((sys.argv[1], 7), 30); c.settimeout(None); "
            "f = c.makefile('rwb'); f.write(json.dumps({'command': sys.argv[2]}).encode() + b'\\n'); f.flush(); "
            "sys.stdout.write(f.readline().decode())"
        )
        asked = self.inside("python3", "-c", client, f"10.99.0.1{name[1:]}", command)
        done = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE * 5)
        assert done.returncode == 0 and done.stdout, f"{name}: {command}: it went away {done.stderr}"
        answer = json.loads(done.stdout)
        assert code is None or answer["code"] == code, f"{name}: {command}: {answer['code']}\n{answer['output']}"
        return str(answer["output"])

    def start(self, name: str, command: str, tell: Callable[[str], object]) -> threading.Thread:
        """Run a command in a machine beside everything else; `tell` gets its output."""
        thread = threading.Thread(target=lambda: tell(self.run(name, command, code=None)), daemon=True)
        thread.start()
        return thread

    def end(self) -> None:
        """End all of it; the files stay."""
        for name in list(self.machines):
            self.kill(name)
        self.kill_server()
        subprocess.run(["ip", "netns", "del", self.namespace], capture_output=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def start_site(directory: Path, options: str = V4, machines: tuple[str, ...] = ("m1", "m2")) -> Iterator[NfsSite]:
    """Start a site; it ends with the block."""
    site = NfsSite(directory, options)
    try:
        site.prepare()
        site.start_server()
        site.boot(*machines)
        yield site
    finally:
        site.end()
