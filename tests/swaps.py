# ruff: noqa: PTH103, PTH104, PTH108, PTH114, PTH120, PTH123, PTH211
# Paths are plain strings here: it starts faster, and pauses less between two calls.
"""A racer: it puts links in place of directories at random moments, and the directories back.

Run as a program, it is a job that swaps its own directories: `python swaps.py TARGET SECONDS`.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterator

#: What a job can replace, as paths from its workspace.
PLACES = ("", "work", "outputs", "metrics", "checkpoint")


@contextlib.contextmanager
def opened(root: str) -> Iterator[int]:
    """Hold the directory of a workspace: a racer does itself no harm behind the links that others put there."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def swap(root: str, place: str, target: str) -> None:
    """Put a link to `target` in place of a directory of a workspace, which is moved beside it."""
    with contextlib.suppress(OSError):
        if not place:
            os.rename(root, f"{root}.moved")
            os.symlink(target, root)
            return
        with opened(root) as at:
            os.rename(place, f"{place}.moved", src_dir_fd=at, dst_dir_fd=at)
            os.symlink(target, place, dir_fd=at)


def swap_back(root: str, place: str) -> None:
    """Undo it, as far as others left it so."""
    with contextlib.suppress(OSError):
        if not place:
            if os.path.islink(root):
                os.unlink(root)
            os.rename(f"{root}.moved", root)
            return
        with opened(root) as at:
            with contextlib.suppress(OSError):  # a directory, which others put there
                os.unlink(place, dir_fd=at)
            os.rename(f"{place}.moved", place, src_dir_fd=at, dst_dir_fd=at)


def swap_until(done: Callable[[], bool], root: str, target: str) -> int:
    """Swap directories of a workspace to and fro, at random moments; all are back at the end. Returns how often."""
    count = 0
    while not done():
        place = random.choice(PLACES)
        swap(root, place, target)
        time.sleep(random.choice((0, 0, random.uniform(0, 0.004))))
        swap_back(root, place)
        count += 1
        time.sleep(random.choice((0, random.uniform(0, 0.001))))
    return count


def fill(root: str) -> None:
    """Put files and directories into each directory of a workspace."""
    for place in PLACES[1:]:
        os.makedirs(f"{root}/{place}/a")
        for name in ("0.jsonl", "a/thesis.tex"):
            with open(f"{root}/{place}/{name}", "w") as file:
                file.write('{"m":{"ours":1},"step":1,"t":1790000000.5}\n')


def main(target: str, seconds: str) -> None:
    """Fill the workspace, swap its directories for about so long, and leave some as they are."""
    root = os.path.dirname(os.environ["MONKEY_OUTPUT_DIR"])
    fill(root)
    end = time.monotonic() + random.uniform(0, float(seconds))
    swap_until(lambda: time.monotonic() > end, root, target)
    for place in random.sample(PLACES, random.randint(0, 2)):
        swap(root, place, target)


@contextlib.contextmanager
def swapping(root: str, target: str) -> Iterator[None]:
    """Swap directories of a workspace in another process, until the block is left."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.set_blocking(read, False)
        random.seed()
        with contextlib.suppress(BaseException):
            swap_until(lambda: _is_over(read), root, target)
        os._exit(0)
    os.close(read)
    try:
        yield
    finally:
        os.close(write)
        os.waitpid(child, 0)


def _is_over(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
