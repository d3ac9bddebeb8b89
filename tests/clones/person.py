"""A person: a clone of their own, and monkey's verbs in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.verb_forks import VerbServer


class Said(NamedTuple):
    """What a verb ended with, and what it said."""

    code: int
    out: str
    err: str


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
