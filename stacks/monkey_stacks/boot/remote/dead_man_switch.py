"""The dead-man switch: looks whether the agent is still there and heard, and ends the machine where it is not."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monkey.fleet.cloud.machine_paths import AGENT, BYE_FILES, GOODBYE, HEARD
from monkey_stacks.boot.remote.boot_report import LOGS, read_tails
from monkey_stacks.boot.remote.terminate import end_machine

#: Seconds between looks.
_POLL = 2.0
#: Linux's CLOCK_BOOTTIME, which counts sleep, by its number: Python has no name for it on other systems.
_CLOCK = 7
#: Gone with the next boot.
BEGAN = Path("/run/monkey-watch-began")


@dataclass(frozen=True)
class AgentSeen:
    """What there is to see of the agent, and when."""

    #: Of its unit, as systemd has it: active, activating, deactivating, inactive, failed.
    state: str
    #: It left, for there was nothing to do.
    left: bool
    #: Why it left before that; "" where it did not.
    goodbye: str
    #: When its last heartbeat that the store acknowledged began; None where there was none. Seconds since the boot.
    heard: float | None
    now: float
    #: When this boot was first watched over.
    began: float


@dataclass(frozen=True)
class EndReason:
    """Why a machine is to end."""

    why: str
    #: Nobody is to come in its place.
    shrinks: bool = True
    #: The store is told.
    failed: bool = False


def judge_end(seen: AgentSeen, settings: Mapping[str, Any]) -> EndReason | None:
    """Return why this machine is to end, None where it is not."""
    if seen.state == "inactive" and seen.goodbye:
        return EndReason(seen.goodbye, shrinks=False)
    if seen.state == "inactive" and seen.left:
        return EndReason("the agent has left, for there is nothing to do")
    if seen.state == "failed":
        return EndReason("the agent failed", failed=True)
    if seen.heard is None or seen.heard > seen.now:  # or of an earlier boot
        patience = settings["boot_patience"]
        late = seen.now - seen.began > patience
        return EndReason(f"there was no heartbeat within {patience:.0f} s of the boot", failed=True) if late else None
    silent = seen.now - seen.heard
    if silent > settings["orphan_timeout"]:
        return EndReason(f"the store has acknowledged no heartbeat for {silent:.0f} s", failed=True)
    return None


def watch_agent(settings: Mapping[str, Any], cloud: Any) -> None:
    """Look until this machine is to end, and end it."""
    began = _begun()
    while (end := judge_end(_look(began), settings)) is None:
        time.sleep(_POLL)
    said = _last_error() if end.failed else ""
    end_machine(cloud, settings, f"{end.why}: {said}" if said else end.why, end.shrinks, end.failed)


def _last_error() -> str:
    """Return the last line of the agent's that tells of an error; "" where there is none."""
    return next((line for line in reversed(read_tails((), LOGS[:2])) if "rror" in line), "")


def _begun() -> float:
    """Return when this boot was first watched over, also where we were started again."""
    now = time.clock_gettime(_CLOCK)
    if not BEGAN.exists():
        BEGAN.write_text(str(now))
    return _number(_text(BEGAN)) or now


def _look(began: float) -> AgentSeen:
    show = ["systemctl", "is-active", "monkey-agent.service"]
    try:
        state = subprocess.run(show, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60).stdout
    except subprocess.TimeoutExpired:
        state = ""
    return AgentSeen(
        state=state.strip(),
        left=(AGENT / BYE_FILES).exists(),
        goodbye=_text(AGENT / GOODBYE),
        heard=_number(_text(AGENT / HEARD)),
        now=time.clock_gettime(_CLOCK),
        began=began,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()[:200]
    except (OSError, ValueError):
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
