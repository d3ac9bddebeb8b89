# ruff: noqa: PTH105
"""The store in a bucket: S3 and whatever speaks it, Google Cloud Storage, Azure Blob Storage; by obstore.

A bucket answers once an object is safe, so everything here is durable. A project without a bucket never loads this.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from monkey.concurrency import run_in_lanes
from monkey.errors import KeyMissing, StoreMissing, StoreReplaced, StoreUnavailable
from monkey.removal import remove_file
from monkey.store.bucket.errors import StoreOperation, translate_bucket_error
from monkey.store.bucket.object_names import ObjectNames, decode_object_name
from monkey.store.bucket.signed_link import sign_object_link
from monkey.store.bucket.upload_room import UploadRoom
from monkey.store.bucket.url import BucketUrl
from monkey.store.content.objects import Moved, SourceFile
from monkey.store.format import FORMAT, decode_format
from monkey.store.keys import check_prefix
from monkey.store.object_limits import check_size, refuse_large
from monkey.store.store_port import ListedObject, Store
from monkey.store.upload_each import put_each

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore

_T = TypeVar("_T")

#: Bytes of one part of a large file that is read: several requests at once, none so long that losing it hurts.
_PART_BYTES = 8 * 2**20
#: The same of one that is written: the least that S3 takes. More would be too much for one request on a slow line.
_SENT_PART_BYTES = 5 * 2**20
#: Bytes of an object that even a line of 2 Mbit/s carries in the seconds of a small request.
_QUICK_BYTES = 2**20
#: Bytes of an answer's body that are awaited together.
_PIECE_BYTES = 2**20
#: Parts under way at once.
_CONCURRENCY = 4
#: Parts that an object may have at most, everywhere.
MOST_PARTS = 10_000
#: Tries of one part, or of one upload, beyond those that obstore makes: a file of gigabytes is not begun anew for one.
_MAX_TRIES = 3
#: Seconds between looks at whether the store in the bucket is still ours.
CHECK = 10.0
#: Files up to this many bytes are read and written in the calling thread.
_SMALL_BYTES = 256 * 1024

_Failures = (BaseError, OSError)


class BucketStore(Store):
    """A store in a bucket; made by `monkey.store.bucket.scheme.connect_store`."""

    #: Requests cost money, and an agent's look is three of them.
    poll = 10.0

    def __init__(self, address: BucketUrl, client: ObjectStore, bulk: ObjectStore) -> None:
        """Meet others at `address`. `bulk` is the same as `client`, with the patience that large bodies need."""
        self.url, self._address = address.url, address
        self._client, self._bulk = client, bulk
        self._names = ObjectNames(address.scheme)
        self._room = UploadRoom()
        #: Which store this is, once its `format` was read, and when that was seen last.
        self._id, self._seen = "", float("-inf")

    @property
    def id(self) -> str:
        """See `Store.id`; it was seen when it was set."""
        return self._id

    @id.setter
    def id(self, store_id: str) -> None:
        self._id, self._seen = store_id, time.monotonic()

    async def _check(self) -> None:
        """Raise StoreMissing, StoreReplaced where our store is here no more; looks once in a while, for it costs.

        A bucket that was emptied takes writes as ever: an agent would continue in it, alone and for nothing.
        """
        now, before = time.monotonic(), self._seen
        if not self.id or now - before < CHECK:
            return
        self._seen = now
        try:
            await self._look()
        except StoreUnavailable:
            return  # whether it is there is not known, and what comes next will meet the same
        except BaseException:
            self._seen = before
            raise

    async def _look(self) -> None:
        try:
            data = await self.get(FORMAT)
        except KeyMissing:
            raise StoreMissing(
                f"no store at {self.url}: its {FORMAT!r} is gone, and it was there before",
                hint="was the bucket emptied? bring the store back, or begin a new one: `monkey apply`",
            ) from None
        if (found := decode_format(data, self.url).id) != self.id:
            raise StoreReplaced(
                f"another store is at {self.url}: expected {self.id}, found {found}",
                hint="bring the store that was there back",
            )

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """See `Store.create`."""
        refuse_large(key, data)
        await self._check()
        try:
            client = self._choose_client(data)
            await obstore.put_async(client, self._names.of(key), data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except _Failures as exc:
            raise translate_bucket_error(exc, self._address, StoreOperation.CREATE, key) from exc
        return True

    async def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        refuse_large(key, data)
        await self._check()
        await self._put(self._choose_client(data), key, data)

    def _choose_client(self, data: bytes) -> ObjectStore:
        """Return the client that has the patience for these bytes: a revision of many jobs takes long, too."""
        return self._client if len(data) <= _QUICK_BYTES else self._bulk

    async def _put(self, client: ObjectStore, key: str, data: bytes) -> None:
        try:
            await obstore.put_async(client, self._names.of(key), data, use_multipart=False)
        except _Failures as exc:
            raise translate_bucket_error(exc, self._address, StoreOperation.WRITE, key) from exc

    async def _put_whole(self, key: str, data: bytes) -> None:
        """Put what has more bytes than the store's own objects, or comes with many others."""
        await self._check()
        async with self._room.take(len(data)):
            await self._put(self._bulk, key, data)

    async def get(self, key: str) -> bytes:
        """See `Store.get`."""
        try:
            found = await obstore.get_async(self._client, self._names.of(key))
            check_size(key, found.meta["size"])
            data = await _read_body(found, found.meta["size"])
        except _Failures as exc:
            error = translate_bucket_error(exc, self._address, StoreOperation.READ, key)
            if isinstance(error, KeyMissing) and key != FORMAT:
                await self._check()
            raise error from exc
        if key == FORMAT and not self.id:
            self.id = decode_format(data, self.url).id
        return data

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """See `Store.list`. Pages of 1,000 keys: one request each."""
        directory, begins = check_prefix(prefix), self._names.part(prefix)
        found = []
        try:
            async for page in self._pages(directory, self._names.bound(max(after, prefix[:-1]))):
                items = map(_item, page)
                found += [item for item in items if item.key > after and item.key.startswith(prefix)]
                if page and (last := page[-1]["path"]) > begins and not last.startswith(begins):
                    break  # sorted: what has the prefix is behind us
        except _Failures as exc:
            raise translate_bucket_error(exc, self._address, StoreOperation.LIST, prefix) from exc
        if not found:
            await self._check()
        return sorted(found)

    def _pages(self, directory: str, after: str | None) -> AsyncIterator[Sequence[Any]]:
        return obstore.list(self._client, self._names.part(directory) or None, offset=after, chunk_size=1000)

    async def list_directories(self, prefix: str) -> Sequence[str]:
        """See `Store.list_directories`. Up to 1,000 of them are one request."""
        directory = check_prefix(prefix)
        try:
            listed = await obstore.list_with_delimiter_async(self._client, self._names.part(directory))
        except _Failures as exc:
            raise translate_bucket_error(exc, self._address, StoreOperation.LIST, prefix) from exc
        return sorted(decode_object_name(path).rpartition("/")[2] for path in listed["common_prefixes"])

    async def strangers(self, known: set[str]) -> Sequence[str]:
        """Return first parts of keys that are here and not in `known`, from as many as one request tells."""
        try:
            async for page in self._pages("", None):
                return sorted({decode_object_name(one["path"]).partition("/")[0] for one in page} - known)
        except _Failures as exc:
            raise translate_bucket_error(exc, self._address, StoreOperation.LIST) from exc
        return ()

    async def sign_link(self, key: str, seconds: float) -> str:
        """See `LinkSigner.sign_link`."""
        return await sign_object_link(self.url, key, seconds)

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        try:
            await obstore.delete_async(self._client, self._names.of(key))
        except _Failures as exc:
            error = translate_bucket_error(exc, self._address, StoreOperation.DELETE, key)
            if not isinstance(error, KeyMissing):
                raise error from exc

    async def put_file(self, key: str, path: Path) -> None:
        """See `Store.put_file`; an OSError of `path` itself passes through."""
        name = self._names.of(key)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= _PART_BYTES:
                data = file.read() if size <= _SMALL_BYTES else await asyncio.to_thread(file.read)
                await self._put_whole(key, data)
                return
            chunk = max(_SENT_PART_BYTES, -(-size // MOST_PARTS))

            async def once() -> None:
                file.seek(0)
                await obstore.put_async(self._bulk, name, file, chunk_size=chunk, max_concurrency=_CONCURRENCY)

            async with self._room.take(_CONCURRENCY * chunk):
                await self._again(once, key, StoreOperation.WRITE)

    async def put_contents(self, sources: Sequence[SourceFile], moved: Moved) -> Sequence[str]:
        """See `Store.put_contents`."""
        return await put_each(self, sources, moved, self._put_whole)

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`; an OSError of `path` itself passes through."""
        name = self._names.of(key)
        aside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.part")
        with aside.open("xb", buffering=0) as file:
            try:
                await self._fetch(key, name, file)
                os.replace(aside, path)
            except BaseException:
                with suppress(OSError):
                    remove_file(aside)
                raise

    async def _fetch(self, key: str, name: str, file: IO[bytes]) -> None:
        async def head() -> tuple[int, str | None, bytes | None]:
            found = await obstore.get_async(self._bulk, name)
            size = found.meta["size"]
            data = await _read_body(found, size) if size <= _PART_BYTES else None
            return size, found.meta["e_tag"], data

        size, etag, data = await self._again(head, key)
        if data is not None:
            _write_at(file, data, 0)
            return

        async def part(start: int) -> None:
            async def once() -> bytes:
                end = min(start + _PART_BYTES, size)
                options: Any = {"range": (start, end), "if_match": etag}
                return await _read_body(await obstore.get_async(self._bulk, name, options=options), end - start)

            _write_at(file, await self._again(once, key), start)

        await run_in_lanes(range(0, size, _PART_BYTES), part, _CONCURRENCY)

    async def _again(
        self, work: Callable[[], Awaitable[_T]], key: str, verb: StoreOperation = StoreOperation.READ
    ) -> _T:
        """Do `work`, and again where it fails where obstore does not retry: in the middle of a body, at a POST."""
        for left in reversed(range(_MAX_TRIES)):
            try:
                return await work()
            except PreconditionError as exc:
                raise StoreUnavailable(f"the store {self.url}: {key!r} was replaced while it was read") from exc
            except _Failures as exc:
                error = translate_bucket_error(exc, self._address, verb, key)
                if not left or not isinstance(error, StoreUnavailable):
                    raise error from exc
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """See `Store.close`; obstore's connections close by themselves."""


def _item(said: Any) -> ListedObject:
    return ListedObject(decode_object_name(said["path"]), said["size"], str(said["e_tag"] or said["last_modified"]))


async def _read_body(found: GetResult, size: int) -> bytes:
    """Return an answer's bytes, `size` by its header. Raises StoreUnavailable where there are more."""
    data = bytearray()
    async for piece in found.stream(min_chunk_size=max(1, min(size, _PIECE_BYTES))):
        data += memoryview(piece)
        if len(data) >= size:
            break
    if len(data) > size:
        raise StoreUnavailable(f"the store answered with more than the {size:,} bytes that it promised")
    return bytes(data)


def _write_at(file: IO[bytes], data: bytes, start: int) -> None:
    """Write in the calling thread: another one might still write when the file is closed, and its number another's."""
    view = memoryview(data)
    while view:
        written = os.pwrite(file.fileno(), view, start)
        view, start = view[written:], start + written
