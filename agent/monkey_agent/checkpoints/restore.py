# ruff: noqa: PTH101, PTH102, PTH103, PTH208, PTH211
# Paths are plain strings here: pathlib costs as much as the system calls.
"""A job's checkpoint, brought back before it begins: this machine's own, or the newest in the store that is whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart
from monkey.removal import remove_tree
from monkey.store.folded_names import check_names
from monkey.store.store_port import Store
from monkey.untrusted_files import HeldDirectory
from monkey_agent.checkpoints.checkpoint_manifest import CheckpointManifest, FileEntry, decode_manifest
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.remote_checkpoints import Spot, parse_spots
from monkey_agent.local_files import UPLOADS, hash_local_file

#: How often the store is asked again for what there is, when something was gone: a late agent may have tidied up.
ROUNDS = 3


@dataclass
class RestoredCheckpoint:
    """What was brought back."""

    #: Is what the job finds in the store, as it is?
    published: bool = False
    #: What the attempt that made it continued, and how much that had logged itself. Nothing where it has no file: a job
    #: that finds none starts from the beginning.
    history: tuple[HistoryPart, ...] = ()
    #: For the job's log.
    notes: list[str] = field(default_factory=list)


async def restore_checkpoint(
    store: Store, keys: Keys, kept: LocalCheckpoints, job: str, directory: str
) -> RestoredCheckpoint:
    """Replace the empty `directory` by the job's checkpoint, if it has one.

    Raises OneName where two of its names are one on this disk: the checkpoint stays for another machine. Raises
    StoreError, OSError.
    """
    aside = kept.aside()
    os.mkdir(aside)
    try:
        done = await _bring(store, keys, kept, job, aside)
        if done.notes:
            await asyncio.to_thread(_place, aside, directory)
        return done
    finally:
        await asyncio.to_thread(kept.remove, aside)


def _place(aside: str, directory: str) -> None:
    """Put what was restored aside in place of an empty directory; whatever else is there stays. Raises OSError."""
    above, _, name = directory.rpartition("/")
    with HeldDirectory(above) as held:
        os.rename(aside, name, dst_dir_fd=held.fd)


async def _bring(store: Store, keys: Keys, kept: LocalCheckpoints, job: str, directory: str) -> RestoredCheckpoint:
    """Fill the empty directory aside with the job's checkpoint, if it has one."""
    done = RestoredCheckpoint()
    local = await asyncio.to_thread(kept.newest, job)
    for turn in range(ROUNDS):
        spots = await _spots(store, keys, job)
        if local is not None and (not spots or local[0] >= spots[0][0]):
            capture, local = local[1], None
            if await asyncio.to_thread(_linked, capture.put_into, directory):
                done.published = capture.is_published
                if capture.tree.files:
                    done.history = capture.history
                    done.notes.append("goes on from the checkpoint on this machine")
                return done
        gone = await _newest(store, keys, job, spots, directory, done)
        if gone is None or turn == ROUNDS - 1:
            break
        done.notes.clear()
    return done


async def _spots(store: Store, keys: Keys, job: str) -> list[Spot]:
    prefix = keys.checkpoints(job)
    return parse_spots([item.key.removeprefix(prefix) for item in await store.list(prefix)])


async def _newest(
    store: Store, keys: Keys, job: str, spots: list[Spot], directory: str, done: RestoredCheckpoint
) -> KeyMissing | None:
    """Fetch the newest that is whole. Returns what was gone meanwhile, where that is why there is none."""
    gone = None
    for spot in spots:
        key = keys.checkpoint(job, *spot)
        try:
            manifest = decode_manifest(key, await store.get(key))
            await _fetch(store, keys, job, spot[0], manifest, directory)
            await asyncio.to_thread(_finish, manifest, directory)
        except (CorruptObject, KeyMissing) as exc:
            gone = exc if isinstance(exc, KeyMissing) else gone
            done.notes.append(f"checkpoint {spot[0]}.{spot[1]} is left out: {exc.message}")
            await asyncio.to_thread(_clear, directory)
            continue
        done.published = True
        if manifest.files:
            done.history = manifest.history
            done.notes.append(f"goes on from checkpoint {spot[0]}.{spot[1]} of the store")
        return None
    return gone


async def _fetch(store: Store, keys: Keys, job: str, k: int, manifest: CheckpointManifest, directory: str) -> None:
    names = [*manifest.directories, *manifest.files, *manifest.links]
    await asyncio.to_thread(check_names, names, directory)

    async def bring(item: tuple[str, FileEntry]) -> None:
        path, file = f"{directory}/{item[0]}", item[1]
        key = keys.checkpoint_file(job, k, file.sha256)
        os.makedirs(path.rpartition("/")[0], exist_ok=True)
        await store.get_file(key, Path(path))
        found = await hash_local_file(path)
        if found != file.sha256:
            raise CorruptObject(key, f"has other bytes (SHA-256 {found[:16]}…)")

    await run_in_lanes(manifest.files.items(), bring, UPLOADS)


def _finish(manifest: CheckpointManifest, directory: str) -> None:
    """Make what is no file, and let files be as old as they were: jobs look for the latest of theirs."""
    try:
        for path in manifest.directories:
            os.makedirs(f"{directory}/{path}", exist_ok=True)
        for path, file in manifest.files.items():
            os.chmod(f"{directory}/{path}", file.mode | 0o600)
            os.utime(f"{directory}/{path}", ns=(file.mtime, file.mtime))
        # The last: nothing is ever written through one.
        for path, target in manifest.links.items():
            os.symlink(target, f"{directory}/{path}")
    except (FileExistsError, NotADirectoryError) as exc:
        raise CorruptObject("the list of its files", f"names {exc.filename} twice") from exc


def _linked(put_into: Callable[[str], None], directory: str) -> bool:
    try:
        put_into(directory)
    except OSError:
        _clear(directory)
        return False
    return True


def _clear(directory: str) -> None:
    for name in os.listdir(directory):
        remove_tree(f"{directory}/{name}")
