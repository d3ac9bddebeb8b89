"""A person: a clone of their own, and monkey's verbs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SERVER = Path(__file__).with_name("verb_server.py")


class Said(NamedTuple):
    """What a verb ended with, and what it said."""

    code: int
    out: str
    err: str


class VerbServer:
    """A process that runs verbs, one at a time (`verb_server.py`)."""

    def __init__(self) -> None:
        """Start it."""
        self._server = subprocess.Popen(
            [sys.executable, "-P", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """End it."""
        self._server.communicate()

    def send(self, order: Mapping[str, Any]) -> None:
        """Begin a verb."""
        assert self._server.stdin is not None
        print(json.dumps(order), file=self._server.stdin, flush=True)

    def receive(self) -> int:
        """Wait for the verb that was begun, and return its exit code."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())


class Person:
    """One who works in a clone."""

    def __init__(self, name: str, base: Path, remote: Path, server: VerbServer) -> None:
        """Clone the remote below `base`, which all people share: the machine and its agents are one."""
        self.name, self.root, self._out, self._server = name, base / name, base / f"{name}.said", server
        env = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        env |= {
            "HOME": str(base),
            "LOGNAME": name,
            "XDG_STATE_HOME": f"{base}/state",
            "XDG_CACHE_HOME": f"{base}/cache",
        }
        for role in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": f"{name}@example.org"}
        self._env = env | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true", "GIT_MERGE_AUTOEDIT": "no"}
        subprocess.run(["git", "clone", "-q", remote, self.root], env=self._env, check=True, capture_output=True)

    def git(self, *arguments: str) -> str:
        """Run git in the clone, and return what it prints. Raises CalledProcessError."""
        return self._git(arguments).stdout.strip()

    def tries(self, *arguments: str) -> bool:
        """Run git in the clone, and say whether it did that."""
        return not self._git(arguments, check=False).returncode

    def _git(self, arguments: tuple[str, ...], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, env=self._env, check=check, capture_output=True, text=True)

    def show(self, commit: str, path: str) -> bytes:
        """Return a file as a commit has it. Raises LookupError where it has none."""
        command = ["git", "-C", self.root, "cat-file", "blob", f"{commit}:{path}"]
        done = subprocess.run(command, env=self._env, capture_output=True)
        if done.returncode:
            raise LookupError(path)
        return done.stdout

    def begin(self, server: VerbServer, *arguments: str) -> None:
        """Begin a verb, on a server of its own: two may run at the same time."""
        order = {"arguments": arguments, "cwd": str(self.root), "environment": self._env, "out": str(self._out)}
        server.send(order)

    def end(self, server: VerbServer) -> Said:
        """Wait for the verb that was begun."""
        code = server.receive()
        out, err = (Path(f"{self._out}.{stream}").read_text() for stream in (1, 2))
        assert "Traceback" not in err and "this is a bug in monkey" not in err, err
        return Said(code, out, err)

    def monkey(self, *arguments: str) -> Said:
        """Run a verb."""
        self.begin(self._server, *arguments)
        return self.end(self._server)

    def json(self, *arguments: str) -> Any:
        """Run a verb with --json, and return what it prints."""
        said = self.monkey(*arguments, "--json")
        assert said.code == 0, said
        return json.loads(said.out)

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; None for a commit alone."""
        return self.git("branch", "--show-current") or None
