"""The scheme ssh://, as `monkey.store.open` wants it."""

from __future__ import annotations

from monkey.store.format import FORMAT
from monkey.store.keys import RESERVED
from monkey.store.probe import PROBE
from monkey.store.sftp.store import SftpStore
from monkey.store.sftp.url import parse_sftp_url
from monkey.store.store_port import Store

#: What may lie where a store is created: a beginning that was cut off.
_OURS = frozenset((FORMAT, RESERVED, PROBE))


def locate_store(url: str) -> str:
    """Return `url` in its one form, without a look at the network; raises StoreError where it cannot be one."""
    return parse_sftp_url(url).url


async def connect_store(url: str, *, begin: bool) -> SftpStore:
    """Return a client of what is at `url`; see `monkey.store.open.Backend`."""
    store = SftpStore(parse_sftp_url(url))
    try:
        await store.connect()
        if begin:
            await store.make_room(_OURS)
    except BaseException:
        await store.close()
        raise
    return store


async def check_room(store: Store) -> None:
    """See `monkey.store.open.Backend`."""
    assert isinstance(store, SftpStore)
    await store.make_room(_OURS, make=False)
