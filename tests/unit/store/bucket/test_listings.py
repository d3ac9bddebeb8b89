"""Listings of buckets: whole, however many pages they have; and nothing that is missing hides a lost store."""

from __future__ import annotations

import pytest

from monkey.errors import KeyMissing, StoreMissing, StoreReplaced
from monkey.store.bucket.store import CHECK, BucketStore
from monkey.store.open import open_store
from tests.bucket import FakeBucket
from tests.loops import Run

#: More keys than obstore hands out at once.
COUNT = 1_203


def test_listing_has_all_keys_of_many_pages(bucket: FakeBucket, run: Run) -> None:
    store = run(open_store(bucket.url(), begin=True))
    keys = [f"jobs/{n:04}/1" for n in range(COUNT)]
    for key in ["beats/a", *keys, "sweeps/a/1"]:
        bucket.objects.put(key, b"", if_absent=True)
    assert [item.key for item in run(store.list("jobs/"))] == keys
    assert [item.key for item in run(store.list("jobs/", after=keys[100]))] == keys[101:]
    assert len(run(store.list(""))) == COUNT + 3


def test_missing_key_in_a_bucket_that_was_emptied_tells_of_the_store(bucket: FakeBucket, run: Run) -> None:
    store = run(open_store(bucket.url(), begin=True))
    with pytest.raises(KeyMissing):
        run(store.get("k"))
    for key in bucket.objects.keys:
        bucket.objects.delete(key)
    assert isinstance(store, BucketStore)
    store._seen -= CHECK  # it looks once in a while
    with pytest.raises(StoreMissing, match="'format' is gone"):
        run(store.get("k"))


def test_another_store_in_the_bucket_takes_no_write_of_ours(bucket: FakeBucket, run: Run) -> None:
    store = run(open_store(bucket.url(), begin=True))
    for key in bucket.objects.keys:
        bucket.objects.delete(key)
    other = run(open_store(bucket.url(), begin=True))
    assert other.id != store.id
    assert isinstance(store, BucketStore)
    store._seen -= CHECK  # it looks once in a while
    message = f"expected {store.id}, found {other.id}"
    for write in (store.create("k", b"x"), store.put("k", b"x")):
        with pytest.raises(StoreReplaced, match=message):
            run(write)
    assert [item.key for item in run(other.list(""))] == ["format"]
