"""`mounts:` of a provider: the file systems that its machines must have before an agent claims a job."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value

#: An export of NFS: server:/path.
_EXPORT = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):/[^\s\x00-\x1f]*\Z")
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")
#: Mounts of one provider, and characters of one command, at most: user data of machines is short.
_MOST, _LONGEST = 16, 1000


@dataclass(frozen=True)
class Mount:
    """A file system that must be mounted."""

    path: str
    #: What is mounted there, as the kernel names it; "" for anything.
    source: str = ""
    #: What root runs on a rented machine to mount it.
    command: str = ""


def parse_mounts(raw: Any) -> tuple[Mount, ...]:
    """Return the mounts of a mapping without mistakes, in its order."""
    found = []
    for path, of in (raw or {}).items():
        found.append(Mount(path, command=of["command"]) if isinstance(of, dict) else Mount(path, of or ""))
    return tuple(found)


def find_mount_mistakes(raw: Any, *, rented: bool) -> Iterator[Mistake]:
    """Yield what is wrong with `mounts:`; machines that are `rented` mount by themselves, hosts do not."""
    if not isinstance(raw, dict):
        yield Mistake((), f"expected paths and what is mounted there, found {describe_value(raw)}", _hint(rented))
        return
    if len(raw) > _MOST:
        yield Mistake((), f"expected at most {_MOST} mounts, found {len(raw)}", "mount a directory above them")
    for path, of in raw.items():
        if not isinstance(path, str) or not _is_plain_path(path):
            told = f"expected the absolute path of a mount, found {describe_value(path)}"
            yield Mistake((str(path),), told, "write it as `findmnt` shows it: /data", on_key=True)
        elif isinstance(of, dict):
            yield from (mistake.under((path,)) for mistake in _find_command_mistakes(of, rented))
        elif of is None and rented:
            yield Mistake((path,), "nothing says what is mounted there", _hint(rented))
        elif of is not None and (not isinstance(of, str) or not _EXPORT.match(of)):
            told = f"expected an export of NFS, found {describe_value(of)}"
            yield Mistake((path,), told, "write server:/path" + ("" if rented else ", or nothing for any file system"))


def spell_mounts(mounts: tuple[Mount, ...]) -> str:
    """Return paths and sources as one word of a command line."""
    return json.dumps({mount.path: mount.source for mount in mounts})


def read_mounts(text: str) -> tuple[Mount, ...]:
    """Read what `spell_mounts` wrote. Raises MistakesError, ValueError."""
    raw = {path: source or None for path, source in dict(json.loads(text)).items()}
    if mistakes := list(find_mount_mistakes(raw, rented=False)):
        raise MistakesError(mistakes)
    return parse_mounts(raw)


def list_mount_steps(mounts: tuple[Mount, ...]) -> list[list[str]]:
    """Return path, source and command of each, as the settings of a machine have them."""
    return [list(astuple(mount)) for mount in mounts]


def _is_plain_path(path: str) -> bool:
    return (
        path.startswith("/")
        and path not in ("/", "//")
        and path == posixpath.normpath(path)
        and not _UNFIT.search(path)
    )


def _find_command_mistakes(of: dict[Any, Any], rented: bool) -> Iterator[Mistake]:
    command = of.get("command")
    if not rented:
        hint = "mount it there by /etc/fstab or a unit of systemd: on hosts, monkey only looks"
        yield Mistake((), "hosts run no command to mount", hint)
    elif [*of] != ["command"] or not isinstance(command, str) or not command.strip() or "\0" in command:
        yield Mistake((), f"expected a command, found {describe_value(command or of)}", _hint(rented))
    elif len(command) > _LONGEST:
        told = f"expected at most {_LONGEST} characters, found {len(command)}"
        yield Mistake(("command",), told, "put a script into the machines' image")


def _hint(rented: bool) -> str:
    other = '{command: "gcsfuse -o allow_other bucket /bucket"}' if rented else "nothing, for any file system"
    return f"write /data: nas:/export, or {other}"
