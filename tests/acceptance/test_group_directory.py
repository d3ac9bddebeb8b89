"""Two people of one group share a directory as a store, whatever their umask says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, Shop, until

pytestmark = [pytest.mark.slow, pytest.mark.needs("unprivileged")]

#: Numbers of accounts that nobody has: the group, and its two members.
GROUP, ANN, BOB = 54400, 54401, 54402


@pytest.fixture
def umask() -> Iterator[None]:
    """Let nobody but the owner write what is made, as most systems do."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a directory of the group."""
    place = Path(tempfile.mkdtemp(prefix="monkey-group-"))
    os.chown(place, -1, GROUP)
    place.chmod(0o2775)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def people(umask: None, shared: Path, make_shop: Callable[..., Shop]) -> list[Shop]:
    """Return the projects of two people, with one store."""
    made = [make_shop(name, user=user, group=GROUP) for name, user in (("ann", ANN), ("bob", BOB))]
    for shop, sweep in zip(made, ("first", "second"), strict=True):
        (shop.root / "monkey.yaml").write_text(
            f"project: shop\nstore: {shared}/store\nproviders: {{local: {{idle_timeout: 1s}}}}\n"
        )
        (shop.root / "data.csv").write_text(sweep * 1000)
        shop.spec("datasets: {data: data.csv}\n", name=sweep, jobs=3)
    return made


def list_narrow(store: Path) -> list[str]:
    """Return what the group may not write, or what is not the group's."""
    found = [path for path in store.rglob("*") if not path.is_symlink()]
    assert len(found) > 50
    wanted = [(path, 0o2070 if path.is_dir() else 0o060) for path in [store, *found]]
    stats = [(path, mode, path.stat()) for path, mode in wanted]
    return [str(path) for path, mode, found in stats if found.st_mode & mode != mode or found.st_gid != GROUP]


def test_both_work_in_a_store_that_one_of_them_made(people: list[Shop], shared: Path) -> None:
    ann, bob = people
    ann.run("apply", "--yes")
    bob.run("apply", "--yes")
    assert bob.states("second") == {"succeeded": 3}
    assert list_narrow(shared / "store") == []
    ann.spec("datasets: {data: data.csv}\n", name="first", jobs=5)
    ann.run("apply", "--yes")
    assert ann.states("first") == {"succeeded": 5}
    assert list_narrow(shared / "store") == []
    assert "the group of" not in bob.run("doctor", code=None).stdout


def test_a_store_that_only_its_owner_may_write_is_told_before_anything_is_sent(
    people: list[Shop], shared: Path
) -> None:
    ann, bob = people
    ann.run("apply", "--yes")
    until(lambda: not ann.agents, "the agent leaves")
    store = shared / "store"
    subprocess.run(["chmod", "-R", "g-ws", str(store)], check=True)
    subprocess.run(["chgrp", "-R", str(ANN), str(store)], check=True)
    os.chown(store, -1, GROUP)
    store.chmod(0o2775)
    before = sorted(store.rglob("*"))
    assert "of the store, cannot be written by this user" in bob.run("push", code=1).stderr
    refused = bob.run("apply", "--yes", code=1).stderr
    assert "of the store, cannot be written by this user" in refused
    assert sorted(store.rglob("*")) == before
    said = bob.run("doctor", code=1).stdout
    assert f"the group of {store} may write it, but not {store}/" in said
    [command] = {re.sub(r"\s+", " ", found) for found in re.findall(r"`(chgrp[^`]*)`", said + refused)}
    subprocess.run(["sh", "-c", command], check=True)
    bob.run("apply", "--yes")
    assert bob.states("second") == {"succeeded": 3}
    assert list_narrow(store) == []


@pytest.mark.needs("mount")
def test_a_read_only_disk_is_no_matter_of_groups(shop: Shop, store: Path) -> None:
    shop.hurry()
    shop.spec(jobs=1)
    shop.run("apply", "--yes")
    until(lambda: not shop.agents, "the agent leaves")
    shop.spec(jobs=2)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, str(store), *MONKEY, "apply", "--yes"]
    done = subprocess.run(command, cwd=shop.root, env=shop.env, capture_output=True, text=True)
    assert "the file system is read-only" in done.stderr
    assert "chgrp" not in done.stderr


def test_a_store_of_one_person_stays_theirs(umask: None, make_shop: Callable[..., Shop]) -> None:
    ann = make_shop("ann", user=ANN, group=GROUP)
    ann.spec(jobs=1)
    ann.run("apply", "--yes")
    store = ann.root / ".monkey/store"
    assert [path for path in [store, *store.rglob("*")] if path.stat().st_mode & 0o022] == []
