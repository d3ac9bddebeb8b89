"""OpenSSH's own client, one multiplexed connection a host: the user's configuration, jump hosts and agents all count.

An operation is Python source that goes in on standard input, and a line of JSON that comes out. Nothing is asked of
anybody, and host keys are always checked.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any

from monkey.errors import FleetError
from monkey.processes.process_tree import send_signal
from monkey.removal import remove_empty_directory, remove_tree
from monkey.spec.project.ssh_host import SshHost
from monkey_stacks.ssh import errors

#: Names an ssh_config to read instead of the user's (as `ssh -F`); stores at ssh:// heed it, too.
CONFIG = "MONKEY_SSH_CONFIG"
#: Seconds: for a connection to come about; for most operations; for those that send or wait for much.
CONNECT, SHORT, LONG = 10, 120, 900
#: Times that a connection is tried which a server turned away: with many at once, sshd takes only some (MaxStartups).
_MAX_TRIES = 3
#: Seconds that an unused connection stays: whoever is killed leaves none behind for longer.
IDLE = 60
#: Seconds after which nothing can live in a directory that somebody who was killed left.
STALE = 3600
#: What no configuration may say otherwise: nobody is asked, nothing is forwarded, and the host is who it says it is.
OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": str(CONNECT),
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ControlMaster": "auto",
    "ControlPersist": str(IDLE),
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "RequestTTY": "no",
    "LogLevel": "INFO",
}
#: The modules that an operation is made of, in an order in which each finds what it imports.
HOST_MODULES = (
    *("monkey.fleet.agent_state", "monkey.fleet.gpus", "monkey.fleet.container_runtime"),
    *("monkey.untrusted_files", "monkey.removal"),
    *("monkey_stacks.ssh.remote.paths", "monkey_stacks.ssh.remote.host_facts", "monkey_stacks.ssh.remote.keep_alive"),
    *("monkey_stacks.bundle.unpack", "monkey_stacks.ssh.remote.bundles", "monkey_stacks.ssh.remote.agents"),
    *("monkey_stacks.ssh.remote.authorized_keys", "monkey_stacks.ssh.remote.host_setup"),
    "monkey_stacks.ssh.remote.host_inventory",
    "monkey_stacks.ssh.remote.host_main",
)
#: Runs there first: takes the modules for ones that were imported.
BEGIN = """
import sys, types
for name, source in e[1]:
    parts = name.split(".")
    for end in range(1, len(parts)):
        parent = sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        parent.__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    setattr(parent, parts[-1], module)
    exec(compile(source, name, "exec"), module.__dict__)
module.serve_operation(*e[2:])
"""
#: Finds a Python that is new enough, or uv's. It is quoted for whatever shell the user has: one line, no single quote.
READ = "import sys, json; b = sys.stdin.buffer; e = json.loads(b.read(int(b.readline()))); exec(e[0])"
_FIND = "; ".join(
    (
        f'run() {{ exec "$1" -I -S -c "{READ}"; }}',
        'new() { "$1" -I -S -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; }',
        "for p in python3 python3.14 python3.13 python3.12 python3.11",
        'do p=$(command -v $p) && new "$p" && run "$p"',
        "done",
        'for u in uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv"',
        'do p=$("$u" python find --no-project ">=3.11" 2>/dev/null) && new "$p" && run "$p"',
        "done",
        'echo "monkey: found $(python3 --version 2>&1)" >&2',
        f"exit {errors.NO_PYTHON}",
    )
)


class HostConnection:
    """A host that is spoken with. Use it in a `with`: at its end the connection is closed."""

    def __init__(self, host: SshHost, modules: tuple[str, ...] = HOST_MODULES) -> None:
        """Speak with `host`; the first operation connects. `modules`: the last of them serves the operations."""
        self.host, self._modules = host, modules
        # Not below TMPDIR: the path of a socket may have about a hundred bytes.
        self._sockets = tempfile.mkdtemp(prefix=f"monkey-ssh-{os.getpid()}-", dir="/tmp")
        _clear_stale()

    def __enter__(self) -> HostConnection:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if Path(self._sockets).is_dir():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [*self._ssh(), "-O", "exit", *self.host.words], capture_output=True, timeout=CONNECT, check=False
                )
            remove_tree(self._sockets)

    def ask(self, operation: str, request: dict[str, Any], payload: Path | None = None, limit: float = SHORT) -> Any:
        """Do an operation of `there.main` and return its value; `payload`: a file that is sent after the request.

        Raises HostAway where the host does not answer within `limit` seconds, FleetError where it refuses.
        """
        nonce = f"monkey-{secrets.token_hex(8)}"
        message = json.dumps([BEGIN, read_modules(self._modules), operation, request, nonce]).encode()
        with tempfile.TemporaryFile() as given:
            given.write(b"%d\n%s" % (len(message), message))
            if payload is not None:
                with payload.open("rb") as file:
                    shutil.copyfileobj(file, given)
            for attempt in range(1, _MAX_TRIES + 1):
                given.seek(0)
                out, said, code = self._run(given.fileno(), limit)
                if nonce in out or attempt == _MAX_TRIES or not errors.is_passing(code, said):
                    break
                time.sleep(random.uniform(0.5, 1.5) * attempt)
        return self._reply(nonce, out, said, code)

    def _run(self, given: int, limit: float) -> tuple[str, str, int]:
        """Run the operation once; returns what it printed, what was said on standard error, and how ssh exited.

        The latter goes to a file: a master process that stays would keep a pipe open.
        """
        command = [*self._ssh(), "-T", *self.host.words, f"sh -c '{_FIND}'"]
        with tempfile.TemporaryFile() as said:
            try:
                done = subprocess.run(
                    command,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    timeout=limit,
                    env=_environment(),
                    check=False,
                )
            except FileNotFoundError:
                raise FleetError("there is no ssh here", hint="install OpenSSH's client (openssh-client)") from None
            except subprocess.TimeoutExpired:
                raise errors.make_slow_error(self.host, limit) from None
            said.seek(0)
            told = said.read().decode(errors="replace")
        return done.stdout.decode(errors="replace"), told, done.returncode

    def _reply(self, nonce: str, out: str, said: str, code: int) -> Any:
        for line in reversed(out.splitlines()):
            if line.startswith(f"{nonce} "):
                reply = json.loads(line.removeprefix(f"{nonce} "))
                if "error" in reply:
                    raise errors.make_reply_error(self.host, reply)
                return reply["value"]
        raise errors.make_silence_error(self.host, code, said)

    def _ssh(self) -> list[str]:
        return [*make_ssh_command(), "-o", f"ControlPath={self._sockets}/%C", *_options()]


def _clear_stale() -> None:
    """Remove the sockets' directories of processes that were killed, and whose connections have ended by themselves."""
    for path in Path("/tmp").glob("monkey-ssh-*-*"):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_uid == os.getuid() and not send_signal(int(path.name.split("-")[2]), 0):
                # A connection that still is has a socket there; one that was killed, too.
                (remove_tree if time.time() - path.stat().st_mtime > STALE else remove_empty_directory)(path)


def _environment() -> dict[str, str]:
    """Return our environment without our language: `SendEnv` would carry it to the host, and it was ours alone."""
    kept = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
    return {**kept, "LC_ALL": "C"}


def make_ssh_command() -> list[str]:
    """Return the command that reads the user's configuration, or the one that CONFIG names."""
    config = os.environ.get(CONFIG)
    return ["ssh", *(["-F", config] if config else [])]


def _options() -> Iterator[str]:
    for name, value in OPTIONS.items():
        yield from ("-o", f"{name}={value}")


@cache
def read_modules(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return name and source of the modules that run on a host."""
    found = []
    for name in names:
        package, _, module = name.rpartition(".")
        found.append((name, resources.files(package).joinpath(f"{module}.py").read_text("utf-8")))
    return found
