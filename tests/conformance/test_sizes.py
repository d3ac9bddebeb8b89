"""Limits of what is read into memory, over every backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import ObjectTooLarge, StoreRefused
from monkey.store.create import Lost, create_object
from monkey.store.object_limits import LIMITS, OversizedEntry, find_limit
from monkey.store.store_port import Store
from tests.loops import Run

Clients = Callable[[], Store]
#: A key whose limit is small.
SMALL = "projects/p/bell"


def test_an_object_that_is_too_large_is_not_read(store: Store, clients: Clients, run: Run, tmp_path: Path) -> None:
    limit, path = LIMITS["bell"], tmp_path / "large"
    path.write_bytes(b"x" * limit)
    run(store.put_file(SMALL, path))
    assert run(store.get(SMALL)) == path.read_bytes()
    path.write_bytes(b"x" * (limit + 1))
    run(store.put_file(SMALL, path))
    for read in (store.get, store.get_newest, clients().get):
        with pytest.raises(ObjectTooLarge) as caught:
            run(read(SMALL))
        assert (
            SMALL in str(caught.value) and f"{limit:,}" in str(caught.value) and f"{limit + 1:,}" in str(caught.value)
        )
    assert [item.size for item in run(store.list("projects/p/"))] == [limit + 1]
    run(store.get_file(SMALL, tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == path.read_bytes()
    run(store.put(SMALL, b"small again"))
    assert run(store.get(SMALL)) == b"small again"


def test_nothing_is_written_that_no_reader_takes(store: Store, run: Run) -> None:
    data = b"x" * (find_limit(SMALL) + 1)
    for write in (store.put, store.create):
        with pytest.raises(StoreRefused, match="readers take at most"):
            run(write(SMALL, data))
    assert run(store.list("projects/p/")) == []


def test_who_meets_an_entry_that_is_too_large_has_lost(store: Store, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * (LIMITS["permits"] + 1))
    key = "projects/p/permits/s/0/00000001"
    run(store.put_file(key, path))
    outcome = run(create_object(store, key, b"mine"))
    assert isinstance(outcome, Lost) and isinstance(outcome.existing, OversizedEntry)
    assert outcome.existing == b"" and "too large" in outcome.existing.why
