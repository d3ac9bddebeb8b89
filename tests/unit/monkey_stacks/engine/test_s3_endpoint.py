"""The bridge, met by a client of S3 that has nothing to do with Pulumi, and by one that was not invited."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import obstore
import pytest
from obstore.store import S3Store

from monkey.errors import KeyMissing, StoreRefused
from monkey.store.memory import MemoryStore
from monkey_stacks.engine.s3_endpoint import StateEndpoint
from monkey_stacks.engine.state_bucket import _KEPT, LARGEST, LOCKS, STACKS, StateBucket

#: Seconds to wait for an answer: that a body is waited for shows by this.
PATIENCE = 10.0
PREFIX = "projects/p/machines/f/state/"


def client(url: str, bucket: str = "") -> S3Store:
    parts = urlsplit(url)
    return S3Store(
        bucket or parts.netloc,
        config={
            "endpoint": parse_qs(parts.query)["endpoint"][0],
            "access_key_id": "any",
            "secret_access_key": "any",
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
            "disable_bulk_delete": True,
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )


def served(space: StateBucket, ask: Callable[[StateEndpoint], None]) -> StateEndpoint:
    """Run `ask` in a thread, as Pulumi would be, while the loop serves."""

    async def serve() -> StateEndpoint:
        with StateEndpoint(space, asyncio.get_running_loop()).running() as bridge:
            await asyncio.to_thread(ask, bridge)
            return bridge

    return asyncio.run(serve())


def test_objects_come_and_go_and_are_listed() -> None:
    store = MemoryStore()

    def ask(bridge: StateEndpoint) -> None:
        there = client(bridge.url)
        obstore.put(there, f"{STACKS}p/f.json", b"one")
        obstore.put(there, ".pulumi/meta.yaml", b"version: 1\n")
        obstore.copy(there, f"{STACKS}p/f.json", f"{STACKS}p/f.json.bak")
        assert bytes(obstore.get(there, f"{STACKS}p/f.json.bak").bytes()) == b"one"
        assert obstore.head(there, f"{STACKS}p/f.json")["size"] == 3
        listed = obstore.list_with_delimiter(there, ".pulumi/")
        assert [item["path"] for item in listed["objects"]] == [".pulumi/meta.yaml"]
        assert list(listed["common_prefixes"]) == [".pulumi/stacks"]
        obstore.delete(there, ".pulumi/meta.yaml")
        with pytest.raises(FileNotFoundError):
            obstore.get(there, ".pulumi/meta.yaml")

    served(StateBucket(store, PREFIX, dry=False), ask)
    assert sorted(store.state.objects) == [f"{PREFIX}{STACKS}p/f.json", f"{PREFIX}{STACKS}p/f.json.bak"]


def test_who_does_not_know_the_name_is_not_let_in() -> None:
    store = MemoryStore()

    def ask(bridge: StateEndpoint) -> None:
        with pytest.raises(obstore.exceptions.PermissionDeniedError):
            obstore.put(client(bridge.url, bucket="state"), "key", b"data")

    served(StateBucket(store, PREFIX, dry=False), ask)
    assert not store.state.objects


def test_a_body_is_not_read_before_the_name_and_the_size_are_known_to_be_right() -> None:
    def ask(bridge: StateEndpoint) -> None:
        place = urlsplit(parse_qs(urlsplit(bridge.url).query)["endpoint"][0])
        for bucket, length, status in [
            ("state", "300000000", b"403"),
            ("state", "-1", b"403"),
            *((bridge.bucket, length, b"400") for length in ("300000000", "-1", "1e3", "9" * 5000, "²")),
        ]:
            with socket.create_connection((place.hostname, place.port), timeout=PATIENCE) as peer:
                head = f"PUT /{bucket}/key HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
                peer.sendall(head.encode("latin-1"))
                answer = peer.makefile("rb").read()  # to the end: nothing more is expected on this connection
            assert answer.startswith(b"HTTP/1.1 " + status), (bucket, length, answer)

    store = MemoryStore()
    served(StateBucket(store, PREFIX, dry=False), ask)
    assert not store.state.objects


def test_amazon_s_chunks_are_put_together() -> None:
    def ask(bridge: StateEndpoint) -> None:
        endpoint = parse_qs(urlsplit(bridge.url).query)["endpoint"][0]
        body = b"3;chunk-signature=ab\r\none\r\n4\r\n\r\ntw\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"
        headers = {"Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": "7"}
        request = urllib.request.Request(f"{endpoint}/{bridge.bucket}/key", body, headers, method="PUT")
        urllib.request.urlopen(request).close()
        assert bytes(obstore.get(client(bridge.url), "key").bytes()) == b"one\r\ntw"

    served(StateBucket(MemoryStore(), PREFIX, dry=False), ask)


def test_what_pulumi_would_send_in_parts_is_refused() -> None:
    def ask(bridge: StateEndpoint) -> None:
        endpoint = parse_qs(urlsplit(bridge.url).query)["endpoint"][0]
        for query, body in (("?partNumber=1&uploadId=x", b"part"), ("", b"x" * (LARGEST + 1))):
            request = urllib.request.Request(f"{endpoint}/{bridge.bucket}/key{query}", body, method="PUT")
            with pytest.raises(urllib.error.HTTPError, match="400") as refused:
                urllib.request.urlopen(request)
            refused.value.close()

    served(StateBucket(MemoryStore(), PREFIX, dry=False), ask)


def test_nothing_is_written_without_the_lock_and_pulumi_s_own_locks_never() -> None:
    store, held = MemoryStore(), [True]
    space = StateBucket(store, PREFIX, dry=False, allowed=lambda: held[0])

    def ask(bridge: StateEndpoint) -> None:
        there = client(bridge.url)
        obstore.put(there, f"{LOCKS}p/f/1.json", b"{}")
        assert [item["path"] for item in obstore.list(there, LOCKS).collect()] == [f"{LOCKS}p/f/1.json"]
        obstore.delete(there, f"{LOCKS}p/f/1.json")
        held[0] = False
        with pytest.raises(obstore.exceptions.GenericError, match="503"):
            obstore.put(there, "key", b"late")

    bridge = served(space, ask)
    assert not store.state.objects
    assert isinstance(bridge.trouble, StoreRefused)


def test_pulumi_sees_nothing_of_the_store_that_was_not_judged() -> None:
    """Another layout, a compressed state that is newer, tags: Pulumi reads all of these where they are."""

    async def look() -> None:
        store = MemoryStore()
        names = (".pulumi/meta.yaml", f"{STACKS}f.json", f"{STACKS}p/f.json.gz", f"{STACKS}p/f.json", f"{LOCKS}p/f/1")
        for name in names:
            await store.put(f"{PREFIX}{name}", b"{}")
        space = StateBucket(store, PREFIX, dry=False)
        assert await space.list("") == {}
        for name in names:
            with pytest.raises(KeyMissing):
                await space.get(name)
        assert await space.load(f"{STACKS}p/f.json") == b"{}"
        space.show(f"{STACKS}p/f.json", b"judged")
        # Somebody writes between our look and Pulumi's.
        await store.put(f"{PREFIX}{STACKS}p/f.json", b"forged")
        assert (await space.get(f"{STACKS}p/f.json"), await space.list("")) == (b"judged", {f"{STACKS}p/f.json": 6})
        assert await space.list_stored(LOCKS) == (f"{LOCKS}p/f/1",)

    asyncio.run(look())


def test_a_dry_space_shows_its_own_writes_and_leaves_the_store_alone() -> None:
    async def dry() -> None:
        store = MemoryStore()
        await store.put(f"{PREFIX}old", b"old")
        before = dict(store.state.objects)
        space = StateBucket(store, PREFIX, dry=True)
        await space.put("new", b"new")
        await space.delete("old")
        assert await space.list("") == {"new": 3}
        assert await space.get("new") == b"new"
        with pytest.raises(KeyMissing):
            await space.get("old")
        assert store.state.objects == before

    asyncio.run(dry())


def test_history_and_backups_are_pruned_to_the_newest() -> None:
    async def prune() -> None:
        store = MemoryStore()
        space = StateBucket(store, PREFIX, dry=False)
        for n in range(1_700_000_000_000_000_000, 1_700_000_000_000_000_000 + _KEPT + 3):
            for kind in ("history", "checkpoint"):
                await space.put(f".pulumi/history/p/f.1/f.1-{n}.{kind}.json", b"")
            await space.put(f".pulumi/backups/p/f.1/f.1.{n}.json", b"")
        await space.put(f"{STACKS}p/f.1.json", b"")
        await space.prune()
        kept = sorted(await space.list(".pulumi/"))
        assert len(kept) == 3 * _KEPT + 1
        assert "1700000000000000003.json" in kept[0]

    asyncio.run(prune())
