"""The spool: what an agent puts there comes out in batches, once, whoever dies in between and whatever lies there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from monkey.metrics.record_feed import MAX_LINE
from monkey.metrics.spool import SEGMENT, Spool, is_owed, list_spools, read_influx_settings, rescue_points
from monkey.metrics.spool_reader import _PIECE_BYTES, SpoolBacklog
from monkey.spec.project.influx_settings import InfluxSettings
from tests.precious import Precious

INFLUX = InfluxSettings("http://localhost:1", bucket="m", token="TOKEN")
TAGS = {"sweep": "s", "job": "j", "attempt": 1, "host": "h"}


def line(i: int, name: str = "loss") -> bytes:
    return b'{"m":{"%b":%#.17g},"step":%d,"t":%de-9}\n' % (name.encode(), i + 0.5, i, 1790000000000000000 + i)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(f"{tmp_path}/metrics", INFLUX)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "attempts/j.1/metrics"
    path.mkdir(parents=True)
    return path


def drained(backlog: SpoolBacklog, *, confirm: bool = True) -> bytes:
    """Return all that is to be sent now."""
    backlog.look()
    bodies = []
    while (batch := backlog.batch()) is not None:
        bodies.append(batch.body)
        if confirm:
            backlog.confirm(batch, {"sent": batch.body.count(b"\n")})
    return b"".join(bodies)


def values(body: bytes) -> list[float]:
    return [float(one.partition(b"loss=")[2].partition(b",")[0]) for one in body.splitlines()]


def test_what_a_job_appends_comes_once(spool: Spool, directory: Path) -> None:
    assert not is_owed(spool.path)
    spool.register("j.1", str(directory), TAGS)
    backlog = SpoolBacklog(spool.path)
    with (directory / "0.jsonl").open("ab", buffering=0) as file:
        file.write(line(0) + line(1) + line(2)[:20])
        assert values(drained(backlog)) == [0.5, 1.5]
        assert drained(backlog) == b""
        file.write(line(2)[20:] + line(3))
        body = drained(backlog)
    assert values(body) == [2.5, 3.5]
    assert body.startswith(b"metrics,attempt=1,host=h,job=j,rank=0,sweep=s kept=true,loss=2.5")
    assert backlog.owed > 0  # by the last look
    backlog.look()
    assert backlog.owed == 0
    assert backlog.counts["sent"] == 4


def test_what_was_not_confirmed_is_sent_again_and_is_the_same(spool: Spool, directory: Path) -> None:
    spool.register("j.1", str(directory), TAGS)
    (directory / "0.jsonl").write_bytes(b"".join(map(line, [*range(9_000), 5])))  # the clock is set back
    first = SpoolBacklog(spool.path)
    first.look()
    batch = first.batch()
    assert batch is not None
    first.confirm(batch, {"sent": 1})
    lost = drained(first, confirm=False)
    assert values(batch.body + lost) == [i + 0.5 for i in [*range(9_000), 5]]
    assert drained(SpoolBacklog(spool.path)) == lost


def test_an_attempt_that_is_over_goes_when_all_was_confirmed(spool: Spool, directory: Path) -> None:
    spool.register("j.1", str(directory), TAGS)
    (directory / "0.jsonl").write_bytes(line(0) + line(1).rstrip(b"\n"))
    (directory / "0.7.jsonl").write_bytes(line(2))
    backlog = SpoolBacklog(spool.path)
    assert sorted(values(drained(backlog))) == [0.5, 2.5]
    spool.keep("j.1", str(directory))
    assert list(directory.iterdir()) == [] and directory.stat().st_mtime == 0
    assert values(drained(backlog)) == [1.5]
    backlog.look()
    assert not is_owed(spool.path)
    assert list(Path(spool.path, "kept").iterdir()) == []
    backlog.look()
    backlog.save()
    assert json.loads(Path(spool.path, "offsets.json").read_bytes())["files"] == {}


def test_strange_things_in_the_directory_hold_nobody_up(spool: Spool, directory: Path) -> None:
    spool.register("j.1", str(directory), TAGS)
    os.mkfifo(directory / "pipe.jsonl")
    (directory / "sub").mkdir()
    (directory / "link.jsonl").symlink_to("/etc/passwd")
    (directory / "0.jsonl").write_bytes(b"garbage\n" + line(0))
    backlog = SpoolBacklog(spool.path)
    assert values(drained(backlog)) == [0.5]
    spool.keep("j.1", str(directory))
    assert drained(backlog) == b""
    assert not is_owed(spool.path)


@pytest.mark.parametrize("place", ["attempts", "left"])
@pytest.mark.parametrize("replaced", ["j.1", "j.1/metrics"])
def test_a_link_in_place_of_the_directory_is_not_followed(
    spool: Spool, tmp_path: Path, place: str, replaced: str
) -> None:
    precious = Precious(tmp_path / "precious")
    link = tmp_path / place / replaced
    link.parent.mkdir(parents=True)
    link.symlink_to(precious.root)
    for prepare in (lambda: None, lambda: rescue_points(str(tmp_path), str(Path(spool.path).parent))):
        spool.register("j.1", f"{tmp_path}/{place}/j.1/metrics", TAGS)
        prepare()
        assert drained(SpoolBacklog(spool.path)) == b""
        assert not is_owed(spool.path) and not list(Path(spool.path, "kept").iterdir())
        precious.check(tmp_path / "metrics")


def test_a_link_that_an_earlier_version_kept_is_not_followed(spool: Spool, tmp_path: Path, directory: Path) -> None:
    precious = Precious(tmp_path / "precious")
    spool.register("j.1", str(directory), TAGS)
    directory.rmdir()
    Path(spool.path, "kept/j.1").symlink_to(precious.root)
    assert drained(SpoolBacklog(spool.path)) == b"" and not is_owed(spool.path)
    precious.check()


def test_a_line_without_an_end_is_passed_over(spool: Spool, directory: Path) -> None:
    spool.register("j.1", str(directory), TAGS)
    long = b'{"m":{"loss":1},"x":"' + b"x" * (_PIECE_BYTES * 2) + b'","step":1,"t":1790000000.5}\n'
    (directory / "0.jsonl").write_bytes(line(0) + long + b"y" * (3 * MAX_LINE) + b"\n" + line(1))
    backlog = SpoolBacklog(spool.path)
    assert values(drained(backlog)) == [0.5, 1.0, 1.5]
    (directory / "1.jsonl").write_bytes(b"z" * (_PIECE_BYTES * 2))
    spool.keep("j.1", str(directory))
    assert drained(backlog) == b""
    assert drained(SpoolBacklog(spool.path)) == b"" and not is_owed(spool.path)


def test_points_are_rotated_and_removed(spool: Spool) -> None:
    point = b"system,host=h cpu_percent=1.5 1790000000000000000\n"
    many = SEGMENT // len(point) + 1
    for _ in range(3 * many):
        spool.add(point)
    backlog = SpoolBacklog(spool.path)
    assert drained(backlog) == point * (3 * many)
    backlog.look()
    assert sorted(path.name for path in Path(spool.path, "points").iterdir()) == ["3"]
    successor = Spool(str(Path(spool.path).parent), INFLUX)
    with Path(spool.path, "points/3").open("ab") as torn:
        torn.write(point[:10])
    successor.add(point)
    assert drained(backlog) == point
    assert drained(SpoolBacklog(spool.path)) == b""


def test_what_a_killed_agent_left_is_rescued(spool: Spool, tmp_path: Path, directory: Path) -> None:
    left = tmp_path / "left/j.2/metrics"
    left.mkdir(parents=True)
    spool.register("j.1", str(directory), TAGS)
    spool.register("j.2", str(tmp_path / "attempts/j.2/metrics"), TAGS | {"attempt": 2})
    spool.register("j.3", str(tmp_path / "attempts/j.3/metrics"), TAGS)
    (directory / "0.jsonl").write_bytes(line(0))
    (left / "0.jsonl").write_bytes(line(1))
    for _ in range(2):
        rescue_points(str(tmp_path), str(Path(spool.path).parent))
    assert not directory.exists() and left.exists()
    assert sorted(values(drained(SpoolBacklog(spool.path)))) == [0.5, 1.5]
    assert list(list_spools(str(tmp_path / "metrics"))) == [spool.path]
    assert read_influx_settings(spool.path) == INFLUX


def test_the_oldest_goes_when_there_is_no_room(spool: Spool, tmp_path: Path) -> None:
    for k in range(1, 4):
        path = tmp_path / f"attempts/j.{k}/metrics"
        path.mkdir(parents=True)
        (path / "0.jsonl").write_bytes(b"".join(line(i) for i in range(1000)))
        spool.register(f"j.{k}", str(path), TAGS | {"attempt": k})
        spool.keep(f"j.{k}", str(path))
        os.utime(f"{spool.path}/kept/j.{k}", (k, k))
    backlog = SpoolBacklog(spool.path)
    backlog.look()
    assert not backlog.make_room(1 << 20)
    assert backlog.make_room(100_000)
    assert backlog.counts["dropped"] == 2000
    assert drained(backlog).count(b"attempt=3") == 1000


def test_a_damaged_spool_is_no_hindrance(spool: Spool, directory: Path) -> None:
    spool.register("j.1", str(directory), TAGS)
    (directory / "0.jsonl").write_bytes(line(0))
    Path(spool.path, "offsets.json").write_bytes(b"{")
    Path(spool.path, "sources/j.9").write_bytes(b"")
    assert values(drained(SpoolBacklog(spool.path))) == [0.5]
    assert [path.name for path in Path(spool.path, "sources").iterdir()] == ["j.1"]


def test_a_full_disk_costs_points_and_no_more(spool: Spool) -> None:
    spool.add(b"a x=1 1\n")
    os.dup2(os.open("/dev/full", os.O_WRONLY), spool._fd)
    spool.add(b"a x=1 2\n")
    assert spool.dropped == 8
    spool.add(b"a x=1 3\n")
    assert drained(SpoolBacklog(spool.path)) == b"a x=1 1\na x=1 3\n"
