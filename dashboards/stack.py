"""Starts InfluxDB, Grafana and Telegraf in containers, with passwords that nobody else has: `invoke stack`."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENV = HERE / ".env"
#: As compose.yaml has them.
ORG, BUCKET = "lab", "monkey"
#: Seconds that InfluxDB may take for one answer.
PATIENCE = 30
MADE = ("INFLUX_ADMIN_PASSWORD", "INFLUX_ADMIN_TOKEN", "GRAFANA_ADMIN_PASSWORD")
#: What each token that InfluxDB makes may do with the bucket, and for whom it is.
TOKENS = {
    "INFLUX_TOKEN": (("read", "write"), "monkey's agents, doctor and backfill"),
    "GRAFANA_TOKEN": (("read",), "Grafana"),
    "TELEGRAF_TOKEN": (("write",), "Telegraf"),
}


class StackError(Exception):
    """It could not be started; the message says why, and what to do."""


def start(env: Path = ENV) -> str:
    """Start all three, and return what a person is to be told. Raises StackError."""
    compose = _compose(env)
    known = read(env)
    made = [name for name in MADE if name not in known]
    known |= {name: secrets.token_hex(24) for name in made}
    if made:
        write(env, known)
    _run([*compose, "up", "--detach", "--wait", "influxdb"])
    missing = [name for name in TOKENS if name not in known]
    if missing:
        known |= tokens(_url(known, "INFLUX_PORT", 8086), known["INFLUX_ADMIN_TOKEN"], missing)
        write(env, known)
    _run([*compose, "up", "--detach", "--wait"])
    return told(env, known, [*made, *missing])


def told(env: Path, known: Mapping[str, str], made: list[str]) -> str:
    """Return what stands where, without any secret's value."""
    influx, grafana = _url(known, "INFLUX_PORT", 8086), _url(known, "GRAFANA_PORT", 3000)
    settings = f"{{url: {influx}, org: {ORG}, bucket: {BUCKET}, token: INFLUX_TOKEN}}"
    return "\n".join(
        [
            f"made: {', '.join(made)}, in {env}" if made else f"passwords and tokens are those in {env}",
            f"Grafana: {grafana} (user admin, password GRAFANA_ADMIN_PASSWORD)",
            f"Telegraf: udp://127.0.0.1:{known.get('TELEGRAF_PORT', 8094)}, for programs that are no jobs",
            f"InfluxDB: {influx}; for monkey.yaml:",
            f"  metrics: {{influxdb: {settings}}}",
            f"and for its secret, here: export $(grep ^INFLUX_TOKEN= {env})",
        ]
    )


def tokens(url: str, admin: str, names: list[str]) -> dict[str, str]:
    """Make tokens that are good for our bucket alone; returns name → token. Raises StackError."""
    org = _ask(url, admin, f"orgs?org={ORG}")["orgs"][0]["id"]
    bucket = _ask(url, admin, f"buckets?org={ORG}&name={BUCKET}")["buckets"][0]["id"]
    resource = {"type": "buckets", "id": bucket, "orgID": org}
    made = {}
    for name in names:
        actions, whose = TOKENS[name]
        body = {
            "orgID": org,
            "description": f"for {whose}",
            "permissions": [{"action": action, "resource": resource} for action in actions],
        }
        made[name] = _ask(url, admin, "authorizations", body)["token"]
    return made


def read(env: Path) -> dict[str, str]:
    """Return what stands in the file, {} where there is none."""
    lines = env.read_text().splitlines() if env.exists() else []
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def write(env: Path, known: Mapping[str, str]) -> None:
    """Write the file, for its owner alone from its first byte."""
    aside = env.with_name(f"{env.name}.{os.getpid()}")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write("".join(f"{name}={value}\n" for name, value in known.items()))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(env)
    finally:
        aside.unlink(missing_ok=True)


def _url(known: Mapping[str, str], port: str, default: int) -> str:
    address = known.get("STACK_ADDRESS", "")
    return f"http://{address if address not in ('', '0.0.0.0') else '127.0.0.1'}:{known.get(port, default)}"


def _compose(env: Path) -> list[str]:
    docker = shutil.which("docker")
    if docker is None:
        raise StackError(
            "there is no docker here; InfluxDB and Grafana that run elsewhere do as well: docs/dashboards.md tells how"
        )
    for words, what in (
        (["compose", "version"], "has no compose"),
        (["info"], "does not answer: is its daemon running?"),
    ):
        found = subprocess.run([docker, *words], capture_output=True, text=True)
        if found.returncode:
            reason = (found.stderr.strip().splitlines() or [""])[0]
            raise StackError(f"{docker} {what} ({reason})")
    return [docker, "compose", "--file", str(HERE / "compose.yaml"), "--env-file", str(env)]


def _run(command: list[str]) -> None:
    if subprocess.run(command).returncode:
        raise StackError(f"failed: {' '.join(command)}")


def _ask(url: str, admin: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Token {admin}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{url}/api/v2/{path}", json.dumps(body).encode() if body is not None else None, headers
    )
    try:
        with _OPENER.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as exc:
        exc.close()
        hint = "; it was set up with another password: is there a volume of an earlier .env?" if exc.code == 401 else ""
        raise StackError(f"InfluxDB refused {path}: {exc.code}{hint}") from exc
    except OSError as exc:
        raise StackError(f"InfluxDB at {url} does not answer: {exc}") from exc


#: It is on this machine: no proxy stands between.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
