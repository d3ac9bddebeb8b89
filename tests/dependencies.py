"""The packages that monkey is built and tested with: their lock, their licences and what is known against them."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import pythons

ROOT = Path(__file__).parents[1]
#: What CI installs: all extras, each package with its version and its hashes.
LOCK = ROOT / ".ci/requirements.txt"
DECISIONS = ROOT / ".ci/dependencies.toml"
#: Not in the lock: some tests ask for a machine without it. It has a lock of its own.
LEFT_OUT = "uv"
#: Options for a lock that is good for every Python and system that monkey is for.
_OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes", "--custom-compile-command", "invoke lock")
#: Licence, as packages write it down in prose → its name in SPDX.
_PLAIN = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
#: Words of an expression of SPDX that are no licences.
_WORDS = re.compile(r"[()]|\b(?:AND|OR|WITH)\b")
#: Seconds for an audit of all packages.
_PATIENCE = 300.0


def write_lock(*, upgrade: bool) -> None:
    """Write the locks anew by what pyproject.toml says; versions stay as they are unless they are to be upgraded."""
    words = ("pip", "compile", "-q", *_OPTIONS, *(["--upgrade"] if upgrade else []))
    everything = ("--all-extras", "--no-emit-package", LEFT_OUT, "pyproject.toml")
    for asked, place in ((everything, LOCK), (("-",), pythons.UV_LOCK)):
        done = pythons.run_uv(*words, *asked, "-o", str(place.relative_to(ROOT)), cwd=ROOT, said="uv\n")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)


def read_lock(path: Path = LOCK) -> Mapping[str, list[Requirement]]:
    """Return what a lock has of each package: one version, or one for each kind of Python."""
    found: dict[str, list[Requirement]] = defaultdict(list)
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith(("#", " ")):
            requirement = Requirement(line.partition(" --hash")[0])
            found[canonicalize_name(requirement.name)].append(requirement)
    return found


def list_declared() -> Iterator[Requirement]:
    """Yield what pyproject.toml names: to run, for each extra, to build."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = said["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    for each in (*project["dependencies"], *extras, *said["build-system"]["requires"]):
        requirement = Requirement(each)
        if requirement.name != project["name"]:
            yield requirement


def list_needed(name: str) -> Iterator[str]:
    """Yield the names of the distributions that one needs here, without any extra."""
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)


def find_closure(*names: str) -> set[str]:
    """Return the distributions with all that they need."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += list_needed(name)
    return found


def read_decisions() -> Mapping[str, Any]:
    """Return what was decided of licences and vulnerabilities."""
    return tomllib.loads(DECISIONS.read_text())


def read_licence(metadata: Any) -> str:
    """Return a package's licence by its metadata: SPDX where it has that, else what it says; "" for none."""
    said = metadata.get("License-Expression") or ""
    classes = [each for each in metadata.get_all("Classifier") or () if each.startswith("License :: OSI Approved :: ")]
    names = [each.rpartition(" :: ")[2] for each in classes]
    written = (metadata.get("License") or "").strip()
    # Some put the whole text there.
    short = written if len(written) <= 40 and "\n" not in written else ""
    return said or (" AND ".join(_PLAIN.get(each, each) for each in names)) or _PLAIN.get(short, short)


def is_accepted(licence: str, accepted: list[str]) -> bool:
    """Say whether each licence of an expression is among those; none at all is not."""
    names = [each.strip() for each in _WORDS.split(licence) if each.strip()]
    return bool(names) and all(each in accepted for each in names)


def list_licences() -> Iterator[tuple[str, str, str]]:
    """Yield the name, version and licence of each package that is installed here."""
    for each in sorted(importlib.metadata.distributions(), key=lambda found: found.name.lower()):
        yield each.name, each.version, read_licence(each.metadata) or "unknown"


@dataclass(frozen=True)
class Audit:
    """What is known against the packages of the lock."""

    #: Vulnerabilities that nobody decided about: "name 1.0: ID (fixed in 1.1)".
    found: tuple[str, ...] = ()
    #: Why an audit was not made, or not of all; "" where it was.
    missing: str = ""


def audit_lock() -> Audit:
    """Ask the index's advisories about each package of the lock."""
    options = ("--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off")
    command = [sys.executable, "-m", "pip_audit", *options, "-r", str(LOCK)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return Audit(missing=f"no answer within {_PATIENCE:.0f} s")
    return judge_audit(done.stdout, done.stderr, read_decisions()["vulnerabilities"])


def judge_audit(stdout: str, stderr: str, decided: Mapping[str, str]) -> Audit:
    """Return what pip-audit says, less what was decided."""
    try:
        told = json.loads(stdout)["dependencies"]
    except (ValueError, LookupError):
        return Audit(missing=(stderr.strip().splitlines() or ["pip-audit says nothing"])[-1][:200])
    # It counts what it could not look up as free of vulnerabilities.
    skipped = [each["name"] for each in told if "skip_reason" in each]
    found = [
        f"{each['name']} {each['version']}: {known['id']} (fixed in {', '.join(known['fix_versions']) or 'no version'})"
        for each in told
        for known in each.get("vulns", ())
        if decided.keys().isdisjoint({known["id"], *known.get("aliases", ())})
    ]
    few = ", ".join(skipped[:3]) + (", …" if len(skipped) > 3 else "")
    missing = f"the advisories say nothing of {len(skipped)} of {len(told)} packages ({few})" if skipped else ""
    return Audit(tuple(found), missing)
