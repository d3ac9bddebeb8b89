"""Datasets in a DVC repository: all that we know of DVC is in this file, and in `dvc_repository`.

DVC's own cache, state and `.dvcignore` are used, under its lock; nothing is added to it, and no work file is touched.
Data that DVC tracks and that is not in the work tree is taken from DVC's cache. Its internals (`dvc_data`) move with
its minor versions: tests hold what is used of them against the real thing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey import origin
from monkey.errors import DatasetElsewhere, DatasetError, DvcMissing
from monkey.spec.project_paths import resolve_in_project
from monkey.store.content.hash_worker import Signature, read_signature
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.datasets.dataset_scan import FileRow, scan_dataset, scan_listed, translate_scan_error

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo

#: What DVC calls the directory of a repository.
DVC = ".dvc"
#: DVC's settings there: its errors show their lines.
_SETTINGS = ("config", "config.local")


def find_dvc_root(path: Path) -> Path | None:
    """Return the root of the DVC repository that the absolute `path` lies in, if any."""
    return next(
        (parent for parent in path.parents if (parent / DVC).is_dir() and (parent / DVC / "config").exists()), None
    )


def check_installed(repo_root: Path) -> None:
    """Raise DvcMissing where DVC is not installed here."""
    if find_spec("dvc") is None:
        raise DvcMissing(
            f"{repo_root} is a DVC repository, and DVC is not installed here", hint=origin.hint_install("dvc")
        )


def hash_tracked(path: Path, repo_root: Path, home: Path) -> Dataset:
    """Return the dataset at the absolute `path`, hashed by DVC; `home`: where this machine remembers hashes.

    Raises DatasetError for what cannot be taken.
    """
    with _repository(repo_root, home) as repo:
        at = os.path.realpath(path)
        if os.path.lexists(path):
            return _in_work_tree(repo, at)
        return _in_cache(repo, str(path))


@contextmanager
def _repository(root: Path, home: Path) -> Iterator[Repo]:
    """Open the repository and hold it; DVC's errors become ours."""
    check_installed(root)
    try:
        from dvc.exceptions import DvcException
        from dvc.lock import LockError

        from monkey.transfer.datasets.dvc_repository import ReadRepo
    except ImportError as exc:
        what = f"{root} is a DVC repository, and DVC cannot be imported here: {exc}"
        raise DvcMissing(what, hint=origin.hint_install("dvc")) from exc
    for name in _SETTINGS:
        try:
            resolve_in_project(root / DVC / name, root)
        except ValueError as exc:
            raise DatasetError(f"{root / DVC / name} is not read: {exc}", hint="write the file itself there") from exc
    try:
        with ReadRepo(root, home) as repo, repo.hold():
            yield repo
    except LockError as exc:
        raise DatasetError(f"the DVC repository {root} is locked", hint="wait for the other dvc command") from exc
    except (DvcException, ImportError) as exc:  # the latter for a cache at a remote whose plugin is not installed
        raise DatasetError(f"DVC says of {root}: {exc}", hint="`dvc status` may tell more") from exc


def _in_work_tree(repo: Repo, at: str) -> Dataset:
    rows = _scan(repo, at)
    md5s = _build(repo, at)
    if {name for name, _ in rows} != md5s.keys():
        name = min({name for name, _ in rows} ^ md5s.keys())
        raise DatasetError(
            f"{Path(at, name)} changed while it was read", hint="wait until nobody writes it any more, and try again"
        )
    return Dataset(at, [name for name, _ in rows], [known for _, known in rows], [md5s[name] for name, _ in rows])


def _scan(repo: Repo, at: str) -> list[FileRow]:
    """Look at the files that DVC would take: it would hang on a pipe, and leave out links to directories."""
    from dvc.fs import localfs

    if not os.path.isdir(at):  # noqa: PTH112
        return scan_dataset(at)
    return scan_listed(at, repo.dvcignore.walk(localfs, at))


def _build(repo: Repo, at: str) -> dict[str, str]:
    """Have DVC hash it, with its state; returns path to MD5."""
    from dvc.fs import localfs
    from dvc_data.hashfile.build import IgnoreInCollectedDirError, build

    try:
        _, _, found = build(repo.cache.local, at, localfs, "md5", ignore=repo.dvcignore)
    except IgnoreInCollectedDirError as exc:
        raise DatasetError(str(exc), hint="move the .dvcignore file out of the dataset") from exc
    except OSError as exc:
        raise translate_scan_error(str(exc.filename or at), exc) from exc
    return _listed(found)


def _listed(found: Any) -> dict[str, str]:
    if found.hash_info.isdir:
        return {"/".join(key): info.value for key, _, info in found}
    return {"": found.hash_info.value}


def _in_cache(repo: Repo, path: str) -> Dataset:
    """Return what a .dvc file or a stage knows of a path that is not in the work tree."""
    from dvc.exceptions import OutputNotFoundError

    try:
        (out,) = repo.find_outs_by_path(path, strict=False)
    except OutputNotFoundError as exc:
        raise DatasetError(f"there is no {path}, and DVC does not know it either", hint="check 'path:'") from exc
    if out.hash_name != "md5":
        raise DatasetError(
            f"{path} was added by a DVC before 3.0 and is not in the work tree", hint="`dvc pull` brings it"
        )
    found = out.get_obj(filter_info=path)
    if found is None:
        raise _pull(path, out)
    rows = sorted(_listed(found).items())
    paths = [out.cache.oid_to_path(md5) for _, md5 in rows]
    return Dataset(
        path, [name for name, _ in rows], [_signature(at, path, out) for at in paths], [md5 for _, md5 in rows], paths
    )


def _signature(at: str, path: str, out: Output) -> Signature:
    try:
        return read_signature(os.stat(at))  # noqa: PTH116
    except OSError as exc:
        raise _pull(path, out) from exc


def _pull(path: str, out: Output) -> DatasetError:
    what = f"{path} is neither in the work tree nor whole in DVC's cache"
    hint = "`dvc pull` brings it from DVC's remote"
    oid = out.hash_info.value
    # Of a part of what DVC tracks, nobody but its listing knows the hash.
    if not oid or os.path.abspath(out.fs_path) != os.path.abspath(path):  # noqa: PTH100
        return DatasetError(what, hint=hint)
    return DatasetElsewhere(what, str(oid), f"{out.stage.path_in_repo} names", hint=hint)
