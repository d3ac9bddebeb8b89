"""`forge:` in monkey.yaml: where the project's commits are reviewed. Tokens never stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from monkey.ci_run import ForgeKind
from monkey.spec.yaml.mistakes import Mistake, describe_value, suggest_word

FORGE_TYPES: tuple[ForgeKind, ...] = ("github", "gitea", "gitlab")
_KEYS = ("type", "api", "repository")
_EXAMPLE = "write forge: {type: github}"
_API_HINT = "write https://HOST/api/v1 (gitea), https://HOST/api/v4 (gitlab) or https://HOST/api/v3 (github)"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


@dataclass(frozen=True)
class ForgeSettings:
    """A project's forge; "" for what the URL of the remote says."""

    type: ForgeKind
    #: Where its REST API is, without a `/` at its end.
    api: str = ""
    #: "owner/name", or GitLab's "group/subgroup/name".
    repository: str = ""


def parse_forge_settings(raw: Mapping[str, Any] | None) -> ForgeSettings | None:
    """Return what a `forge:` without mistakes says; None for none."""
    if raw is None:
        return None
    return ForgeSettings(raw["type"], raw.get("api", "").rstrip("/"), raw.get("repository", ""))


def find_forge_mistakes(raw: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `forge:`."""
    path = ("forge",)
    if not isinstance(raw, dict):
        return [Mistake(path, f"expected a mapping, found {describe_value(raw)}", _EXAMPLE)]
    return [mistake.under(path) for mistake in _find_key_mistakes(raw)]


def is_repository_name(text: str, kind: ForgeKind) -> bool:
    """Can this be a repository's name at a forge of that type? Groups nest at GitLab alone."""
    return re.fullmatch(rf"{_PART}(/{_PART}){'+' if kind == 'gitlab' else ''}", text) is not None


def _find_key_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in raw:
        if key not in _KEYS:
            yield Mistake((key,), f"unknown key {key!r} of forge", suggest_word(str(key), _KEYS, "keys"), on_key=True)
    kind = raw.get("type")
    if "type" not in raw:
        yield Mistake((), "expected type, found none", _EXAMPLE)
    elif kind not in FORGE_TYPES:
        hint = suggest_word(str(kind), FORGE_TYPES, "types") if isinstance(kind, str) else _EXAMPLE
        what = "; Forgejo is of type gitea" if kind == "forgejo" else ""
        yield Mistake(("type",), f"expected {', '.join(FORGE_TYPES)}{what}, found {describe_value(kind)}", hint)
    if "api" in raw:
        yield from _find_api_mistakes(raw["api"])
    name = raw.get("repository", "owner/name")
    if not isinstance(name, str) or not is_repository_name(name, "gitlab" if kind == "gitlab" else "gitea"):
        hint = "write repository: owner/name, without the host; leave it out to take that of the remote"
        yield Mistake(("repository",), f"expected owner/name, found {describe_value(name)}", hint)


def _find_api_mistakes(api: Any) -> Iterator[Mistake]:
    try:
        parts = urlsplit(api) if isinstance(api, str) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, good = None, False
    if parts is not None and ("@" in parts.netloc or parts.query or parts.fragment):
        # What was found is not shown: there may be a token in it.
        yield Mistake(("api",), "expected a URL with no user, no password and no query", _API_HINT)
    elif not good or re.search(r"\s", api) or not api.isprintable():
        yield Mistake(("api",), f"expected the URL of a REST API, found {describe_value(api)}", _API_HINT)
