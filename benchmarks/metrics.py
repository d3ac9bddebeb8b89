"""What jobs log on its way to InfluxDB: field values a second through one agent's exporter, and its CPU time a value.

Beside raw HTTP of batches that were made before, to the same server in the same run (the bar: half as many values a
second), and influxdb-client's batching writer, whose losses are counted. Two shapes: four metrics a record, and one.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _common import report, take_turns

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import influx

#: Metrics a record → records; and how often each contestant sends them.
RECORDS, ROUNDS = {4: 400_000, 1: 800_000}, int(os.environ.get("ROUNDS", "3"))
NAMES = ("loss", "accuracy", "learning_rate", "gradient_norm")
FILES = 4
TAGS = {"sweep": "digits", "job": "0123456789abcdef", "attempt": 1, "host": "gpu1"}
#: A process that logs lines by the batching writer.
BATCHING = """
import os, signal, sys
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import WriteOptions

url, token, org, bucket, lines, end = sys.argv[1:]
with InfluxDBClient(url, token, org=org) as client:
    with client.write_api(write_options=WriteOptions(batch_size=5_000)) as api:
        for line in open(lines).read().splitlines():
            api.write(bucket, record=line)
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
"""
#: Seconds that anything may take.
PATIENCE = 300


def written(directory: Path, names: tuple[str, ...]) -> int:
    """Write what four processes logged, as monkey.log writes it; returns how many values it is."""
    directory.mkdir(parents=True)
    for rank in range(FILES):
        with (directory / f"{rank}.jsonl").open("wb") as file:
            for step in range(RECORDS[len(names)] // FILES):
                values = ",".join(f'"{name}":{0.3 + step * 1e-7:#.17g}' for name in names)
                file.write(
                    f'{{"m":{{{values}}},"step":{step},"t":{1_790_000_000_000_000_000 + step * 997}e-9}}\n'.encode()
                )
    return RECORDS[len(names)] * len(names)


def bodies(directory: Path, scratch: Path) -> list[bytes]:
    """Return the same as batches, such as the exporter makes them."""
    from monkey.metrics.spool import Spool
    from monkey.metrics.spool_reader import SpoolBacklog
    from monkey.spec.project.influx_settings import InfluxSettings

    spool = Spool(str(scratch), InfluxSettings("http://nowhere", bucket="none"))
    spool.register("job.1", str(directory), TAGS)
    backlog, found = SpoolBacklog(spool.path), []
    backlog.look()
    while (batch := backlog.batch()) is not None:
        found.append(batch.body)
    return found


class Contest:
    """The contestants, each of which sends the same values into a database of its own."""

    def __init__(self, server: influx.Server, place: Path, names: tuple[str, ...]) -> None:
        self.server, self.place = server, place
        self.values = written(place / "metrics", names)
        self.bodies = bodies(place / "metrics", place / "scratch")
        #: CPU time of the exporter, seconds a value; values that never arrived, of the batching writer.
        self.cpu: list[float] = []
        self.lost: list[int] = []
        self._turn = 0
        self.records = RECORDS[len(names)]

    def _arrived(self, database: influx.Database) -> int:
        rows = database.rows("SELECT count(*) FROM metrics")
        return sum(int(value) for name, value in rows[0].items() if name.startswith("count_") and name != "count_step")

    def raw(self) -> float:
        """Send the batches by HTTP, on one connection."""
        database = self.server.database()
        said, host = database.settings, self.server.url.partition("//")[2]
        bucket = said.get("bucket") or said["database"]
        token = next(iter(database.secrets.values()))
        headers = {"Authorization": f"Token {said['username']}:{token}" if "username" in said else f"Token {token}"}
        connection = http.client.HTTPConnection(host)
        begun = time.perf_counter()
        for body in self.bodies:
            connection.request("POST", f"/api/v2/write?bucket={bucket}&org={said.get('org', '-')}", body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 204, answer.status
        return self.values / (time.perf_counter() - begun)

    def exporter(self) -> float:
        """Send what is in the files, by an exporter that has sent something before; until the last confirmation."""
        from monkey.metrics.spool import Spool
        from monkey.spec.project.influx_settings import parse_influx_settings

        database = self.server.database()
        said = parse_influx_settings({"influxdb": dict(database.settings)})
        assert said is not None
        self._turn += 1
        root = self.place / f"spool{self._turn}"
        spool = Spool(str(root), said)
        spool.add(b"metrics,job=first step=1i 1790000000000000000\n")
        command = [sys.executable, "-m", "monkey.metrics.exporter", str(root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"secrets": dict(database.secrets)}).encode() + b"\n")
            process.stdin.flush()
            _await(spool.path, 1)
            before, begun = _cpu(process.pid), time.perf_counter()
            spool.register("job.1", str(self.place / "metrics"), TAGS)
            _await(spool.path, 1 + self.records)
            seconds = time.perf_counter() - begun
            self.cpu.append((_cpu(process.pid) - before) / self.values)
            process.kill()
        assert self._arrived(database) == self.values, "values are lost"
        return self.values / seconds

    def batching(self) -> float:
        """Send the lines by influxdb-client's batching writer, 5,000 lines a batch, closed as its manual says."""
        database, begun = self.server.database(), time.perf_counter()
        self._batch(database, "close")
        seconds = time.perf_counter() - begun
        self.lost.append(self.values - self._arrived(database))
        return self.values / seconds

    def batching_killed(self) -> int:
        """Return how many values are lost of a batching writer that is killed when the last call has returned."""
        database = self.server.database()
        self._batch(database, "kill")
        time.sleep(1)  # what is on its way arrives
        return self.values - self._arrived(database)

    def _batch(self, database: influx.Database, end: str) -> None:
        said, token = database.settings, next(iter(database.secrets.values()))
        token = f"{said['username']}:{token}" if "username" in said else token
        lines = self.place / "lines"
        lines.write_bytes(b"".join(self.bodies))
        words = [self.server.url, token, said.get("org", "-"), said.get("bucket") or said["database"], str(lines), end]
        subprocess.run([sys.executable, "-c", BATCHING, *words], check=end == "close")


def _cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _await(spool: str, sent: int) -> None:
    from monkey.metrics.spool import load_json

    end = time.monotonic() + PATIENCE
    while load_json(f"{spool}/state.json").get("sent") != sent:
        assert time.monotonic() < end, load_json(f"{spool}/state.json")
        time.sleep(0.005)


def main() -> None:
    """Measure and report."""
    said = [word for word in sys.argv[1:] if word != "batching"]
    program, shape = (*said, *("influxd1", "")[len(said) :])
    with tempfile.TemporaryDirectory() as place, influx.serve(program, _made(Path(place, "server"))) as server:
        for names in [names for names in (NAMES, NAMES[:1]) if shape in ("", f"{len(names)}")]:
            contest = Contest(server, Path(place, f"{len(names)}"), names)
            contestants: dict[str, Callable[[], float]] = {"exporter": contest.exporter, "raw": contest.raw}
            if "batching" in sys.argv:
                contestants["batching writer"] = contest.batching
            found = take_turns(contestants, ROUNDS)
            for name, value in found.items():
                print(f"{name:>16}: {value:10,.0f} values/s", flush=True)
            cpu = sorted(contest.cpu)[len(contest.cpu) // 2] * 1e6
            print(f"{'exporter':>16}: {cpu:.2f} µs of CPU a value, its start not counted", flush=True)
            if contest.lost:
                print(f"{'batching writer':>16}: lost {contest.lost} of {contest.values}; ", end="")
                print(f"{contest.batching_killed()} where it is killed when it was told all", flush=True)
            ours = found.pop("exporter")
            what = f"field values a second to {program}, {len(names)} a record; {cpu:.2f} µs of CPU a value"
            report("metrics", what, ours, found, ours / found["raw"])


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    main()
