"""A store between a client and its backend that fails by a script, in every way that real ones were seen to fail."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from monkey.errors import StoreUnavailable
from monkey.store.store_port import ListedObject, Store


class Fault(Enum):
    """What happens to one create."""

    NONE = "it works"
    LOST_ANSWER = "committed, and the answer is lost"
    NOT_COMMITTED = "never arrives, and no answer"
    LATE = "no answer, and the commit comes later"
    SPURIOUS = "answered 'exists', and nothing is there (a conflict, 409)"
    RETRIED = "committed, and the client's own retry is answered 'exists'"


class FaultyStore(Store):
    """Passes everything to `inner`; asks `next_fault` at each create, `get_fails` at each get."""

    poll = 0.25

    def __init__(
        self, inner: Store, next_fault: Callable[[], Fault], get_fails: Callable[[], bool] = lambda: False
    ) -> None:
        self.url = inner.url
        self.inner, self.next_fault, self.get_fails = inner, next_fault, get_fails
        self.late: list[tuple[str, bytes, bool]] = []

    async def commit_late(self) -> None:
        """Let what is under way arrive."""
        while self.late:
            key, data, durable = self.late.pop(0)
            await self.inner.create(key, data, durable=durable)

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        fault = self.next_fault()
        if fault is Fault.SPURIOUS:
            return False
        if fault is Fault.LATE:
            self.late.append((key, data, durable))
        elif fault is not Fault.NOT_COMMITTED:
            won = await self.inner.create(key, data, durable=durable)
            if fault is Fault.NONE:
                return won
        if fault is Fault.RETRIED:
            return False
        raise StoreUnavailable(f"injected: {fault.value}")

    async def get(self, key: str) -> bytes:
        if self.get_fails():
            raise StoreUnavailable("injected: no answer")
        return await self.inner.get(key)

    async def put(self, key: str, data: bytes) -> None:
        await self.inner.put(key, data)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        return await self.inner.list(prefix, after)

    async def delete(self, key: str) -> None:
        await self.inner.delete(key)

    async def put_file(self, key: str, path: Path) -> None:
        await self.inner.put_file(key, path)

    async def get_file(self, key: str, path: Path) -> None:
        await self.inner.get_file(key, path)

    async def close(self) -> None:
        await self.inner.close()
