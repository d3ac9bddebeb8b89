"""What `monkey doctor` finds out of a real InfluxDB, of both versions, and says to do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from monkey.apply.inspect.doctor_checks import _influx
from monkey.metrics.influx.influx_check import inspect_influx
from monkey.protocol.status.job_view import JobState, JobView
from monkey.spec.project.influx_settings import parse_influx_settings
from tests import influx
from tests.loops import Run

DAY = 86400


def test_one_that_takes_points_tells_how_long_it_keeps_them_and_writes_none(influx_server: influx.Server) -> None:
    for days in (0, 7):
        database = influx_server.database(days * DAY)
        found = inspect_influx(at(database), database.secrets)
        assert (found.trouble, found.retention) == ("", days * DAY)
        assert found.version == ("1.8.10" if influx_server.is_v1 else "2.9.1")
        assert database.rows("SHOW MEASUREMENTS") == []


def test_each_way_to_be_wrong_has_its_words_and_what_to_do(influx_server: influx.Server) -> None:
    ours, other = influx_server.database(), influx_server.database()
    place, nobodys = at(ours), dict.fromkeys(ours.secrets, "nobody's")
    bare = replace(place, token="", username="", password="")
    v1 = influx_server.is_v1
    environment = f"a variable {influx.PASSWORD if v1 else influx.TOKEN} in the environment goes before that file"
    ways = [
        (place, nobodys, "does not take the " + ("password" if v1 else "token"), "~/.config/monkey/secrets"),
        (place, nobodys, "does not take the", environment),
        (bare, {}, "asks for credentials, and monkey.yaml names none", "add token"),
        (replace(place, bucket="nowhere"), ours.secrets, "there is no", "CREATE DATABASE" if v1 else "bucket create"),
        (replace(place, bucket=other.name), ours.secrets, repr(other.name), "GRANT ALL" if v1 else "auth create"),
        (replace(place, url="http://127.0.0.1:1"), ours.secrets, "does not answer: Connection refused", "start"),
        (replace(place, url=f"{place.url}/below"), ours.secrets, "expected InfluxDB at", "mend `url:`"),
    ]
    if v1:
        of_no_policy = f"database {ours.name!r} has no retention policy 'short': retention policy not found: short"
        make = f'CREATE RETENTION POLICY "short" ON "{ours.name}"'
        named = replace(place, username="", password="", token=influx.TOKEN)  # 1.8 takes it for a token, too
        pair = {influx.TOKEN: place.credential(ours.secrets)}
        ways += [
            (replace(place, bucket=f"{ours.name}/short"), ours.secrets, of_no_policy, make),
            (
                replace(place, bucket="nowhere/short"),
                ours.secrets,
                "no database 'nowhere'",
                'CREATE DATABASE "nowhere"',
            ),
            (replace(named, bucket="nowhere"), pair, "there is no database 'nowhere'", 'CREATE DATABASE "nowhere"'),
            (replace(named, bucket=other.name), pair, "the right to write", f'GRANT ALL ON "{other.name}" TO "USER"'),
        ]
    else:
        ways += [
            (replace(place, org="labb"), ours.secrets, "there is no organisation 'labb'", "mend `org:`"),
            (replace(place, org="labb"), ours.secrets, 'organization name "labb" not found', "influx org list"),
            (replace(place, org=""), ours.secrets, "found no `org:` in monkey.yaml", "add `org:`"),
        ]
    for there, secrets, said, hint in ways:
        found = inspect_influx(there, secrets)
        assert said in found.trouble and hint in found.hint, (there, found)
        assert not any(secret in f"{found}" for secret in ours.secrets.values())
        assert "--org " not in found.hint or f"--org {there.org or 'nobody'}" in found.hint


def test_a_sweep_older_than_what_is_kept_is_told(influx_server: influx.Server, run: Run, monkeypatch: Any) -> None:
    database = influx_server.database(DAY)
    for name, value in database.secrets.items():
        monkeypatch.setenv(name, value)

    async def told(age: float) -> list[tuple[bool, str, str]]:
        import time

        job = JobView("j", JobState.SUCCEEDED, started=time.time() - age)
        view: Any = SimpleNamespace(state=SimpleNamespace(name="old"), ids=["j"], view=lambda _: job)
        return [(check.wrong, check.text, check.hint) async for check in _influx(at(database), [view])]

    assert [wrong for wrong, _, _ in run(told(DAY / 2))] == [False]
    _, (wrong, text, hint) = run(told(3 * DAY))
    assert wrong and "keeps points for 1d, and old began 3d ago" in text
    assert ("DURATION INF" if influx_server.is_v1 else "--retention 0") in hint


def at(database: influx.Database) -> Any:
    return parse_influx_settings({"influxdb": database.settings})
