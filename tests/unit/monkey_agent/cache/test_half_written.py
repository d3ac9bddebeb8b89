"""What a killed writer left aside in the cache goes, and what one still writes stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

from monkey_agent.cache.eviction import HALF_WRITTEN, trim_cache


def test_old_files_aside_go_and_new_ones_stay(tmp_path: Path) -> None:
    trees = tmp_path / "datasets" / "trees"
    trees.mkdir(parents=True)
    old, new, other = trees / ".x.list.0a.part", trees / ".x.list.0b.part", trees / ".keep"
    for path in (old, new, other):
        path.write_bytes(b"half")
    long_ago = time.time() - HALF_WRITTEN - 60
    os.utime(old, (long_ago, long_ago))
    os.utime(other, (long_ago, long_ago))
    trim_cache(str(tmp_path), 1 << 30)
    assert set(trees.iterdir()) == {other, new}
