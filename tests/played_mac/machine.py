"""A Mac, played on Linux: the Python, the `ps` and the empty /proc that a process meets there.

Its Python has a standard library of its own: links to the real one, but for `encodings`, which every Python imports
before anything else, and from a file. So all are played, also those that start with `-I -S` and see no site-packages.
What it cannot show: APFS, launchd, kqueue, a signed Python, the kernel's own answers. docs/dev.md says more.
"""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from tests.played_mac.lacking_names import list_lacking_names

HERE = Path(__file__).parent
#: What psutil for Linux needs of Linux: its own look at the platform, /proc where it really is, and a constant.
_PSUTIL = (
    ("sys.platform", "'linux'"),
    ('"/proc', '"{proc}'),
    ("socket.AF_PACKET", "17"),
)


class PlayedMac:
    """A Mac in a directory."""

    def __init__(self, directory: Path) -> None:
        """Install its Python, with the packages of ours, and its programs."""
        self.directory = directory
        #: Where the real /proc is, and how each Python of this Mac was started.
        self.proc, self.log = directory / "proc", directory / "started"
        self.proc.mkdir(parents=True)
        self._real = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
        self._install_library()
        self._install_environment()
        self._install_programs()

    @property
    def path(self) -> str:
        """The PATH of its users."""
        return f"{self.directory}/programs:{self.directory}/venv/bin:/usr/local/bin:/usr/bin:/bin"

    def wrap(self, command: list[str]) -> list[str]:
        """Return the command that runs `command` on this Mac: in mounts of its own, where /proc is empty."""
        proc = shlex.quote(str(self.proc))
        mounts = f"mount --rbind /proc {proc} && mount -t tmpfs none /proc"
        # So many files may a process have open there, unless it asks for more.
        script = f'{mounts} && ulimit -S -n 256 && exec "$@"'
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", "--mount", *rights, "sh", "-ec", script, "sh", *command]

    @property
    def python(self) -> str:
        """Its Python, which has our packages."""
        return f"{self.directory}/venv/bin/python3"

    def _install_library(self) -> None:
        real, ours = Path(sysconfig.get_path("stdlib")), self.directory / "base/lib" / _name_version()
        ours.mkdir(parents=True)
        _link_entries(real, ours, but={"encodings", "site-packages", "dist-packages", "__pycache__"})
        for name in ("encodings", "__pycache__"):
            (ours / name).mkdir()
            _link_entries(real / name, ours / name, but={"__init__.py", "__pycache__"})
        text = (real / "encodings/__init__.py").read_text()
        (ours / "encodings/__init__.py").write_text(f"{text}\nimport _played_mac\n")
        played = {
            "names": list_lacking_names(),
            "proc": str(self.proc),
            "log": str(self.log),
            "python": str(self._real),
        }
        words = (HERE / "startup.py").read_text().replace("PLAYED: dict[str, Any] = {}\n", f"PLAYED = {played!r}\n")
        (ours / "_played_mac.py").write_text(words)
        # What only Darwin's Python has: the proxies of the system, and how it was built.
        (ours / "_scproxy.py").write_text("def _get_proxies(): return {}\ndef _get_proxy_settings(): return {}\n")
        built = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]  # there is no public word for it
        (ours / f"{built.replace('_linux_', '_darwin_')}.py").symlink_to(real / f"{built}.py")

    def _install_environment(self) -> None:
        base, venv = self.directory / "base/bin", self.directory / "venv"
        packages = venv / "lib" / _name_version() / "site-packages"
        for made in (base, venv / "bin", packages):
            made.mkdir(parents=True)
        (base / _name_version()).symlink_to(self._real)
        (venv / "pyvenv.cfg").write_text(f"home = {base}\ninclude-system-site-packages = false\n")
        for name in ("python", "python3", _name_version()):
            (venv / "bin" / name).symlink_to(base / _name_version())
        real = importlib.metadata.distribution("psutil").locate_file("psutil")
        shutil.copytree(str(real), packages / "psutil", ignore=shutil.ignore_patterns("__pycache__", "tests"))
        for path in packages.glob("psutil/*.py"):
            text = path.read_text()
            for old, new in _PSUTIL:
                text = text.replace(old, new.format(proc=self.proc))
            path.write_text(text)
        (packages / "real.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")

    def _install_programs(self) -> None:
        programs = self.directory / "programs"
        programs.mkdir()
        ps = (HERE / "bsd_ps.py").read_text().replace('PROC = "/proc"', f"PROC = {str(self.proc)!r}")
        boot = f"#!/bin/sh\n[ \"$*\" = '-n kern.bootsessionuuid' ] && exec cat {self.proc}/sys/kernel/random/boot_id\n"
        written = {"ps": f"#!{self._real} -IS\n{ps}", "sysctl": f'{boot}echo "sysctl: unknown oid $*" >&2; exit 1\n'}
        for name, text in written.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)


def _name_version() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _link_entries(real: Path, ours: Path, but: set[str]) -> None:
    """Link to all that is in the directory `real`, `but` for some."""
    for entry in real.iterdir() if real.exists() else ():
        if entry.name not in but:
            (ours / entry.name).symlink_to(entry)
