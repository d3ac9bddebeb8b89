"""Datasets: what a job is shown, and what is refused."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import CorruptObject, JobFailed
from monkey.store.content.objects import DAMAGED
from monkey.store.memory import MemoryStore
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets import dataset_listing
from monkey_agent.datasets.dataset_pool import DatasetPool
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body
from tests.unit.monkey_agent.trees import FILES, Counting, md5, path_of, read, send


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
        assert outcome.ending is AttemptEnd.SUCCEEDED, outcome
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
    datasets = DatasetPool(MemoryStore(), Cache(tmp_path))
    tree = tmp_path / "datasets" / "trees" / md5(b"")
    assert datasets.named(tree, name) == tree
    assert [path for path in tmp_path.rglob("*") if path.is_symlink()] == []


def test_many_who_ask_share_one_fetch(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        files = {f"{i}": str(i).encode() for i in range(500)}
        oid = await send(store, files)
        agents = [DatasetPool(store, Cache(tmp_path)) for _ in range(3)]
        paths = await asyncio.gather(*(path_of(agents[i % 3], oid) for i in range(12)))
        assert len(set(paths)) == 1
        assert sorted(store.fetched) == sorted(dataset_listing.spell_object_key(md5(data)) for data in files.values())
        # Another dataset that shares all but one file costs one file.
        store.fetched.clear()
        other = await send(store, {**files, "more": b"more"})
        assert read(await path_of(agents[0], other)) == {**files, "more": b"more"}
        assert store.fetched == [dataset_listing.spell_object_key(md5(b"more"))]
        # The first one is still what it was, though its files got more names; nothing is fetched for that.
        assert read(await path_of(agents[1], oid)) == files
        assert len(store.fetched) == 1

    run(scenario())


def test_a_missing_object_is_told_with_the_fix(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, FILES)
        await store.delete(dataset_listing.spell_object_key(md5(b"first\n")))
        body = Body(tmp_path, store)
        with pytest.raises(JobFailed, match=r"files/md5/.*monkey push.*monkey retry"):
            await body.start("true", datasets={"d": oid})
        with pytest.raises(JobFailed, match=r"monkey push.*monkey retry"):
            await body.start("true", datasets={"d": f"{'0' * 32}.dir"})
        assert not (body.cache / "datasets" / "trees" / oid).exists()
        await body.runner.close()
        # What was missing came; the failure is not remembered for ever.
        await store.put(dataset_listing.spell_object_key(md5(b"first\n")), b"first\n")
        assert read(await path_of(DatasetPool(store, Cache(body.cache)), oid)) == FILES

    run(scenario())


def test_a_damaged_object_is_never_shown(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, FILES)
        await store.put(dataset_listing.spell_object_key(md5(b"first\n")), b"fIrst\n")
        datasets = DatasetPool(store, Cache(tmp_path), remembered=0)
        with pytest.raises(JobFailed, match="another MD5"):
            await datasets.use(oid)
        await store.put(dataset_listing.spell_object_key(oid), b"[]")
        with pytest.raises(JobFailed, match=r"another MD5 .*`monkey push`"):
            await DatasetPool(store, Cache(tmp_path / "other")).use(oid)
        told = {item.key.removeprefix(DAMAGED) for item in await store.list(DAMAGED)}
        assert told == {md5(b"first\n"), oid}, "whoever has the data sends them again"

    run(scenario())


@pytest.mark.parametrize("damaged", [True, False])
def test_what_was_sent_since_the_last_try_counts_at_once(tmp_path: Path, run: Run, *, damaged: bool) -> None:
    async def scenario() -> None:
        store, rotten = Counting(), dataset_listing.spell_object_key(md5(b"first\n"))
        oid = await send(store, FILES)
        await (store.put(rotten, b"fIrst\n") if damaged else store.delete(rotten))
        datasets = DatasetPool(store, Cache(tmp_path), remembered=1e9)
        with pytest.raises(JobFailed):
            await datasets.use(oid)
        store.fetched.clear()
        with pytest.raises(JobFailed, match="`monkey push`"):
            await datasets.use(oid)
        assert not store.fetched, "nothing was sent: nothing is tried"
        await store.put(rotten, b"first\n")
        for item in await store.list(DAMAGED):
            await store.delete(item.key)
        assert read(await path_of(datasets, oid)) == FILES

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
    with pytest.raises(CorruptObject):
        dataset_listing.parse_listing(f"{md5(text)}.dir", text)


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"\xff\xfe", b"{", b"[NaN]"])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(CorruptObject):
        dataset_listing.parse_listing(f"{md5(text)}.dir", text)


@pytest.mark.parametrize("oid", ["", "../x", "0" * 31, "0" * 33, f"{'0' * 32}.dirx", f"{'0' * 32}\n", "G" * 32])
def test_an_id_that_is_none_is_refused(oid: str, run: Run, tmp_path: Path) -> None:
    with pytest.raises(CorruptObject):
        run(DatasetPool(MemoryStore(), Cache(tmp_path)).use(oid))
