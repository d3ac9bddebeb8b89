"""The project's store, opened: the one that was there before, or none."""

from __future__ import annotations

from monkey.apply.memo import Memo
from monkey.errors import StoreMissing
from monkey.store.base import Store
from monkey.store.format import FORMAT, decode_format
from monkey.store.open import open_store


async def open_known(url: str, memo: Memo, *, begin: bool) -> Store | None:
    """Return the store at `url`; None where none ever was, and none is to be begun.

    Raises StoreMissing where there was one and now is none or another, and whatever `open_store` raises.
    """
    try:
        store = await open_store(url, begin=begin)
    except StoreMissing as exc:
        if memo.expects(url):
            raise memo.vanished(exc) from exc
        return None
    try:
        memo.meet(url, decode_format(await store.get(FORMAT), url).id)
    except BaseException:
        await store.close()
        raise
    return store
