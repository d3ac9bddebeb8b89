# ruff: noqa: PTH112, PTH113, PTH118
# Paths are plain strings here: this is part of the supervisor, which starts without pathlib.
"""Starting a program in a session of its own, with its output in a file."""

from __future__ import annotations

import errno
import os
import signal

#: Variable that asks for the lifeline: the number of a descriptor whose other end nobody but the supervisor has, and
#: that it never writes to. A container's first process reads there, and ends when it is closed.
LIFELINE = "MONKEY_LIFELINE"
#: Python ignores them; programs expect them as they are everywhere.
_IGNORED = [number for name in ("SIGPIPE", "SIGXFSZ") if (number := getattr(signal, name, None))]


def encode_environment(env: dict[str, str]) -> dict[bytes, bytes]:
    """Return variables as they are handed to a process; once for many jobs, since it takes its time."""
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


class ProgramStarter:
    """Starts programs, and remembers where it found them."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._found: dict[tuple[str, str], str] = {}
        #: Both ends of the lifeline, once a job asked for it.
        self._lifeline: tuple[int, int] | None = None
        #: Environments by number. As bytes: they are handed to a new process many times over.
        self.bases: dict[int, dict[bytes, bytes]] = {}

    def __call__(self, argv: list[str], base: int, over: dict[str, str], cwd: str, log: str) -> int:
        """Return the pid of `argv`, started in `cwd` with stdout and stderr appended to `log` and nothing to read.

        `over`: variables over those of environment number `base`. Raises OSError whose filename is `log`, `cwd` or the
        program, whichever was wrong.
        """
        env = {**self.bases[base], **encode_environment(over)}
        # Never waits for the reader of a pipe that a job put there, nor follows a link: who waits freezes nobody.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        out = os.open(log, flags, 0o644)
        try:
            os.set_blocking(out, True)
            os.chdir(cwd)  # there is one thread, and posix_spawn cannot be told a directory
            program = self._find(argv[0], os.fsdecode(env.get(b"PATH", os.defpath)))
            return self._spawn(program, argv, env, out, int(over.get(LIFELINE, -1)))
        finally:
            os.chdir("/")
            os.close(out)

    def _find(self, name: str, path: str) -> str:
        """Return the program's file; what was found is looked up again when it is gone."""
        if "/" in name:
            return name
        known = self._found.get((name, path))
        if known and os.access(known, os.X_OK):
            return known
        refused = ""
        for directory in path.split(os.pathsep):
            candidate = os.path.join(directory, name)
            if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
                if candidate.startswith("/"):
                    self._found[name, path] = candidate
                return candidate
            refused = refused or (candidate if os.path.isfile(candidate) else "")
        number = errno.EACCES if refused else errno.ENOENT
        raise OSError(number, os.strerror(number), refused or name)

    def _spawn(self, path: str, argv: list[str], env: dict[bytes, bytes], out: int, lifeline: int) -> int:
        actions = [(os.POSIX_SPAWN_DUP2, self._null, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
        if lifeline >= 0:
            self._lifeline = self._lifeline or os.pipe()
            actions.append((os.POSIX_SPAWN_DUP2, self._lifeline[0], lifeline))
        try:
            return os.posix_spawn(path, argv, env, file_actions=actions, setsid=True, setsigdef=_IGNORED)
        except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID
            from subprocess import Popen

            child = Popen(
                argv, executable=path, env=env, stdin=self._null, stdout=out, stderr=out, start_new_session=True
            )
            child.returncode = 0  # the supervisor reaps it, not Popen
            return child.pid
