"""Plays Darwin in a Python that starts: its `encodings` imports this file before anything else, also with -I -S.

`PLAYED`, above these lines in the copy that runs, has the names that are taken away, where the real /proc is, and a
file in which each process notes how it was started.
"""

from __future__ import annotations

import _frozen_importlib_external as importing
import os
import posix
import sys
from _frozen_importlib import BuiltinImporter

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without typing
    from typing import Any

PLAYED: dict[str, Any] = {}
NAMES, PROC, LOG, PYTHON = PLAYED["names"], PLAYED["proc"], PLAYED["log"], PLAYED["python"]
F_GETPATH, F_FULLFSYNC = 50, 51
#: Bytes of the longest path of a unix socket: sun_path has 104, with the byte that ends it.
LONGEST_PATH = 103
EPERM, EISDIR, ENOENT = 1, 21, 2


def play_posix(module: Any) -> None:
    chmod, uname, unlink = module.chmod, module.uname(), module.unlink
    words = "Darwin", uname.nodename, "23.5.0", "Darwin Kernel Version 23.5.0", "arm64"
    darwin = module.uname_result(words)

    def play_chmod(path: Any, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        """Change the rights of a link itself, for which Linux without a /proc has no call."""
        if follow_symlinks:
            chmod(path, mode, dir_fd=dir_fd)
            return
        fd = module.open(path, 0o10000000 | module.O_NOFOLLOW | module.O_CLOEXEC, dir_fd=dir_fd)  # O_PATH
        try:
            if module.fstat(fd).st_mode & 0o170000 != 0o120000:
                chmod(f"{PROC}/self/fd/{fd}", mode)
        finally:
            module.close(fd)

    def play_unlink(path: Any, *, dir_fd: int | None = None) -> None:
        """Refuse a directory with the error that POSIX has for that."""
        try:
            unlink(path, dir_fd=dir_fd)
        except IsADirectoryError as exc:
            raise PermissionError(EPERM, "Operation not permitted", path) from exc

    replaced = {"chmod": play_chmod, "unlink": play_unlink, "remove": play_unlink, "uname": lambda: darwin}
    for name, played in replaced.items():
        for supporters in (os.supports_dir_fd, os.supports_follow_symlinks):
            supporters.update({played} if getattr(os, name) in supporters else ())
        setattr(module, name, played)
        setattr(os, name, played)
    os.supports_follow_symlinks.add(play_chmod)


def play_fcntl(module: Any) -> None:
    real = module.fcntl
    module.F_GETPATH, module.F_FULLFSYNC = F_GETPATH, F_FULLFSYNC

    def play(fd: Any, cmd: int, arg: Any = 0) -> Any:
        number = fd if isinstance(fd, int) else fd.fileno()
        if cmd == F_GETPATH:
            path = posix.readlink(f"{PROC}/self/fd/{number}".encode())
            if path.endswith(b" (deleted)"):
                raise FileNotFoundError(ENOENT, "No such file or directory")
            return path.ljust(1024, b"\0")
        if cmd == F_FULLFSYNC:
            posix.fsync(number)
            return 0
        return real(fd, cmd, arg)

    module.fcntl = play


def play_socket(module: Any) -> None:
    class Socket(module.socket):
        """The kernel's, with Darwin's bound on the path of a unix socket."""

        __slots__ = ()

        def bind(self, address: Any) -> None:
            _check_path(address)
            super().bind(address)

        def connect(self, address: Any) -> None:
            _check_path(address)
            super().connect(address)

    module.socket = module.SocketType = Socket


def _check_path(address: Any) -> None:
    if isinstance(address, str) and len(os.fsencode(address)) > LONGEST_PATH:
        raise OSError("AF_UNIX path too long")


def play_platform(module: Any) -> None:
    module.mac_ver = lambda *_, **__: ("14.5", ("", "", ""), "arm64")


PLAYS = {"posix": play_posix, "fcntl": play_fcntl, "_socket": play_socket, "platform": play_platform}


def play(module: Any) -> None:
    """Take from a module what Darwin's lacks, and give it what Darwin's has."""
    for name in NAMES.get(module.__name__, ()):
        # `os` has begun by now, too, and has the names of `posix`.
        for place in (module, os) if module is posix else (module,):
            if hasattr(place, name):
                delattr(place, name)
    PLAYS.get(module.__name__, lambda _: None)(module)


class PlayingLoader:
    """Loads a module, and plays it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        play(module)


class PlayingFinder:
    """Finds modules that are files, and are played."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name not in NAMES and name not in PLAYS:
            return None
        builtin = name in sys.builtin_module_names
        spec = (BuiltinImporter if builtin else importing.PathFinder).find_spec(name, path, target)
        if spec is not None:
            spec.loader = PlayingLoader(spec.loader)
        return spec


def begin() -> None:
    """Play all from now on."""
    for name in NAMES.keys() & sys.modules.keys():  # the few that Python begins with
        play(sys.modules[name])
    sys.meta_path.insert(0, PlayingFinder)  # type: ignore[arg-type]  # it is a class with the one method that matters
    sys.platform = "darwin"
    # An environment that a job asks for is made of this one: the wheels that it can install are Linux's.
    sys._base_executable = PYTHON  # type: ignore[attr-defined]  # only venv reads it
    log = posix.open(LOG, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o666)
    posix.write(log, (" ".join(sys.orig_argv).replace("\n", " ") + "\n").encode(errors="replace"))
    posix.close(log)


begin()
