"""The link to a page that `monkey web` serves now: the server leaves it in a file for its user alone; verbs print it.

The server holds the lock of that file as long as it lives, however it ends. So a file that is not locked is of a server
that is gone, and its link is dead.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import click

from monkey.apply.world.world import World
from monkey.errors import MonkeyError
from monkey.fleet.user_directories import locate_agent_state
from monkey.removal import remove_file
from monkey.untrusted_files import make_private_directory

#: Bytes of the file that are read.
_MOST = 1 << 16


class PageLink(NamedTuple):
    """The address of a page, and the token that opens it."""

    address: str
    token: str

    def point(self, sweep: str = "", job: str = "") -> str:
        """Return the link to a sweep, to a job of it, or to the project."""
        place = "?sweep=" + quote(sweep, safe="") if sweep else ""
        return f"{self.address}{place}{'&job=' + job if job else ''}#token={quote(self.token, safe='')}"


@contextmanager
def publish_page_link(world: World, link: PageLink) -> Iterator[None]:
    """Let this user's verbs find the page as long as this is open. Of two servers, the later one is found."""
    held = -1
    try:
        # Without a place for the file, the page is there all the same.
        with suppress(OSError, MonkeyError):
            file = _locate_page_file(world)
            make_private_directory(file.parent)
            held = _put_file(file, json.dumps([os.uname().nodename, *link]).encode())
        yield
    finally:
        if held >= 0:
            with suppress(OSError):
                if os.path.samestat(os.fstat(held), file.lstat()):
                    remove_file(file)
            os.close(held)


def _put_file(file: Path, data: bytes) -> int:
    """Write the file, and return the descriptor that holds its lock: it has that before it has its name."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        remove_file(aside)  # of a process that had this number before
    held = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(held, data)
        aside.replace(file)
    except BaseException:
        os.close(held)
        raise
    return held


def find_page_link(world: World) -> PageLink | None:
    """Return the link to the page of this project that this user serves on this machine; None where none is served."""
    try:
        file = os.open(_locate_page_file(world), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, MonkeyError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(OSError, ValueError, TypeError):
            machine, address, token = json.loads(os.read(file, _MOST))
            # A home may be shared: the loopback address of another machine leads nowhere here.
            return PageLink(address, token) if machine == os.uname().nodename else None
    except OSError:
        return None
    finally:
        os.close(file)
    return None


def print_page_link(world: World, sweeps: Sequence[str] = (), job: str = "") -> None:
    """Print the link to a sweep, a job of it, or (for several sweeps, or none) the project, if a page is served.

    The link is a key: it goes to terminals alone, to no file, no pipe and no log of CI.
    """
    if sys.stdout.isatty() and (link := find_page_link(world)) is not None:
        click.echo(f"page {link.point(sweeps[0] if len(sweeps) == 1 else '', job)}")


def _locate_page_file(world: World) -> Path:
    """Return the file's place; no name of a provider begins with a dot. Raises FleetError, StoreMissing."""
    return locate_agent_state(world.at.url, world.project.name, ".page", "link.json")
