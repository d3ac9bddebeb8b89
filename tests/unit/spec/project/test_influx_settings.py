"""`metrics: influxdb:` in monkey.yaml: what it may say, and what is wrong with the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.influx_settings import DEFAULT_SPOOL_BYTES, InfluxSettings
from monkey.spec.project.project import load_project

V2 = InfluxSettings("http://h:8086", "monkey", "lab", "INFLUX_TOKEN")
V1 = InfluxSettings("https://h", "monkey", username="me", password="INFLUX_PASSWORD", spool=2 << 20)


def influx(text: str, root: Path) -> InfluxSettings | None:
    (root / "monkey.yaml").write_text(text)
    return load_project(root).influx


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("project: a", None),
        ("metrics: {influxdb: {url: http://h:8086/, org: lab, bucket: monkey, token: INFLUX_TOKEN}}", V2),
        (
            "metrics: {influxdb: {url: https://h, database: monkey, username: me, password: INFLUX_PASSWORD,"
            " spool: 2MiB}}",
            V1,
        ),
        ("metrics: {influxdb: {url: http://h, database: monkey/year}}", InfluxSettings("http://h", "monkey/year")),
        (
            "metrics: {influxdb: {url: http://h/below, bucket: b}}",
            InfluxSettings("http://h/below", "b", spool=DEFAULT_SPOOL_BYTES),
        ),
    ],
)
def test_what_it_may_say(text: str, expected: InfluxSettings | None, tmp_path: Path) -> None:
    assert influx(text, tmp_path) == expected


def test_settings_hold_it_and_machines_know_its_secrets() -> None:
    for each in (V1, V2, None):
        settings = replace(SweepSettings(), influx=each, secrets=["OTHER"])
        assert SweepSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
        assert settings.machine_secrets == ["OTHER", *(each.secrets if each else ())]
    assert "influx" not in SweepSettings().to_json()
    assert V1.credential({"INFLUX_PASSWORD": "p:w"}) == "me:p:w"
    assert V2.credential({"INFLUX_TOKEN": "t=="}) == "t=="
    assert InfluxSettings("http://h", "b").credential({}) == ""


@pytest.mark.parametrize(
    ("text", "marked", "message", "hint"),
    [
        ("metrics: 3", "3", "expected a mapping with 'influxdb', found 3", "INFLUX_TOKEN"),
        ("metrics: {}", "{}", "expected a mapping with 'url'", "INFLUX_TOKEN"),
        ("metrics: {influxdb: x}", "x}", "expected a mapping with 'url', found the text 'x'", "INFLUX_TOKEN"),
        ("metrics: {influx: {url: http://h, bucket: b}}", "influx:", "unknown key 'influx'", "'influxdb'"),
        ("metrics: {influxdb: {bucket: b}}", "{bucket", "expected a mapping with 'url'", "https://host:8086"),
        ("metrics: {influxdb: {url: h:8086, bucket: b}}", "h:8086", "expected the server's URL", "https://host:8086"),
        ("metrics: {influxdb: {url: 'http://h:x', bucket: b}}", "'http", "expected the server's URL", "8086"),
        ("metrics: {influxdb: {url: 'http://me:pw@h', bucket: b}}", "'http", "without user and password", "secrets"),
        ("metrics: {influxdb: {url: http://h, buket: b}}", "{url", "expected a bucket or a database", "bucket: NAME"),
        ("metrics: {influxdb: {url: http://h, bucket: b, orgg: x}}", "orgg", "unknown key 'orgg'", "'org'"),
        ("metrics: {influxdb: {url: http://h, bucket: b, org: 3}}", "3}", "expected text, found 3", "quotes"),
        ("metrics: {influxdb: {url: http://h, bucket: b, database: d}}", "{url", "found both", "bucket: NAME"),
        (
            "metrics: {influxdb: {url: http://h, database: b, org: x}}",
            "org",
            "'org' is none of InfluxDB 1.8",
            "username",
        ),
        ("metrics: {influxdb: {url: http://h, bucket: b, username: x}}", "username", "none of InfluxDB 2", "token"),
        ("metrics: {influxdb: {url: http://h, database: b, username: x}}", "{url", "together", "password"),
        ("metrics: {influxdb: {url: http://h, bucket: b, token: 3}}", "3}", "the name of a secret", "INFLUX_TOKEN"),
        ("metrics: {influxdb: {url: http://h, bucket: b, token: PATH}}", "PATH", "'PATH' is no secret", "another"),
        ("metrics: {influxdb: {url: http://h, bucket: b, spool: much}}", "much", "expected a size", "GiB"),
        ("metrics: {influxdb: {url: http://h, bucket: b, spool: 3}}", "3}", "expected 1MiB or more", "1GiB"),
    ],
)
def test_mistakes(text: str, marked: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        influx(text, tmp_path)
    found = {(p.file, p.line, p.column, p.message): p.hint or "" for p in caught.value.problems}
    place = ("monkey.yaml", 1, text.index(marked) + 1)
    [about] = [(where[3], hint) for where, hint in found.items() if where[:3] == place and message in where[3]]
    assert hint in about[1]


def test_a_token_that_stands_there_itself_is_refused_and_not_shown_in_what_we_say(tmp_path: Path) -> None:
    token = "w7DqQzL1Zr3hNfXk9yVbT2mCsE5uGpA8jR4oI6tKx0aBcDeFgHiJkLmN=="
    for key, kind in (("token", "bucket"), ("password", "username: me, database")):
        for value in (token, "hunter2", token.upper()[:40] * 2):
            with pytest.raises(SpecError) as caught:
                influx(f"metrics:\n  influxdb:\n    {{url: http://h, {kind}: b,\n    {key}: {value}}}\n", tmp_path)
            (found,) = caught.value.problems
            assert (found.line, found.column) == (4, len(f"    {key}: ") + 1)
            assert value not in f"{found.message} {found.hint}"
            assert "expected the name of a secret" in found.message and "~/.config/monkey/secrets" in (found.hint or "")
