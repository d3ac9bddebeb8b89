"""Garbage in the store, and a forger, who writes it where sweeps begin and end: it counts for nothing, stops nobody."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from monkey.errors import ConcurrentApply
from monkey.protocol.layout import spell_number
from monkey.protocol.sweeps.stop_log import encode_pointer
from monkey.protocol.sweeps.sweep_state import StopPointer, locate_next
from monkey.signing.signed_entry import sign_entry
from monkey.spec.job.job_table import JobTable
from tests.signing import SIGNERS, make_key
from tests.simulation.body import KEYS, job_id

if TYPE_CHECKING:
    from tests.simulation.world import World

#: Mean of the seconds between two of its visits, and the most entries that it leaves at one.
OFTEN, MOST = 40.0, 4
ORDERS = [b'{"kind":"pause"}', b'{"kind":"cancel","reason":"forged"}', b'{"kind":"resume"}', b'{"kind":"retry"}']
#: Jobs of revisions that nobody asked for: from, and below.
FORGED_JOBS = 40, 44
STRANGER = make_key(2)
JUNK = [b"", b"[]", b'{"kind":"dance"}', b'{"kind":"extend","until":"x"}', b'{"kind":"cancel","goal":1}', b"\xff" * 99]

#: The rest of a journal's segment whose columns differ in length.
RAGGED = b'","ks":[1,2],"outcomes":"s","names":["a"],"sweeps":[0],"seconds":[1],"at":[1],"extra":{}}'


def leave_litter(world: World) -> None:
    """Leave things in the store that are not what they should be."""
    junk = world.random.choice([b'{"kind":', b'{"kind":"dance"}'])
    litter = {f"{KEYS.queue('f')}a/README": b"", f"{KEYS.sweep_log('c')}00000001": junk}
    litter |= {f"{KEYS.job_log('63'.zfill(16))}00000001": junk, f"{KEYS.agents}README": b""}
    litter |= {f"{KEYS.sweep_log('c')}{n:08d}": b"{" for n in range(2, 6)}
    litter |= {f"{KEYS.sweep_log('d')}00000001": b'{"kind":"revision"}', KEYS.marker("f", "d", 1): b"{}"}
    litter |= {KEYS.segment("f/x/b0", 1): b"{", f"{KEYS.agents}f/x/b0/notes": b"?", KEYS.marker("f", "c", 1): b"{}"}
    litter[KEYS.roster] = junk
    litter[KEYS.segment("f/x/b0", 2)] = b'{"jobs":"' + b"0" * 16 + RAGGED
    for key, data in litter.items():
        world.state.write(key, data)


class Garbage:
    """The writer."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: Of its own, so that the seeds without garbage stay what they are.
        self.random = random.Random(f"garbage {world.seed}")
        self.any = world.weather.orders and world.seed % 7 == 0

    async def scatter(self) -> None:
        """Write until the run is over."""
        while self.any:
            await asyncio.sleep(self.random.expovariate(1 / OFTEN))
            sweep = self.random.choice("ab")
            for _ in range(self.random.randint(1, MOST)):
                self.random.choice([self._write, self._forge_stop, self._forge_hint])(sweep)

    def _write(self, sweep: str) -> None:
        log, objects = KEYS.sweep_log(sweep), self.world.state.objects
        n = next(n for n in range(1, 10_000) if log + spell_number(n) not in objects)
        first, _ = objects[log + spell_number(self.random.randint(1, n - 1))]
        other, _ = objects[KEYS.sweep_log("a" if sweep == "b" else "b") + spell_number(1)]
        place = locate_next(self.world.endings.states[sweep], KEYS, "")
        order = self.random.choice([*ORDERS, self._forge_revision(sweep)])
        # By somebody who is trusted: another sweep's revision, and what no version knows.
        misnamed = other[: other.rindex(b',"signature":')] + b"}"
        entries = {
            "entry replayed": self.random.choice([first, other]),
            "entry cut short": other[: len(other) // 2],
            "entry of a stranger": sign_entry(STRANGER, place, order),
            "entry of no kind": SIGNERS.sign(place, self.random.choice([*JUNK[2:5], misnamed])),
            "junk": self.random.choice(JUNK),
        }
        kind = self.random.choice(list(entries))
        key = log + spell_number(n)
        self.world.forged.add(key)
        self.world.counts[kind] += self.world.create(key, entries[kind])

    def _forge_revision(self, sweep: str) -> bytes:
        """Return a revision of jobs that nobody asked for."""
        state = self.world.endings.states[sweep]
        assert state.revision
        table = JobTable([job_id(n) for n in range(*FORGED_JOBS)], {})
        forged = replace(state.revision, table=table).to_json()
        return json.dumps({"kind": "revision", "nonce": "0", **forged}, separators=(",", ":")).encode()

    def _forge_stop(self, sweep: str) -> None:
        """Say that any job's end, which may be none, ends the sweep."""
        state, log = self.world.endings.states[sweep], KEYS.stop_log(sweep)
        n = next(n for n in range(1, 10_000) if log + spell_number(n) not in self.world.state.objects)
        job, k = job_id(self.random.randrange(12)), self.random.randint(0, 9)
        met = sorted(self.world.endings.met)
        if met and self.random.random() < 0.5:
            job, k = self.random.choice(met)  # it ended so, and that ends no sweep
        pointer = StopPointer(max(0, state.head + self.random.randint(-2, 2)), job, k)
        self.world.create(log + spell_number(n), self.random.choice([encode_pointer(pointer), *JUNK[:2]]))
        self.world.counts["stop forged"] += 1

    def _forge_hint(self, sweep: str) -> None:
        """Say that nothing is left of the sweep."""
        for n in range(1, self.world.endings.states[sweep].head + 1):
            self.world.create(KEYS.idle_hint("f", sweep, n), b"{}")
        self.world.counts["hint forged"] += 1

    async def insist(self, apply: Callable[[], Awaitable[None]]) -> None:
        """Apply as a user does who is told that another came first: anew."""
        while True:
            try:
                await apply()
            except ConcurrentApply:
                if not self.any:
                    raise
            else:
                return
