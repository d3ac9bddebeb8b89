"""The user's logins at registries of images, from the files that `docker login` and `podman login` write."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monkey.errors import ImageError
from monkey.spec.job.image_reference import ImageReference

#: Docker's own name for its registry in these files.
_DOCKER_HUB = "https://index.docker.io/v1/"
_HELPER = re.compile(r"[A-Za-z0-9_.-]+")
#: Seconds that a helper may take: it may ask a keychain.
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class RegistryLogin:
    """A user's name at a registry, and the password or token; `place`: the file or helper that has them."""

    user: str
    password: str = field(repr=False)
    place: str

    @property
    def basic(self) -> str:
        """The value of an `Authorization` header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def find_login(image: ImageReference, env: Mapping[str, str], home: Path) -> RegistryLogin | None:
    """Return the login for an image's registry, from the first file that has one; None for an anonymous user.

    Raises ImageError where a file cannot be read, or a helper does not answer.
    """
    for file in _list_files(env, home):
        try:
            data = json.loads(file.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as exc:
            raise ImageError(
                f"expected logins at registries in {file}, found a file that cannot be read: "
                f"{getattr(exc, 'strerror', None) or 'no JSON'}",
                hint="`docker login` or `podman login` writes it",
            ) from exc
        if found := _find_in_file(data if isinstance(data, dict) else {}, image, str(file), env):
            return found
    return None


def _list_files(env: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield where the files may be, in the order in which podman looks: a file that the environment names is alone."""
    if env.get("REGISTRY_AUTH_FILE"):
        yield Path(env["REGISTRY_AUTH_FILE"])
        return
    if env.get("XDG_RUNTIME_DIR"):
        yield Path(env["XDG_RUNTIME_DIR"], "containers", "auth.json")
    elif os.access(default := f"/run/containers/{os.getuid()}/auth.json", os.R_OK):
        yield Path(default)
    yield Path(env.get("XDG_CONFIG_HOME") or home / ".config", "containers", "auth.json")
    yield Path(env.get("DOCKER_CONFIG") or home / ".docker", "config.json")


def _find_in_file(
    data: Mapping[str, Any], image: ImageReference, place: str, env: Mapping[str, str]
) -> RegistryLogin | None:
    hub = image.registry == "docker.io"
    helpers, logins = _read_object(data, "credHelpers"), _read_object(data, "auths")
    names = [_DOCKER_HUB, "docker.io", "index.docker.io"] if hub else [image.registry, f"https://{image.registry}"]
    for name in names:
        if helper := helpers.get(name):
            return _ask_helper(helper, name, env)
    # podman keeps logins for a part of a registry, too: the longest that fits is meant.
    parts = image.name.split("/")
    for name in [*("/".join(parts[:n]) for n in range(len(parts), 1, -1)), *names]:
        if (login := logins.get(name)) and isinstance(login, dict) and (found := _read_login(login, place)):
            return found
    store = data.get("credsStore")
    known = any(name in logins for name in names)
    return _ask_helper(store, names[0], env) if store and (known or hub) else None


def _read_object(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _read_login(login: Mapping[str, Any], place: str) -> RegistryLogin | None:
    try:
        user, _, password = base64.b64decode(str(login.get("auth") or "")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, password = (str(login.get(key) or value) for key, value in (("username", user), ("password", password)))
    return RegistryLogin(user, password, place) if user else None


def _ask_helper(helper: Any, name: str, env: Mapping[str, str]) -> RegistryLogin | None:
    """Ask a program of the user's, as docker does; None where it knows no login there. Raises ImageError."""
    program = f"docker-credential-{helper}"
    hint = "is it on the PATH? `docker login` takes the same program"
    if not isinstance(helper, str) or not _HELPER.fullmatch(helper):
        raise ImageError(f"expected the name of a helper that keeps logins, found {helper!r}", hint=hint)
    try:
        asked = subprocess.run(
            [program, "get"],
            input=name,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            env=dict(env),
        )
        if asked.returncode:
            if "not found" in asked.stdout:
                return None
            raise ImageError(f"{program}, which keeps the login for {name}, ended with {asked.returncode}", hint=hint)
        data = json.loads(asked.stdout)
        return RegistryLogin(str(data["Username"]), str(data["Secret"]), program)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as exc:
        # Never its output: it may hold the password.
        raise ImageError(f"{program}, which keeps the login for {name}, gives no answer", hint=hint) from exc
