"""The agents of one fleet on this host: seen, started, replaced, ended."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from monkey.fleet.agent_state import is_agent_alive, read_agent_pid
from monkey.removal import remove_file
from monkey_stacks.ssh.remote import keep_alive
from monkey_stacks.ssh.remote.keep_alive import CRON, SYSTEMD
from monkey_stacks.ssh.remote.paths import FleetDirectory, clear_tree

#: Seconds within which an agent that was started must hold its lock: many on a host that is very busy.
BEGIN = 90.0
#: Seconds that killed processes may take to go.
DEATH = 20.0
#: Lines of an agent's log that an error shows.
LAST_WORDS = 15
#: What of a login's variables is none of an agent's: it belongs to that login, or came with us.
_PASSING = ("_", "SHLVL", "PWD", "OLDPWD", "MAIL", "TERM", "MOTD_SHOWN", "LC_ALL", "XDG_RUNTIME_DIR")
_PASSING_PREFIXES = ("SSH_", "XDG_SESSION", "DBUS_", "MONKEY_")


class AgentNotAlive(Exception):
    """An agent that was started does not live; the message tells its last words."""


def inspect_agent(place: FleetDirectory, agent: Path) -> dict[str, Any]:
    """Return what there is to know of an agent."""
    settings = read_agent_settings(agent)
    alive = is_agent_alive(agent)
    return {
        "number": int(agent.name),
        "bundle": settings.get("bundle", ""),
        "digest": settings.get("digest", ""),
        "credentials": settings.get("credentials", ["", ""]),
        "kept": settings.get("kept", ""),
        "after_boot": keep_alive.is_kept_by_systemd(place, agent) or keep_alive.is_in_crontab(place, agent),
        "alive": alive,
        "left": (agent / "left-in-peace").exists(),
        "draining": (agent / "drain").exists(),
        "pid": read_agent_pid(agent) if alive else None,
    }


def read_agent_settings(agent: Path) -> dict[str, Any]:
    """Return what an agent was started with; nothing where that cannot be read."""
    try:
        found = json.loads((agent / "settings.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def digest_secret(key: str, text: str) -> str:
    """Return a digest of something secret that tells nothing to those who have not the same."""
    return hashlib.blake2b(text.encode(), key=bytes.fromhex(key), digest_size=16).hexdigest()


def make_agent_environment(extra: dict[str, str]) -> dict[str, str]:
    """Return the variables of an agent: those of a login here, and `extra`.

    They are written down when it is set up: a later start uses the same.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _PASSING}
    return {**{name: value for name, value in kept.items() if not name.startswith(_PASSING_PREFIXES)}, **extra}


def start_agent(place: FleetDirectory, agent: Path, command: list[str], kept: str) -> None:
    """Start an agent, and see that it lives. Raises AgentNotAlive, OSError."""
    log = agent / "agent.log"
    begun = log.stat().st_size if log.exists() else 0
    for name in ("left-in-peace", "drain"):
        remove_file(agent / name)
    if kept == SYSTEMD:
        keep_alive.start_by_systemd(place, agent, command)
    else:
        keep_alive.start_detached(command)
    until = time.monotonic() + BEGIN
    while not is_agent_alive(agent):
        said = _said_since(log, begun)
        if " error: " in said or time.monotonic() > until:
            last = [f"  {line}" for line in said.splitlines()[-LAST_WORDS:]]
            raise AgentNotAlive("\n".join(last) or f"  (none in {BEGIN:.0f} s)")
        time.sleep(0.02)
    keep_agent(place, agent, command, kept)


def keep_agent(place: FleetDirectory, agent: Path, command: list[str], kept: str) -> None:
    """See that a living agent is started again after a boot, where that was promised. Raises OSError."""
    if kept == SYSTEMD:
        if not keep_alive.is_kept_by_systemd(place, agent):
            keep_alive.start_by_systemd(place, agent, command)  # it runs: only what was taken away is put back
    elif kept == CRON:
        keep_alive.add_to_crontab(place, agent, command)
    else:
        keep_alive.remove_from_crontab(place, agent)


def _said_since(log: Path, begun: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(begun if begun <= os.fstat(file.fileno()).st_size else 0)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def drain_agent(place: FleetDirectory, agent: Path) -> None:
    """Have an agent take no new work and leave when its jobs have ended; a dead one is cleared away at once."""
    if is_agent_alive(agent):
        (agent / "drain").touch()
        keep_alive.remove_from_crontab(place, agent)
    else:
        end_agents([agent], place)


def end_agents(agents: list[Path], place: FleetDirectory, patience: float = keep_alive.STOP) -> None:
    """End these agents, who give back what they work on, and remove all that they have here. Raises OSError."""
    for agent in agents:
        _ask_to_leave(agent)
    until = time.monotonic() + patience
    while any(map(is_agent_alive, agents)) and time.monotonic() < until:
        time.sleep(0.05)
    for agent in agents:
        keep_alive.stop_by_systemd(place, agent)
        keep_alive.remove_from_crontab(place, agent)
        _kill(agent)
        clear_tree(agent, place.workdir)


def _ask_to_leave(agent: Path) -> None:
    pid = read_agent_pid(agent)
    if pid is not None and is_agent_alive(agent):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def _kill(agent: Path) -> None:
    """Kill whatever is left of an agent and its jobs. Raises OSError where something does not go."""
    until = time.monotonic() + DEATH
    while left := _left(agent):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise OSError(f"processes {', '.join(map(str, left))} do not end, though killed")
        time.sleep(0.05)


def _left(agent: Path) -> list[int]:
    pid = read_agent_pid(agent)
    found = [pid] if pid is not None and is_agent_alive(agent) else []
    return found + list_marked(f"{agent}:")


def list_marked(beginning: str) -> list[int]:
    """Return the processes whose mark, which tells the agent that they belong to, begins so: jobs.

    Only root reads the marks of a user's supervisors, which end with their agents.
    """
    mark, found = f"MONKEY_AGENT={beginning}".encode(), []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if any(word.startswith(mark) for word in environ.read_bytes().split(b"\0")):
                found.append(int(environ.parent.name))
    return found
