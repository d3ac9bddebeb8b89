"""The tokens that `invoke stack` makes, on InfluxDB itself: good for our bucket, and each for no more than it needs."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from dashboards.stack import BUCKET, TOKENS, StackError, tokens
from tests.influx import ORG, Server

QUERY = "/query?db={}&q=SELECT%20f%20FROM%20m"


@pytest.mark.parametrize("influx_server", ["influxd"], indirect=True)
def test_tokens_are_good_for_our_bucket_and_for_no_more_than_they_need(influx_server: Server) -> None:
    org = influx_server.api("GET", f"orgs?org={ORG}")["orgs"][0]["id"]
    for name in (BUCKET, "others"):
        influx_server.api("POST", "buckets", {"orgID": org, "name": name})
    made = tokens(influx_server.url, influx_server.admin, list(TOKENS))
    agents, grafana, telegraf = (made[name] for name in ("INFLUX_TOKEN", "GRAFANA_TOKEN", "TELEGRAF_TOKEN"))
    assert asked(influx_server, agents, BUCKET, b"m f=1") == 204
    assert asked(influx_server, agents, BUCKET) == 200 and asked(influx_server, grafana, BUCKET) == 200
    assert asked(influx_server, telegraf, BUCKET, b"n f=1") == 204
    assert b"series" in answered(influx_server, grafana) and b"series" not in answered(influx_server, telegraf)
    for token, bucket in ((grafana, BUCKET), (grafana, "others"), (agents, "others"), (telegraf, "others")):
        assert asked(influx_server, token, bucket, b"m f=2") in (401, 403, 404), "it may write"
    assert influx_server.ask("SELECT f FROM m", "others") == []
    assert [row["f"] for row in influx_server.ask("SELECT f FROM m", BUCKET)] == [1]


@pytest.mark.parametrize("influx_server", ["influxd"], indirect=True)
def test_a_volume_of_another_time_is_told(influx_server: Server) -> None:
    with pytest.raises(StackError, match="an earlier"):
        tokens(influx_server.url, "another token", list(TOKENS))


def asked(server: Server, token: str, bucket: str, lines: bytes | None = None) -> int:
    """Write lines, or ask in InfluxQL as Grafana does; returns the status."""
    way = f"/api/v2/write?org={ORG}&bucket={bucket}" if lines else QUERY.format(bucket)
    request = urllib.request.Request(server.url + way, lines, {"Authorization": f"Token {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def answered(server: Server, token: str) -> bytes:
    """Return what a query of our bucket answers: to who may not read, 200 and an error."""
    request = urllib.request.Request(server.url + QUERY.format(BUCKET), headers={"Authorization": f"Token {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())
