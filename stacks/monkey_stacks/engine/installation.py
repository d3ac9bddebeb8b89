"""Where Pulumi is on this machine: the library that drives it, and the program that does the work."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from monkey import origin
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say

if TYPE_CHECKING:
    from semver import VersionInfo

#: Before it, events came by a file that was polled, and a destroy had no program.
OLDEST = "3.206.0"
#: Installed where there is none; the one that tests run.
PINNED = "3.232.0"
#: Seconds that it may take to tell its version: the first start of a program of 200 MB, on a slow disk.
_PATIENCE_SECONDS = 60

GET = "https://www.pulumi.com/docs/install/ tells how; it must be on the PATH, or in ~/.pulumi"


def find_home() -> Path:
    """Return where Pulumi keeps itself and its plugins."""
    return Path(os.environ.get("PULUMI_HOME") or "~/.pulumi").expanduser()


@dataclass(frozen=True)
class PulumiCli:
    """The program that does the work."""

    path: str
    version: VersionInfo


def find_pulumi(say: Say) -> PulumiCli:
    """Return the program: on the PATH, else below its home, else installed there, after a word to `say`.

    One that is too old is passed over. Raises FleetError where the library is missing, or there is no program and none
    can be installed.
    """
    check_library()
    found, old = _found()
    return found or _install(say, old)


def check_pulumi() -> str:
    """Say which program `find_pulumi` would return; installs none. Raises FleetError where there is none."""
    check_library()
    found, old = _found()
    if found is None:
        why = f" ({', '.join(old)}; {OLDEST} is the oldest that will do)" if old else ""
        raise FleetError(
            f"there is no Pulumi on this machine{why}", hint=f"the first apply installs it; or by hand: {GET}"
        )
    return f"{found.version} at {found.path}"


def name_pulumi() -> str:
    """Return how a shell here calls the program that `find_pulumi` would return."""
    found, _ = _found()
    on_path = shutil.which("pulumi")
    if found is None or (on_path and found.path == str(Path(on_path).absolute())):
        return "pulumi"
    return shlex.quote(found.path)


def make_search_path() -> str:
    """Return the PATH on which Pulumi looks for Python and plugins."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _found() -> tuple[PulumiCli | None, list[str]]:
    """Return the program, and what is to be said of those that are too old."""
    from semver import VersionInfo

    old: list[str] = []
    for path in dict.fromkeys(_candidates()):
        said = _version(path)
        if said is not None and VersionInfo.is_valid(said) and VersionInfo.parse(said) >= OLDEST:
            return PulumiCli(str(path), VersionInfo.parse(said)), old
        old += [f"{path} is {said}"] if said else []
    return None, old


def check_library() -> None:
    """Raise FleetError where Pulumi's library for Python is missing."""
    if importlib.util.find_spec("pulumi") is None:
        raise FleetError(
            "machines are made by Pulumi, whose library is not installed here", hint=origin.hint_install("ssh")
        )


def warn_of_missing_library(check: Callable[[], None] = check_library) -> tuple[str, ...]:
    """Warn where `check` finds that a library is missing: a plan does without, and an apply does not."""
    try:
        check()
    except FleetError as exc:
        return (f"warning: {exc.message}, so nothing can be applied from here: {exc.hint}",)
    return ()


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("pulumi")
    if on_path:
        # Absolute and not resolved: its plugins lie beside the name that it is called by.
        yield Path(on_path).absolute()
    yield find_home() / "bin" / "pulumi"
    yield from sorted((find_home() / "versions").glob("*/bin/pulumi"), reverse=True)


def _version(path: Path) -> str | None:
    """Return what the program there says its version is; None where there is none that runs."""
    return _said(path, path.stat().st_mtime_ns) if path.is_file() else None


@cache
def _said(path: Path, written: int) -> str | None:
    """Ask the program that was `written` then; once, since each time takes a third of a second."""
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        done = subprocess.run([path, "version"], capture_output=True, text=True, env=env, timeout=_PATIENCE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().removeprefix("v") if done.returncode == 0 else None


def _install(say: Say, old: list[str]) -> PulumiCli:
    from pulumi.automation import PulumiCommand
    from semver import VersionInfo

    root, version = find_home() / "versions" / PINNED, VersionInfo.parse(PINNED)
    why = f" ({', '.join(old)}; {OLDEST} is the oldest that will do)" if old else ""
    say(f"installing Pulumi {PINNED} into {root}{why}")
    try:
        installed = PulumiCommand.install(str(root), version)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise FleetError(
            f"there is no Pulumi on this machine{why}, and get.pulumi.com cannot be reached to install it: {exc}",
            hint=f"install it where there is a network, or by hand: {GET}",
        ) from exc
    return PulumiCli(installed.command, version)
