"""The push of datasets alone into the store: those of specs, or those at paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monkey.apply.world.known_stores import KnownStores
from monkey.errors import MonkeyError
from monkey.fleet.user_directories import open_cache_home
from monkey.store.content.hash_workers import HashWorkers
from monkey.store.directory.root import DirectoryRoot
from monkey.transfer.datasets import dvc_files
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.datasets.hash_state import has_state
from monkey.transfer.datasets.missing_files import compare_files
from monkey.transfer.datasets.survey import DataSurvey, look_ahead, survey_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from monkey.apply.world.world import World
    from monkey.spec.project.project import Project
    from monkey.store.content.objects import Moved
    from monkey.store.store_port import Store
    from monkey.transfer.datasets.dataset_push import LookedDataset


class PushedDataset(NamedTuple):
    """A dataset that is in the store now, with the bytes and objects that were sent of it."""

    name: str
    dataset: Dataset
    bytes: int
    objects: int


async def push_specs(world: World, specs: Sequence[str]) -> list[PushedDataset]:
    """Send the datasets of the specs (none: all of the project's). Raises MonkeyError of every kind."""
    from monkey.apply.world.dataset_loader import send_datasets
    from monkey.apply.world.desired_state import desire_specs, list_spec_files, read_specs

    read = read_specs(world.project, list_spec_files(world.project, specs))
    wanted = desire_specs(world.project, read, world.bars)
    datasets = {f"{want.desired.name}: {name}": data for want in wanted for name, data in want.datasets.items()}
    if datasets:
        await world.begin()
        sent = await send_datasets(world.at, datasets, world.bars)
        return [PushedDataset(name, dataset, *sent[name]) for name, dataset in datasets.items()]
    return []


def push_paths(project: Project, paths: Sequence[str], begin: Callable[[str, int, int], Moved]) -> list[PushedDataset]:
    """Send these files and directories, reading each once; `begin` receives each. Raises MonkeyError of every kind.

    This opens only the store, and not even that if a look finds everything there. To observe sweeps and fleets would
    take longer than a small upload, and so would the import of asyncio.
    """
    rest = {path: os.path.abspath(path) for path in paths}  # noqa: PTH100
    place, pushed, seen = _met(project), list[PushedDataset](), None
    for path, at in list(rest.items()):
        seen = survey_dataset(place, at, _home()) if place and has_state(_home(), at) and not _tracked(at) else None
        if seen is None or (dataset := _all_there(seen)) is None:
            break
        pushed.append(PushedDataset(path, dataset, 0, 0))
        del rest[path]
    if not rest:
        return pushed
    with HashWorkers() as crew:
        known = seen or _ahead(project, next(iter(rest.values())), crew)
        import asyncio

        return pushed + asyncio.run(_send(project, rest, known, begin, crew))


def _ahead(project: Project, at: str, crew: HashWorkers) -> LookedDataset:
    """Start to survey the directory `at` if it is new and the store is a directory, too; else return None.

    A process of `crew` does it while this one imports asyncio, which takes as long.
    """
    if "://" in project.store or not os.path.isdir(at) or has_state(_home(), at) or _tracked(at):  # noqa: PTH112
        return None
    return look_ahead(at, _home(), crew)


def _tracked(at: str) -> bool:
    return dvc_files.find_dvc_root(Path(at)) is not None


def _met(project: Project) -> DirectoryRoot | None:
    """Return the store's directory if it is the one that we met before, else None; errors are reported later."""
    url = os.path.abspath(project.store)  # noqa: PTH100
    store_id = KnownStores(project.root).id(url)
    if "://" in project.store or not store_id:
        return None
    place = DirectoryRoot(url, store_id)
    try:
        place.check()
    except MonkeyError:
        return None
    return place


def _home() -> Path:
    return open_cache_home() / "datasets"


def _all_there(seen: DataSurvey) -> Dataset | None:
    """Return the dataset if the store lacks nothing of it, else None."""
    if not all(seen.md5s):
        return None
    dataset = seen.dataset()
    return None if compare_files(dataset, seen.there).objects else dataset


async def _send(
    project: Project,
    places: Mapping[str, str],
    seen: LookedDataset,
    begin: Callable[[str, int, int], Moved],
    crew: HashWorkers,
) -> list[PushedDataset]:
    """Send the data at these paths (as given, to absolute); `seen`: the first one's survey, done or only started."""
    from monkey.transfer.datasets.dataset_push import hash_into
    from monkey.transfer.datasets.dataset_upload import find_missing_files, upload_dataset

    first, where = next(iter(places.items()))
    store, hashed = await _open(project, where, begin(first, 0, 0))
    known: LookedDataset = seen or hashed
    pushed = []
    try:
        for path, at in places.items():
            moved = begin(path, 0, 0)
            (dataset, sent, there), known = await hash_into(store, at, _home(), moved, known, crew), None
            (lacks,) = await find_missing_files(store, [dataset], there)
            if lacks.objects:
                await upload_dataset(store, dataset, lacks, moved)
            size = sum(dataset.signatures[row][0] for row in sent)
            pushed.append(PushedDataset(path, dataset, size + lacks.bytes, len(sent) + lacks.objects))
    finally:
        await store.close()
    return pushed


async def _open(project: Project, at: str, moved: Moved) -> tuple[Store, Dataset | None]:
    """Open the store, and hash the data at `at` meanwhile if the store is remote and known; the first error ends both.

    Returns the store, and the dataset if it was hashed.
    """
    import asyncio

    from monkey.apply.world.project_store import locate_trusted_store, open_begun
    from monkey.transfer.datasets.hashing import hash_dataset

    url, memo = locate_trusted_store(project), KnownStores(project.root)
    opening = asyncio.ensure_future(open_begun(url, memo))
    if "://" not in url or not memo.expects(url):
        return await opening, None

    def hashed(objects: int, size: int) -> None:
        if opening.done():
            opening.result()
        moved(objects, size)

    try:
        dataset = await asyncio.to_thread(hash_dataset, Path(at), _home(), hashed)
    except BaseException:
        opening.cancel()
        for store in await asyncio.gather(opening, return_exceptions=True):
            if not isinstance(store, BaseException):
                await store.close()
        raise
    return await opening, dataset
