"""What many jobs share is checked once, and hostile names in the store lead nowhere."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from monkey.apply.verify.object_reader import ObjectReader
from monkey.apply.verify.shared_objects import SharedObjects
from monkey.apply.verify.verification_result import EvidenceKind, VerificationResult
from monkey.protocol.layout import Keys
from monkey.store.content.objects import DAMAGED, spell_md5_key
from monkey.store.memory import MemoryStore
from monkey.transfer.code.code_snapshot import read_code, upload_code
from monkey.transfer.datasets.dataset import write_listing
from tests.loops import Run


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class Desk:
    """A store in memory, and a verification of it."""

    def __init__(self, directory: Path) -> None:
        self.store, self.result, self.read = MemoryStore(), VerificationResult(), list[int]()
        directory.mkdir()
        reader = ObjectReader(self.store, directory, lambda objects, size: self.read.append(size))
        self.shared = SharedObjects(Keys("project"), reader, self.result)

    async def put(self, data: bytes, end: str = "") -> str:
        await self.store.put(spell_md5_key(md5(data) + end), data)
        return md5(data) + end

    @property
    def wrong(self) -> list[tuple[str, str]]:
        return [(one.key, one.found) for one in self.result.wrong]


def test_an_object_of_two_datasets_is_read_once(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        desk = Desk(tmp_path / "desk")
        one, two = await desk.put(b"one"), await desk.put(b"two")
        both = await desk.put(write_listing(["a", "b", "c"], [one, two, one]), ".dir")
        for oid in (both, both, one):
            await desk.shared.check_dataset(oid)
        assert not desk.wrong and desk.result.checked[EvidenceKind.DATA] == 3
        assert sorted(desk.read)[:2] == [3, 3] and len(desk.read) == 5, (
            "the objects once, the listing as often as asked"
        )

    run(scenario())


def test_an_interrupt_ends_it_though_small_objects_never_wait_for_anything(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        desk = Desk(tmp_path / "desk")
        names = [f"{i}" for i in range(500)]
        listing = write_listing(names, [await desk.put(name.encode()) for name in names])
        checking = asyncio.ensure_future(desk.shared.check_dataset(await desk.put(listing, ".dir")))
        for _ in range(20):
            await asyncio.sleep(0)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking
        assert len(desk.read) < 450

    run(scenario())


def test_what_is_damaged_is_marked_for_push_and_what_is_missing_is_not(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        desk = Desk(tmp_path / "desk")
        good, gone = await desk.put(b"good"), md5(b"gone")
        await desk.store.put(spell_md5_key(good), b"evil")
        await desk.shared.check_dataset(await desk.put(write_listing(["a", "b"], [good, gone]), ".dir"))
        assert sorted(desk.wrong) == sorted(
            [(spell_md5_key(good), f"md5 {md5(b'evil')} of 4 bytes"), (spell_md5_key(gone), "missing")]
        )
        assert [item.key for item in await desk.store.list(DAMAGED)] == [DAMAGED + good]

    run(scenario())


def test_names_that_are_no_hashes_are_told_and_never_become_keys(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        desk = Desk(tmp_path / "desk")
        listing = b'[{"relpath": "a", "md5": "../../../etc/passwd"}]'
        await desk.shared.check_dataset(await desk.put(listing, ".dir"))
        await desk.shared.check_dataset(await desk.put(b"[1]", ".dir"))
        await desk.shared.check_dataset("\ud800")
        await desk.shared.check_code("../" * 10, tmp_path)
        await desk.shared.check_facts("../" * 10, "job")
        assert len(desk.wrong) == 5
        assert desk.result.wrong[0].expected == "an MD5 of 32 hex digits"

    run(scenario())


def test_code_is_unpacked_to_be_checked_and_nothing_of_it_stays(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        desk = Desk(tmp_path / "desk")
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "train.py").write_text("print('hello')\n")
        code = read_code(tmp_path / "source")
        await upload_code(desk.store, code)
        await desk.shared.check_code(code.hash, tmp_path / "desk")
        await desk.shared.check_code("", tmp_path / "desk")
        assert not desk.wrong and not list((tmp_path / "desk").iterdir())
        await desk.store.put(f"code/{'0' * 64}.tar.gz", await desk.store.get(f"code/{code.hash}.tar.gz"))
        await desk.shared.check_code("0" * 64, tmp_path / "desk")
        assert desk.wrong == [(f"code/{'0' * 64}.tar.gz", f"its contents have the code hash {code.hash}")]
        assert not list((tmp_path / "desk").iterdir())

    run(scenario())
