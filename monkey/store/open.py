"""From what users write (`store:` in monkey.yaml, `--store`) to a store that is ready."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from monkey import origin
from monkey.errors import CorruptObject, KeyMissing, StoreError, StoreMissing, StoreRefused
from monkey.spec.project_paths import read_regular_file
from monkey.store.content.hash_worker import make_directory
from monkey.store.content.objects import MD5_PREFIX
from monkey.store.create import Won, create_object
from monkey.store.directory.answer_watch import AnswerWatch
from monkey.store.directory.network_mount import (
    NetworkMount,
    check_network_mount,
    find_mount_by_text,
    list_network_mounts,
)
from monkey.store.directory.network_store import NetworkStore
from monkey.store.directory.root import explain_missing_store, translate_os_error
from monkey.store.directory.store import DirectoryStore
from monkey.store.format import FORMAT, StoreLayout, decode_format, make_store_layout
from monkey.store.keys import RESERVED
from monkey.store.memory import MemoryState, MemoryStore
from monkey.store.probe import PROBE, probe_store
from monkey.store.store_port import Store


class Backend(Protocol):
    """What the module of a scheme has."""

    def locate_store(self, url: str) -> str:
        """Return `url` in its one form, without a look at the network; raises StoreError where it cannot be one."""

    async def connect_store(self, url: str, *, begin: bool) -> Store:
        """Return a client of what is at `url`, which has its one form; whether it is a store is looked at later.

        `begin`: make room for a store where there is none. Raises StoreRefused where something else is there,
        StoreMissing, StoreUnavailable.
        """

    async def check_room(self, store: Store) -> None:
        """Raise StoreRefused where something else than a store is at a place that has no `format`; changes nothing."""


#: Scheme to its module, which is imported where the scheme is used and nowhere else: what it needs is heavy. The
#: options of its URLs are in `monkey.spec.project.store_url`.
BACKENDS: Mapping[str, str] = {
    "s3": "monkey.store.bucket.scheme",
    "gs": "monkey.store.bucket.scheme",
    "az": "monkey.store.bucket.scheme",
    "ssh": "monkey.store.sftp.scheme",
}

#: Library to the extra that installs it, where a backend needs more than the base install has.
_EXTRAS: Mapping[str | None, str] = {"asyncssh": "ssh"}

#: Stores of this process, by the name in memory://name: that is where its clients meet.
_MEMORY: dict[str, MemoryState] = {}


#: Bytes of a directory's `format` that are read: in a stranger's branch it may be a link to what has no end.
_MOST = 1 << 16


def locate_url(url: str) -> str:
    """Return `url` in its one form: an absolute path, or memory://NAME; raises StoreError where it is neither."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", url)
    if scheme is None:
        return _absolute(url)
    name = scheme[1].lower()
    if name == "memory":
        return f"memory://{url[scheme.end() :]}"
    if name == "file":
        return _absolute(_path_of(url))
    if name in BACKENDS:
        return _backend(name).locate_store(url)
    known = ", ".join(f"{scheme}://" for scheme in ("file", *BACKENDS, "memory"))
    raise StoreError(f"expected a directory or a URL with {known}, found {url!r}", hint="check 'store:'")


def _backend(scheme: str) -> Backend:
    """Return the scheme's module. Raises StoreError where a library that it needs is not installed here."""
    try:
        return cast(Backend, importlib.import_module(BACKENDS[scheme]))
    except ModuleNotFoundError as exc:
        if exc.name not in _EXTRAS:
            raise
        what = f"a store at {scheme}:// is reached by {exc.name}, which is not installed here"
        raise StoreError(what, hint=origin.hint_install(_EXTRAS[exc.name])) from exc


def _absolute(path: str) -> str:
    if not path or "\0" in path:
        raise StoreError(f"expected the path of a directory, found {path!r}", hint="check 'store:'")
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - not resolve(): links stay as written


def _path_of(url: str) -> str:
    from urllib.parse import unquote, urlsplit  # slow to import, and rarely needed

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise StoreError(f"expected file:///absolute/path, found {url!r}", hint="a file URL has three slashes")
    return unquote(parts.path)


async def open_store(url: str, *, begin: bool = False) -> Store:
    """Return the store at `url`.

    `begin`: where there is none, begin one: in a new or empty place, after a look at whether two writers can win.
    Raises StoreMissing where there is none, StoreFormat where it is newer than we are, StoreUnsafe, StoreRefused,
    StoreUnavailable; StoreError where `url` is none that we know.
    """
    place = locate_url(url)
    if place.startswith("memory://"):
        return await _meet(MemoryStore(_MEMORY.setdefault(place, MemoryState()), place), begin)
    if "://" in place:
        return await _meet(await _backend(place.partition("://")[0]).connect_store(place, begin=begin), begin)
    layout, store = await _open_directory(place, begin=begin)
    store.layout = layout.version
    return store


async def _open_directory(place: str, *, begin: bool) -> tuple[StoreLayout, DirectoryStore]:
    """Return the store in the directory `place`. Where it is shared, a watch starts before the first look may hang."""
    if not list_network_mounts():
        layout = await _find_layout(place, begin)
        return layout, DirectoryStore(Path(place), layout.id)
    guessed = find_mount_by_text(place)
    watch = _start_watch(place, guessed) if guessed is not None else None
    try:
        mount = check_network_mount(place)
        layout = await _find_layout(place, begin)
        if mount is None:
            return layout, DirectoryStore(Path(place), layout.id)
        store = NetworkStore(Path(place), layout.id, watch or _start_watch(place, mount))
        watch = None
        return layout, store
    finally:
        if watch is not None:
            watch.close()


async def _find_layout(place: str, begin: bool) -> StoreLayout:
    """Return the layout of the store in the directory `place`; where there is none, `begin` one."""
    data = _read_format(place)
    if data is None:
        if not begin:
            raise explain_missing_store(place)
        data = await _begin_directory(place)
    return decode_format(data, place)


def _start_watch(place: str, mount: NetworkMount) -> AnswerWatch:
    watch = AnswerWatch(place, mount.describe())
    watch.start()
    return watch


def _read_format(root: str) -> bytes | None:
    try:
        return read_regular_file(Path(root, FORMAT), _MOST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise translate_os_error(exc, root) from exc
    except ValueError as exc:
        raise CorruptObject(FORMAT, f"{exc} (store {root})", "name another directory with 'store:'") from exc


async def _begin_directory(root: str) -> bytes:
    _make(root)
    _refuse_strangers(root)
    store = DirectoryStore(Path(root), None)
    try:
        return await _begin(store)
    finally:
        await store.close()


def _make(root: str) -> None:
    try:
        _make_in_group(Path(root))
    except FileExistsError:
        raise explain_missing_store(root) from None
    except OSError as exc:
        raise translate_os_error(exc, root) from exc


def _make_in_group(directory: Path) -> None:
    """Make a directory, and those above it; if a group shares the one above, it shares this one. Raises OSError."""
    if directory.is_dir():
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    above = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        make_directory(directory.name, above)
    except FileExistsError:
        if not directory.is_dir():
            raise
    finally:
        os.close(above)


def _refuse_strangers(root: str) -> None:
    """Raise StoreRefused where the directory `root` has something in it that is no part of a store."""
    try:
        strangers = sorted({path.name for path in Path(root).iterdir()} - {RESERVED, FORMAT, PROBE})
    except OSError as exc:
        raise translate_os_error(exc, root) from exc
    if strangers:
        raise StoreRefused(
            f"expected a store or an empty directory at {root}, found a directory with {strangers[0]!r} in it",
            hint="name a new or empty directory with 'store:' in monkey.yaml; if a store was here, bring it back",
        )


async def check_free_place(url: str) -> None:
    """Raise, for a place without a store, what would keep one from being created there; changes nothing.

    Raises StoreRefused where something else is there, StoreMissing where a file is, StoreUnavailable.
    """
    place = locate_url(url)
    if place.startswith("memory://"):
        return
    if "://" not in place:
        _check_directory(place)
        return
    backend = _backend(place.partition("://")[0])
    store = await backend.connect_store(place, begin=False)
    try:
        await backend.check_room(store)
    finally:
        await store.close()


def _check_directory(root: str) -> None:
    check_network_mount(root)
    if Path(root).is_dir():
        _refuse_strangers(root)
    elif os.path.lexists(root):
        raise explain_missing_store(root)


async def _meet(store: Store, begin: bool) -> Store:
    """Return `store`, which has shown that it is one, or has just become one; closes it where it is none."""
    try:
        data = await _format_of(store)
        if data is None:
            if not begin:
                raise StoreMissing(f"no store at {store.url}: it has no {FORMAT!r}", hint="`monkey apply` begins one")
            data = await _begin(store)
            store.empty = not await store.list(MD5_PREFIX)  # a bucket may have been a remote of DVC's before
        layout = decode_format(data, store.url)
        store.id, store.layout = layout.id, layout.version
    except BaseException:
        await store.close()
        raise
    return store


async def _format_of(store: Store) -> bytes | None:
    try:
        return await store.get(FORMAT)
    except KeyMissing:
        return None


async def _begin(store: Store) -> bytes:
    """Make `store` one, once it has shown that it is safe; returns its format, which may be a rival's."""
    await probe_store(store)
    ours = make_store_layout().encode()
    outcome = await create_object(store, FORMAT, ours)
    return ours if isinstance(outcome, Won) else outcome.existing
