"""The servers that the tests of metrics talk to: what one says that it has written is there after kill -9."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import influx


@pytest.mark.parametrize("program", ["influxd", "influxd1"])
def test_points_outlive_kill_and_are_written_by_who_may(
    require: Callable[[str], str], tmp_path: Path, program: str
) -> None:
    """Both versions take /api/v2/write, ask for credentials, and have a database of each test's own."""
    require(program)
    with influx.serve(program, tmp_path) as server:
        ours, other = server.database(), server.database()
        write(ours, "metrics,job=a loss=0.5,step=1i 1700000000000000001")
        for wrong in ({}, other.secrets):
            with pytest.raises(urllib.error.HTTPError) as refused:
                write(ours, "metrics,job=a loss=0.1 1700000000000000002", wrong)
            refused.value.close()
            assert refused.value.code in (401, 403, 404)  # 2.x hides a bucket from who may not write it
        server.kill()
        server.start()
        expected = {"time": 1700000000000000001, "job": "a", "loss": 0.5, "step": 1}
        assert ours.rows("SELECT * FROM metrics") == [expected]
        assert other.rows("SELECT * FROM metrics") == []
        ours.drop()
        assert ours.rows("SELECT * FROM metrics") == []
        write(ours, "metrics,job=b loss=0.5 1700000000000000003")
        assert [row["job"] for row in ours.rows("SELECT * FROM metrics")] == ["b"]


def write(database: influx.Database, lines: str, secrets: Mapping[str, str] | None = None) -> None:
    """Write as influxdb-client does: 1.8 takes `user:password` for a token."""
    settings = database.settings
    secret = next(iter((database.secrets if secrets is None else secrets).values()), "")
    token = f"{settings['username']}:{secret}" if "username" in settings else secret
    query = f"org={settings.get('org', '-')}&bucket={database.name}"
    request = urllib.request.Request(f"{settings['url']}/api/v2/write?{query}", lines.encode())
    request.add_header("Authorization", f"Token {token}")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()
