"""The project's store, opened: the one that was there before, or none."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from monkey.apply.trust.endpoints import check_endpoints, list_store_endpoints
from monkey.apply.world.known_stores import KnownStores
from monkey.errors import OneName, PlanError, StoreError, StoreMissing, StoreRefused
from monkey.fleet.user_directories import locate_state_home, open_cache_home
from monkey.spec.project.project import STORE_VARIABLE, Project
from monkey.spec.yaml.mistakes import Mistake
from monkey.store.folded_names import check_names
from monkey.store.open import check_free_place, locate_url, open_store
from monkey.store.store_port import Store
from monkey.transfer.code.git_files import ask_git, find_work_tree

#: Names by which a disk shows whether it tells upper from lower case, and forms of Unicode.
_SAMPLES = ("a", "A", "\u00e9", "e\u0301")


def locate_project_store(project: Project) -> str:
    """Return where the project's store is. Raises SpecError, with the line of monkey.yaml, where that is no place."""
    try:
        return locate_url(project.store)
    except StoreError as exc:
        if project.chosen.get("store") == STORE_VARIABLE:
            raise type(exc)(f"{STORE_VARIABLE}: {exc.message}", hint=exc.hint) from exc
        file = project.read_document()
        at = ("store", "url") if isinstance(file.data["store"], dict) else ("store",)
        raise file.error([Mistake(at, exc.message, exc.hint)]) from exc


def locate_trusted_store(project: Project) -> str:
    """Return where the project's store is, if it may get credentials. Raises EndpointRefused besides."""
    url = locate_project_store(project)
    check_endpoints(project, list_store_endpoints(project))
    return url


def refuse_tracked_store(url: str, root: Path) -> None:
    """Raise StoreRefused where the git repository of the project at `root` brings files of the store along.

    A stranger's repository could name any result finished, and have any link where a directory should be.
    """
    top = find_work_tree(root)
    place = os.path.realpath(url)
    if "://" in url or top is None or not Path(place).is_relative_to(top):
        return
    below = os.path.relpath(place, top)
    try:
        tracked = ask_git(top, "ls-files", "-z", "--recurse-submodules", "--", f":(literal){below}").split("\0")[0]
    except PlanError:  # git is missing, or refuses the checkout of another user: no clone, and told where git is needed
        return
    if tracked:
        raise StoreRefused(
            f"expected a store of yours at {url}, found one that is part of the repository: git tracks {tracked!r}",
            hint=f"if you put it there, run `git rm -r --cached {shlex.quote(below)}` in {top}: a clone begins its own",
        )


def check_spelling(url: str, prefix: str, name: str) -> None:
    """Raise OneName where a store in a directory takes `name` for another that it has at `prefix`."""
    place = Path(url, prefix)
    with contextlib.suppress(OSError):  # it has nothing there, or is no directory
        for path in place.iterdir():
            other = path.name
            if other != name and other.lower() == name.lower() and path.samefile(place / name):
                raise OneName(other, name, url)


def find_folding_places(project: Project) -> Iterator[Path]:
    """Yield the project, its store and the directories of this user's agents, as far as they take two names for one.

    Those that are not there, or that this user may not write to, are left out. Raises FleetError, StoreError.
    """
    state = locate_state_home() / "monkey"
    for place in (project.root, Path(locate_project_store(project)), state, open_cache_home()):
        try:
            check_names(_SAMPLES, str(place))
        except OneName:
            yield place
        except OSError:
            continue


async def open_known(url: str, memo: KnownStores, *, begin: bool) -> Store | None:
    """Return the store at `url`; None where none ever was, and none is to be created.

    Raises StoreMissing where there was one and now is none or another, StoreRefused where git tracks it, and whatever
    `open_store` raises.
    """
    refuse_tracked_store(url, memo.root)
    try:
        store = await open_store(url, begin=begin and not memo.expects(url))
    except StoreMissing as exc:
        if memo.expects(url):
            raise memo.vanished(exc) from exc
        if begin:
            raise
        await check_free_place(url)
        return None
    try:
        memo.meet(url, store.id)
    except BaseException:
        await store.close()
        raise
    return store


async def open_begun(url: str, memo: KnownStores) -> Store:
    """Return the store at `url`, which is created where none ever was. Raises as `open_known`."""
    store = await open_known(url, memo, begin=True)
    assert store is not None
    return store
