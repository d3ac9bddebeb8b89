"""Writing to InfluxDB, by influxdb-client's synchronous API: the one place that knows of its exceptions.

Not its batching one, which loses points: whatever was not written within its retries, or was in a batch with one bad
line, or waits when the process is killed.
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
#: What never leaves the machine is not compressed.
_HERE = ("localhost", "127.0.0.1", "::1")
_DROPPED = re.compile(r"dropped=(\d+)")


class InfluxUnavailable(Exception):
    """InfluxDB does not answer, or not now: what was sent may be there or not, and is to be sent again."""

    #: Seconds after which it asked to be asked again.
    after: float = 0.0


class LinesRefused(Exception):
    """InfluxDB does not want some of these lines, and never will."""

    #: How many it left out, where it says so; what it does not name it has written.
    dropped: int = 0


class InfluxDenied(Exception):
    """InfluxDB does not want us: the token, the bucket or the address is wrong, which somebody may fix."""


class InfluxClient:
    """A connection to one InfluxDB."""

    def __init__(self, influx: InfluxSettings, secrets: Mapping[str, str]) -> None:
        """Write to `influx`; `secrets`: name to value of those that it names. Raises InfluxDenied for an address of
        none.

        To InfluxDB 1.8 influxdb-client speaks as to 2.x: "user:password" is its token, and "database" or
        "database/retention policy" its bucket.
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
    if not status:
        return InfluxUnavailable(said)
    return InfluxDenied(said)


def _said(exc: ApiException) -> str:
    """Return what the server said, in one line."""
    said = str(getattr(exc, "message", "") or exc.reason or "").strip()
    return " ".join(filter(None, (str(exc.status or ""), " ".join(said.split())[:300])))


def _retry_after(exc: ApiException) -> float:
    told = str(dict(exc.headers or ()).get("Retry-After", ""))
    return float(told) if told.isdigit() else 0.0


def _network(exc: BaseException) -> str:
    """Say what is wrong with the network as a person would."""
    text = str(exc)
    for told in ("Connection refused", "timed out", "Name or service not known", "No route to host", "reset by peer"):
        if told in text:
            return told.lower()
    return " ".join(text.split())[:200] or type(exc).__name__
