"""Data that are not here: in a colleague's clone, and in repositories where DVC knows them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.data import SPEC, contents, dvc, fill, objects, oid_of, pulled, site, whole
from tests.acceptance.shop import Shop

pytestmark = pytest.mark.slow

COUNT = "datasets: {d: data}\ncommand: [sh, -c, 'ls -R $MONKEY_DATASET_D | grep -c bin > result.txt', sh, '{i}']\n"


@pytest.fixture
def clone(shop: Shop, store: Path, make_shop: Callable[..., Shop]) -> Callable[[], Shop]:
    """Return a function that makes the clone of a colleague, who trusts us: what git has, and no data."""

    def make() -> Shop:
        made = make_shop("clone")
        shutil.copytree(shop.root / "specs", made.root / "specs")
        if (shop.root / ".dvc").exists():
            shutil.copytree(shop.root / ".dvc", made.root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
            shutil.copy(shop.root / "data.dvc", made.root)
        made.env["DVC_SITE_CACHE_DIR"] = str(site(made.root))
        (made.root / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
        made.run("trust", json.loads(shop.run("trust", "--json").stdout)["own"]["key"], "--name", "colleague")
        return made

    return make


def test_a_clone_without_the_data_takes_what_the_newest_revision_took(
    shop: Shop, store: Path, clone: Callable[[], Shop]
) -> None:
    fill(shop.root / "data", 40)
    shop.spec(COUNT, jobs=1)
    shop.run("apply", "--yes")
    oid = shop.json("plan")["sweeps"][0]["datasets"][0]["hash"]
    other = clone()
    assert "No changes" in other.run("plan").stdout
    other.spec(COUNT, jobs=2)
    plan = other.run("plan").stdout
    assert "1 new" in plan and f"data is not on this machine; taken is {oid}, which revision 1 of sweep took" in plan
    (told,) = other.json("plan")["sweeps"][0]["datasets"]
    assert told == {"name": "d", "hash": oid, "here": False, "bytes": 0, "objects": 0}
    other.run("apply", "--yes")
    other.run("fetch", "sweep")
    assert [path.read_text() for path in other.root.glob("sweep/*/result.txt")] == ["40\n"] * 2
    other.spec(COUNT, jobs=3, name="another")
    assert "which revision 2 of sweep took" in other.run("plan", "specs/another.yaml").stdout
    other.spec(COUNT.replace("d: data", "d: date"), jobs=2)
    said = other.run("plan", code=1).stderr
    assert re.search(r"sweep\.yaml:\d+:\d+: dataset 'd': there is no .*/date", said), "a path that nobody took"
    (store / "files/md5" / oid[:2] / oid[2:]).unlink()
    other.spec(COUNT, jobs=3)
    said = other.run("plan", "specs/sweep.yaml", code=1).stderr
    assert re.search(rf"sweep\.yaml:\d+:\d+: .* the store does not have all of {oid}", said) and "monkey push" in said


@pytest.fixture
def tracked(shop: Shop) -> Shop:
    """Return a shop in a DVC repository that tracks `data`, less what `.dvcignore` names."""
    dvc("init", "-q", "--no-scm", cwd=shop.root)
    fill(shop.root / "data", 30)
    (shop.root / ".dvcignore").write_text("*.tmp\n")
    (shop.root / "data" / "scratch.tmp").write_text("not ours")
    os.mkfifo(shop.root / "data" / "pipe.tmp")
    shop.env["DVC_SITE_CACHE_DIR"] = str(site(shop.root))
    shop.spec(SPEC, jobs=1)
    return shop


def names(root: Path) -> set[str]:
    """Return every path of the work tree, less DVC's and our own directory."""
    found = {path.relative_to(root) for path in root.rglob("*")}
    return {str(path) for path in found if path.parts[0] not in (".dvc", ".monkey")}


@pytest.mark.needs("dvc")
def test_in_a_dvc_repository_dvc_says_what_the_data_is(tracked: Shop, store: Path) -> None:
    before = names(tracked.root)
    oid = oid_of(tracked.run("push").stdout)
    assert whole(store) and len(objects(store)) == 31
    assert names(tracked.root) == before
    assert not (tracked.root / ".dvc" / "cache" / "files").exists(), "nothing is added to DVC's cache"
    (tracked.root / "data" / "pipe.tmp").unlink()
    dvc("add", "-q", "data", cwd=tracked.root)
    assert oid in (tracked.root / "data.dvc").read_text(), "`dvc add` names it the same"


@pytest.mark.needs("dvc")
def test_data_that_only_dvc_s_cache_has_is_taken_from_there(tracked: Shop, store: Path, tmp_path: Path) -> None:
    (tracked.root / "data" / "pipe.tmp").unlink()
    (tracked.root / "data" / "scratch.tmp").unlink()
    expected = contents(tracked.root / "data")
    dvc("add", "-q", "data", cwd=tracked.root)
    shutil.rmtree(tracked.root / "data")
    oid = oid_of(tracked.run("push").stdout)
    assert contents(pulled(store, oid, tmp_path / "room")) == expected
    assert not (tracked.root / "data").exists()
    tracked.spec("datasets: {d: data/3}\ncommand: [python3, -c, 'pass']\noutputs: []\n", jobs=1)
    part = oid_of(tracked.run("push").stdout)
    assert contents(pulled(store, part, tmp_path / "part")) == {
        name[2:]: data for name, data in expected.items() if name.startswith("3/")
    }
    shutil.rmtree(tracked.root / ".dvc" / "cache")
    assert "`dvc pull` brings it" in tracked.run("push", code=1).stderr
    tracked.spec("datasets: {d: other}\ncommand: [python3, -c, 'pass']\noutputs: []\n", jobs=1)
    assert "DVC does not know it either" in tracked.run("push", code=1).stderr


@pytest.mark.needs("dvc")
def test_in_a_dvc_repository_a_clone_takes_what_the_dvc_file_names(tracked: Shop, clone: Callable[[], Shop]) -> None:
    (tracked.root / "data" / "pipe.tmp").unlink()
    dvc("add", "-q", "data", cwd=tracked.root)
    tracked.spec(COUNT, jobs=1)
    other = clone()
    assert "`dvc pull` brings it" in other.run("plan", code=1).stderr, "there is no store to take it from"
    oid = oid_of(tracked.run("push").stdout)
    assert f"taken is {oid}, which data.dvc names" in other.run("plan").stdout
    other.run("apply", "--yes")
    other.run("fetch", "sweep")
    assert [path.read_text() for path in other.root.glob("sweep/*/result.txt")] == ["30\n"]
    assert not (other.root / "data").exists()
    (tracked.root / "data" / "0" / "new.bin").write_text("more")
    dvc("add", "-q", "data", cwd=tracked.root)
    shutil.copy(tracked.root / "data.dvc", other.root / "data.dvc")
    assert "the store does not have all of" in other.run("plan", code=1).stderr
