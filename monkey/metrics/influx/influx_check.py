"""The check of an InfluxDB: whether it answers, whether we may write, and how long it keeps points."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from monkey.metrics.influx.influx_client import explain_certificate_error
from monkey.spec.project.influx_settings import InfluxSettings

#: Seconds to wait for an answer.
_PATIENCE_SECONDS = 30.0
_OTHER = -1
_UNITS = {"h": 3600, "m": 60, "s": 1}
_CERTIFICATE_HINT = (
    "let an authority sign it that this machine knows, or set SSL_CERT_FILE to a file with that authority's "
    "certificate, where monkey and its agents are started; jobs go on meanwhile"
)
_NO_POLICY = "retention policy not found"
#: What 1.8 says, and 2.x does not.
_V1_SAYS = (_NO_POLICY, "database not found", "to write to database")


@dataclass(frozen=True)
class InfluxStatus:
    """The result of the check of an InfluxDB."""

    #: What was expected and found, and what to do; "" where nothing is wrong.
    trouble: str = ""
    hint: str = ""
    #: The version that it names; "" where something is wrong.
    version: str = ""
    #: Seconds that it keeps points; 0: for ever; None: we may not know.
    retention: float | None = None


class _Failed(Exception):
    """A failed request: the HTTP status and the server's words; 0: no answer came; _OTHER: it is no InfluxDB."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def inspect_influx(influx: InfluxSettings, secrets: Mapping[str, str]) -> InfluxStatus:
    """Return how an InfluxDB is, asked with the values of its secrets. Never raises."""
    try:
        credential = influx.credential(secrets)
        version = _version(influx)
        _write_nothing(influx, credential)
    except _Failed as exc:
        return InfluxStatus(*_explained(influx, exc))
    try:
        return InfluxStatus(version=version, retention=_retention(influx, credential))
    except (_Failed, LookupError, TypeError, ValueError):
        return InfluxStatus(version=version)


def suggest_retention(influx: InfluxSettings, version: str) -> str:
    """Return the command that makes this InfluxDB keep points for ever."""
    if _is_v1(influx, version):
        database, _, policy = influx.bucket.partition("/")
        return f"""in `influx`: ALTER RETENTION POLICY "{policy or "autogen"}" ON "{database}" DURATION INF"""
    return f"influx bucket list --name {influx.bucket} tells its ID; influx bucket update --id ID --retention 0"


def _version(influx: InfluxSettings) -> str:
    try:
        version = _ask(influx, "GET", "/ping")[0].get("X-Influxdb-Version", "")
    except _Failed as exc:
        raise exc if exc.status in (0, 401) or exc.status >= 500 else _Failed(_OTHER, f": {exc.status} {exc}") from exc
    if not version:
        raise _Failed(_OTHER, "")
    return version.removeprefix("v")


def _write_nothing(influx: InfluxSettings, credential: str) -> None:
    """Write a comment, which is no point: the server checks it as it checks points. Raises _Failed."""
    query = urlencode({"bucket": influx.bucket, "org": influx.org or "-"})
    _ask(influx, "POST", f"/api/v2/write?{query}", credential, b"# monkey doctor\n")


def _retention(influx: InfluxSettings, credential: str) -> float | None:
    if not influx.username:
        query = urlencode({"name": influx.bucket} | ({"org": influx.org} if influx.org else {}))
        try:
            [bucket] = json.loads(_ask(influx, "GET", f"/api/v2/buckets?{query}", credential)[1])["buckets"]
            return float(sum(rule["everySeconds"] for rule in bucket["retentionRules"] if rule["type"] == "expire"))
        except _Failed as exc:
            if exc.status != 404:
                raise
    database, _, policy = influx.bucket.partition("/")
    quoted = database.replace("\\", "\\\\").replace('"', '\\"')
    query = urlencode({"db": database, "q": f'SHOW RETENTION POLICIES ON "{quoted}"'})
    [result] = json.loads(_ask(influx, "GET", f"/query?{query}", credential)[1])["results"]
    [series] = result["series"]
    rows: list[dict[str, Any]] = [dict(zip(series["columns"], row, strict=True)) for row in series["values"]]
    ours = [row["duration"] for row in rows if (row["name"] == policy if policy else row["default"])]
    return float(sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([hms])", ours[0])))


def _ask(
    influx: InfluxSettings, method: str, path: str, credential: str = "", body: bytes | None = None
) -> tuple[Mapping[str, str], bytes]:
    request = urllib.request.Request(f"{influx.url}{path}", body, method=method)
    if credential:
        request.add_header("Authorization", f"Token {credential}")
    # No proxy of the environment: what sends the points takes none, either.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_PATIENCE_SECONDS) as answer:
            return answer.headers, answer.read()
    except urllib.error.HTTPError as exc:
        with exc:
            said = _said(exc.read())
        raise _Failed(exc.code, said) from exc
    except (OSError, ValueError) as exc:
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        raise _Failed(0, getattr(reason, "strerror", None) or str(reason) or type(reason).__name__) from exc


def _said(body: bytes) -> str:
    """Return the message of an answer in one line of at most 200 characters."""
    text = body.decode(errors="replace")
    try:
        told = json.loads(text)
        text = str(told.get("message") or told.get("error") or text)
    except (ValueError, AttributeError):
        pass
    return " ".join(text.split())[:200]


def _is_v1(influx: InfluxSettings, version: str = "", said: str = "") -> bool:
    return bool(influx.username) or version.startswith("1.") or any(words in said for words in _V1_SAYS)


def _explained(influx: InfluxSettings, exc: _Failed) -> tuple[str, str]:
    url = influx.url
    if exc.status == 0 and (wrong := explain_certificate_error(f"{exc}")):
        return f"{url}: {wrong}", _CERTIFICATE_HINT
    if exc.status == 0:
        return f"{url} does not answer: {exc}", "start the server, or mend `url:` in monkey.yaml; jobs go on meanwhile"
    if exc.status == 401:
        return _unknown(influx, exc)
    if exc.status == 403:
        database = influx.bucket.partition("/")[0]
        hint = (
            f'in `influx`: GRANT ALL ON "{database}" TO "{influx.username or "USER"}"'
            if _is_v1(influx, said=f"{exc}")
            else f"influx auth create --org {influx.org} --write-bucket ID --read-bucket ID makes one that may"
        )
        return f"{url}: expected the right to write to {influx.bucket!r}, found none: {exc}", hint
    if exc.status == 404 or _NO_POLICY in f"{exc}":
        return _missing(influx, f"{exc}")
    said = f"something else{exc}" if exc.status == _OTHER else f"{exc.status} {exc}".strip()
    return f"expected InfluxDB at {url}, found {said}", "mend `url:` in monkey.yaml, or look into the server's log"


def _unknown(influx: InfluxSettings, exc: _Failed) -> tuple[str, str]:
    """Return trouble and hint for an InfluxDB that does not accept our credentials."""
    url, secret = influx.url, " and ".join(influx.secrets)
    if not secret:
        return f"{url} asks for credentials, and monkey.yaml names none", "add token, or username and password"
    what = f"password in the secret {secret} of user {influx.username!r}" if influx.username else f"token in {secret}"
    hint = (
        "write the right value into ~/.config/monkey/secrets, where monkey and its agents are started; "
        f"a variable {secret} in the environment goes before that file: mend or unset it"
    )
    return f"{url} does not take the {what}: {exc}", hint


def _missing(influx: InfluxSettings, said: str) -> tuple[str, str]:
    """Return trouble and hint for a missing bucket, database or organisation; `said`: the server's words."""
    url, name = influx.url, influx.bucket
    database, _, policy = name.partition("/")
    if _NO_POLICY in said:
        hint = (
            f'mend `database:` in monkey.yaml (DATABASE/POLICY); in `influx`: SHOW RETENTION POLICIES ON "{database}" '
            f'tells them, CREATE RETENTION POLICY "{policy}" ON "{database}" DURATION INF REPLICATION 1 makes it'
        )
        return f"{url}: database {database!r} has no retention policy {policy!r}: {said}", hint
    if _is_v1(influx, said=said):
        return f"{url}: there is no database {database!r} for us: {said}", f'in `influx`: CREATE DATABASE "{database}"'
    tells = "`influx org list`, with an operator's token, tells their names"
    if not influx.org:
        return f"{url}: expected an organisation, found no `org:` in monkey.yaml", f"add `org:`; {tells}"
    if said.startswith("organization"):
        return f"{url}: there is no organisation {influx.org!r} for us: {said}", f"mend `org:` in monkey.yaml; {tells}"
    hint = f"influx bucket create --name {name} --org {influx.org}; or give the token the right to it"
    return f"{url}: there is no bucket {name!r} for us: {said}", hint
