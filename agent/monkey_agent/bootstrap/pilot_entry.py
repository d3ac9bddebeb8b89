# ruff: noqa: PTH208
# Descriptors are listed, which pathlib does not know.
"""An agent in an allocation of Slurm or another engine: its directories on the node's own disk, and its last words.

Runs as `python -I -S BUNDLE --pilot DIRECTORY NAME SCRATCH [AGENT'S ARGUMENTS]`. DIRECTORY has what `apply` handed
over. This process watches the agent, which is a child of it, and clears its directories away.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from monkey.errors import MonkeyError
from monkey.fleet.agent_state import NO_WORK, UNFIT, is_agent_alive
from monkey.fleet.secret_values import VARIABLE, parse_secrets
from monkey.process_exit import exit_now
from monkey.protocol.layout import Keys
from monkey.removal import remove_below, remove_file, remove_tree
from monkey.store.open import open_store
from monkey.untrusted_files import hold_below
from monkey_agent.bootstrap.agent_directory import CREDENTIALS, SETTINGS
from monkey_agent.bootstrap.handed_copies import move_keys, watch_handed_files

#: The directory of the pilots' states.
_STATES = "state"
#: Lines of the agent's that a note in the store has, and characters of each.
_LINES, _LONG = 50, 500
#: Seconds for which the directory of an agent that was killed stays: it may come again on this node.
_STALE_SECONDS = 86400.0
#: Seconds that the store may take for the note.
_PATIENCE_SECONDS = 30.0


class PilotScratch:
    """This user's directory on the node's own disk, which pilots here share: its cache, and a state for each."""

    def __init__(self, path: Path, name: str) -> None:
        """Make it. Raises OSError where it is another user's: in /tmp anybody may have been first."""
        self.path, self.cache, self.state = path, path / "cache", path / _STATES / name
        self.pid = path / "pids" / name
        while (shared := _share_directory(path)) is None:
            pass  # the last pilot here took it away meanwhile
        self._shared = shared
        for directory in (_STATES, "pids"):
            with hold_below(path, directory, make=True):
                pass

    def clear(self, *, state: bool) -> None:
        """Remove what no agent needs: this pilot's state, states of dead agents, and all if no other pilot is here."""
        remove_file(self.pid)
        if state:
            remove_below(self.path, f"{_STATES}/{self.state.name}")
        with hold_below(self.path, _STATES) as states:
            for name in os.listdir(states):
                other = self.path / _STATES / name
                if time.time() - other.lstat().st_mtime > _STALE_SECONDS and not is_agent_alive(other):
                    remove_tree(name, states)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(self.cache)
                if not os.listdir(states):
                    remove_tree(self.path)


def _share_directory(path: Path) -> int | None:
    """Make the directory and hold it; None where it was removed before it was held. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    found = os.fstat(fd)
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        os.close(fd)
        raise PermissionError(f"{path} is not a directory of this user alone")
    fcntl.flock(fd, fcntl.LOCK_SH)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(found, path.lstat()):
            return fd
    os.close(fd)
    return None


def run_pilot(words: Sequence[str]) -> int:
    """Run an agent as its directory says; return what to exit with."""
    directory, name, scratch = Path(words[0]), words[1], Path(words[2])
    try:
        settings = json.loads((directory / SETTINGS).read_bytes())
        secret = json.loads((directory / CREDENTIALS).read_bytes())
    except FileNotFoundError:
        print(f"{directory} is gone: nobody wants this pilot any more", file=sys.stderr, flush=True)
        return NO_WORK
    os.environ.update({**settings["environment"], **secret})
    try:
        place = PilotScratch(scratch, name)
    except OSError as exc:
        why = f"the node's own disk cannot be used: {exc}; name another place with 'scratch:'"
        return _give_up(settings, name, why, [], secret)
    if handed := settings.get("handed"):
        move_keys(directory, os.environ)
        watch_handed_files(Path(handed), directory)
    arguments = [*settings["arguments"], "--name", name, "--state", str(place.state), "--cache", str(place.cache)]
    code, said = _watch_agent([*arguments, *words[3:]], place.pid)
    with contextlib.suppress(OSError):
        place.clear(state=code != 1)
    if code != UNFIT:
        return code
    with contextlib.suppress(OSError, ValueError):
        secret |= json.loads((directory / CREDENTIALS).read_bytes())
    return _give_up(settings, name, _find_reason(said), said, secret)


def _watch_agent(arguments: Sequence[str], pid: Path) -> tuple[int, list[str]]:
    """Run an agent; return what it exited with, and its last lines. It is asked to leave when we are."""
    told, children = [], list[subprocess.Popen[bytes]]()

    def leave(*_: object) -> None:
        told.append(True)
        for each in children:
            each.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    command = [sys.executable, "-I", "-S", sys.argv[0], "--agent", *arguments]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    children.append(child)
    if told:
        leave()  # it came before there was a child to hand it on to
    pid.write_text(str(child.pid))
    assert child.stderr is not None
    said = deque(_repeat_lines(child.stderr), maxlen=_LINES)
    return child.wait(), list(said)


def _repeat_lines(stream: IO[bytes]) -> Iterator[str]:
    for line in stream:
        text = line.decode(errors="replace")
        with contextlib.suppress(OSError):
            print(text, end="", file=sys.stderr, flush=True)
        yield text.rstrip("\n")


def _find_reason(said: Sequence[str]) -> str:
    errors = [line.partition(" error: ")[2] for line in said if " error: " in line]
    return errors[-1] if errors else (said[-1] if said else "it said nothing")


def _give_up(settings: dict[str, Any], name: str, why: str, log: Sequence[str], secret: dict[str, str]) -> int:
    """Leave a note in the store of why this pilot cannot work here, as a rented machine does."""
    at = time.time()
    hidden = [*secret.values(), *_list_values(settings["environment"])]
    note = {"machine": name, "why": _mask(why, hidden), "at": at, "log": [_mask(one, hidden) for one in log]}
    print(f"pilot {name} cannot work here: {note['why']}", file=sys.stderr, flush=True)
    key = f"{Keys(settings['project']).boots}{settings['fleet']}/{at:.0f}-{name}"
    try:
        asyncio.run(asyncio.wait_for(_put(settings["store"], key, json.dumps(note).encode()), _PATIENCE_SECONDS))
    except (MonkeyError, OSError, TimeoutError) as exc:
        print(f"the store is not told: {exc}", file=sys.stderr, flush=True)
    return UNFIT


def _list_values(environment: dict[str, str]) -> Iterable[str]:
    """Return the values of the jobs' secrets, of which no note may tell."""
    with contextlib.suppress(MonkeyError, OSError, LookupError):
        file = environment[VARIABLE]
        return parse_secrets(Path(file).read_text(), file).values()
    return ()


def _mask(line: str, hidden: Iterable[str]) -> str:
    for value in hidden:
        line = line.replace(value, "***") if value else line
    return line[:_LONG]


async def _put(url: str, key: str, data: bytes) -> None:
    store = await open_store(url)
    try:
        await store.put(key, data)
    finally:
        await store.close()


def report_unfit(words: Sequence[str]) -> None:
    """Leave a note in the store of a pilot that had no agent, or one that ended at once; its log is on standard input.

    Runs as `python -I -S BUNDLE --pilot-unfit DIRECTORY NAME WHY`.
    """
    directory, name, why = Path(words[0]), words[1], words[2]
    try:
        settings = json.loads((directory / SETTINGS).read_bytes())
        secret = json.loads((directory / CREDENTIALS).read_bytes())
    except FileNotFoundError:
        exit_now(NO_WORK)
    os.environ.update({**settings["environment"], **secret})
    said = sys.stdin.buffer.read().decode(errors="replace").splitlines()
    exit_now(_give_up(settings, name, why, said[-_LINES:], secret))


def serve_pilot(words: Sequence[str]) -> None:
    """Run a pilot, and exit as it did."""
    exit_now(run_pilot(words))
