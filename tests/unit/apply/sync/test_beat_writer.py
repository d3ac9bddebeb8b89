"""The writer of a sync's heartbeat: when it writes, and what it says of a store that refuses."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

from monkey.apply.sync.beat_writer import BeatPlace, BeatWriter
from monkey.apply.world.known_stores import KnownStores
from monkey.protocol.layout import Keys
from monkey.protocol.status.sync_beat import SyncBeat, hash_remote
from monkey.store.open import open_store
from tests.acceptance.shop import until

BEAT = SyncBeat("/r.git", "main", "head1", 60.0, 1000.0, looked=1.0)
KEY = Keys("shop").sync_beat(hash_remote("/r.git", "main"), "head1.0")


async def _begin(root: Path) -> None:
    """Begin a store, and remember that it is there, as an apply does."""
    store = await open_store(str(root / "store"), begin=True)
    KnownStores(root).meet(str(root / "store"), store.id)
    await store.close()


def make_writer(root: Path) -> tuple[BeatWriter, list[str]]:
    """Return a writer to a new store below `root`, and what it says."""
    said: list[str] = []
    asyncio.run(_begin(root))
    return BeatWriter(said.append, BeatPlace(str(root / "store"), "shop", root, "head1.0")), said


def test_a_beat_is_written_on_news_and_once_a_period(tmp_path: Path) -> None:
    writer, said = make_writer(tmp_path)
    file = tmp_path / "store" / KEY
    assert not writer._is_due(), "there is nothing to write"
    writer.start()
    writer.show(BEAT)
    until(file.exists, "the first beat is news")
    until(lambda: writer._written is not None, "it is written")
    writer.show(replace(BEAT, looked=2.0))
    assert not writer._is_due() and 50 < writer._wait() <= 60, "another look is no news"
    writer.show(replace(BEAT, outcome="away", problem="x"))
    until(lambda: json.loads(file.read_bytes() or b"{}").get("outcome") == "away", "what changed is written at once")
    writer.show(replace(BEAT, left=True))
    writer.stop()
    assert json.loads(file.read_bytes())["left"] is True and not said


def test_a_store_that_is_away_is_said_once_and_asked_again_a_period_later(tmp_path: Path) -> None:
    writer, said = make_writer(tmp_path)
    writer.show(BEAT)
    writer.write()
    shutil.move(tmp_path / "store", tmp_path / "moved")
    for outcome in ("failed", "away"):
        writer.show(replace(BEAT, outcome=outcome))
        writer.write()
    assert len(said) == 1 and "the heartbeat cannot be written" in said[0]
    assert not writer._is_due() and 50 < writer._wait() <= 60
    shutil.move(tmp_path / "moved", tmp_path / "store")
    writer.write()
    assert json.loads((tmp_path / "store" / KEY).read_bytes())["outcome"] == "away"


def test_before_anything_was_applied_there_is_no_store_and_none_is_made(tmp_path: Path) -> None:
    said: list[str] = []
    writer = BeatWriter(said.append, BeatPlace(str(tmp_path / "store"), "shop", tmp_path, "head1.0"))
    writer.show(BEAT)
    writer.write()
    assert not (tmp_path / "store").exists() and not said
