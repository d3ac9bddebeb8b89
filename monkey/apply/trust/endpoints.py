"""Endpoints that get credentials of this machine, and whether they may.

A repository can name an endpoint in monkey.yaml, and so can a stranger's branch: `monkey plan` there would send keys to
it. So an endpoint needs a user's word: the environment names it, or the file of `--project-file`, or the user confirmed
it once for this project. In CI, where all branches share a machine, confirmations do not count.

A bucket without `endpoint:` needs no word. Requests go to the cloud itself, whose host names no repository chooses. A
signature is good for one request, and a token reaches the cloud alone. At `ssh://`, host keys are checked.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from monkey.apply.trust.known_endpoints import KnownEndpoints
from monkey.ci_run import API_VARIABLES, is_ci
from monkey.errors import EndpointRefused, StoreError
from monkey.spec.project.project import STORE_VARIABLE, Project
from monkey.spec.project.store_url import STORE_URL_OPTIONS
from monkey.spec.yaml.mistakes import Mistake, NodePath
from monkey.store.bucket.url import parse_bucket_url

#: Names endpoints that this machine trusts, with spaces or commas.
TRUST_VARIABLE = "MONKEY_TRUSTED_ENDPOINTS"
#: Variables of the clouds' own tools that name an endpoint, by the scheme of the stores there.
_CLOUD_VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "gs": (),
}
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Endpoint(NamedTuple):
    """A place that gets credentials of this machine, or what is made with them."""

    #: Words: "the store", "InfluxDB".
    what: str
    url: str
    #: The key of monkey.yaml that names it; () where the environment does.
    key: NodePath
    #: Variables that name it, too, if it is trusted.
    variables: tuple[str, ...] = (TRUST_VARIABLE,)


def list_store_endpoints(project: Project) -> list[Endpoint]:
    """Return the endpoint of the project's store, if it is no cloud's own."""
    scheme = project.store.partition("://")[0].lower()
    if "://" not in project.store or scheme not in STORE_URL_OPTIONS:
        return []
    try:
        address = parse_bucket_url(project.store)
    except StoreError:
        return []  # nothing is sent there: who opens the store is told, with the line
    if address.endpoint is None:
        return []
    named = "endpoint" in address.options and project.chosen.get("store") != STORE_VARIABLE
    key = ("store", "endpoint") if named else ()
    return [Endpoint("the store", address.endpoint, key, (TRUST_VARIABLE, *_CLOUD_VARIABLES[scheme]))]


def list_report_endpoints(project: Project) -> list[Endpoint]:
    """Return where metrics, notices and results are sent with a secret of this machine."""
    # Previews and `monkey notify` send a token to the forge, too: they ask for themselves.
    found = list_forge_endpoints(project) if any(channel.kind == "forge" for channel in project.notify) else []
    if project.influx is not None and project.influx.secrets:
        found.append(Endpoint("InfluxDB", project.influx.url, ("metrics", "influxdb", "url")))
    for at, channel in enumerate(project.notify):
        if channel.key and not channel.named:
            found.append(Endpoint("a webhook", channel.to, ("notify", at, channel.kind)))
    return found


def list_forge_endpoints(project: Project) -> list[Endpoint]:
    """Return the forge's API, if monkey.yaml names it: that of the remote's own host is as trusted as the remote."""
    if project.forge is None or not project.forge.api:
        return []
    return [Endpoint("the forge", project.forge.api, ("forge", "api"), (TRUST_VARIABLE, *API_VARIABLES))]


def check_endpoints(project: Project, endpoints: Iterable[Endpoint]) -> None:
    """Raise EndpointRefused for an endpoint that must not get credentials: by plain http, or only the repository's."""
    for endpoint in endpoints:
        check_transport(project, endpoint)
        if not is_trusted(project, endpoint):
            raise refuse_endpoint(project, endpoint)


def check_transport(project: Project, endpoint: Endpoint) -> None:
    """Raise EndpointRefused where credentials would leave this machine in plain text."""
    if urlsplit(endpoint.url).scheme == "https" or _is_here(urlsplit(endpoint.url).hostname or ""):
        return
    message = f"credentials for {endpoint.what} would go to {endpoint.url} in plain text, for anybody on the way"
    hint = "write https://, or lay a tunnel (`ssh -N -L 9000:localhost:9000 HOST`) and write http://127.0.0.1:9000"
    raise _refuse(project, endpoint, message, hint)


def is_trusted(project: Project, endpoint: Endpoint) -> bool:
    """Return whether a user chose this endpoint."""
    if not endpoint.key or endpoint.key[0] in project.chosen:
        return True
    named = [url for name in endpoint.variables for url in re.split(r"[\s,]+", os.environ.get(name, "")) if url]
    confirmed = [] if is_ci() else KnownEndpoints(project.root).urls
    return any(_covers(url, endpoint.url) for url in [*named, *confirmed])


def refuse_endpoint(project: Project, endpoint: Endpoint) -> EndpointRefused:
    """Return the error for an endpoint that no user chose."""
    message = (
        f"credentials for {endpoint.what} would go to {endpoint.url}, and only the repository says so: a stranger's "
        "branch could name any place"
    )
    ask = "`monkey status`" if endpoint.what == "the store" else "`monkey apply`"
    hint = f"set {TRUST_VARIABLE}={endpoint.url}, or read a trusted commit's monkey.yaml by --project-file"
    if is_ci():
        hint = f"in CI, {hint}"
    elif endpoint in (*list_store_endpoints(project), *list_report_endpoints(project)):
        hint = f"if you trust it, {hint}; or run {ask} in a terminal, which asks once"
    else:
        hint = f"if you trust it, {hint}"
    return _refuse(project, endpoint, message, hint)


def _refuse(project: Project, endpoint: Endpoint, message: str, hint: str) -> EndpointRefused:
    if not endpoint.key:
        return EndpointRefused(f"{message}; the environment names it", hint=hint)
    file = project.read_document()
    return EndpointRefused(problem=file.place(Mistake(_find_key(file.data, endpoint.key), message, hint)))


def _find_key(data: object, key: NodePath) -> NodePath:
    """Return the key's place in the file, which may say the same in a shorter form."""
    if key[0] == "notify" and isinstance(data, dict) and isinstance(data["notify"], dict):
        return ("notify", *key[2:])
    return key


def _covers(trusted: str, url: str) -> bool:
    """Return whether a trusted URL is this one, or one above it."""
    try:
        (place, path), (asked, below) = _take_apart(trusted), _take_apart(url)
    except ValueError:
        return False
    if place != asked:
        return False
    # A path that climbs, or hides a sign, is below the whole host alone.
    return not path or path == below or (below.startswith(f"{path}/") and not re.search(r"%|\\|/\.", below))


def _take_apart(url: str) -> tuple[tuple[str, str, int | None], str]:
    parts = urlsplit(url)
    return (parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)), parts.path.rstrip("/")


def _is_here(host: str) -> bool:
    """Return whether what is sent to a host stays on this machine: loopback, or an address of its own."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        if address.is_loopback:
            return True
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        # Nothing is sent: the kernel only says by which address it would, and to its own it says the same.
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((host, 9))
            return ipaddress.ip_address(way.getsockname()[0]) == address
    except (ValueError, OSError):
        return False
