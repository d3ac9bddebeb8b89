"""The exporter against real servers: all arrives, once, whatever is wrong with the server, the token or the lines."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from monkey.metrics.spool import Spool, load_json
from monkey.metrics.spool_reader import SpoolBacklog
from monkey.spec.project.influx_settings import parse_influx_settings
from tests import influx

#: Seconds that anything here may take before it counts as never.
NEVER = 60.0
TAGS = {"sweep": "s", "job": "j", "attempt": 1, "host": "h"}
START = 1790000000000000000


def line(i: int, name: str = "loss") -> bytes:
    return b'{"m":{"%b":%#.17g},"step":%d,"t":%de-9}\n' % (name.encode(), i + 0.5, i, START + i)


class Site:
    """A spool with an attempt that writes, and an exporter."""

    def __init__(self, place: Path, database: influx.Database, **settings: Any) -> None:
        said = parse_influx_settings({"influxdb": {**database.settings, **settings}})
        assert said is not None
        self.database, self.root = database, str(place / "metrics")
        self.spool = Spool(self.root, said)
        self.directory = place / "attempt"
        self.directory.mkdir()
        self.spool.register("j.1", str(self.directory), TAGS)
        self._exporter: subprocess.Popen[bytes] | None = None

    def write(self, data: bytes, name: str = "0.jsonl") -> None:
        with (self.directory / name).open("ab") as file:
            file.write(data)

    def start(self, secrets: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "monkey.metrics.exporter", self.root]
        self._exporter = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.say(secrets=self.database.secrets if secrets is None else secrets)

    def say(self, **order: Any) -> None:
        assert self._exporter is not None and self._exporter.stdin is not None
        self._exporter.stdin.write(json.dumps(order).encode() + b"\n")
        self._exporter.stdin.flush()

    def kill(self) -> None:
        if self._exporter is not None:
            self._exporter.kill()
            self._exporter.communicate()

    def leave(self) -> int:
        """The agent is gone."""
        assert self._exporter is not None
        self._exporter.communicate(timeout=NEVER)
        return self._exporter.returncode

    def drain(self) -> None:
        self.say(drain=NEVER)
        assert self._exporter is not None and self._exporter.wait(NEVER) == 0
        self.leave()

    @property
    def state(self) -> dict[str, Any]:
        return load_json(f"{self.spool.path}/state.json")

    def rows(self, fields: str = "loss") -> list[influx.Row]:
        return self.database.rows(f"SELECT {fields} FROM metrics")


@pytest.fixture
def make(tmp_path: Path, influxdb: influx.Database) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def site(**settings: Any) -> Site:
        made.append(Site(tmp_path, influxdb, **settings))
        return made[-1]

    yield site
    for one in made:
        one.kill()


def until(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + NEVER
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def _more(site: Site, than: int) -> bool:
    return len(site.rows()) > than


def test_all_that_was_logged_is_there_with_its_tags_and_types(make: Callable[..., Site]) -> None:
    site = make()
    site.write(b"".join(map(line, range(3))) + line(3, "val loss, mean=1") + line(4, "step") + line(5, "a\\\\"))
    site.write(b'{"t":1790000001.25,"m":{"loss":"nan","gr\\u00f6\\u00dfe":0.1}}\n' + line(9, "time"), "3.7.jsonl")
    site.spool.add(b'jobs,job=j,sweep=s state="running",attempt=1i,param_lr="a \\"b\\" \\\\" 1790000000000000001\n')
    site.start()
    site.drain()
    expected = {"sweep": "s", "job": "j", "attempt": "1", "host": "h", "kept": True}
    found = [{name: value for name, value in row.items() if value is not None} for row in site.rows("*")]
    assert found == [
        *({"time": START + i, **expected, "rank": "0", "loss": i + 0.5, "step": i} for i in range(3)),
        {"time": START + 3, **expected, "rank": "0", "val loss, mean=1": 3.5, "step": 3},
        {"time": START + 4, **expected, "rank": "0", "step_": 4.5, "step": 4},
        {"time": START + 5, **expected, "rank": "0", "a/": 5.5, "step": 5},
        {"time": 1790000001250000000, **expected, "rank": "3.7", "größe": 0.1},
        {"time": 1790000001250000001, **expected, "rank": "3.7", "time_": 9.5, "step": 9},  # it cannot be before that
    ]
    [job] = site.database.rows("SELECT state, attempt, param_lr FROM jobs")
    assert (job["state"], job["attempt"], job["param_lr"]) == ("running", 1, 'a "b" \\')
    assert (site.state["sent"], site.state["dead"], site.state["error"]) == (9, 0, "")


def test_an_exporter_that_is_killed_loses_nothing_and_doubles_nothing(make: Callable[..., Site]) -> None:
    site = make()
    for kill in range(2):
        site.write(b"".join(line(i) for i in range(kill * 10_000, (kill + 1) * 10_000)))
        site.start()
        until(partial(_more, site, kill * 10_000), "some of it arrives")
        site.kill()
    site.start()
    site.drain()
    assert [row["loss"] for row in site.rows()] == [i + 0.5 for i in range(20_000)]


def test_lines_that_are_refused_go_to_the_dead_letters_alone(make: Callable[..., Site]) -> None:
    site = make()
    ours = line(1, "acc")
    site.spool.add(b"metrics,job=x acc=1i 1790000000000000001\n")  # it is an integer for ever
    site.start()
    until(lambda: site.state.get("sent") == 1, "the integer is there")
    bad = [b"metrics,job=x loss=1 2\n", b"garbage\n", b"metrics,job=x loss=NaN 3\n", b"metrics,job=x loss=2 4\n"]
    site.spool.add(b"".join(bad) * 50)
    site.write(b"".join(map(line, range(100, 3000))) + ours + b"".join(map(line, range(3000, 6000))))
    site.drain()
    assert [row["loss"] for row in site.rows() if row["time"] > START] == [i + 0.5 for i in range(100, 6000)]
    assert site.state["dead"] == 101 and site.state["sent"] == 1 + 100 + 5900
    dead = Path(site.spool.path, "dead.lp").read_text().splitlines()
    letters = [told for told in dead if not told.startswith("#")]
    assert sorted(set(letters)) == [
        "garbage", f"metrics,attempt=1,host=h,job=j,rank=0,sweep=s kept=true,acc=1.5,step=1i {START + 3000}",
        "metrics,job=x loss=NaN 3",
    ]  # fmt: skip
    assert "field type conflict" in "".join(dead)


def test_a_wrong_token_pauses_and_a_new_one_is_taken_at_once(make: Callable[..., Site]) -> None:
    site = make()
    site.write(b"".join(map(line, range(10))))
    site.start(secrets={})
    until(lambda: "the secret is not on this machine" in site.state.get("error", ""), "it says what is missing")
    site.say(secrets=dict.fromkeys(site.database.secrets, "wrong"))
    until(lambda: "40" in site.state["error"], "it says that it is turned away")
    assert site.state["since"] and site.state["owed"] > 0 and site.state["dead"] == 0
    secret = next(iter(site.database.secrets.values()))
    assert secret not in "".join(path.read_text() for path in Path(site.root).rglob("*") if path.is_file())
    site.say(secrets=dict(site.database.secrets))
    until(lambda: site.state["sent"] == 10, "it goes on")
    assert site.state["error"] == ""
    site.drain()
    assert len(site.rows()) == 10


@pytest.mark.slow
def test_an_agent_that_leaves_waits_for_no_dead_server(make: Callable[..., Site]) -> None:
    site = make(url="http://127.0.0.1:1")
    site.write(line(0))
    site.start()
    until(lambda: site.state.get("error"), "it does not answer")
    assert "connection refused" in site.state["error"]
    began = time.monotonic()
    site.drain()
    assert time.monotonic() - began < NEVER / 2
    site.start()
    until(lambda: site.state.get("error"), "it does not answer")
    assert site.leave() == 0  # the agent was killed
    assert SpoolBacklog(site.spool.path).counts["sent"] == 0
    assert [path.name for path in site.directory.iterdir()] == ["0.jsonl"]


@pytest.mark.slow
def test_a_server_that_is_away_costs_nothing_but_disk(
    require: Callable[[str], str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require("influxd1")
    data = tmp_path / "server"
    data.mkdir()
    with influx.serve("influxd1", data) as server:
        site = Site(tmp_path, server.database())
        request.addfinalizer(site.kill)
        site.write(line(0))
        site.start()
        until(lambda: site.state.get("sent") == 1, "the first one arrives")
        server.kill()
        site.write(b"".join(map(line, range(1, 100_000))))
        until(lambda: site.state["error"] and site.state["owed"] > 5_000_000, "it tells what it owes")
        server.start()
        until(lambda: site.state["sent"] == 100_000, "all arrives")
        assert site.state["error"] == ""
        [row] = site.database.rows("SELECT count(loss), sum(loss) FROM metrics")
        assert (row["count"], row["sum"]) == (100_000, sum(i + 0.5 for i in range(100_000)))
        site.drain()


@pytest.mark.slow
def test_what_waits_of_attempts_that_are_over_keeps_to_its_bound_while_the_server_is_away(
    require: Callable[[str], str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require("influxd1")
    data = tmp_path / "server"
    data.mkdir()
    with influx.serve("influxd1", data) as server:
        site = Site(tmp_path, server.database(), spool="2MiB")
        request.addfinalizer(site.kill)
        site.write(line(0))
        site.start()
        until(lambda: site.state.get("sent") == 1, "the first one arrives")
        server.kill()
        site.write(line(1))
        until(lambda: site.state["error"], "it does not answer")
        for i in range(6):
            ended = tmp_path / f"ended{i}"
            ended.mkdir()
            (ended / "0.jsonl").write_bytes(b"".join(line(k) for k in range(10_000)))
            site.spool.register(f"ended{i}", str(ended), {**TAGS, "job": f"e{i}"})
            site.spool.keep(f"ended{i}", str(ended))
        kept = Path(site.spool.path, "kept")
        until(lambda: sum(path.stat().st_size for path in kept.rglob("*.jsonl")) <= 2 << 20, "the oldest go")
        until(lambda: site.state["dropped"] and site.state["owed"] <= 2 << 20, "it tells of that")
        server.start()
        until(lambda: site.state["owed"] == 0, "what is left arrives")
        [row] = site.database.rows("SELECT count(loss) FROM metrics")
        assert row["count"] == site.state["sent"] and row["count"] + site.state["dropped"] >= 60_002
        site.drain()
