"""The InfluxDB client: writes points by influxdb-client's synchronous API, and alone knows that library's exceptions.

That library's batching API loses points. It loses those not written within its retries, those in a batch with one bad
line, and those that wait when the process is killed. So this module does not use it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from monkey.spec.project.influx_settings import InfluxSettings

if TYPE_CHECKING:
    from influxdb_client.rest import ApiException

#: Milliseconds to wait for a connection, and for an answer.
_TIMEOUT_MILLISECONDS = (10_000, 60_000)
#: Hosts that are this machine: what goes there is not compressed.
_HERE = ("localhost", "127.0.0.1", "::1")
_DROPPED = re.compile(r"dropped=(\d+)")
_CERTIFICATE = re.compile(r"certificate verify failed(?:: ([^()'\"]*[^()'\" ]))?", re.IGNORECASE)


class InfluxUnavailable(Exception):
    """InfluxDB does not answer, or not now: it may have the lines or not, and they must be sent again."""

    #: Seconds to wait before another try, as the server asked.
    after: float = 0.0


class LinesRefused(Exception):
    """InfluxDB refuses some of these lines for good."""

    #: Number of lines that it left out, where it says so (else 0); it has written the others.
    dropped: int = 0


class InfluxDenied(Exception):
    """InfluxDB denies us access: the token, the bucket or the address is wrong, which a person may fix."""


class InfluxClient:
    """A connection to one InfluxDB."""

    def __init__(self, influx: InfluxSettings, secrets: Mapping[str, str]) -> None:
        """Make a client of `influx`; `secrets`: name to value of those that it names.

        For InfluxDB 1.8, influxdb-client is used as for 2.x. Its token is then "user:password", and its bucket
        "database" or "database/retention policy". Raises InfluxDenied for an invalid URL.
        """
        from influxdb_client.client.influxdb_client import InfluxDBClient
        from influxdb_client.client.write_api import SYNCHRONOUS

        token = influx.credential(secrets)
        self._bucket, self._org = influx.bucket, influx.org or "-"
        try:
            client: Any = InfluxDBClient(
                url=influx.url, token=token or "-", org=self._org, timeout=_TIMEOUT_MILLISECONDS
            )
        except ValueError as exc:
            raise InfluxDenied(str(exc)) from exc
        self._gzip = urlsplit(influx.url).hostname not in _HERE
        if self._gzip:
            # Its own gzip takes ten times as long, for a twentieth less.
            client.api_client.set_default_header("Content-Encoding", "gzip")
        self._client = client
        self._api = client.write_api(write_options=SYNCHRONOUS)

    def write(self, lines: bytes) -> None:
        """Write whole lines of points. Raises InfluxUnavailable, LinesRefused, InfluxDenied."""
        from influxdb_client.rest import ApiException
        from urllib3.exceptions import HTTPError

        try:
            self._api.write(self._bucket, self._org, _gzipped(lines) if self._gzip else lines)
        except ApiException as exc:
            raise _translated(exc) from exc
        except (HTTPError, OSError) as exc:
            raise InfluxUnavailable(_network(exc)) from exc

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


def _translated(exc: ApiException) -> Exception:
    status, said = exc.status or 0, _said(exc)
    if status in (400, 413, 422):
        refused = LinesRefused(said)
        found = _DROPPED.search(said)
        refused.dropped = int(found[1]) if found else 0
        return refused
    if status == 429 or status >= 500:
        unavailable = InfluxUnavailable(said)
        unavailable.after = _retry_after(exc)
        return unavailable
    if not status:  # the library found no answer, and has its reason
        return InfluxUnavailable(_network(exc))
    return InfluxDenied(said)


def _said(exc: ApiException) -> str:
    """Return the server's status and message in one line."""
    said = str(getattr(exc, "message", "") or exc.reason or "").strip()
    return " ".join(filter(None, (str(exc.status or ""), " ".join(said.split())[:300])))


def _retry_after(exc: ApiException) -> float:
    told = str(dict(exc.headers or ()).get("Retry-After", ""))
    return float(told) if told.isdigit() else 0.0


def explain_certificate_error(text: str) -> str | None:
    """Return what is wrong with a server's certificate, if the text of an error is about that."""
    found = _CERTIFICATE.search(text)
    return found and f"its certificate is not accepted: {found[1] or 'it cannot be verified'}"


def _network(exc: BaseException) -> str:
    """Return what is wrong with the network in a few words."""
    text = str(exc)
    if wrong := explain_certificate_error(text):
        return wrong
    for told in ("Connection refused", "timed out", "Name or service not known", "No route to host", "reset by peer"):
        if told in text:
            return told.lower()
    return " ".join(text.split())[:200] or type(exc).__name__
