"""The containers' files, and what `invoke stack` makes: passwords for their owner alone, tokens for one bucket."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from dashboards.stack import BUCKET, ENV, MADE, ORG, TOKENS, StackError, read, told, write
from monkey.metrics.names import JOBS, METRICS, SYSTEM
from tests.grafana import BOARDS, NAMES

ROOT = BOARDS.parent
SCHEMAS = Path(__file__).parent / "schemas"


def loaded(path: str) -> Any:
    """Return a YAML file of dashboards/."""
    return YAML(typ="safe").load((BOARDS / path).read_text())


def test_compose_is_valid_by_the_specifications_schema() -> None:
    schema = json.loads((SCHEMAS / "compose-spec.json").read_text())
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(loaded("compose.yaml"))] == []


def test_images_are_pinned_and_passwords_have_no_default() -> None:
    services = loaded("compose.yaml")["services"]
    for service in services.values():
        assert re.fullmatch(r"[\w/]+:\d+\.\d+\.\d+", service["image"])
        assert all(port.startswith(("${STACK_ADDRESS:-127.0.0.1}:", "127.0.0.1:")) for port in service["ports"])
    needed = re.findall(r"\$\{(\w+):\?", (BOARDS / "compose.yaml").read_text())
    assert sorted(needed) == sorted(MADE)
    secret = [
        name for service in services.values() for name in service["environment"] if re.search("PASSWORD|TOKEN", name)
    ]
    asked = [services[s]["environment"][n] for s in services for n in secret if n in services[s]["environment"]]
    assert len(asked) == len(MADE) + 2 and all(value.startswith("${") for value in asked)


def test_grafana_is_told_of_what_is_mounted() -> None:
    grafana = loaded("compose.yaml")["services"]["grafana"]
    mounted = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    [provider] = loaded("provisioning/dashboards/monkey.yaml")["providers"]
    for name in NAMES:
        assert mounted[f"./{name}.json"] == f"{provider['options']['path']}/{name}.json"
    assert mounted["./provisioning"] == "/etc/grafana/provisioning"
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in mounted.values()
    [source] = loaded("provisioning/datasources/influxdb.yaml")["datasources"]
    influxdb = loaded("compose.yaml")["services"]["influxdb"]["environment"]
    assert source["type"] == "influxdb" and source["jsonData"]["version"] == "InfluxQL"
    assert source["jsonData"]["dbName"] == influxdb["DOCKER_INFLUXDB_INIT_BUCKET"]
    assert source["secureJsonData"] == {"httpHeaderValue1": "Token ${GRAFANA_TOKEN}"}
    assert "GRAFANA_TOKEN" in grafana["environment"]


def test_telegraf_sends_into_our_bucket_and_never_for_us() -> None:
    service, settings = (
        loaded("compose.yaml")["services"]["telegraf"],
        tomllib.loads((BOARDS / "telegraf.conf").read_text()),
    )
    [listener], [output] = settings["inputs"]["socket_listener"], settings["outputs"]["influxdb_v2"]
    assert service["volumes"] == ["./telegraf.conf:/etc/telegraf/telegraf.conf:ro"]
    # Whoever may send may send anything: only from this machine, and nothing that the dashboards read.
    [port] = service["ports"]
    assert port.startswith("127.0.0.1:") and port.endswith(f"{listener['service_address'].removeprefix('udp://')}/udp")
    assert set(output["namedrop"]) == {METRICS, JOBS, SYSTEM}
    assert (output["organization"], output["bucket"]) == (ORG, BUCKET)
    assert {output["token"], *output["urls"]} == {f"${{{name}}}" for name in service["environment"]}


def test_the_data_source_for_1_8_is_what_its_comment_says() -> None:
    """Whoever has InfluxDB 1.8 takes the comment's lines for those from `url:` on, and one of it into compose.yaml."""
    head, _, rest = (BOARDS / "provisioning/datasources/influxdb.yaml").read_text().partition("    url: ")
    example = "".join(line[1:] + "\n" for line in rest.splitlines() if line.startswith("#    "))
    [source] = YAML(typ="safe").load(head + example)["datasources"]
    [ours] = loaded("provisioning/datasources/influxdb.yaml")["datasources"]
    assert source.keys() == ours.keys() | {"user"}
    assert source["jsonData"].items() == ours["jsonData"].items() - {("httpHeaderName1", "Authorization")}
    assert source["secureJsonData"] == {"password": "${INFLUX_PASSWORD}"}
    passed = re.search("`(INFLUX_PASSWORD: .*?)` below GRAFANA_TOKEN", rest)
    assert passed and YAML(typ="safe").load(passed[1]) == {"INFLUX_PASSWORD": "${INFLUX_PASSWORD-}"}
    assert "GRAFANA_TOKEN" in loaded("compose.yaml")["services"]["grafana"]["environment"]


def test_secrets_are_their_owners_alone_and_never_told(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    known = {name: f"secret-{name}" for name in (*MADE, *TOKENS)} | {"GRAFANA_PORT": "3001"}
    before = os.umask(0)
    try:
        write(env, known)
    finally:
        os.umask(before)
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert read(env) == known and [path.name for path in tmp_path.iterdir()] == [".env"]
    said = told(env, known, list(MADE))
    assert str(env) in said and ":3001" in said and "INFLUX_TOKEN" in said and "secret-" not in said
    assert f"{ENV.relative_to(ROOT)}*" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize(
    ("docker", "said"),
    [
        ("", "there is no docker here"),
        ("echo 'unknown command: docker compose' >&2; exit 1", "has no compose"),
        ('[ "$1" = compose ] || { echo "Cannot connect" >&2; exit 1; }', "is its daemon running"),
    ],
)
def test_without_docker_it_says_so_and_makes_nothing(tmp_path: Path, docker: str, said: str) -> None:
    if docker:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{docker}\n")
        (tmp_path / "docker").chmod(0o755)
    env = tmp_path / "env"
    code = f"from pathlib import Path\nfrom dashboards.stack import start\nstart(Path({str(env)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode != 0 and StackError.__name__ in done.stderr and said in done.stderr
    assert not env.exists()
