"""Datasets on a machine: whole or absent, shared, mended when a job altered them, gone when room is needed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import Corrupt, JobFailed
from monkey.spec.recipe import Recipe, Settings
from monkey.store.contents import DAMAGED
from monkey.store.memory import MemoryStore
from monkey.store.open import open_store
from monkey_agent import listing
from monkey_agent.cache import Cache
from monkey_agent.datasets import Datasets
from monkey_agent.ports import Attempt, Ending, Seat
from tests.loops import Run
from tests.unit.monkey_agent.body import Body

FILES = {"train/a.txt": b"first\n", "train/b c.bin": b"\0" * 3_000_000, "é/deep/x": b"", "top": b"first\n"}


def md5(data: bytes) -> str:
    """Return 32 hex."""
    return hashlib.md5(data).hexdigest()


async def send(store: Any, files: dict[str, bytes]) -> str:
    """Put a directory into a store as DVC does, by the plainest means; returns its id."""
    for data in files.values():
        await store.put(listing.key(md5(data)), data)
    entries = [{"md5": md5(data), "relpath": path} for path, data in sorted(files.items())]
    text = json.dumps(entries, sort_keys=True).encode()
    await store.put(listing.key(f"{md5(text)}.dir"), text)
    return f"{md5(text)}.dir"


def read(tree: Path) -> dict[str, bytes]:
    """Return what a tree holds."""
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


class Counting(MemoryStore):
    """A store that counts what is fetched from it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`."""
        self.fetched.append(key)
        await asyncio.sleep(0.001)
        await super().get_file(key, path)


async def path_of(datasets: Datasets, oid: str) -> Path:
    """Return where a dataset is that is used no longer than it takes to say so, as a job does that begins now."""
    path, use = await datasets.use(oid)
    with use:
        await datasets.look(oid)
        return path


def test_jobs_see_it_whole_and_read_only(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        body = Body(tmp_path, store)
        oid, single = await send(store, FILES), md5(b"first\n")
        command = (
            "cat $MONKEY_DATASET_MY_DATA_V1/train/a.txt $MONKEY_DATASET_ONE && wc -c < $MONKEY_DATASET_MY_DATA_V1/top"
        )
        command += " && echo $MONKEY_DATASET_ONE | grep -q /first.csv$"
        both = {"my-data.v1": oid, "one": single}
        running = await body.start(command, datasets=both, settings={"dataset_files": {"one": "first.csv"}})
        outcome = await running.wait()
        assert outcome.ending is Ending.SUCCEEDED, outcome
        assert (await body.stored(running))["log/000000"] == b"first\nfirst\n6\n"
        tree = body.cache / "datasets" / "trees" / oid
        assert read(tree) == FILES
        for path in (tree, *tree.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o555 if path.is_dir() else 0o444), path
        assert (tree / "top").stat().st_ino == (tree / "train/a.txt").stat().st_ino
        assert not (body.cache / "datasets" / "aside" / oid).exists()
        await body.runner.close()

    run(scenario())


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", ".", "nul\0"])
def test_a_name_from_the_store_leads_nowhere(tmp_path: Path, name: str) -> None:
    datasets = Datasets(MemoryStore(), Cache(tmp_path))
    tree = tmp_path / "datasets" / "trees" / md5(b"")
    assert datasets.named(tree, name) == tree
    assert [path for path in tmp_path.rglob("*") if path.is_symlink()] == []


def test_many_who_ask_share_one_fetch(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        files = {f"{i}": str(i).encode() for i in range(500)}
        oid = await send(store, files)
        agents = [Datasets(store, Cache(tmp_path)) for _ in range(3)]
        paths = await asyncio.gather(*(path_of(agents[i % 3], oid) for i in range(12)))
        assert len(set(paths)) == 1
        assert sorted(store.fetched) == sorted(listing.key(md5(data)) for data in files.values())
        # Another dataset that shares all but one file costs one file.
        store.fetched.clear()
        other = await send(store, {**files, "more": b"more"})
        assert read(await path_of(agents[0], other)) == {**files, "more": b"more"}
        assert store.fetched == [listing.key(md5(b"more"))]
        # The first one is still what it was, though its files got more names; nothing is fetched for that.
        assert read(await path_of(agents[1], oid)) == files
        assert len(store.fetched) == 1

    run(scenario())


def alterations() -> dict[str, Callable[[Path], None]]:
    """What a job may do to its dataset."""

    def write(tree: Path) -> None:
        file = tree / "train/a.txt"
        file.chmod(0o644)
        file.write_bytes(b"other\n")

    def write_in_secret(tree: Path) -> None:
        file = tree / "train/a.txt"
        before = file.stat()
        file.chmod(0o644)
        file.write_bytes(b"fIrst\n")
        file.chmod(0o444)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def remove(tree: Path) -> None:
        (tree / "train").chmod(0o755)
        (tree / "train/a.txt").unlink()

    def swap(tree: Path) -> None:
        for directory in ("train", "."):
            (tree / directory).chmod(0o755)
        (tree / "train/b c.bin").rename(tree / "swapped")
        (tree / "top").rename(tree / "train/b c.bin")
        (tree / "swapped").rename(tree / "top")

    def add(tree: Path) -> None:
        (tree / "train").chmod(0o755)
        (tree / "train/new").mkdir()
        (tree / "train/new/file").write_text("mine")

    def link_in_place(tree: Path) -> None:
        subprocess.run(["chmod", "-R", "u+w", str(tree)], check=True)
        subprocess.run(["rm", "-rf", str(tree / "train")], check=True)
        (tree / "train").symlink_to("/etc")

    return {f.__name__: f for f in (write, write_in_secret, remove, swap, add, link_in_place)}


@pytest.mark.parametrize("how", alterations())
def test_what_a_job_alters_is_mended_before_the_next_one(tmp_path: Path, run: Run, how: str) -> None:
    async def scenario() -> None:
        store = Counting()
        oid = await send(store, FILES)
        tree, use = await Datasets(store, Cache(tmp_path)).use(oid)  # as a job that goes on running
        reader = (tree / "train/a.txt").open("rb")
        alterations()[how](tree)
        store.fetched.clear()
        datasets = Datasets(store, Cache(tmp_path))
        assert await path_of(datasets, oid) == tree
        assert read(tree) == FILES
        assert len(store.fetched) == how.startswith("write")
        assert reader.read() in (b"first\n", b"other\n", b"fIrst\n")
        looked = (tree / "top").stat()
        await path_of(datasets, oid)
        assert (tree / "top").stat() == looked
        use.close()
        reader.close()

    run(scenario())


def test_what_is_altered_while_a_job_waits_for_its_seat_is_mended_before_it_begins(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, MemoryStore())
        oid = await send(body.store, FILES)
        tree = body.cache / "datasets" / "trees" / oid
        recipe = Recipe("cat $MONKEY_DATASET_D/top", await body.code({}), datasets={"d": oid})
        asked = 0

        async def seat() -> Seat:
            nonlocal asked
            asked += 1
            if asked == 1:  # the job that had it before
                alterations()["write"](tree)
                assert (tree / "top").read_bytes() == b"other\n"
            return Seat(1, (), 0)

        running = await body.runner.start(Attempt("a" * 16, 1, "sweep", recipe, Settings(), {}, 1), seat)
        assert running is not None
        assert (await running.wait()).ending is Ending.SUCCEEDED
        assert (await body.stored(running))["log/000000"] == b"first\n"
        await body.runner.close()

    run(scenario())


def test_two_datasets_that_share_an_altered_object_are_both_mended(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        one, other = await send(store, {"x": b"same"}), await send(store, {"y": b"same", "z": b"more"})
        datasets = Datasets(store, Cache(tmp_path))
        first, second = await path_of(datasets, one), await path_of(datasets, other)
        store.fetched.clear()
        (first / "x").chmod(0o644)
        (first / "x").write_bytes(b"SAME")
        assert (second / "y").read_bytes() == b"SAME"
        assert (await path_of(datasets, other) / "y").read_bytes() == b"same"
        assert (await path_of(datasets, one) / "x").read_bytes() == b"same"
        assert store.fetched == [listing.key(md5(b"same"))]

    run(scenario())


def test_a_large_tree_is_looked_at_once_for_all_who_ask_together_and_again_for_who_asks_later(
    tmp_path: Path, run: Run
) -> None:
    async def scenario() -> None:
        store = Counting()
        files = {f"{i % 7}/{i}": str(i).encode() for i in range(2000)}
        oid = await send(store, files)
        datasets = Datasets(store, Cache(tmp_path))
        tree = await path_of(datasets, oid)
        for turn in range(5):
            await asyncio.gather(*(path_of(datasets, oid) for _ in range(8)))
            # Altered while others are looking: who asks from now on must not be told by a look that began before.
            looking = [asyncio.ensure_future(path_of(datasets, oid)) for _ in range(8)]
            await asyncio.sleep(0.0005 * turn)
            victim = tree / f"{turn}" / f"{turn}"
            victim.chmod(0o644)
            victim.write_text("altered")
            await path_of(datasets, oid)
            assert read(tree) == files
            await asyncio.gather(*looking)

    run(scenario())


def test_a_missing_object_is_told_with_the_fix(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, FILES)
        await store.delete(listing.key(md5(b"first\n")))
        body = Body(tmp_path, store)
        with pytest.raises(JobFailed, match=r"files/md5/.*monkey apply"):
            await body.start("true", datasets={"d": oid})
        with pytest.raises(JobFailed, match=r"monkey apply"):
            await body.start("true", datasets={"d": f"{'0' * 32}.dir"})
        assert not (body.cache / "datasets" / "trees" / oid).exists()
        await body.runner.close()
        # What was missing came; the failure is not remembered for ever.
        await store.put(listing.key(md5(b"first\n")), b"first\n")
        assert read(await path_of(Datasets(store, Cache(body.cache)), oid)) == FILES

    run(scenario())


def test_a_damaged_object_is_never_shown(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, FILES)
        await store.put(listing.key(md5(b"first\n")), b"fIrst\n")
        datasets = Datasets(store, Cache(tmp_path), remembered=0)
        with pytest.raises(JobFailed, match="another MD5"):
            await datasets.use(oid)
        await store.put(listing.key(oid), b"[]")
        with pytest.raises(JobFailed, match="another MD5"):
            await Datasets(store, Cache(tmp_path / "other")).use(oid)
        told = {item.key.removeprefix(DAMAGED) for item in await store.list(DAMAGED)}
        assert told == {md5(b"first\n"), oid}, "whoever has the data sends them again"

    run(scenario())


HOSTILE = [
    [{"md5": md5(b""), "relpath": "../out"}],
    [{"md5": md5(b""), "relpath": "/etc/passwd"}],
    [{"md5": md5(b""), "relpath": "a/../../out"}],
    [{"md5": md5(b""), "relpath": ""}],
    [{"md5": md5(b""), "relpath": "."}],
    [{"md5": md5(b""), "relpath": "a//b"}],
    [{"md5": md5(b""), "relpath": "a/"}],
    [{"md5": md5(b""), "relpath": "a\0b"}],
    [{"md5": md5(b""), "relpath": "\udcff"}],
    [{"md5": md5(b""), "relpath": "a"}, {"md5": md5(b"1"), "relpath": "a"}],
    [{"md5": md5(b""), "relpath": "a"}, {"md5": md5(b"1"), "relpath": "a/b"}],
    [{"md5": md5(b""), "relpath": "a/b/c"}, {"md5": md5(b"1"), "relpath": "a/b"}],
    [{"md5": "../../../../etc/passwd", "relpath": "a"}],
    [{"md5": md5(b"").upper(), "relpath": "a"}],
    [{"md5": md5(b"") + ".dir", "relpath": "a"}],
    [{"relpath": "a"}],
    [{"md5": 3, "relpath": ["a"]}],
    ["a"],
    {"md5": md5(b""), "relpath": "a"},
    None,
]


@pytest.mark.parametrize("entries", HOSTILE, ids=lambda entries: json.dumps(entries)[:60])
def test_a_hostile_list_is_refused(entries: Any) -> None:
    text = json.dumps(entries).encode()
    with pytest.raises(Corrupt):
        listing.read(f"{md5(text)}.dir", text)


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"\xff\xfe", b"{", b"[NaN]"])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(Corrupt):
        listing.read(f"{md5(text)}.dir", text)


@pytest.mark.parametrize("oid", ["", "../x", "0" * 31, "0" * 33, f"{'0' * 32}.dirx", f"{'0' * 32}\n", "G" * 32])
def test_an_id_that_is_none_is_refused(oid: str, run: Run, tmp_path: Path) -> None:
    with pytest.raises(Corrupt):
        run(Datasets(MemoryStore(), Cache(tmp_path)).use(oid))


def taken(cache: Path) -> int:
    """Return the bytes that all objects take of the disk."""
    return sum(path.stat().st_blocks * 512 for path in (cache / "datasets" / "objects").rglob("*") if path.is_file())


def test_the_least_recently_used_go_and_none_that_is_used(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        names = "abcde"
        oids = {n: await send(store, {"own": n.encode() * 1_000_000, "shared": b"s" * 100_000}) for n in names}
        cache = Cache(tmp_path, most=3_500_000)
        datasets = Datasets(store, cache)
        trees_of = {n: tmp_path / "datasets" / "trees" / oids[n] for n in names}
        _, running = await datasets.use(oids["a"])
        for n in "bcbd":
            await path_of(datasets, oids[n])
            await cache.settle()
            await asyncio.sleep(0.01)  # times of change are told apart by no less
        assert {n for n in names if trees_of[n].exists()} == set("abd")
        assert taken(tmp_path) <= 3_500_000
        # Beyond the cap, what is used stays.
        held = [await datasets.use(oids[n]) for n in names]
        assert all((trees_of[n] / "own").read_bytes() == n.encode() * 1_000_000 for n in names)
        assert taken(tmp_path) > 5_000_000
        for _, use in held:
            use.close()
        running.close()
        await cache.settle()
        await cache.trim()
        assert taken(tmp_path) <= 3_500_000
        assert not list((tmp_path / "trash").iterdir())
        store.fetched.clear()
        assert read(await path_of(datasets, oids["a"]))["own"] == b"a" * 1_000_000
        assert listing.key(md5(b"s" * 100_000)) not in store.fetched

    run(scenario())


SMALL_DISK = """
import asyncio, os, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
from monkey.errors import JobFailed
from monkey.spec.recipe import Recipe, Settings
from monkey.store.memory import MemoryStore
from monkey_agent.cache import Cache
from monkey_agent.datasets import Datasets
from tests.unit.monkey_agent.test_datasets import read, send
async def main():
    store, cache = MemoryStore(), Cache(Path("/mnt/cache"), most=1 << 40)
    datasets = Datasets(store, cache, remembered=0)
    files = [{str(i): bytes([n, i]) * 500_000 for i in range(6)} for n in range(3)]
    oids = [await send(store, each) for each in files]
    for oid, each in zip(oids, files):  # the third has room only where the first was
        tree, use = await datasets.use(oid)
        assert read(tree) == each
        use.close()
    assert not (Path("/mnt/cache/datasets/trees") / oids[0]).exists()
    held = [await datasets.use(oid) for oid in oids[1:]]
    try:
        await datasets.use(oids[0])
    except JobFailed as exc:
        print(exc.message)
    assert [read(tree) for tree, _ in held] == files[1:]
    free = os.statvfs("/mnt")
    assert free.f_bavail * free.f_frsize > 2_000_000, "half a dataset was left"
asyncio.run(main())
"""


def test_a_full_disk_is_told_after_all_that_could_go_has_gone(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("mount")
    mount = f"mount -t tmpfs -o size=16m none /mnt && exec {sys.executable} -c '{SMALL_DISK}'"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "the disk of this machine is full" in done.stdout
    assert "in use" in done.stdout


def test_more_names_than_a_file_can_have(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, {f"{i // 1000}/{i}": b"" for i in range(65_100)})
        tree = await path_of(Datasets(store, Cache(tmp_path)), oid)
        assert sum(len(files) for _, _, files in os.walk(tree)) == 65_100
        assert max(path.stat().st_nlink for path in (tree / "0").iterdir()) <= 65_100

    run(scenario())


FETCH = """
import asyncio, sys
from pathlib import Path
from monkey.store.open import open_store
from monkey_agent.cache import Cache
from monkey_agent.datasets import Datasets
async def main():
    store = await open_store(sys.argv[1])
    print("begin", flush=True)
    datasets = Datasets(store, Cache(Path(sys.argv[2])))
    await datasets.use(sys.argv[3])
    await datasets.look(sys.argv[3])
    print("done", flush=True)
asyncio.run(main())
"""


def fetch(place: Path, oid: str) -> subprocess.Popen[bytes]:
    """Start a process that fetches from `place`/store into `place`/cache; it has begun."""
    command = [sys.executable, "-c", FETCH, str(place / "store"), str(place / "cache"), oid]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begin\n"
    return process


async def stored(place: Path, files: dict[str, bytes]) -> str:
    """Put a directory into the store at `place`/store."""
    store = await open_store(str(place / "store"), begin=True)
    oid = await send(store, files)
    await store.close()
    return oid


async def fetched(place: Path, oid: str) -> dict[str, bytes]:
    """Return what a dataset holds for the next job."""
    store = await open_store(str(place / "store"))
    cache = Cache(place / "cache")
    tree = await path_of(Datasets(store, cache), oid)
    await cache.settle()
    await store.close()
    return read(tree)


def killed_after(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    """Kill it then; says whether that was before its end."""
    with process:
        time.sleep(seconds)
        process.kill()
    return process.returncode < 0


def test_killed_at_any_moment_it_is_whole_or_absent(tmp_path: Path, run: Run) -> None:
    chance = random.Random(7)
    files = {f"{i % 10}/{i}": bytes([i % 256]) * (i * 37 % 5000) + str(i).encode() for i in range(1500)}
    oid = run(stored(tmp_path, files))
    tree = tmp_path / "cache" / "datasets" / "trees" / oid
    killed = 0
    while not tree.exists() and killed < 12:
        killed += killed_after(chance.random() * 0.15, fetch(tmp_path, oid))
        assert not tree.exists() or read(tree) == files
    assert killed >= 3
    assert run(fetched(tmp_path, oid)) == files
    # And while it is mended.
    killed = 0
    for _ in range(6):
        victim = tree / "3" / "3"
        victim.chmod(0o644)
        victim.write_text("altered")
        killed += killed_after(chance.random() * 0.1, fetch(tmp_path, oid))
    assert killed >= 2
    assert run(fetched(tmp_path, oid)) == files
    run(Cache(tmp_path / "cache", most=0).trim())
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != "trim.lock"]


def test_processes_that_ask_together_fetch_once(tmp_path: Path, run: Run) -> None:
    oid = run(stored(tmp_path, {f"{i}": str(i).encode() * 500 for i in range(800)}))
    together = [fetch(tmp_path, oid) for _ in range(4)]
    assert [process.communicate(timeout=60)[0] for process in together] == [b"done\n"] * 4
    tree = tmp_path / "cache" / "datasets" / "trees" / oid
    # An object that was fetched twice would leave a tree that has it and an object that has not.
    assert {path.stat().st_nlink for path in tree.iterdir()} == {2}


def test_what_dvc_writes_is_read(tmp_path: Path, run: Run) -> None:
    project = tmp_path / "project"
    for path, data in FILES.items():
        (project / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (project / "data" / path).write_bytes(data)
    env = {**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(tmp_path / "site")}
    run(stored(tmp_path, {}))
    for command in ("init --no-scm", f"remote add -d r {tmp_path}/store", "add -q data", "push -q"):
        subprocess.run([sys.executable, "-m", "dvc", *command.split()], cwd=project, env=env, check=True)
    oid = next(line.split()[-1] for line in (project / "data.dvc").read_text().splitlines() if "md5: " in line)
    assert run(fetched(tmp_path, oid)) == FILES
