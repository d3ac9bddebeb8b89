"""A runner on a store of its own, and what a test asks of it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monkey.processes import process_tree
from monkey.protocol.layout import Keys
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.store.memory import MemoryStore
from monkey.store.store_port import Store
from monkey.transfer.code.code_snapshot import read_code, upload_code
from monkey_agent.execution.runner import LocalRunner
from monkey_agent.execution.running_attempt import RunningAttempt
from monkey_agent.ports import Attempt, AttemptOutcome, LiveAttempt, Slot, SlotGrant
from monkey_agent.supervisor import leftover_processes

#: The agent that runs attempts.
AGENT = "local/machine/boot"
#: Seconds that anything here may take before it counts as never.
NEVER = 60.0

#: Writes its number to FILE, then stays.
STAY = "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000"
#: The same, in a session of its own, and its parent gone.
DAEMON = "(setsid sh -c '" + STAY + "' &) ; "
#: The same, and without any variable that would tell whose it is.
HIDDEN = '(env -i PATH="$PATH" setsid sh -c \'' + STAY + "' &) ; "


class Body:
    """A machine with a runner."""

    def __init__(self, place: Path, store: Store | None = None, env: dict[str, str] | None = None) -> None:
        self.place, self.store, self.keys = place, store or MemoryStore(), Keys("project")
        self.state, self.cache = place / "state", place / "cache"
        self.state.mkdir(parents=True, exist_ok=True)
        self.runner = LocalRunner(self.store, self.keys, self.state, self.cache, env)
        self.runner.renew(self.runner.clock.now() + 3600)
        self.jobs = 0

    async def code(self, files: dict[str, str]) -> str:
        """Store a code snapshot; returns its hash."""
        root = self.place / f"source{time.monotonic_ns()}"
        root.mkdir()
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        code = read_code(root)
        await upload_code(self.store, code)
        return code.hash

    async def start(self, command: str | list[str], job: str = "", k: int = 1, **more: Any) -> RunningAttempt:
        """Start an attempt; `more` goes to Recipe (code, outputs, environment, env), `settings` and `parameters`.

        `after`: the one that it follows. `ours_since`, `ordered`: as `Attempt` has them.
        """
        self.jobs += 1
        settings, parameters = SweepSettings(**more.pop("settings", {})), more.pop("parameters", {})
        withheld, after = more.pop("withheld", frozenset()), more.pop("after", None)
        since, ordered = more.pop("ours_since", k), more.pop("ordered", 0)
        code = more.pop("code", None) or await self.code({})
        recipe = Recipe(command, code, **more)
        attempt = Attempt(
            job or f"{self.jobs:016x}",
            k,
            "sweep",
            recipe,
            settings,
            parameters,
            k,
            since,
            withheld,
            AGENT,
            ordered=ordered,
        )
        running = await self.runner.start(attempt, lambda: turn(after))
        assert running is not None
        return running

    async def run(self, command: str | list[str], **more: Any) -> AttemptOutcome:
        """Run an attempt to its end."""
        running = await self.start(command, **more)
        outcome = await running.wait()
        running.leave(recorded=True)
        return outcome

    async def stored(self, running: RunningAttempt | str, below: str = "") -> dict[str, bytes]:
        """Return what an attempt left in the store, by its path."""
        prefix = (
            self.keys.out(running, 1) if isinstance(running, str) else self.keys.out(running.job, running._attempt.k)
        )
        return {
            item.key.removeprefix(prefix): await self.store.get(item.key)
            for item in await self.store.list(prefix + below)
        }


def script(text: str) -> list[str]:
    """Return a job that runs this Python text."""
    return [sys.executable, "-c", text.replace("{", "{{").replace("}", "}}")]


async def turn(after: LiveAttempt | None = None) -> SlotGrant:
    """Give a slot at once, or behind another."""
    return SlotGrant(Slot(1, (), 0), after)


async def until(condition: Callable[[], Any], seconds: float = NEVER) -> Any:
    """Wait until `condition` holds, and return what it said."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        await asyncio.sleep(0.005)
    return value


def alive(pid: int) -> bool:
    """Say whether a process lives; a zombie does not."""
    return not process_tree.is_dead(pid)


def supervisor_of(state: Path) -> int:
    """Return the supervisor's pid, as the register has it."""
    return leftover_processes._entries(state)[0][0]


def guard_of(state: Path) -> int:
    """Return the pid of the supervisor's guard, 0 where there is none."""
    return leftover_processes._entries(state)[1][0]


def keeper_of(state: Path) -> int:
    """Return the pid of the guard's keeper, which is its parent."""
    status = Path(f"/proc/{guard_of(state)}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def pids(*files: Path) -> list[int]:
    """Return the processes that wrote their number to these files; [] until all did."""
    try:
        return [int(file.read_text()) for file in files]
    except (OSError, ValueError):
        return []


@contextmanager
def killed_after(*files: Path) -> Iterator[None]:
    """Kill the processes named in the files in the end, should they still live: no test leaves anything behind."""
    try:
        yield
    finally:
        for file in files:
            for pid in pids(file):
                if alive(pid):
                    os.kill(pid, 9)


@contextmanager
def hard_to_end(victim: Callable[..., int], place: Path) -> Iterator[tuple[int, list[int]]]:
    """Start an agent whose jobs are of every kind that is hard to end; yields its pid, and theirs."""
    files = plain, daemon, hidden, deaf = [place / name for name in ("plain", "daemon", "hidden", "deaf")]
    with killed_after(*files):
        agent = victim(
            STAY.format(plain),
            DAEMON.format(daemon) + "sleep 1000",
            HIDDEN.format(hidden) + "sleep 1000",
            "trap '' TERM HUP INT; " + STAY.format(deaf),
        )
        yield agent, asyncio.run(until(lambda: pids(*files)))
