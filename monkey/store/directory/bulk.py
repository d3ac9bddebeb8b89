# ruff: noqa: PTH120
# Paths are plain strings here: pathlib costs as much as the system calls.
"""Many files into a store in a directory, durably: copied by several processes, synced together, then renamed.

A sync a file would be ten thousand of them; syncfs is one. The order is the same as for a single file: bytes on disk
before the name, names on disk before readers learn them. What was renamed when the power fails is whole, and stays.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import FileIO

from monkey.errors import StoreError, StoreUnavailable
from monkey.removal import remove_tree
from monkey.store.content.hash_worker import Taken, Task, make_directory, measure_objects, spell_place, split_lots
from monkey.store.content.hash_workers import HashWorkers, count_processors
from monkey.store.content.large_files import copy_hashed
from monkey.store.content.objects import MD5_PREFIX, Moved, SourceFile, make_refusal, spell_md5_key
from monkey.store.directory.disk_sync import flush_file, flush_together
from monkey.store.directory.open_root import OpenRoot
from monkey.store.directory.publish import open_aside, publish_aside
from monkey.store.directory.root import DirectoryRoot
from monkey.store.keys import RESERVED

#: Bytes from which on a file is copied by a thread of its own.
LARGE_BYTES = 4 * 1024 * 1024

#: Files that are synced and named together, and their bytes: a kill -9 loses no more than that.
BATCH_FILES, BATCH_BYTES = 131_072, 512 * 1024 * 1024

#: Directories that a worker is asked to name at once.
_NAMED_AT_ONCE = 32


#: Is told of all MD5s, in the order of the sources.
Hashed = Callable[[Sequence[str]], None]


class BulkWrite:
    """One lot of files on its way into the directory. Runs in a thread of its own; `interrupt` ends it early."""

    def __init__(
        self,
        place: DirectoryRoot,
        sources: Sequence[SourceFile],
        moved: Moved,
        crew: HashWorkers | None = None,
        hashed: Hashed | None = None,
        sent: set[str] | None = None,
    ) -> None:
        """Store `sources` in `place`, by this crew; `hashed` receives all MD5s while the disk is waited for.

        `sent` receives the MD5s of objects that the store did not have.
        """
        self._place, self._sources, self._moved = place, sources, moved
        self._crew, self._hashed = crew or HashWorkers(), hashed
        self._found = [""] * len(sources)
        self._sent = set() if sent is None else sent
        #: Where copies are that have no name yet, and their sizes by MD5.
        self._aside = ""
        self._copied: dict[str, int] = {}
        self._directories: set[str] = set()

    def interrupt(self) -> None:
        """Have `run` end soon."""
        self._crew.stop.set()

    def run(self) -> list[str]:
        """Store all; returns their MD5s. Raises DatasetError, StoreError; what was named by then stays."""
        large = [at for at, source in enumerate(self._sources) if source.signature[0] >= LARGE_BYTES]
        try:
            with self._crew, self._place.enter() as inside:
                for batch in self._batches():
                    self._take(inside, batch)
                    self._go_on()
                    self._name(inside)
            self._each_large(large)
            self._settle()
        except OSError as exc:
            raise self._place.translate(exc) from exc
        finally:
            self._discard()
        return self._found

    def _flush(self, paths: Iterable[str], count: int) -> None:
        """Sync these `count` files and directories; meanwhile `hashed` is called, once all MD5s are known."""
        if self._hashed is None or not all(self._found):
            flush_together(paths, count)
            return
        tell, self._hashed, wrong, waiting = self._hashed, None, list[BaseException](), threading.Event()

        def flush() -> None:
            try:
                flush_together(paths, count, waiting.set)
            except BaseException as exc:
                wrong.append(exc)
            finally:
                waiting.set()

        thread = threading.Thread(target=flush, name="monkey-flush")
        thread.start()
        try:
            waiting.wait()  # else both would wait for the interpreter, at each step of the way to the disk
            tell(self._found)
        finally:
            thread.join()
        if wrong:
            raise wrong[0]

    def _batches(self) -> Iterator[list[int]]:
        """Yield the places of small files, as many as are named together."""
        batch, size = list[int](), 0
        for at, source in enumerate(self._sources):
            if source.signature[0] < LARGE_BYTES:
                batch.append(at)
                size += source.signature[0]
                if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def _take(self, inside: OpenRoot, batch: Sequence[int]) -> None:
        """Hash the files at these places, and copy them aside, each where it will lie below `MD5_PREFIX`."""
        self._aside = self._place.temp()
        make_directory(self._aside, inside.aside)
        chosen = [self._sources[at] for at in batch]
        parts = split_lots([one.signature[0] for one in chosen])

        def done(part: int, taken: list[Taken]) -> None:
            first, _ = parts[part]
            if not taken[-1][0]:
                raise self._trouble(chosen[first + len(taken) - 1], taken[-1][1])
            for at, (md5, _) in enumerate(taken, first):
                self._found[batch[at]] = md5
                self._copied[md5] = chosen[at].signature[0]
            self._moved(len(taken), sum(one.signature[0] for one in chosen[first : first + len(taken)]))

        aside = self._spell_aside()
        self._crew.work(len(parts), lambda at: ("take", _tasks(chosen, *parts[at]), aside, ""), done)

    def _trouble(self, source: SourceFile, why: str) -> Exception:
        what, _, number = why.partition(": ")
        if what == "store":
            return self._place.translate(OSError(int(number), os.strerror(int(number))))
        return make_refusal(source, why)

    def _spell_aside(self) -> str:
        return spell_place(self._place.root, f"{RESERVED}/{self._aside}")

    def _name(self, inside: OpenRoot) -> None:
        """Sync what is aside, and give it its names: a directory at a time where the store has nothing like it yet."""
        aside = self._spell_aside()
        files = MD5_PREFIX.rstrip("/")
        names = sorted({md5[:2] for md5 in self._copied})
        copies = (f"{aside}/{md5[:2]}/{md5[2:]}" for md5 in self._copied)
        self._flush(itertools.chain(copies, (f"{aside}/{name}" for name in names)), len(self._copied))
        inside.reach(MD5_PREFIX, make=True)
        self._note_lacking(self._copied)
        parts = [names[at : at + _NAMED_AT_ONCE] for at in range(0, len(names), _NAMED_AT_ONCE)]
        target = spell_place(self._place.root, files)

        def done(part: int, number: int) -> None:
            if number:
                for name in parts[part]:
                    with contextlib.suppress(FileNotFoundError):
                        inside.reach(f"{files}/{name}/.")  # a link is named
                raise self._place.translate(OSError(number, os.strerror(number)))

        self._crew.work(len(parts), lambda at: ("name", parts[at], aside, target), done)
        self._go_on()
        self._directories.update(self._place.below(f"{files}/{name}") for name in names)
        self._copied.clear()
        self._discard()

    def _note_lacking(self, sizes: Mapping[str, int]) -> None:
        """Note which of these objects the store has not, before it has them all."""
        found = measure_objects(list(sizes), self._place.below(MD5_PREFIX.rstrip("/")))
        self._sent.update(md5 for md5, size in zip(sizes, found, strict=True) if size != sizes[md5])

    def _discard(self) -> None:
        """Remove what is aside: mostly an empty directory."""
        aside, self._aside = self._aside, ""
        if aside:
            with contextlib.suppress(OSError, StoreError), self._place.enter(check=False) as inside:
                remove_tree(aside, inside.find_aside())

    def _each_large(self, chosen: Sequence[int]) -> None:
        if not chosen:
            return
        from concurrent.futures import ThreadPoolExecutor

        # One hashes and one writes for each file.
        with ThreadPoolExecutor(max(1, count_processors() // 2), "monkey-large") as pool:
            try:
                for _ in pool.map(self._one_large, chosen):
                    pass
            except BaseException:
                self.interrupt()
                raise

    def _one_large(self, at: int) -> None:
        self._go_on()
        aside = self._place.temp()
        source = self._sources[at]
        with self._place.enter() as inside, FileIO(open_aside(inside, aside), "r+") as copy:
            try:
                self._found[at] = md5 = copy_hashed(source, copy.fileno(), self._count)
                flush_file(copy.fileno())
                key = spell_md5_key(md5)
                self._note_lacking({md5: source.signature[0]})
                publish_aside(inside, aside, key, replace=True)
            except BaseException:
                inside.remove_aside(aside)
                raise
        self._directories.add(os.path.dirname(self._place.path(key)))
        self._moved(1, 0)

    def _count(self, objects: int, size: int) -> None:
        self._go_on()
        self._moved(objects, size)

    def _go_on(self) -> None:
        if self._crew.stop.is_set():
            raise StoreUnavailable("the upload was interrupted")

    def _settle(self) -> None:
        """Sync the names, and those of the directories that were made for them."""
        self._go_on()
        if not self._directories:
            return
        files = self._place.below(MD5_PREFIX.rstrip("/"))
        paths = [*sorted(self._directories), files, os.path.dirname(files), self._place.root]
        self._flush(paths, len(paths))


def _tasks(sources: Sequence[SourceFile], first: int, end: int) -> list[Task]:
    return [(one.path, one.signature, one.md5) for one in sources[first:end]]
