"""Datasets into the store, by themselves: those of specs, or paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from monkey.apply.data import send, state_home
from monkey.apply.observe import World
from monkey.plan.desired import Upload
from monkey.transfer.dataset import Dataset
from monkey.transfer.dataset_push import hash_into

if TYPE_CHECKING:
    from collections.abc import Mapping


class Pushed(NamedTuple):
    """A dataset that is in the store now, and what was sent of it."""

    name: str
    dataset: Dataset
    sent: Upload


async def push(world: World, specs: Sequence[str], paths: Sequence[str]) -> list[Pushed]:
    """Send the datasets of the specs (none: all of the project's), or those paths. Raises MonkeyError of every kind."""
    await world.begin()
    datasets = await _of_paths(world, paths) if paths else _of_specs(world, specs)
    sent = await send(world.at, datasets, world.bars)
    return [Pushed(name, dataset, sent[name]) for name, dataset in datasets.items()]


async def _of_paths(world: World, paths: Sequence[str]) -> Mapping[str, Dataset]:
    home = state_home()
    places = {path: os.path.abspath(path) for path in paths}  # noqa: ASYNC240, PTH100 - links stay as written
    return {path: await hash_into(world.at, at, home, world.bars(path, 0, 0)) for path, at in places.items()}


def _of_specs(world: World, specs: Sequence[str]) -> Mapping[str, Dataset]:
    from monkey.apply.desire import desire, spec_files

    wanted = desire(world.project, spec_files(world.project, specs), world.bars)
    return {f"{want.desired.name}: {name}": data for want in wanted for name, data in want.datasets.items()}
