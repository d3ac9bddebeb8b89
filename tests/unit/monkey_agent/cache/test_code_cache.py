"""Cached code: verified when an agent first uses it, and fetched again where it is not what its hash promises."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.memory import MemoryStore
from monkey.transfer.code.code_snapshot import read_code, spell_code_key, upload_code
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.code_cache import CodeCache


def make_code(root: Path) -> dict[str, str]:
    """Write files of every kind, and return what they hold."""
    (root / "lib").mkdir(parents=True)
    (root / "train.py").write_text("good")
    (root / "run.sh").write_text("#!/bin/sh")
    (root / "run.sh").chmod(0o755)
    (root / "lib/large.py").write_text("x" * 100_000)
    (root / "link").symlink_to("train.py")
    return {"train.py": "good", "run.sh": "#!/bin/sh", "lib/large.py": "x" * 100_000, "link": "good"}


def alter(path: Path) -> None:
    path.chmod(0o644)
    path.write_text("evil")


def add_badly_named(path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path) + b"\xff")).touch()


CHANGES: list[Callable[[Path], object]] = [
    lambda root: alter(root / "train.py"),
    lambda root: alter(root / "lib/large.py"),
    lambda root: (root / "train.py").unlink(),
    lambda root: (root / "more.py").touch(),
    lambda root: (root / "run.sh").chmod(0o444),
    lambda root: ((root / "link").unlink(), (root / "link").symlink_to("/etc/passwd")),
    lambda root: add_badly_named(root / "odd"),
    lambda root: None,
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_altered_snapshot_is_fetched_again(tmp_path: Path, change: Callable[[Path], object]) -> None:
    texts, cache = make_code(tmp_path / "code"), tmp_path / "cache"

    async def main() -> None:
        store, code = MemoryStore(), read_code(tmp_path / "code")
        await upload_code(store, code)
        for life in range(2):
            codes = CodeCache(store, Cache(cache))
            snapshot = await codes.get(code.hash, spell_code_key(code.hash))
            target = tmp_path / f"job-{life}"
            target.mkdir()
            snapshot.copy_to(str(target))
            assert {path.relative_to(target).as_posix() for path in target.rglob("*")} == {*texts, "lib"}
            assert {path: (target / path).read_text() for path in texts} == texts
            assert os.access(target / "run.sh", os.X_OK)
            await codes.close()
            change(cache / "code" / code.hash)

    asyncio.run(main())
