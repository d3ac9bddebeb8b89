"""monkey.yaml: the project's name, store and providers. Read without pydantic, because every command reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monkey.errors import SpecError
from monkey.spec import address, document
from monkey.spec.mistake import Mistake, Mistakes, describe, suggest
from monkey.spec.units import duration, size

FILE = "monkey.yaml"

#: A project or provider: part of keys in the store.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_NOT_YET = {
    "secrets": "name them in specs; values come from the environment, or from ~/.config/monkey/secrets",
    "metrics": "until then, metrics are kept with the results: monkey results",
    "notify": "until then, wait for the sweep: monkey apply && your-own-notice",
}
_TYPES_NOT_YET = ("ssh", "aws", "gcp", "azure", "slurm", "kubernetes", "k8s")
_KEYS = ("project", "store", "providers")
_PROVIDER_KEYS = ("type", "max_slots", "idle_timeout", "cache_size")


@dataclass(frozen=True)
class Provider:
    """An entry of `providers:`: machines of one kind."""

    type: str = "local"
    #: Jobs at once on one machine; None for as many as its resources allow.
    max_slots: int | None = None
    #: Seconds without work after which an agent leaves.
    idle_timeout: float = 10.0
    #: Bytes that a machine may keep of code, environments and datasets; None for half of its disk.
    cache_size: int | None = None


@dataclass(frozen=True)
class Project:
    """What all sweeps of a repository share."""

    root: Path
    name: str
    #: An absolute path, or a URL with its options.
    store: str
    providers: Mapping[str, Provider] = field(default_factory=lambda: {"local": Provider()})


def load_project(start: Path) -> Project:
    """Find and read the monkey.yaml above `start`; without one, the repository (or `start`) with defaults.

    Raises SpecError.
    """
    root = find_root(start)
    path = root / FILE
    if path.exists() or path.is_symlink():
        return _read(path, root)
    return _make({}, root)


def find_root(start: Path) -> Path:
    """Return the nearest directory from `start` upward that has a monkey.yaml or a .git; else `start` itself."""
    start = start.absolute()
    return next((at for at in (start, *start.parents) if (at / FILE).exists() or (at / ".git").exists()), start)


def _read(path: Path, root: Path) -> Project:
    try:
        file = document.read(path, FILE)
    except SpecError as error:
        if _is_blank(path):
            return _make({}, root)
        raise error
    if not isinstance(file.data, dict):
        raise file.error([Mistake((), f"expected a mapping, found {describe(file.data)}", "write: project: NAME")])
    mistakes = [*_unknown((), file.data, _KEYS), *_mistakes(file.data)]
    if mistakes:
        raise file.error(mistakes)
    return _make(file.data, root)


def _is_blank(path: Path) -> bool:
    """Say whether a file holds nothing but comments: everything in it has a default."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, ValueError):
        return False
    return all(not line.strip() or line.lstrip().startswith("#") or line.strip() == "---" for line in lines)


def _make(data: Mapping[str, Any], root: Path) -> Project:
    providers = {name: _provider(raw) for name, raw in data.get("providers", {"local": None}).items()}
    return Project(root, data.get("project", _default_name(root)), address.address(data.get("store"), root), providers)


def _provider(raw: Mapping[str, Any] | None) -> Provider:
    raw = raw or {}
    default = Provider()
    idle = duration(raw["idle_timeout"]) if "idle_timeout" in raw else default.idle_timeout
    kept = size(raw["cache_size"]) if "cache_size" in raw else None
    return Provider(raw.get("type", default.type), raw.get("max_slots"), idle, kept)


def _default_name(root: Path) -> str:
    """Turn the directory's name into one that keys can hold."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("._-")[:63]
    return name if _NAME.match(name) else "project"


def _mistakes(data: Mapping[str, Any]) -> list[Mistake]:
    found = []
    if "project" in data and not (isinstance(data["project"], str) and _NAME.match(data["project"])):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        found.append(Mistake(("project",), f"expected a name, found {describe(data['project'])}", hint))
    if "store" in data:
        found += address.mistakes(data["store"])
    if "providers" in data:
        found += _providers(data["providers"])
    return found


def _providers(raw: Any) -> list[Mistake]:
    if not isinstance(raw, dict) or not raw:
        return [Mistake(("providers",), f"expected providers by name, found {describe(raw)}", "write {local: {}}")]
    found = []
    for name, body in raw.items():
        path = ("providers", name)
        if not _NAME.match(name):
            hint = "use letters, digits, '.', '_' and '-'"
            found.append(Mistake(path, f"{name!r} cannot name a provider", hint, on_key=True))
        if body is None:
            continue
        if not isinstance(body, dict):
            found.append(Mistake(path, f"expected a mapping, found {describe(body)}", "write {type: local}"))
            continue
        found += [*_unknown(path, body, _PROVIDER_KEYS), *_provider_mistakes(path, body)]
    return found


def _provider_mistakes(path: tuple[str, ...], body: Mapping[str, Any]) -> list[Mistake]:
    found = []
    kind, slots = body.get("type", "local"), body.get("max_slots")
    if kind in _TYPES_NOT_YET if isinstance(kind, str) else False:
        hint = "until then, use type: local; agents on other machines can join: monkey-agent --store URL"
        found.append(Mistake((*path, "type"), f"providers of type {kind!r} are not there yet", hint))
    elif kind != "local":
        found.append(
            Mistake((*path, "type"), f"expected a provider's type, found {describe(kind)}", "write type: local")
        )
    if "max_slots" in body and (isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= 4096):
        message = f"expected a whole number of 1 or more, found {describe(slots)}"
        found.append(Mistake((*path, "max_slots"), message, "leave it out for as many jobs as fit"))
    for key, read in (("idle_timeout", duration), ("cache_size", size)):
        if key in body:
            try:
                read(body[key])
            except Mistakes as error:
                found += [m.under((*path, key)) for m in error.mistakes]
    return found


def _unknown(path: tuple[str, ...], data: Mapping[str, Any], keys: tuple[str, ...]) -> list[Mistake]:
    found = []
    for key in data:
        if not path and key in _NOT_YET:
            found.append(Mistake((key,), f"{key!r} is not there yet", _NOT_YET[key], on_key=True))
        elif key not in keys:
            found.append(Mistake((*path, key), f"unknown key {key!r}", suggest(key, keys, "keys"), on_key=True))
    return found
