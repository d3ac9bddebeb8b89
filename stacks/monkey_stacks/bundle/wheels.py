"""The distributions that an agent needs on a host: taken from here where they fit there, fetched where not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.parser import Parser
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from monkey import origin
from monkey.errors import FleetError

if TYPE_CHECKING:
    from packaging.tags import Tag

#: Scheme of a store to what an agent imports for it, beyond Python; what these need is found out.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "s3": ("obstore",),
    "gs": ("obstore",),
    "az": ("obstore",),
    "ssh": ("asyncssh",),
}
#: What every agent needs: its exporter imports the first, the check of signatures the second.
ALWAYS = ("influxdb-client", "cryptography")
#: What an agent does without where it is not here: Python alone, so it fits everywhere.
WELCOME = ("nvidia-ml-py",)
#: Seconds that a fetch may take.
_PATIENCE_SECONDS = 300
#: Minor version of glibc 2 to older names of its platform.
_OLD_NAMES = {17: ("manylinux2014",), 12: ("manylinux2010",), 5: ("manylinux1",)}
#: What installers write, and no two alike.
_NOT_OURS = re.compile(r"(^|/)(__pycache__|RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_cache\.json)(/|$)")


@dataclass(frozen=True)
class WheelTarget:
    """What wheels must fit: a Python and a platform, as `sysconfig` names it ("linux-x86_64")."""

    python: tuple[int, int]
    platform: str
    #: "glibc 2.36", "musl", or "" where it is neither.
    libc: str
    #: Other Pythons that the same files are to run on: what is compiled for one Python alone comes for each.
    others: tuple[tuple[int, int], ...] = ()

    @property
    def machine(self) -> str:
        """Return the processor's name, as tags of wheels have it."""
        return self.platform.rpartition("-")[2]


def list_distributions(scheme: str) -> list[importlib.metadata.Distribution]:
    """Return what an agent of a store of this scheme needs, by name: installed here, as we are. Raises FleetError."""
    found: dict[str, importlib.metadata.Distribution] = {}
    left = [*ALWAYS, *NEEDS.get(scheme, ()), *filter(_installed, WELCOME)]
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            hint = origin.hint_install("ssh" if name in NEEDS["ssh"] else "")
            raise FleetError(f"{name} is not installed here", hint=hint) from None
        left += [needed for needed in _requirements(found[name]) if _installed(needed)]
    return [found[name] for name in sorted(found)]


def _requirements(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """Yield what a distribution needs wherever it is; extras are for others."""
    for line in distribution.requires or ():
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if name is not None and "extra" not in line.partition(";")[2]:
            yield re.sub(r"[-_.]+", "-", name[0]).lower()


def _installed(name: str) -> bool:
    """Say whether it is here: what a marker rules out is not."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def list_wheel_files(
    found: list[importlib.metadata.Distribution], target: WheelTarget, scratch: Path
) -> dict[str, Path]:
    """Return name to file of all that is to be importable on the host; `scratch`: for what is fetched.

    Raises FleetError.
    """
    taken = _fit_distributions(found, target, scratch / "wheels")
    files = {name: path for one in taken for name, path in _files(one).items()}
    for other in target.others:
        there = replace(target, python=other)
        lacking = [one for one in taken if not is_fitting(_tags(one), there)]
        for one in _fit_distributions(lacking, there, scratch / f"wheels-{other[0]}.{other[1]}"):
            files = {**_files(one), **files}  # compiled modules have their Python in their names
    return files


def _fit_distributions(
    found: Sequence[importlib.metadata.Distribution], target: WheelTarget, aside: Path
) -> list[importlib.metadata.Distribution]:
    """Return these as they fit there: those that are installed here, and what was fetched into the directory `aside`.

    Raises FleetError.
    """
    elsewhere = [f"{one.name}=={one.version}" for one in found if not is_fitting(_tags(one), target)]
    if elsewhere:
        _fetch(elsewhere, target, aside)
    fetched = importlib.metadata.distributions(path=[str(aside)]) if elsewhere else ()
    return [*(one for one in found if is_fitting(_tags(one), target)), *fetched]


def list_tools(names: Iterable[str], target: WheelTarget, scratch: Path) -> dict[str, Path]:
    """Return name to file of programs that are to lie beside, those that are installed here as wheels.

    Raises FleetError where one for the host is not to be had.
    """
    found: dict[str, Path] = {}
    for one in select_installed(names):
        aside = scratch / "tools" / one.name
        if not is_fitting(_tags(one), target):
            _fetch([f"{one.name}=={one.version}"], target, aside)
            one = next(iter(importlib.metadata.distributions(name=one.name, path=[str(aside)])))
        programs = (file for file in one.files or () if file.match(f"bin/{one.name}"))
        found |= {f"tools/{one.name}": Path(str(file.locate())) for file in programs}
    return found


def select_installed(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """Return those that are installed here."""
    return [importlib.metadata.distribution(name) for name in filter(_installed, names)]


def _files(distribution: importlib.metadata.Distribution) -> dict[str, Path]:
    names = {str(name): Path(str(name.locate())) for name in distribution.files or ()}
    return {
        name: path
        for name, path in names.items()
        if not (name.startswith(("..", "/", "bin/")) or _NOT_OURS.search(name)) and path.is_file()
    }


def _tags(distribution: importlib.metadata.Distribution) -> list[str]:
    return Parser().parsestr(distribution.read_text("WHEEL") or "").get_all("Tag") or []


def check_packaging(extra: str) -> None:
    """Raise FleetError where the library that compares wheels is not here; `extra`: what installs it."""
    if importlib.util.find_spec("packaging") is None:
        what = "what pilots need is found by the library packaging, which is not installed here"
        raise FleetError(what, hint=origin.hint_install(extra))


def is_fitting(tags: list[str], target: WheelTarget) -> bool:
    """Say whether a wheel with one of these tags ("cp311-abi3-manylinux_2_28_x86_64") runs there."""
    from packaging.tags import parse_tag  # of the extras that have machines elsewhere

    supported = _supported_tags(target)
    return any(not supported.isdisjoint(parse_tag(tag)) for tag in tags)


@cache
def _supported_tags(target: WheelTarget) -> frozenset[Tag]:
    """Return the tags of wheels that run there (PEP 425, 600, 656)."""
    from packaging.tags import compatible_tags, cpython_tags

    python, platforms = target.python[:2], [f"{name}_{target.machine}" for name in _platforms(target)]
    interpreter = f"cp{python[0]}{python[1]}"
    ours = cpython_tags(python, platforms=platforms)
    return frozenset([*ours, *compatible_tags(python, interpreter, [*platforms, "any"])])


def _platforms(target: WheelTarget) -> list[str]:
    """Return the platforms of wheels that run there, without the machine's, the newest first."""
    if target.libc == "musl":
        return [f"musllinux_1_{minor}" for minor in range(9, -1, -1)]
    if not target.libc.startswith("glibc "):
        return []
    minors = range(_minor(target), 4, -1)
    return [name for minor in minors for name in (f"manylinux_2_{minor}", *_OLD_NAMES.get(minor, ()))]


def _fetch(requirements: list[str], target: WheelTarget, into: Path) -> None:
    """Install wheels for the host into the directory `into`, by uv or pip. Raises FleetError."""
    installer = _uv(target) or _pip(target)
    what = f"{', '.join(requirements)} for Python {target.python[0]}.{target.python[1]} on {target.platform}"
    if installer is None:
        raise FleetError(f"{what}: neither uv nor pip is here to fetch it", hint="pip install uv")
    version = f"{target.python[0]}.{target.python[1]}"
    command = [*installer, "--python-version", version, "--only-binary", ":all:", "--no-deps", "--target", str(into)]
    try:
        run = subprocess.run(
            [*command, *requirements],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise FleetError(f"{what}: {installer[0]} did not end within {_PATIENCE_SECONDS} s") from None
    if run.returncode:
        said = run.stderr.strip().splitlines()[-3:]
        raise FleetError(
            f"{what}: there is no wheel, or no way to it: {' '.join(said)}",
            hint="the internet is needed where a host is unlike this machine; or install the Python that you have here",
        )


def _uv(target: WheelTarget) -> list[str] | None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")
    platform = f"{target.machine}-unknown-linux-musl" if target.libc == "musl" else f"{target.machine}-{_glibc(target)}"
    return [uv, "pip", "install", "--quiet", "--no-config", "--python-platform", platform] if uv else None


def _glibc(target: WheelTarget) -> str:
    """Return the newest platform of uv's that a host with this glibc is."""
    ours = _minor(target)
    return f"manylinux_2_{max((minor for minor in (17, 28, *range(31, 41)) if minor <= ours), default=17)}"


def _minor(target: WheelTarget) -> int:
    version = target.libc.partition(" ")[2].split(".")
    return int(version[1]) if len(version) > 1 and version[1].isdigit() else 17


def _pip(target: WheelTarget) -> list[str] | None:
    if importlib.util.find_spec("pip") is None:
        return None
    platforms = [word for name in _platforms(target) for word in ("--platform", f"{name}_{target.machine}")]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *platforms]
