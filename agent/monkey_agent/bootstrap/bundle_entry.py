"""An agent on a host that `monkey apply` set up: started by systemd, cron or over SSH, always with the same settings.

Runs as `python -I -S BUNDLE DIRECTORY [--detach] [--patient]`; everything else is in the directory.
`python -I -S BUNDLE --check URL` says whether this host can use a store; `--machine NAME` makes a machine of a cloud
ready for its agent, with settings from standard input. `--mounts FILE` mounts what its jobs need. `--pilot` runs an
agent in an engine's allocation (`pilot_entry`), `--pilot-unfit` says why there is none, and `--agent` runs one by its
own arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monkey.errors import MonkeyError
from monkey.fleet.agent_state import UNFIT
from monkey.process_exit import exit_now
from monkey_agent.bootstrap.agent_directory import CREDENTIALS, SETTINGS

LOG = "agent.log"
#: Bytes of agent.log after which it is started again when an agent starts (the old one stays beside it).
LOG_LIMIT = 10_000_000
#: Seconds of patience with a store that does not answer after a boot: networks come up late.
BOOT = 3600
#: In the environment of the process that was started again with the right variables.
_READY = "MONKEY_HOSTED"


def run_bundle(argv: Sequence[str] | None = None) -> None:
    """Run the agent of a directory, or check a store."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--check"]:
        exit_now(check_store(words[1]))
    if words[:1] in (["--machine"], ["--mounts"]):
        from monkey_agent.bootstrap import machine_mounts, machine_setup

        if words[0] == "--mounts":
            machine_mounts.keep_mounting(Path(words[1]))
        else:
            machine_setup.prepare_machine(json.load(sys.stdin), words[1], Path(sys.argv[0]))
        return
    if words[:1] == ["--pilot"]:
        from monkey_agent.bootstrap.pilot_entry import serve_pilot

        serve_pilot(words[1:])
    if words[:1] == ["--pilot-unfit"]:
        from monkey_agent.bootstrap.pilot_entry import report_unfit

        report_unfit(words[1:])
    arguments = words[1:] if words[:1] == ["--agent"] else _prepare_agent(words)
    from monkey_agent.command_line import run_agent as live

    live(arguments)


def _prepare_agent(words: list[str]) -> list[str]:
    """Make this the process of the agent of a directory, and return its arguments."""
    directory = Path(words[0])
    settings = json.loads((directory / SETTINGS).read_bytes())
    if "--detach" in words:
        _detach()
    if os.environ.get(_READY) != words[0]:
        _begin_anew(directory, settings, [word for word in words if word != "--detach"])
    del os.environ[_READY]
    if "--patient" in words:
        asyncio.run(_await_store(settings["store"]))
    return [*settings["arguments"], "--state", str(directory)]


def _begin_anew(directory: Path, settings: dict[str, Any], words: list[str]) -> None:
    """Replace this process by one that has the agent's variables: cron sets others than systemd.

    Its output goes to the log of the agent.
    """
    log = directory / LOG
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".log.old"))
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    for target in (1, 2):
        os.dup2(fd, target)
    os.close(fd)
    secret = json.loads((directory / CREDENTIALS).read_bytes())
    secret |= _read_secrets(settings["machine"]) if "machine" in settings else {}
    os.chdir(directory)
    environment = {**settings["environment"], **secret, _READY: words[0]}
    os.execve(sys.executable, [sys.executable, "-I", "-S", sys.argv[0], *words], environment)


def _read_secrets(machine: dict[str, Any]) -> dict[str, str]:
    """Return the jobs' secrets, which a rented machine may read itself; they are written down nowhere."""
    from monkey.fleet.secret_values import WITHHELD
    from monkey_agent.lifecycle.cloud_notices import read_secrets

    try:
        found = read_secrets(machine)
        return {**found, WITHHELD: ",".join(found)}
    except MonkeyError as exc:
        print(f"error: {exc.message}\nhint: {exc.hint}", file=sys.stderr, flush=True)
        exit_now(UNFIT)


def _detach() -> None:
    """Continue without a terminal, a session or a parent that could take us along."""
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for target in range(3):
        os.dup2(null, target)
    os.close(null)


def check_store(url: str) -> int:
    """Create something in the store at `url`, read it, and say what hinders; returns what to exit with."""
    try:
        asyncio.run(_check(url))
    except MonkeyError as exc:
        print(json.dumps({"message": exc.message, "hint": exc.hint}))
        return 1
    print("{}")
    return 0


async def _await_store(url: str) -> None:
    """Wait until the store answers; the agent reports all other trouble."""
    from monkey_agent.lifecycle.store_wait import open_late_store

    with contextlib.suppress(MonkeyError):
        await (await open_late_store(url, BOOT, lambda line: print(line, file=sys.stderr, flush=True))).close()


async def _check(url: str) -> None:
    from monkey.store.open import open_store
    from monkey.store.probe import probe_store

    store = await open_store(url)
    try:
        await probe_store(store)
    finally:
        await store.close()
