"""Files stored once under the MD5 of their bytes, in the layout of DVC's remotes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

from monkey.errors import DatasetError
from monkey.store.content.hash_worker import CHANGED, SPECIAL, Signature

#: Where they are: `files/md5/<2>/<30>`, with ".dir" behind it for a directory's listing.
MD5_PREFIX = "files/md5/"

#: Where agents name objects whose bytes they found damaged: whoever has the data sends those again.
DAMAGED = "files/damaged/"

#: Ends the reason of a job that failed because an object is missing or damaged. Advice is given by it.
SEND_AGAIN = "(hint: `monkey push`, where the data is, sends what is missing or damaged; then `monkey retry` the sweep)"


class SourceFile(NamedTuple):
    """A file to store, as it was when it was looked at."""

    path: str
    signature: Signature
    #: MD5 of its bytes; "" where not known yet.
    md5: str = ""


#: Is told of progress: so many more objects, so many more bytes. From any thread.
Moved = Callable[[int, int], None]


def spell_md5_key(oid: str) -> str:
    """Return the key of the object with this MD5 (with ".dir" behind it for a directory's listing)."""
    return f"{MD5_PREFIX}{oid[:2]}/{oid[2:]}"


def make_refusal(source: SourceFile, why: str) -> DatasetError:
    """Return the error for a file that could not be taken; `why` as `copier.take` says it."""
    path = source.path
    if why == CHANGED:
        return DatasetError(
            f"{path} changed while it was read", hint="wait until nobody writes it any more, and try again"
        )
    if why == SPECIAL:
        return DatasetError(f"expected a file at {path}, found a device, a pipe or a socket", hint="leave it out")
    number = int(why.partition(": ")[2])
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
        return DatasetError(f"{path} vanished while it was read", hint="wait until nobody writes there, and try again")
    return DatasetError(f"cannot read {path}: {os.strerror(number)}", hint="make it readable, or leave it out")
