"""Where a project's repository is at its forge: by `forge:` in monkey.yaml, and by the URL of the remote."""

from __future__ import annotations

import re
from typing import NamedTuple

from monkey.ci_run import ForgeKind
from monkey.errors import ForgeError
from monkey.spec.project.forge_settings import ForgeSettings, is_repository_name

#: Where the API is of a forge of that type, below its host.
_API_PATHS: dict[ForgeKind, str] = {"github": "/api/v3", "gitea": "/api/v1", "gitlab": "/api/v4"}
_PUBLIC_HOSTS: dict[str, ForgeKind] = {"github.com": "github", "codeberg.org": "gitea"}
#: First words of hosts that say what runs there.
_HOST_WORDS: dict[str, ForgeKind] = {"gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea"}
_URL = re.compile(r"(?P<scheme>[a-z+]+)://(?:[^/@]*@)?(?P<host>[\w.-]+)(?P<port>:\d+)?/+(?P<path>.+)")
#: As scp writes a host and a path.
_SCP = re.compile(r"(?:[^/@:]*@)?(?P<host>[\w.-]{2,}):(?P<path>[^/].*)")


class ForgeLocation(NamedTuple):
    """A repository at a forge, as `open_forge` takes it."""

    forge: ForgeKind
    api: str
    repository: str


def locate_forge(settings: ForgeSettings | None, remote: str) -> ForgeLocation:
    """Return where the repository is: what `forge:` leaves out is read from the URL of the git remote.

    `api` is that of the remote's host: https://api.github.com, https://HOST/api/v3 (github), /api/v4 (gitlab), /api/v1
    (gitea). Without `forge:`, the type is that of a host whose name says it. Raises ForgeError.
    """
    root, host, path = _split_remote(remote)
    kind = settings.type if settings else _name_type(host)
    if kind is None:
        where = (
            f"its remote is at {host}, which may be any" if host else "its remote `origin` is a path, not at a forge"
        )
        where = where if remote else "it has no git remote `origin`"
        raise ForgeError(
            f"expected a project with a forge, found none: {where}",
            hint="write forge: {type: gitea} (or github, gitlab) into monkey.yaml",
        )
    above, name = ("", path) if kind == "gitlab" else _split_path(path)
    repository, api = (settings.repository, settings.api) if settings else ("", "")
    if not api and host:
        api = "https://api.github.com" if host == "github.com" else f"{root}{above}{_API_PATHS[kind]}"
    for key, found, example in (("api", api, "https://HOST/api/…"), ("repository", repository or name, "owner/name")):
        if not found or (key == "repository" and not is_repository_name(found, kind)):
            raise ForgeError(
                f"expected a remote `origin` at a forge, from which forge's {key} follows, found "
                + ("another" if host else "a path" if remote else "no remote `origin`"),
                hint=f"write forge: {{type: {kind}, {key}: {example}}} into monkey.yaml",
            )
    return ForgeLocation(kind, api, repository or name)


def _split_remote(remote: str) -> tuple[str, str, str]:
    """Return the root of a remote's server by HTTP, its host, and the path there; "" for a remote that has none."""
    found = _URL.fullmatch(remote) or _SCP.fullmatch(remote)
    scheme = found.groupdict().get("scheme", "") if found else "file"
    if found is None or scheme == "file":
        return "", "", ""
    host, path = found["host"].lower(), found["path"].strip("/").removesuffix(".git")
    # Of SSH, the port says nothing of where the API is.
    port = found["port"] or "" if scheme in ("http", "https") else ""
    return f"{'http' if scheme == 'http' else 'https'}://{host}{port}", host, path


def _split_path(path: str) -> tuple[str, str]:
    """Return what stands above "owner/name" (a server may be below a path), and that."""
    parts = path.split("/")
    return "".join(f"/{part}" for part in parts[:-2]), "/".join(parts[-2:])


def _name_type(host: str) -> ForgeKind | None:
    return _PUBLIC_HOSTS.get(host) or _HOST_WORDS.get(host.partition(".")[0])
