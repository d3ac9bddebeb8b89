"""The datasets of the specs: hashed when a plan is made, compared with the store, sent when it is applied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.apply.world.absent_datasets import AbsentDataset, NamedDataset, Recalled
from monkey.errors import CorruptObject, DatasetElsewhere, DatasetError, DvcMissing, KeyMissing, MonkeyError
from monkey.fleet.user_directories import open_cache_home
from monkey.plan.desired import UploadSize
from monkey.spec.yaml.mistakes import Mistake
from monkey.store.content.objects import spell_md5_key
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.store_port import Store
from monkey.transfer.datasets import dvc_files
from monkey.transfer.datasets.dataset import DIR, Dataset, count_changed_files, read_listing
from monkey.transfer.datasets.dataset_upload import find_missing_files, upload_dataset
from monkey.transfer.datasets.hashing import hash_dataset
from monkey.transfer.datasets.missing_files import list_all_files

if TYPE_CHECKING:
    from monkey.plan.observed import ObservedSweep
    from monkey.spec.sweep.models import Spec

#: The hint for a path at which nothing is, and whose hash neither DVC nor a revision names.
_NOWHERE = "paths begin at the project's root; data of another machine must have been applied there, or tracked by DVC"


def _read_pointer(path: Path) -> bytes | None:
    """Return the file with which DVC tracks the data at `path`; None where there is none."""
    try:
        return path.with_name(f"{path.name}.dvc").read_bytes()
    except OSError:
        return None


def locate_hash_cache() -> Path:
    """Return the directory in which this machine remembers the hashes of data."""
    return open_cache_home() / "datasets"


class DatasetLoader:
    """The datasets of one command: each path is hashed once, however many specs name it."""

    def __init__(
        self,
        root: Path,
        begin: Begin = show_no_progress,
        recalled: Recalled | None = None,
        besides: Path | None = None,
    ) -> None:
        """Take paths relative to the project's root; `recalled`: see `absent_datasets.recall_datasets`.

        `besides`: another root, for what is not at the first. It is the work tree, where the first is a tree of git's.
        """
        self._root, self._begin, self._recalled, self._besides = root, begin, recalled, besides
        self._known: dict[Path, Dataset] = {}

    def of(self, spec: Spec) -> tuple[dict[str, Dataset], dict[str, AbsentDataset]]:
        """Return the spec's datasets that are on this machine, by name, and those that are not, by name.

        Raises SpecError, with the line, for those that cannot be taken.
        """
        found, absent, mistakes = dict[str, Dataset](), dict[str, AbsentDataset](), []
        for name, path in spec.datasets.items():
            try:
                found[name] = self._at(self._place(path), name)
            except DatasetError as exc:
                if (named := self._named(spec, path, exc)) is not None:
                    absent[name] = AbsentDataset(path, named, partial(_refuse, spec, name))
                    continue
                hint = exc.hint if self._is_known(path) else _NOWHERE
                mistakes.append(Mistake(("datasets", name, "path"), f"dataset {name!r}: {exc.message}", hint))
        if mistakes:
            raise spec.document.error(mistakes)
        return found, absent

    def _is_known(self, path: str) -> bool:
        """Return whether anything is at the path, or it lies in a DVC repository."""
        place = self._place(path)
        return os.path.lexists(place) or dvc_files.find_dvc_root(place) is not None

    def _place(self, path: str) -> Path:
        """Return where the data is to be; not in the other root, if another version of it is tracked there by DVC."""
        here, there = self._root / path, None if self._besides is None else self._besides / path
        if there is None or os.path.lexists(here) or not os.path.lexists(there):
            return here
        return there if _read_pointer(here) == _read_pointer(there) else here

    def _named(self, spec: Spec, path: str, exc: DatasetError) -> NamedDataset | None:
        """Return the hash of the absent dataset at `path`; None where the path exists, or nothing names a hash."""
        # Without DVC, the `.dvc` file is not read, and a revision may name older data than it does.
        if self._recalled is None or os.path.lexists(self._place(path)) or isinstance(exc, DvcMissing):
            return None
        if isinstance(exc, DatasetElsewhere):
            return NamedDataset(exc.oid, exc.by)
        return self._recalled.get((spec.name, path)) or self._recalled.get(("", path))

    def _at(self, path: Path, name: str) -> Dataset:
        if path not in self._known:
            self._known[path] = hash_dataset(path, locate_hash_cache(), self._begin(f"{name}: hashing", 0, 0))
        return self._known[path]


def _refuse(spec: Spec, name: str, message: str, hint: str) -> MonkeyError:
    return spec.document.error([Mistake(("datasets", name, "path"), message, hint)])


def check_dvc(root: Path, spec: Spec) -> None:
    """Raise SpecError, with the line, where a dataset lies in a DVC repository and DVC is not installed here."""
    for name, path in spec.datasets.items():
        if (repository := dvc_files.find_dvc_root(Path(root, path))) is None:
            continue
        try:
            dvc_files.check_installed(repository)
        except DvcMissing as exc:
            raise _refuse(spec, name, f"dataset {name!r}: {exc.message}", exc.hint or "") from exc


def measure_dataset(dataset: Dataset) -> UploadSize:
    """Return the size of the whole dataset, in bytes and objects."""
    lacks = list_all_files(dataset)
    return UploadSize(lacks.bytes, lacks.objects)


async def find_lacking_objects(store: Store, datasets: Iterable[Dataset]) -> dict[str, UploadSize]:
    """Return the bytes and objects that the store lacks of each dataset, by the dataset's hash. Raises StoreError."""
    distinct = list({dataset.oid: dataset for dataset in datasets}.values())
    found = await find_missing_files(store, distinct)
    return {dataset.oid: UploadSize(lacks.bytes, lacks.objects) for dataset, lacks in zip(distinct, found, strict=True)}


async def describe_changes(store: Store, seen: ObservedSweep, datasets: Mapping[str, Dataset]) -> dict[str, str]:
    """Return by name how much of each changed directory among a sweep's datasets changed: "3 of 10,000 files"."""
    before = seen.applied.recipe.datasets if seen.applied else {}
    found = {}
    for name, dataset in datasets.items():
        old = before.get(name, dataset.oid)
        if old != dataset.oid and old.endswith(DIR) and not dataset.is_file:
            try:
                files = read_listing(await store.get(spell_md5_key(old)), old)
            except (KeyMissing, CorruptObject):
                continue  # only the words are lost
            now = dict(zip(dataset.names, dataset.md5s, strict=True))
            found[name] = f"{count_changed_files(files, now):,} of {len(files):,} files"
    return found


async def send_datasets(
    store: Store, datasets: Mapping[str, Dataset], begin: Begin = show_no_progress
) -> dict[str, UploadSize]:
    """Send what the store lacks of these datasets; return the bytes and objects that were sent, by name.

    Raises DatasetError where a dataset changed since it was hashed, and StoreError.
    """
    sent = {}
    for name, dataset in datasets.items():
        (lacks,) = await find_missing_files(store, [dataset])
        if lacks.objects:
            await upload_dataset(store, dataset, lacks, begin(f"{name}: uploading", lacks.bytes, lacks.objects))
        sent[name] = UploadSize(lacks.bytes, lacks.objects)
    return sent
