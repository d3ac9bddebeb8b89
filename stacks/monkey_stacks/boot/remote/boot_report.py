"""What a machine says of itself: in a log, on its console, and, where it fails, in the store."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from monkey.fleet.cloud.http_client import ApiDown, ApiError, retry_ask
from monkey.fleet.cloud.machine_paths import AGENT, CAUGHT

LOG = Path("/var/log/monkey-boot.log")
LOGS = (CAUGHT, AGENT / "agent.log", LOG)
#: Lines of the logs that a note in the store has, characters of each, and bytes of a log that are looked at.
LINES, LONG, _END = 50, 500, 65536
#: Seconds for a note that the store does not take, and for a store that does not answer.
_PATIENCE, MUTE = 15.0, 5.0
# A word is tried from its beginning, or from what gives it away: from every letter it took a long line five seconds.
_SECRET = re.compile(
    r"(?:AKIA|ASIA)[A-Z0-9]{12,}|ya29\.[\w.-]+|(?i:authorization\W+.*)"
    r"|(?i:(?:(?<![\w-])[\w-]*)?(?:token|secret|password|signature)[\w-]*\W?\s*[=:]\s*\S+)"
)


class BootFailed(Exception):
    """This machine cannot do what it was rented for; the message says why, and what to do."""


def say_line(line: str) -> None:
    """Write a line to the console and the log."""
    told = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {line}"
    print(f"monkey: {told}", flush=True)
    with LOG.open("a") as file:
        file.write(f"{told}\n")


def mask_line(line: str, seen: Iterable[str]) -> str:
    """Return a line without what is secret in it, as far as its form or `seen` tell."""
    for value in seen:
        line = line.replace(value, "***") if value else line
    return _SECRET.sub("***", line)[:LONG]


def read_tails(seen: Iterable[str], logs: Iterable[Path] = LOGS) -> list[str]:
    """Return the ends of all logs, `LINES` together."""
    seen, found = list(seen), []
    for log in logs:
        try:
            data = log.read_bytes()[-_END:]
        except OSError:
            continue
        found += [mask_line(line, seen) for line in data.decode(errors="replace").splitlines()]
    return found[-LINES:]


def note_end(cloud: Any, settings: Mapping[str, Any], why: str) -> None:
    """Leave word in the store of why this machine fails, as far as the store takes it."""
    try:
        name, at = cloud.name(), time.time()
        said = {"machine": name, "why": mask_line(why, cloud.seen), "at": at, "log": read_tails(cloud.seen)}
        key = f"projects/{settings['project']}/boots/{settings['fleet']}/{at:.0f}-{name}"
        retry_ask(lambda: cloud.put(key, json.dumps(said).encode()), _PATIENCE, MUTE)
    except (ApiError, ApiDown, ValueError, LookupError) as exc:
        say_line(f"the store is not told: {exc}")
