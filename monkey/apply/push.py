"""Datasets into the store, by themselves: those of specs, or paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from monkey.apply.memo import Memo
from monkey.apply.opening import open_known, store_url
from monkey.fleet.state import cache_home
from monkey.store.contents import Moved
from monkey.transfer.dataset import Dataset
from monkey.transfer.dataset_push import hash_into
from monkey.transfer.dataset_upload import missing, upload

if TYPE_CHECKING:
    from collections.abc import Callable

    from monkey.apply.observe import World
    from monkey.spec.project import Project


class Pushed(NamedTuple):
    """A dataset that is in the store now, and what was sent of it."""

    name: str
    dataset: Dataset
    bytes: int
    objects: int


async def push_specs(world: World, specs: Sequence[str]) -> list[Pushed]:
    """Send the datasets of the specs (none: all of the project's). Raises MonkeyError of every kind."""
    from monkey.apply.data import send
    from monkey.apply.desire import desire_specs, read_specs, spec_files

    read = read_specs(world.project, spec_files(world.project, specs))
    wanted = desire_specs(world.project, read, world.bars)
    datasets = {f"{want.desired.name}: {name}": data for want in wanted for name, data in want.datasets.items()}
    if datasets:
        await world.begin()
        sent = await send(world.at, datasets, world.bars)
        return [Pushed(name, dataset, *sent[name]) for name, dataset in datasets.items()]
    return []


async def push_paths(project: Project, paths: Sequence[str], begin: Callable[[str, int, int], Moved]) -> list[Pushed]:
    """Send these files and directories, reading each once; `begin` is told of each. Raises MonkeyError of every kind.

    Nothing but the store is opened: what observing sweeps and fleets needs would take longer than a small upload.
    """
    places: Mapping[str, str] = {path: os.path.abspath(path) for path in paths}  # noqa: ASYNC240, PTH100
    store = await open_known(store_url(project), Memo(project.root), begin=True)
    assert store is not None
    pushed = []
    try:
        for path, at in places.items():
            moved = begin(path, 0, 0)
            dataset, sent, there = await hash_into(store, at, cache_home() / "datasets", moved)
            (lacks,) = await missing(store, [dataset], there)
            if lacks.objects:
                await upload(store, dataset, lacks, moved)
            size = sum(dataset.signatures[row][0] for row in sent)
            pushed.append(Pushed(path, dataset, size + lacks.bytes, len(sent) + lacks.objects))
    finally:
        await store.close()
    return pushed
