"""The init container of a pilot: fetches the agent's code, and copies what `apply` handed over, with mode 0600.

    python3 -I -S -c SOURCE HANDED PLACE SHA256

HANDED is the mounted Secret; its `links` say where the code is, in parts. PLACE gets `code`, `fleet` and `home`.
"""

from __future__ import annotations

import io
import itertools
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from monkey_stacks.bundle.unpack import WrongBundle, unpack_bundle

#: What the agent exits with that cannot work here, as `monkey.fleet.agent_state.UNFIT` has it.
UNFIT_CODE = 78
#: Pythons for which the code has compiled modules.
OLDEST, NEWEST = (3, 11), (3, 14)
#: Seconds for which the store may be away, seconds between two tries, and seconds for one answer.
PATIENCE_SECONDS, PAUSE_SECONDS, ANSWER_SECONDS = 300.0, 5.0, 60.0
#: What is handed over besides the link.
HANDED_FILES = ("settings.json", "credentials.json", "secrets", "signers")


class Unfit(Exception):
    """The pod cannot work, whatever is tried."""


def prepare_pod(handed: Path, place: Path, sha256: str) -> None:
    """Make `place` ready for the agent. Raises Unfit, OSError."""
    found = sys.version_info[:2]
    if not OLDEST <= found <= NEWEST:
        raise Unfit(f"expected Python 3.11 to 3.14 in the image, found {found[0]}.{found[1]}")
    if not os.confstr("CS_GNU_LIBC_VERSION"):
        raise Unfit("expected an image with glibc, found another C library: use one of Debian, not of Alpine")
    for name in ("fleet", "home"):
        (place / name).mkdir(mode=0o700, exist_ok=True)
    for name in HANDED_FILES:
        target = place / "fleet" / name
        target.touch(mode=0o600)
        target.write_bytes((handed / name).read_bytes())
    links = (handed / "links").read_text().split("\n")
    if retry_fetch(lambda aside: unpack_bundle(open_links(links), aside), place) != sha256:
        raise Unfit("the agent's code in the store is another than `monkey apply` put there")


def open_links(links: list[str]) -> IO[bytes]:
    """Fetch the parts one after the other; return all of them as one stream. Raises OSError."""
    parts = []
    for link in links:
        with open_link(link) as part:
            parts.append(part.read())
    return io.BytesIO(b"".join(parts))


def open_link(link: str) -> IO[bytes]:
    """Open a URL, or a file by its path. Raises OSError."""
    if link.startswith("/"):
        return Path(link).open("rb")
    stream: IO[bytes] = urllib.request.urlopen(link, timeout=ANSWER_SECONDS)
    return stream


def retry_fetch(fetch: Callable[[Path], str], place: Path) -> str:
    """Fetch into a new directory until it succeeds, and call it `code`; return what `fetch` did.

    Raises Unfit where the store refuses, or was away for too long.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    for number in itertools.count():
        try:
            aside = place / f"code.{number}"
            came = fetch(aside)
            aside.rename(place / "code")
            return came
        except urllib.error.HTTPError as exc:
            if exc.code < 500 and exc.code != 429:
                raise Unfit(
                    f"the store refuses the agent's code ({exc.code} {exc.reason}): run `monkey apply`"
                ) from exc
            failed: Exception = exc
        except FileNotFoundError as exc:
            raise Unfit(f"the agent's code is not at {exc.filename}: does `store_path:` name the store?") from exc
        except (OSError, WrongBundle) as exc:
            failed = exc
        if time.monotonic() > until:
            raise Unfit(f"the agent's code cannot be fetched: {failed}")
        time.sleep(PAUSE_SECONDS)
    raise AssertionError  # it counts for ever


def run_fetch(words: list[str]) -> None:
    """Prepare the pod; on a failure say why, and exit so that no pod comes again for the same."""
    try:
        prepare_pod(Path(words[0]), Path(words[1]), words[2])
    except (Unfit, OSError) as exc:
        print(f"error: {exc}", file=sys.stderr, flush=True)
        sys.exit(UNFIT_CODE)
