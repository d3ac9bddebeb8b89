"""Datasets that are in the store and not on this machine, as in CI or a clone without the data: their hashes.

In a DVC repository, the `.dvc` file or `dvc.lock` names the hash. Elsewhere the sweep's newest revision does, if it
took the same path. Else the newest revisions of the project's other sweeps do, if all that took the path name the same
hash. A path that no revision took is a mistake as ever: monkey guesses nothing. A plan that uses such a hash says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monkey.errors import MonkeyError, SpecError
from monkey.protocol.sweeps.sweep_log import list_sweeps, read_sweep
from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.mistakes import MistakesError
from monkey.transfer.datasets.dataset import DIR
from monkey.transfer.datasets.dataset_upload import is_stored

if TYPE_CHECKING:
    from monkey.apply.world.world import World
    from monkey.protocol.sweeps.revision import Revision
    from monkey.spec.sweep.models import Spec
    from monkey.store.store_port import Store


@dataclass(frozen=True)
class NamedDataset:
    """A dataset's hash, and the words for people that say what names it: "data.dvc names"."""

    oid: str
    by: str


@dataclass(frozen=True)
class AbsentDataset:
    """A dataset of a spec that is not on this machine."""

    path: str
    named: NamedDataset
    #: Returns the error, with the spec's line, for a message and a hint.
    refuse: Callable[[str, str], MonkeyError]

    @property
    def is_file(self) -> bool:
        """Return whether the dataset is a single file."""
        return not self.named.oid.endswith(DIR)

    def words(self, name: str) -> str:
        """Return the note on the dataset for people; `name`: its name in the spec."""
        return f"dataset {name}: {self.path} is not on this machine; taken is {self.named.oid}, which {self.named.by}"


#: (sweep, path) to the hash in the sweep's newest revision; ("", path) to the hash that all sweeps with it agree on.
Recalled = Mapping[tuple[str, str], NamedDataset]


async def recall_datasets(world: World, specs: Iterable[Spec]) -> Recalled | None:
    """Return the hashes that revisions name for paths of the specs that do not exist here; None without a store.

    Raises StoreError. It reads revisions only where a dataset is absent.
    """
    if world.store is None:
        return None
    absent = {path for spec in specs for path in spec.datasets.values() if not _is_here(world, path)}
    found: dict[tuple[str, str], NamedDataset] = {}
    votes: dict[str, dict[str, NamedDataset]] = {path: {} for path in absent}
    for sweep in await list_sweeps(world.at, world.keys) if absent else ():
        state = await read_sweep(world.at, world.keys, world.signers, sweep)
        if state.revision is not None:
            for path, oid in _taken(state.revision):
                if path in absent:
                    named = NamedDataset(oid, f"revision {state.revision_at} of {sweep} took ({_when(state.revision)})")
                    found[sweep, path] = votes[path][oid] = named
    return {**{("", path): one for path, named in votes.items() if len(named) == 1 for one in named.values()}, **found}


def _is_here(world: World, path: str) -> bool:
    return os.path.lexists(world.project.root / path)


def _taken(revision: Revision) -> Sequence[tuple[str, str]]:
    """Return path and hash of each dataset of the revision; the paths are in its spec's text."""
    from monkey.spec.sweep.datasets import parse_datasets

    if not revision.recipe.datasets:
        return ()
    try:
        data: Any = parse_document(revision.spec_text, revision.source).data
        paths = parse_datasets(data.get("datasets", {}))
    except (SpecError, MistakesError, AttributeError):
        return ()  # of another monkey, or made by hand: nothing that could be relied on
    return [(paths[name], oid) for name, oid in revision.recipe.datasets.items() if name in paths]


def _when(revision: Revision) -> str:
    return f"{revision.author}, {revision.at[:10]}" if revision.author else revision.at[:10]


async def check_held(store: Store, name: str, absent: AbsentDataset) -> None:
    """Raise the absent dataset's error if the store does not have all of it. Raises StoreError."""
    if not await is_stored(store, absent.named.oid):
        raise absent.refuse(
            f"dataset {name!r}: there is no {absent.path} here, and the store does not have all of "
            f"{absent.named.oid}, which {absent.named.by}",
            "`monkey push` where the data is; or bring it here (`dvc pull`, if DVC tracks it)",
        )
