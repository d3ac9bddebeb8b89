"""The schemes s3://, gs:// and az://: from a URL to a client. obstore is loaded when one is connected to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from monkey.errors import KeyMissing, StoreRefused
from monkey.store.bucket.url import parse_bucket_url
from monkey.store.format import FORMAT
from monkey.store.probe import PROBE
from monkey.store.store_port import Store

if TYPE_CHECKING:
    from monkey.store.bucket.store import BucketStore

#: What may lie where a store is begun: a beginning that was cut off, and a DVC remote, whose layout datasets have here.
WELCOME = {FORMAT, PROBE, "files"}


def locate_store(url: str) -> str:
    """See `monkey.store.open.Backend`."""
    return parse_bucket_url(url).url


async def connect_store(url: str, *, begin: bool) -> Store:
    """See `monkey.store.open.Backend`. The bucket itself must be there: who pays for it makes it."""
    from monkey.store.bucket.client import make_clients
    from monkey.store.bucket.store import BucketStore

    address = parse_bucket_url(url)
    store = BucketStore(address, *make_clients(address))
    if begin:
        await check_room(store)
    return store


async def check_room(store: Store) -> None:
    """See `monkey.store.open.Backend`."""
    strangers = await cast("BucketStore", store).strangers(WELCOME)
    if not strangers:
        return
    try:
        await store.get(FORMAT)
    except KeyMissing:
        raise StoreRefused(
            f"expected a store or nothing at {store.url}, found {strangers[0]!r} there",
            hint="name a prefix of its own in the bucket: s3://bucket/prefix",
        ) from None
