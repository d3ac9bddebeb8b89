"""The agent's code goes up a slow line in parts: what is up is not sent again after a break."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monkey.errors import StoreUnavailable
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_stacks.bundle import publishing
from monkey_stacks.bundle.bundle import Bundle, publish_bundle
from tests.bucket import FakeBucket
from tests.loops import Run
from tests.services import BUCKET
from tests.slow_line import SlowLine
from tests.trusting import trust

#: Bytes a second of 2 Mbit/s.
SLOW = 2e6 / 8
#: Bytes of all that is said beside contents: headers, and looks at what is there.
BESIDES = 64 * 1024
LONG = bool(os.environ.get("MONKEY_LONG"))
KINDS = ["s3", "gs", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("moto", "azurite"))]


def make_bundle(path: Path, parts: int, size: int) -> Bundle:
    """Return a bundle of so many parts of `size` bytes, which cannot be compressed."""
    contents = [os.urandom(size) for _ in range(parts)]
    packed = [gzip.compress(each) for each in contents]
    path.write_bytes(b"".join(packed))
    return Bundle(hashlib.sha256(b"".join(contents)).hexdigest(), path, tuple(map(len, packed)))


def find_server(kind: str, request: pytest.FixtureRequest) -> str:
    """Return the endpoint of a server of this kind."""
    if kind in ("moto", "azurite"):
        return str(request.getfixturevalue(kind))
    bucket: FakeBucket = request.getfixturevalue("bucket")
    return bucket.endpoint


@contextmanager
def open_by(line: SlowLine, kind: str, prefix: str, run: Run) -> Iterator[Store]:
    """Open a store by the line."""
    trust(line.endpoint)
    scheme = {"moto": "s3", "azurite": "az"}.get(kind, kind)
    store = run(open_store(f"{scheme}://{BUCKET}/{prefix}?endpoint={line.endpoint}", begin=True))
    yield store
    run(store.close())


def join_parts(store: Store, bundle: Bundle, run: Run) -> str:
    """Return the hash of what the store has of a bundle, as machines unpack it."""
    data = b"".join(run(store.get(key)) for key in bundle.keys)
    return hashlib.sha256(gzip.decompress(data)).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_up_is_not_sent_again_after_a_break(
    kind: str, request: pytest.FixtureRequest, run: Run, tmp_path: Path
) -> None:
    bundle = make_bundle(tmp_path / "bundle", 8, 128 * 1024)
    size = sum(bundle.parts)
    told: list[int] = []
    with SlowLine(find_server(kind, request)) as line, open_by(line, kind, "broken", run) as store:
        line.breaks_at = line.sent + size // 2
        with pytest.raises(StoreUnavailable):
            run(publish_bundle(store, bundle, lambda said: None))
        line.breaks_at = 0
        there = sum(item.size for item in run(store.list("bundle/")))
        assert size // 8 < there < size
        before = line.sent
        run(publish_bundle(store, bundle, lambda said: None, lambda *about: told.append(about[1]) or print))
        assert size - there < line.sent - before < size - there + BESIDES
        assert told == [size - there], "progress is of what is missing"
        assert join_parts(store, bundle, run) == bundle.sha256


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_part_takes_longer_than_a_request_may(
    kind: str, request: pytest.FixtureRequest, run: Run, tmp_path: Path
) -> None:
    """At 2 Mbit/s, eight seconds are enough for 2 MB: all of a bundle took one request of eight seconds."""
    bundle = make_bundle(tmp_path / "bundle", 3, 1 << 20)
    with SlowLine(find_server(kind, request)) as line, open_by(line, kind, "slow", run) as store:
        line.rate = SLOW
        run(publish_bundle(store, bundle, lambda said: None))
        assert join_parts(store, bundle, run) == bundle.sha256


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="MONKEY_LONG=1: takes a minute; test_slow_line.py does it by the real CLI")
def test_the_whole_bundle_goes_up_a_line_of_2_mbit(bucket: FakeBucket, run: Run) -> None:
    said: list[str] = []
    with SlowLine(bucket.endpoint) as line, open_by(line, "s3", "whole", run) as store:
        bundle = publishing.build_for_store(store.url, "x86_64")
        line.rate = SLOW
        run(publishing.publish_once(store, bundle, "alice\n", said.append))
        assert join_parts(store, bundle, run) == bundle.sha256
        before = line.sent
        run(publishing.publish_once(store, bundle, "alice\n", said.append))
        assert line.sent - before < BESIDES and len(said) == 1, "all is there"
    assert "of the agent's code uploaded" in said[0]
