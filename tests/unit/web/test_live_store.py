"""How often the store is read for pages: once a second while one is open, and never otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from monkey.web.live_store import LiveStore
from tests.unit.apply.small_project import Pen, apply, opened, write_project


class CountingStore:
    """A store that counts its listings and what is written."""

    def __init__(self, store: Any) -> None:
        self._store, self.lists, self.puts = store, 0, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, prefix: str, after: str = "") -> Any:
        self.lists += prefix.endswith("/agents/")
        return await self._store.list(prefix, after)

    async def put(self, key: str, data: bytes) -> None:
        self.puts.append(key)
        await self._store.put(key, data)


def test_the_store_is_read_while_a_page_is_open_and_only_then(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            store = world.store = CountingStore(world.store)
            live = LiveStore(world)
            async with live.watch():
                await live.wait_for_change(0, 30)
                version, lists = live.version, store.lists
                assert version == 1 and any(key.startswith(world.keys.watchers) for key in store.puts)
                await asyncio.sleep(2.5)
                # What is asked meanwhile costs nothing, and a reading that brought nothing is no new version.
                snapshots = {id(await live.snapshot()) for _ in range(50)}
                assert len(snapshots) == 1 and live.version == version
                assert lists + 1 <= store.lists <= lists + 3
                await Pen(world).begin(jobs[0])
                await live.wait_for_change(version, 30)
                assert live.version == version + 1
            await live.close()
            before = store.lists
            await asyncio.sleep(1.2)
            assert store.lists == before
            assert not await world.at.list(world.keys.watchers)

    write_project(tmp_path)
    asyncio.run(main())


def test_a_store_that_is_away_is_said_and_what_was_read_stays(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            live = LiveStore(world)
            async with live.watch():
                await live.wait_for_change(0, 30)
                root = tmp_path / ".monkey" / "store"
                root.rename(tmp_path / "away")
                while not live.trouble:
                    await live.wait_for_change(live.version, 1)
                assert (await live.snapshot()).sweeps["small"].ids
                (tmp_path / "away").rename(root)
                while live.trouble:
                    await live.wait_for_change(live.version, 1)
            await live.close()

    write_project(tmp_path)
    asyncio.run(main())


def test_rows_that_did_not_change_are_not_made_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            live, pen = LiveStore(world), Pen(world)
            await live.refresh()
            table = live.tables["small"]
            rows = table.read_all()
            first = list(rows)
            await pen.begin(jobs[2])
            await live.refresh()
            assert [new is old for new, old in zip(table.read_all(), first, strict=True)] == [True, True, False]
            assert table.find_changed(1) == [2]
            await pen.end(jobs[2])
            await live.refresh()
            assert table.counts == {"queued": 2, "succeeded": 1} and table.find_changed(2) == [2]

    write_project(tmp_path)
    asyncio.run(main())
