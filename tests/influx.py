"""InfluxDB 2.x and 1.8 for tests: started, killed, started again, set up with credentials, and asked by plain HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.services import PATIENCE, free_port, influxd_program

#: Organisation and administrator of every server.
ORG, ADMIN = "lab", "admin"
#: Names of secrets, as `metrics:` in monkey.yaml gives them.
TOKEN, PASSWORD = "INFLUX_TOKEN", "INFLUX_PASSWORD"

#: A row of an answer: its tags and its columns, by name.
Row = dict[str, Any]


@dataclass(frozen=True)
class Database:
    """A database of a server's (a bucket, in 2.x), and who may read and write it, and nothing else."""

    server: Server
    name: str
    #: What stands under `metrics: influxdb:` in monkey.yaml.
    settings: Mapping[str, str]
    #: The secrets that it names: name → value.
    secrets: Mapping[str, str]

    def rows(self, query: str) -> list[Row]:
        """Return the rows that an InfluxQL query gives, with `time` in ns; the administrator asks."""
        return self.server.ask(query, self.name)

    def write(self, lines: bytes) -> None:
        """Write points, in line protocol."""
        self.server.write(self.name, lines)

    def drop(self) -> None:
        """Drop it with all that it holds, and make it anew; its credentials are good for it still."""
        self.server.empty(self.name)


class Server:
    """One influxd, at one address, with its data in one directory; both outlive its process."""

    def __init__(self, program: str, data: Path, index: str = "", address: str = "127.0.0.1") -> None:
        """Prepare the server; it does not run yet; see `serve`."""
        self.program, self.data = program, data
        self._index, self._place = index, f"{address}:{free_port()}"
        self.url = f"http://{self._place}"
        self.admin = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0

    @property
    def is_v1(self) -> bool:
        """Whether this is 1.8, which has databases, users and passwords, and no tokens."""
        return self.program == "influxd1"

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers."""
        command = [str(influxd_program(self.program)), *([] if self.is_v1 else self._options())]
        with (self.data / "log").open("ab") as log:
            env = self._environment() if self.is_v1 else {}
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.data / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, f"{command!r} does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def set_up(self) -> None:
        """Make the administrator, without whom the server answers nobody."""
        if self.is_v1:
            self.ask(f"CREATE USER {ADMIN} WITH PASSWORD '{self.admin}' WITH ALL PRIVILEGES")
        else:
            body = {"username": ADMIN, "password": self.admin, "org": ORG, "bucket": "first", "token": self.admin}
            self.api("POST", "setup", body)

    def database(self, retention_s: int = 0) -> Database:
        """Make a database of a new name. `retention_s`: how long it keeps points; 0: for ever."""
        self._count += 1
        name = f"m{self._count}"
        if self.is_v1:
            kept = f" WITH DURATION {retention_s}s" if retention_s else ""
            self.ask(f"CREATE DATABASE {name}{kept}")
            password = secrets.token_hex(16)
            self.ask(f"CREATE USER u{name} WITH PASSWORD '{password}'")
            self.ask(f"GRANT ALL ON {name} TO u{name}")
            settings = {"url": self.url, "database": name, "username": f"u{name}", "password": PASSWORD}
            return Database(self, name, settings, {PASSWORD: password})
        org = self.api("GET", f"orgs?org={ORG}")["orgs"][0]["id"]
        rules = [{"type": "expire", "everySeconds": retention_s}] if retention_s else []
        bucket = self.api("POST", "buckets", {"orgID": org, "name": name, "retentionRules": rules})["id"]
        resource = {"type": "buckets", "id": bucket, "orgID": org}
        may = [{"action": action, "resource": resource} for action in ("read", "write")]
        token = self.api("POST", "authorizations", {"orgID": org, "permissions": may})["token"]
        return Database(self, name, {"url": self.url, "org": ORG, "bucket": name, "token": TOKEN}, {TOKEN: token})

    def empty(self, name: str) -> None:
        """Remove all that a database holds."""
        if self.is_v1:
            self.ask(f"DROP DATABASE {name}")
            self.ask(f"CREATE DATABASE {name}")
            self.ask(f"GRANT ALL ON {name} TO u{name}")  # went with the database
        else:  # a bucket that is made anew has another id, for which its token is no good
            span = {"start": "1970-01-01T00:00:00Z", "stop": "2200-01-01T00:00:00Z"}
            self.api("POST", f"delete?{urlencode({'org': ORG, 'bucket': name})}", span)

    def ask(self, query: str, database: str = "") -> list[Row]:
        """Return the rows that a statement of InfluxQL gives; the administrator asks. An error fails the test."""
        form = urlencode({"q": query, "db": database, "epoch": "ns"}).encode()
        [result] = self._request("POST", "/query", form)["results"]
        assert "error" not in result, f"{query}: {result['error']}"
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], values, strict=True))}
            for series in result.get("series", ())
            for values in series.get("values", ())
        ]

    def write(self, database: str, lines: bytes) -> None:
        """Write points; the administrator does."""
        where = {"db": database} if self.is_v1 else {"org": ORG, "bucket": database}
        self._request("POST", f"{'/write' if self.is_v1 else '/api/v2/write'}?{urlencode(where)}", lines)

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask 2.x's own API, below /api/v2, as the administrator."""
        return self._request(method, f"/api/v2/{path}", json.dumps(body).encode() if body is not None else None)

    def _request(self, method: str, path: str, body: bytes | None) -> Any:
        kind = "application/x-www-form-urlencoded" if path == "/query" else "application/json"
        pair = base64.b64encode(f"{ADMIN}:{self.admin}".encode()).decode()
        who = f"Basic {pair}" if self.is_v1 else f"Token {self.admin}"
        headers = {"Content-Type": kind, "Authorization": who}
        request = urllib.request.Request(f"{self.url}{path}", body, headers, method=method)
        try:
            with _OPENER.open(request, timeout=PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as exc:
            with exc:
                said = exc.read().decode()
            raise AssertionError(f"{method} {path}: {exc.code} {said}") from exc
        return json.loads(text) if text else {}

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), _OPENER.open(f"{self.url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    def _environment(self) -> dict[str, str]:
        said = {
            "REPORTING_DISABLED": "true",
            "BIND_ADDRESS": f"127.0.0.1:{free_port()}",
            "META_DIR": f"{self.data}/meta",
            "DATA_DIR": f"{self.data}/data",
            "DATA_WAL_DIR": f"{self.data}/wal",
            "DATA_QUERY_LOG_ENABLED": "false",
            "HTTP_BIND_ADDRESS": self._place,
            "HTTP_AUTH_ENABLED": "true",
            "HTTP_LOG_ENABLED": "false",
            "MONITOR_STORE_ENABLED": "false",
            **({"DATA_INDEX_VERSION": self._index} if self._index else {}),
        }
        return {"HOME": str(self.data), **{f"INFLUXDB_{name}": value for name, value in said.items()}}

    def _options(self) -> list[str]:
        paths = {"bolt-path": "bolt", "sqlite-path": "sqlite", "engine-path": "engine"}
        options = [f"--{option}={self.data}/{name}" for option, name in paths.items()]
        return [*options, f"--http-bind-address={self._place}", "--reporting-disabled", "--log-level=error"]


#: No proxy stands between a test and its server.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def serve(program: str, data: Path, index: str = "", address: str = "127.0.0.1") -> Iterator[Server]:
    """Run a server that has an administrator. `program`: `influxd` (2.x) or `influxd1` (1.8).

    `index`: where 1.8 keeps what it knows of series, "inmem" (its default) or "tsi1" (on disk, as 2.x always does).
    `address`: where it listens.
    """
    server = Server(program, data, index, address)
    try:
        server.start()
        server.set_up()
        yield server
    finally:
        server.kill()
