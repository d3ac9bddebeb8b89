"""`metrics: influxdb:` in monkey.yaml: where metrics are sent, and the names of the secrets that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from monkey.spec.project.grafana_links import find_grafana_mistakes
from monkey.spec.yaml.environment_names import is_system_variable
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, suggest_word
from monkey.spec.yaml.units import parse_size

#: Bytes of points that wait on a machine's disk, at most, while InfluxDB cannot be reached.
DEFAULT_SPOOL_BYTES = 1 << 30
_MIN_SPOOL_BYTES = 1 << 20
_V1, _V2 = ("database", "username", "password"), ("org", "bucket", "token")
_KEYS = ("url", *_V2, *_V1, "spool")
_EXAMPLE = "write {url: https://host:8086, org: lab, bucket: monkey, token: INFLUX_TOKEN}"
#: The name of a secret. Strict, because a token that is taken for a name would stand in plans and in the store.
_SECRET = re.compile(r"[A-Z_][A-Z0-9_]{0,63}\Z")


@dataclass(frozen=True)
class InfluxSettings:
    """Where a sweep's metrics are sent, besides the store. It holds names of secrets, never their values."""

    url: str
    #: A bucket of 2.x; for 1.8, a database, or DATABASE/POLICY.
    bucket: str
    org: str = ""
    #: 2.x: name of the secret that holds the token; "" where the server asks for none.
    token: str = ""
    #: 1.8: the user, and the name of the secret that holds the password; "" likewise.
    username: str = ""
    password: str = ""
    #: Bytes of points that wait on a machine's disk, at most.
    spool: int = DEFAULT_SPOOL_BYTES

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that a sender needs."""
        return tuple(filter(None, (self.token, self.password)))

    def credential(self, values: Mapping[str, str]) -> str:
        """Return what clients of 2.x take as a token, from the secrets' values; 1.8 takes `user:password` for one."""
        if self.username:
            return f"{self.username}:{values[self.password]}"
        return values[self.token] if self.token else ""

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads; what has its default is left out."""
        return {name: value for name, value in asdict(self).items() if value not in ("", DEFAULT_SPOOL_BYTES)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> InfluxSettings:
        """Read what `to_json` wrote."""
        return cls(**data)


def parse_influx_settings(raw: Mapping[str, Any] | None) -> InfluxSettings | None:
    """Return what a `metrics:` without mistakes says."""
    said = (raw or {}).get("influxdb")
    if said is None:
        return None
    return InfluxSettings(
        url=said["url"].rstrip("/"),
        bucket=said.get("bucket") or said["database"],
        org=said.get("org", ""),
        token=said.get("token", ""),
        username=said.get("username", ""),
        password=said.get("password", ""),
        spool=parse_size(said.get("spool", DEFAULT_SPOOL_BYTES)),
    )


def find_metrics_mistakes(raw: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `metrics:`."""
    path = ("metrics",)
    if not isinstance(raw, dict):
        return [
            Mistake(path, f"expected a mapping with 'influxdb', found {describe_value(raw)}", f"influxdb: {_EXAMPLE}")
        ]
    known = ("influxdb", "grafana")
    found = [
        Mistake((*path, key), f"unknown key {key!r} of metrics", suggest_word(key, known, "keys"), on_key=True)
        for key in raw
        if key not in known
    ]
    if "grafana" in raw:
        found += [mistake.under((*path, "grafana")) for mistake in find_grafana_mistakes(raw["grafana"])]
    said = raw.get("influxdb")
    if isinstance(said, dict):
        return found + [mistake.under((*path, "influxdb")) for mistake in _find_influx_mistakes(said)]
    if "influxdb" in raw or not raw.keys() - set(known):
        place = (*path, "influxdb") if "influxdb" in raw else path
        found.append(Mistake(place, f"expected a mapping with 'url', found {describe_value(said)}", _EXAMPLE))
    return found


def _find_influx_mistakes(said: Mapping[str, Any]) -> Iterator[Mistake]:
    for key, value in said.items():
        if key not in _KEYS:
            yield Mistake((key,), f"unknown key {key!r} of influxdb", suggest_word(key, _KEYS, "keys"), on_key=True)
        elif key not in ("url", "token", "password", "spool") and not _is_text(value):
            yield Mistake((key,), f"expected text, found {describe_value(value)}", "write it in quotes if need be")
    yield from _find_url_mistakes(said)
    yield from _find_version_mistakes(said)
    for key in ("token", "password"):
        if key not in said:
            continue
        if not (isinstance(said[key], str) and _SECRET.match(said[key])):
            # What was found is not shown: it may well be the secret itself.
            hint = f"write {key}: INFLUX_{key.upper()}, and its value into ~/.config/monkey/secrets"
            yield Mistake((key,), "expected the name of a secret: capital letters, digits and _", hint)
        elif is_system_variable(said[key]):
            yield Mistake((key,), f"{said[key]!r} is no secret: programs need it to run", "give it another name")
    if "spool" in said:
        yield from _find_spool_mistakes(said["spool"])


def _find_url_mistakes(said: Mapping[str, Any]) -> Iterator[Mistake]:
    url = said.get("url")
    if url is None:
        yield Mistake((), "expected a mapping with 'url', found none", _EXAMPLE)
        return
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, good = None, False
    if parts is not None and "@" in parts.netloc:
        hint = "name secrets instead: token, or username and password"
        yield Mistake(("url",), "expected a URL without user and password", hint)
    elif not good or parts is None or parts.query or parts.fragment or re.search(r"\s", str(url)):
        yield Mistake(("url",), f"expected the server's URL, found {describe_value(url)}", "write https://host:8086")


def _find_version_mistakes(said: Mapping[str, Any]) -> Iterator[Mistake]:
    """Hold the keys of 2.x and of 1.8 apart."""
    if ("bucket" in said) == ("database" in said):
        found = "both" if "bucket" in said else "neither"
        hint = "write bucket: NAME for InfluxDB 2, or database: NAME for 1.8"
        yield Mistake((), f"expected a bucket or a database, found {found}", hint)
        return
    ours, others, version = (_V2, _V1, "2") if "bucket" in said else (_V1, _V2, "1.8")
    for key in others:
        if key in said:
            mistake = (
                f"{key!r} is none of InfluxDB {version}, which {ours[0 if version == '1.8' else 1]!r} says this is"
            )
            yield Mistake((key,), mistake, f"its keys: {', '.join(ours)}", on_key=True)
    if version == "1.8" and ("username" in said) != ("password" in said):
        yield Mistake((), "expected username and password together, or neither", "password: the name of a secret")


def _find_spool_mistakes(raw: Any) -> Iterator[Mistake]:
    try:
        if parse_size(raw) < _MIN_SPOOL_BYTES:
            yield Mistake(("spool",), f"expected 1MiB or more, found {describe_value(raw)}", "leave it out for 1GiB")
    except MistakesError as error:
        yield from (mistake.under(("spool",)) for mistake in error.mistakes)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()
