"""Datasets that jobs alter are mended before anybody sees that."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.store.memory import MemoryStore
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets import dataset_listing
from monkey_agent.datasets.dataset_pool import DatasetPool
from monkey_agent.ports import Attempt, AttemptEnd, SlotGrant
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, turn
from tests.unit.monkey_agent.trees import FILES, Counting, md5, path_of, read, send


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
        tree, use = await DatasetPool(store, Cache(tmp_path)).use(oid)  # as a job that goes on running
        reader = (tree / "train/a.txt").open("rb")
        alterations()[how](tree)
        store.fetched.clear()
        datasets = DatasetPool(store, Cache(tmp_path))
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


def test_what_is_altered_while_a_job_waits_for_its_slot_is_mended_before_it_begins(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, MemoryStore())
        oid = await send(body.store, FILES)
        tree = body.cache / "datasets" / "trees" / oid
        recipe = Recipe("cat $MONKEY_DATASET_D/top", await body.code({}), datasets={"d": oid})
        asked = 0

        async def its_turn() -> SlotGrant:
            nonlocal asked
            asked += 1
            if asked == 1:  # the job that had it before
                alterations()["write"](tree)
                assert (tree / "top").read_bytes() == b"other\n"
            return await turn()

        running = await body.runner.start(Attempt("a" * 16, 1, "sweep", recipe, SweepSettings(), {}, 1, 1), its_turn)
        assert running is not None
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        assert (await body.stored(running))["log/000000"] == b"first\n"
        await body.runner.close()

    run(scenario())


def test_two_datasets_that_share_an_altered_object_are_both_mended(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        one, other = await send(store, {"x": b"same"}), await send(store, {"y": b"same", "z": b"more"})
        datasets = DatasetPool(store, Cache(tmp_path))
        first, second = await path_of(datasets, one), await path_of(datasets, other)
        store.fetched.clear()
        (first / "x").chmod(0o644)
        (first / "x").write_bytes(b"SAME")
        assert (second / "y").read_bytes() == b"SAME"
        assert (await path_of(datasets, other) / "y").read_bytes() == b"same"
        assert (await path_of(datasets, one) / "x").read_bytes() == b"same"
        assert store.fetched == [dataset_listing.spell_object_key(md5(b"same"))]

    run(scenario())


@pytest.mark.slow
def test_a_large_tree_is_looked_at_once_for_all_who_ask_together_and_again_for_who_asks_later(
    tmp_path: Path, run: Run
) -> None:
    async def scenario() -> None:
        store = Counting()
        files = {f"{i % 7}/{i}": str(i).encode() for i in range(2000)}
        oid = await send(store, files)
        datasets = DatasetPool(store, Cache(tmp_path))
        tree = await path_of(datasets, oid)
        for n in range(5):
            await asyncio.gather(*(path_of(datasets, oid) for _ in range(8)))
            # Altered while others are looking: who asks from now on must not be told by a look that began before.
            looking = [asyncio.ensure_future(path_of(datasets, oid)) for _ in range(8)]
            await asyncio.sleep(0.0005 * n)
            victim = tree / f"{n}" / f"{n}"
            victim.chmod(0o644)
            victim.write_text("altered")
            await path_of(datasets, oid)
            assert read(tree) == files
            await asyncio.gather(*looking)

    run(scenario())
