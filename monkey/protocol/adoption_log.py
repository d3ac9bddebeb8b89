"""Adopted results of a project: which finished job stands for which other one. A log that only `apply` appends to.

An entry holds all that one sweep adopted for one reason. There is none per job: a plan that reads 100,000 adoptions
needs one LIST and a few GETs. An entry that is ill-formed is skipped and reported; it stops no reader.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.concurrency import run_in_lanes
from monkey.errors import KeyMissing
from monkey.protocol import entry_shape
from monkey.protocol.entry_log import Create
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.skipped_entries import NONE_SKIPPED
from monkey.store.create import Won, create_object
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store

#: Entries that are read at once.
_READS = 16
#: Hex digits of a job's id.
_ID_DIGITS = 16


@dataclass(frozen=True)
class AdoptionEntry:
    """Results that one apply adopted for one reason."""

    #: Job to the job whose result stands for it; itself, where a result was given up.
    results: Mapping[str, str]
    #: The reason, the sweep that asked for it, the author and the time in ISO 8601; for people.
    why: str = ""
    sweep: str = ""
    author: str = ""
    at: str = ""
    #: Earlier code, and the code that was declared to be a pure refactor of it, where that is the reason.
    codes: tuple[str, str] | None = None

    def encode(self) -> bytes:
        """Return the bytes of the entry; a nonce tells the writers of one number apart."""
        body: dict[str, Any] = {
            "kind": "adopt",
            "nonce": secrets.token_hex(8),
            "why": self.why,
            "sweep": self.sweep,
            "author": self.author,
            "at": self.at,
            "jobs": "".join(self.results),
            "results": "".join(self.results.values()),
        }
        body |= {"codes": list(self.codes)} if self.codes else {}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode_adoption(data: bytes) -> AdoptionEntry:
    """Read an entry. Raises ValueError for anything that `encode` does not write."""
    body = entry_shape.parse_object(data)
    entry_shape.check_shape(body, _SHAPE)
    if body.get("kind") != "adopt" or "jobs" not in body or "results" not in body:
        raise entry_shape.MalformedEntry("it is no adoption")
    jobs, results = _split_ids(body["jobs"]), _split_ids(body["results"])
    if len(jobs) != len(results):
        raise entry_shape.MalformedEntry(f"it has {len(jobs)} jobs and {len(results)} results")
    codes = body.get("codes")
    told = {name: body.get(name, "") for name in ("why", "sweep", "author", "at")}
    return AdoptionEntry(dict(zip(jobs, results, strict=True)), **told, codes=(codes[0], codes[1]) if codes else None)


def _split_ids(text: str) -> list[str]:
    if len(text) % _ID_DIGITS or bytes.fromhex(text).hex() != text:
        raise entry_shape.MalformedEntry("its ids are not of 16 hex digits each")
    return [text[at : at + _ID_DIGITS] for at in range(0, len(text), _ID_DIGITS)]


_is_code = entry_shape.is_matching(r"[0-9a-f]{64}")
_SHAPE = {
    **dict.fromkeys(("kind", "nonce", "why", "sweep", "author", "at", "jobs", "results"), entry_shape.is_plain_text),
    "codes": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_code, value)),
}


class AdoptionLog:
    """The log as far as it was read. Entries never change, so each is read once."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Know nothing yet."""
        self._store, self._base = store, keys.adoptions
        #: Number of the last entry.
        self.head = 0
        #: Job to the job whose result stands for it, by the newest entry. It may be adopted itself.
        self.results: dict[str, str] = {}
        #: Declared refactors: earlier code and later code.
        self.codes: set[tuple[str, str]] = set()
        #: Entries that count for nothing.
        self.skipped = NONE_SKIPPED

    async def refresh(self) -> None:
        """Read what was appended since: one LIST, and a GET for each new entry. Raises StoreError."""
        listed = {item.key for item in await self._store.list(self._base, after=self._key(self.head))}
        numbers: list[int] = []
        while self._key(self.head + len(numbers) + 1) in listed:
            numbers.append(self.head + len(numbers) + 1)
        found: dict[int, bytes] = {}

        async def read(number: int) -> None:
            try:
                found[number] = await read_entry(self._store, self._key(number))
            except KeyMissing:  # removed since it was listed
                found[number] = b""

        await run_in_lanes(numbers, read, _READS)
        for number in numbers:
            self._learn(number, found[number])

    async def append(self, entry: AdoptionEntry, create: Create = create_object) -> None:
        """Append the entry after all others. Raises StoreError."""
        data = entry.encode()
        while True:
            number = self.head + 1
            answer = await create(self._store, self._key(number), data)
            self._learn(number, data if isinstance(answer, Won) else answer.existing)
            if isinstance(answer, Won):
                return

    def _key(self, number: int) -> str:
        return self._base + spell_number(number)

    def _learn(self, number: int, data: bytes) -> None:
        self.head = number
        try:
            entry = decode_adoption(data)
        except (ValueError, KeyError, TypeError) as exc:
            self.skipped = self.skipped.add(self._key(number), f"it is no record of adopted results ({exc})")
            return
        self.results.update(entry.results)
        self.codes.update([entry.codes] if entry.codes else ())


async def record_adoptions(store: Store, keys: Keys, entries: Sequence[AdoptionEntry]) -> None:
    """Append what the project's log does not say yet of these adoptions. Raises StoreError."""
    log = AdoptionLog(store, keys)
    await log.refresh()
    for entry in entries:
        results = {job: result for job, result in entry.results.items() if log.results.get(job) != result}
        if results or (entry.codes and entry.codes not in log.codes):
            await log.append(AdoptionEntry(results, entry.why, entry.sweep, entry.author, entry.at, entry.codes))
