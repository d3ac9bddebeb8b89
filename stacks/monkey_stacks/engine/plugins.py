"""Plugins of Pulumi's: those that our programs need, and how a person installs one. None is fetched by itself.

A state names plugins, and where to fetch them: a writer of the store could have a program of theirs run here.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

from monkey.errors import FleetError
from monkey_stacks.engine import installation

#: Plugins that come alone, and whose programs ours are. They have the version of the package `pulumi_NAME`.
_PLUGINS = ("aws", "gcp")
#: Comes with Pulumi's program, or not at all.
BUNDLED = "pulumi-python"
#: What Pulumi says of a plugin that is not here.
_MISSING = re.compile(
    r"no resource plugin 'pulumi-resource-(?P<name>[^']*)' found in the workspace"
    r"(?: at version v(?P<version>[0-9A-Za-z.+-]+))?(?: or on your \$PATH)?(?: from (?P<url>\S+))?"
)


def explain_missing_plugin(text: str, key: str) -> FleetError | None:
    """Return the error for a missing plugin, where `text` of Pulumi's is of one; `key`: where the state is."""
    found = _MISSING.search(text)
    if found is None or found["name"] == BUNDLED:
        return None
    name, version, url = found["name"], found["version"], found["url"]
    if name in _PLUGINS and version and not url:  # as our programs write it
        return _to_install(name, version)
    what = f"{name!r} {f'v{version}' if version else 'of any version'}" + (f" from {url!r}" if url else "")
    return FleetError(
        f"{key} names a plugin of Pulumi's that monkey does not use: {what}. Nothing was fetched or run",
        hint="somebody may have changed that object to run a program of theirs here: do not install the plugin; "
        "find out who wrote it, and put an older version in its place",
    )


def check_plugin(name: str) -> str:
    """Say which plugin Pulumi would take for our programs. Raises FleetError where it is missing."""
    version = _wanted(name)
    program = f"pulumi-resource-{name}"
    kept = installation.find_home() / "plugins" / f"resource-{name}-v{version}" / program
    path = shutil.which(program, path=installation.make_search_path()) or (kept if kept.is_file() else None)
    if path is None:
        raise _to_install(name, version)
    return f"plugin {name} v{version} at {path}"


def select_version(package: str, recorded: str | None) -> dict[str, str]:
    """Return the version with which Pulumi's provider works on a state: ours, whichever the state names.

    Raises FleetError for a state of a newer one, which ours may not understand.
    """
    from semver import VersionInfo

    if recorded is None or package not in _PLUGINS or find_spec(f"pulumi_{package}") is None:
        return {}
    ours = _wanted(package)
    if VersionInfo.parse(recorded.removeprefix("v")) > VersionInfo.parse(ours):
        raise FleetError(
            f"the state of the machines was written with pulumi-{package} {recorded}, and this machine has {ours}",
            hint=f"install that version of the package pulumi-{package}, or a newer one, where monkey is installed",
        )
    return {"version": ours}


def _to_install(name: str, version: str) -> FleetError:
    there = f"PULUMI_HOME={shlex.quote(str(installation.find_home()))} " if os.environ.get("PULUMI_HOME") else ""
    return FleetError(
        f"Pulumi's plugin {name} v{version} is not installed on this machine ({platform.node()})",
        hint=f"run: {there}{installation.name_pulumi()} plugin install resource {name} v{version}",
    )


def _wanted(name: str) -> str:
    """Return the version that our program asks for: that of Pulumi's package for Python, which imports for seconds."""
    spec = find_spec(f"pulumi_{name}")
    assert spec is not None and spec.origin is not None, "who has no package has no program that asks"
    return str(json.loads(Path(spec.origin).with_name("pulumi-plugin.json").read_text())["version"])
