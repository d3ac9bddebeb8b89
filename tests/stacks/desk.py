"""A fleet of papers: the real Pulumi, a store, and a ledger outside of both."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_stacks.engine.engine_outcome import EngineOutcome, EngineProgress
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from tests.acceptance.ledger import whole_lines
from tests.stacks.paper import RULES, Paper, identify

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
PROJECT, FLEET = "shop", "lab"
#: Seconds of a sheet that is written when the desk lets go.
HELD = -1.0


@dataclass(frozen=True)
class Sheet:
    """What a program wants of one paper."""

    name: str
    text: str
    #: File below the desk's directory; by default called as the paper is.
    file: str = ""
    seconds: float = 0.0


class Desk:
    """Where papers lie, and what was done to them."""

    def __init__(self, base: Path, url: str) -> None:
        """Lay papers below `base`; the store is at `url`."""
        self.base, self.url = base, url
        self.papers = base / "papers"
        self.ledger = base / "ledger"
        self.seen: list[EngineProgress] = []

    def program(self, *sheets: Sheet) -> Callable[[], None]:
        def write() -> None:
            for sheet in sheets:
                Paper(sheet.name, self.papers / (sheet.file or sheet.name), sheet.text, sheet.seconds)

        return write

    def engine(self, store: Store) -> PulumiEngine:
        return PulumiEngine(store, PROJECT, FLEET, RULES, self._say, self.seen.append, identify)

    def _say(self, said: str) -> None:
        with (self.base / "said").open("a") as file:
            file.write(f"{said}\n")

    @property
    def said(self) -> str:
        """What engines said to people, of whatever process."""
        return (self.base / "said").read_text() if (self.base / "said").exists() else ""

    def let_go(self) -> None:
        """Let papers be written that are held."""
        Path(f"{self.ledger}.go").touch()

    def run(self, ask: Callable[[PulumiEngine], Awaitable[T]]) -> T:
        """Ask the engine, with the store open."""

        async def opened() -> T:
            store = await open_store(self.url, begin=True)
            try:
                return await ask(self.engine(store))
            finally:
                await store.close()

        return asyncio.run(opened())

    def up(self, *sheets: Sheet) -> EngineOutcome:
        return self.run(lambda engine: engine.up(self.program(*sheets)))

    def preview(self, *sheets: Sheet) -> EngineOutcome:
        return self.run(lambda engine: engine.preview(self.program(*sheets)))

    def destroy(self) -> EngineOutcome:
        return self.run(lambda engine: engine.destroy())

    def start(self, *sheets: Sheet, **env: str) -> subprocess.Popen[str]:
        """Begin an `up` in a process of its own, in a session of its own."""
        said = json.dumps([[sheet.name, sheet.text, sheet.file, sheet.seconds] for sheet in sheets])
        return subprocess.Popen(
            [sys.executable, "-m", "tests.stacks.applier", str(self.base), self.url, said],
            cwd=ROOT,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def written(self) -> dict[str, str]:
        """File to text, of all that lies there."""
        return {path.name: path.read_text() for path in self.papers.iterdir()}

    @property
    def done(self) -> Counter[str]:
        """What the provider was asked, by "create a" and the like."""
        return Counter(whole_lines(self.ledger))

    def stored(self) -> dict[str, bytes]:
        """Return all that the store has of the machines, by a client that has nothing to do with the engine."""

        async def read() -> dict[str, bytes]:
            store = await open_store(self.url)
            try:
                keys = [item.key for item in await store.list(f"projects/{PROJECT}/machines/")]
                return {key.partition(f"/{FLEET}/")[2]: await store.get(key) for key in keys}
            finally:
                await store.close()

        return asyncio.run(read())


def ops(outcome: EngineOutcome) -> dict[str, str]:
    """Return what became of each paper, and what forced it: "update text"."""
    return {change.name: " ".join([change.op, *change.forced_by]) for change in outcome.changes}


def leftovers(base: Path) -> list[str]:
    """Return the processes of Pulumi, its leash and its plugins that were started for the desk at `base`."""
    return [
        f"{pid} {command}"
        for pid, command, env in _processes()
        if f"={base}".encode() in env and "MONKEY_STACK" in str(env)
    ]


def _processes() -> Iterable[tuple[int, str, bytes]]:
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if command:
                yield int(directory.name), command, (directory / "environ").read_bytes()
        except OSError:
            continue
