"""Claims of notices by a process that lives for seconds and has no heartbeat."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field

from monkey.protocol.clock import Clock
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.notices.sweep_notices import is_posted
from monkey.store.create import create_object
from monkey.store.store_port import Store

#: Seconds that another's claim is waited for: it takes a few to post a comment. Who posts after that finds the comment
#: of one who was only slow, and writes no second one.
PATIENCE = 15.0
_LOOK = 0.5


def _make_name() -> str:
    """Return a name as agents have: "notify/machine/boot". Nothing ever beats under it, so agents take over, too."""
    machine = "".join(sign if sign.isalnum() else "-" for sign in socket.gethostname())[:60] or "machine"
    return f"notify/m-{machine}/{os.getpid()}-{secrets.token_hex(4)}"


@dataclass
class NoticeClaims:
    """The claims of one run of `monkey notify`."""

    store: Store
    clock: Clock
    patience: float = PATIENCE
    me: str = field(default_factory=_make_name)
    _nonce: int = 0

    async def take(self, log: EntryLog, sweep: str) -> bool:
        """Claim a notice; False where another sent it, or sends it now. Raises StoreError."""
        await log.refresh(self.store)
        head, since = log.head, self.clock.now()
        while not is_posted(log):
            if log.head != head:
                head, since = log.head, self.clock.now()
            if isinstance(log.tail, Claim | TornEntry) and self.clock.now() - since < self.patience:
                await self.clock.sleep(_LOOK)
                await log.refresh(self.store)
                continue
            self._nonce += 1
            claim = Claim(self.me, self._nonce, 0, sweep, at=round(self.clock.wall(), 3))
            if await log.append(self.store, create_object, log.head + 1, claim):
                return True
        return False

    async def end(self, log: EntryLog, sweep: str, outcome: ClaimEnd, reason: str = "") -> None:
        """Record how it went with a notice that was taken. Nothing, where another has taken it over since."""
        end = EndEntry(outcome, self.me, self._nonce, sweep, reason=reason, at=round(self.clock.wall(), 3))
        await log.append(self.store, create_object, log.head + 1, end)
