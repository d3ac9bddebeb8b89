"""When the bucket fails, and how."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum


class Fault(Enum):
    """What goes wrong with one request. `before` and `after`: is it carried out?"""

    NONE = "nothing"
    CONFLICT = "409 though nothing is there, as S3 answers to writers of one key at the same time"
    BUSY = "503, before"
    BUSY_AFTER = "503, after"
    DROP = "the connection breaks, before"
    DROP_AFTER = "the connection breaks, after"
    HANG_AFTER = "carried out at once, answered too late"
    DENY = "400, the credentials have expired; in no storm"
    LATE = "carried out later than anybody waits"


#: What is carried out although the client will not hear of it.
AFTER = frozenset((Fault.BUSY_AFTER, Fault.DROP_AFTER, Fault.HANG_AFTER, Fault.LATE))

#: Faults of a storm and how often each comes up; those that last a client's timeout are rare, or it would take hours.
MIX = {
    Fault.CONFLICT: 60,
    Fault.BUSY: 60,
    Fault.BUSY_AFTER: 60,
    Fault.DROP: 55,
    Fault.DROP_AFTER: 55,
    Fault.HANG_AFTER: 3,
    Fault.LATE: 3,
}

Only = Callable[[str, str], bool]


def always(kind: str, key: str) -> bool:
    """Let a fault meet every request."""
    return True


class Faults:
    """The faults to come: a script first, then by dice."""

    def __init__(self) -> None:
        """Have none."""
        self._lock = threading.Lock()
        self._script: list[Fault] = []
        self._only: Only = always
        self._dice = random.Random(0)
        self._share = 0.0
        #: How often each fault was met.
        self.met: Counter[Fault] = Counter()

    def script(self, faults: Iterable[Fault], only: Only = always) -> None:
        """Let the next requests of which `only(kind, key)` is true meet these faults, one each."""
        with self._lock:
            self._script, self._only = list(faults), only

    def storm(self, share: float, seed: int) -> None:
        """From now on, let each request fail with the probability `share`; 0 ends it."""
        with self._lock:
            self._share, self._dice = share, random.Random(seed)

    def next(self, kind: str, key: str) -> Fault:
        """Return what happens to a request, of this kind and for this key."""
        with self._lock:
            fault = Fault.NONE
            if self._script and self._only(kind, key):
                fault = self._script.pop(0)
            elif self._share and self._dice.random() < self._share:
                fault = self._dice.choices(list(MIX), list(MIX.values()))[0]
            self.met[fault] += 1
            return fault
