"""What an ssh:// URL names."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from monkey.errors import StoreError
from monkey.spec.project.ssh_host import find_host_mistake

_HINT = "write ssh://user@host/absolute/directory or ssh://host/~/directory; all else belongs in ~/.ssh/config"


@dataclass(frozen=True)
class SftpTarget:
    """A directory on a host; `user`, `port`: None leaves them to the user's configuration."""

    user: str | None
    host: str
    port: int | None
    #: Absolute, or beginning with '~/'.
    directory: str

    @property
    def url(self) -> str:
        """The one form of the URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{quote(self.user)}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        path = self.directory if self.directory.startswith("/") else f"/{self.directory}"
        return f"ssh://{user}{host}{port}{quote(path, safe='/~')}"


def parse_sftp_url(url: str) -> SftpTarget:
    """Return what `url` names; raises StoreError where it is no URL of a directory on a host."""
    try:
        parts = urlsplit(url)
        user, host, port = parts.username, parts.hostname, parts.port
    except ValueError as exc:
        raise StoreError(f"expected ssh://host/directory, found {url!r}: {exc}", hint=_HINT) from exc
    if parts.password is not None:
        raise StoreError(
            f"expected no password in the URL of the store at {host}", hint="use a key: `ssh-keygen`, `ssh-copy-id`"
        )
    if not host or parts.query or parts.fragment:
        raise StoreError(f"expected ssh://host/directory, found {url!r}", hint=_HINT)
    user = unquote(user) if user else None
    if wrong := find_host_mistake(host, user):
        raise StoreError(f"expected ssh://host/directory, found {url!r}: {wrong}", hint=_HINT)
    return SftpTarget(user, host, port, _directory(url, unquote(parts.path)))


def _directory(url: str, path: str) -> str:
    words = [word for word in path.split("/") if word not in ("", ".")]
    if not words or ".." in words or "\0" in path or (words[0].startswith("~") and words[0] != "~") or words == ["~"]:
        raise StoreError(f"expected a directory after the host, found {url!r}", hint=_HINT)
    return "/".join(words) if words[0] == "~" else "/" + "/".join(words)
