"""Datasets that are uploaded, end to end: real processes, real DVC, and the store's own directory as the witness."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.data import SPEC, contents, fill, objects, oid_of, pulled, settle, whole
from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow


@pytest.mark.needs("dvc")
def test_dvc_pulls_what_apply_uploaded(shop: Shop, store: Path, tmp_path: Path) -> None:
    data = fill(shop.root / "data", 50)
    (data / 'ünï"\\.txt').write_text("x")
    (data / "empty").write_bytes(b"")
    (data / "link").symlink_to("empty")
    shop.spec(SPEC, jobs=1)
    plan = shop.json("plan")["sweeps"][0]
    assert plan["upload"]["objects"] == 50 + 2 + 1 + 1  # the link's bytes are there once; the listing; the code
    said = shop.run("apply", "--yes").stdout
    assert "dataset d:" in said and "53 objects uploaded" in said
    assert whole(store) and len(objects(store)) == 53
    oid = plan["datasets"][0]["hash"]
    assert contents(pulled(store, oid, tmp_path / "room")) == contents(data)
    sources = {path.stat().st_ino for path in data.rglob("*")}
    assert not sources & {path.stat().st_ino for path in objects(store).values()}, "stored bytes share no inode"
    again = shop.json("plan")
    assert not again["changes"] and again["sweeps"][0]["upload"] == {"bytes": 0, "objects": 0}


def test_of_ten_thousand_files_one_that_changed_is_sent(shop: Shop, store: Path) -> None:
    data = fill(shop.root / "data", 10_000)
    shop.spec(SPEC, jobs=1)
    shop.run("apply", "--yes")
    before = {oid: path.stat().st_mtime_ns for oid, path in objects(store).items()}
    assert len(before) == 10_001
    shop.run("apply", "--yes")
    assert {oid: path.stat().st_mtime_ns for oid, path in objects(store).items()} == before, "0 bytes the second time"
    (data / "3" / "00003.bin").write_bytes(b"changed")
    plan = shop.json("plan")["sweeps"][0]
    assert [reason["text"] for reason in plan["reasons"]] == ["dataset changed: d, 1 of 10,000 files"]
    assert plan["upload"]["objects"] == 2
    shop.run("apply", "--yes")
    after = {oid: path.stat().st_mtime_ns for oid, path in objects(store).items()}
    new = after.keys() - before.keys()
    assert {oid: after[oid] for oid in before} == before, "what was there was not written again"
    assert (
        len(new) == 2 and hashlib.md5(b"changed").hexdigest() in new and sum(oid.endswith(".dir") for oid in new) == 1
    )


def test_two_projects_with_one_dataset_share_one_copy(make_shop: Callable[..., Shop], tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    for name in ("one", "two"):
        shop = make_shop(name)
        (shop.root / "monkey.yaml").write_text(f"project: {name}\nstore: {shared}\n")
        fill(shop.root / "data", 20)
        shop.spec(SPEC, jobs=1)
        said = shop.run("push").stdout
        assert ("nothing to upload" in said) == (name == "two")
    assert len(objects(shared)) == 21
    assert not (shared / "projects" / "two" / "sweeps").exists(), "push runs nothing"


@pytest.mark.needs("dvc")
def test_a_path_is_pushed_by_itself(shop: Shop, store: Path, tmp_path: Path) -> None:
    """Every file is read once, hashed on its way into the store."""
    data = fill(shop.root / "data", 1200)
    (data / "large").write_bytes(os.urandom(1 << 16) * 100)
    settle(data)
    said = shop.run("push", "--path", "data").stdout
    assert "1,201 files" in said and "in 1,202 objects uploaded" in said
    assert whole(store) and len(objects(store)) == 1202
    assert contents(pulled(store, oid_of(said), tmp_path / "room")) == contents(data)
    assert "nothing to upload" in shop.run("push", "--path", str(data)).stdout
    objects(store)[oid_of(said)].unlink()
    min(objects(store).values()).write_bytes(b"cut")
    large = max(objects(store).values(), key=lambda path: path.stat().st_size)
    (store / "files" / "damaged").mkdir()
    (store / "files" / "damaged" / (large.parent.name + large.name)).touch()
    assert "in 3 objects uploaded" in shop.run("push", "-p", "data").stdout
    assert whole(store) and "nothing to upload" in shop.run("push", "-p", "data", "-p", "data/large").stdout
    (data / "0" / "00000.bin").write_bytes(b"changed")
    assert "in 2 objects uploaded" in shop.run("push", "-p", "data").stdout
    assert shop.run("push", "-p", "data", "specs", code=1).stderr


def test_only_what_the_store_lacked_is_told_as_uploaded(shop: Shop, store: Path) -> None:
    data = fill(shop.root / "data", 3)
    large = os.urandom(1 << 16) * 100
    (data / "large").write_bytes(large)
    (data / "twin").write_bytes((data / "0" / "00000.bin").read_bytes())
    assert "in 5 objects uploaded" in shop.run("push", "-p", "data").stdout
    for path in sorted(data.rglob("*")):
        if path.is_file():
            os.utime(path, ns=(0, 0))
    assert "nothing to upload" in shop.run("push", "-p", "data").stdout
    (data / "0").rename(data / "moved")
    (data / "larger").write_bytes(large)
    assert "bytes in 1 object uploaded" in shop.run("push", "-p", "data").stdout
    assert whole(store)


def test_a_new_path_is_looked_at_while_the_store_is_opened(shop: Shop, store: Path) -> None:
    """Another process finds what a look of our own would; where the store cannot be had, it ends with us."""
    data = fill(shop.root / "data", 40)
    (data / "link").symlink_to("0/00000.bin")
    (data / "名").write_bytes(b"name")
    assert "42 files" in shop.run("push", "-p", "data").stdout and whole(store)
    (data / "dangling").symlink_to("nowhere")
    assert "dangling leads nowhere" in shop.run("push", "-p", "data/../data", "-p", "data/0", code=1).stderr
    data.rename(shop.root / "other")
    assert "dangling leads nowhere" in shop.run("push", "-p", "other", code=1).stderr
    (store / "format").unlink()
    assert "it was moved, removed" in shop.run("push", "-p", "other", code=1).stderr
    assert not shop.processes("copier.py")


def test_holes_and_cut_objects_heal(shop: Shop, store: Path) -> None:
    fill(shop.root / "data", 40)
    shop.spec(SPEC, jobs=1)
    shop.run("push")
    first, second, *_ = sorted(oid for oid in objects(store) if not oid.endswith(".dir"))
    listing = next(path for oid, path in objects(store).items() if oid.endswith(".dir"))
    objects(store)[first].unlink()
    objects(store)[second].write_bytes(b"cut")
    listing.write_bytes(b"[")
    assert "3 objects uploaded" in shop.run("push").stdout
    assert whole(store) and len(objects(store)) == 41


def test_an_object_that_rots_at_its_size_is_found_by_an_agent_and_sent_again(shop: Shop, store: Path) -> None:
    fill(shop.root / "data", 40)
    shop.spec(SPEC, jobs=1)
    shop.run("push")
    rotten = next(path for oid, path in objects(store).items() if not oid.endswith(".dir"))
    rotten.write_bytes(b"\0" * rotten.stat().st_size)
    assert "is damaged in the store" in shop.run("apply", "--yes", code=1).stdout
    assert "in 1 object uploaded" in shop.run("push").stdout
    assert whole(store) and not list(store.glob("files/damaged/*"))
    assert "nothing to upload" in shop.run("push").stdout


#: How often an upload is killed: a few times, or for minutes with MONKEY_LONG=1.
KILLS = 20 if "MONKEY_LONG" in os.environ else 5


@pytest.mark.parametrize("words", [["push"], ["push", "--path", "data"]], ids=["specs", "path"])
@pytest.mark.needs("dvc")
def test_an_upload_that_is_killed_goes_on(shop: Shop, store: Path, tmp_path: Path, words: list[str]) -> None:
    """kill -9 at random moments: never a torn object, never a listing before its files."""
    data = fill(shop.root / "data", 700, 2000)
    (data / "large").write_bytes(os.urandom(1 << 16) * 600)
    expected = contents(data)
    shop.spec(SPEC, jobs=1)
    shop.run(*words)
    (oid,) = (oid for oid in objects(store) if oid.endswith(".dir"))
    cut_short, dice = 0, random.Random(4)
    lasts = 1.0
    for moment in range(KILLS):
        shutil.rmtree(store / "files")
        shutil.rmtree(Path(shop.env["XDG_CACHE_HOME"]), ignore_errors=True)
        process = shop.start(*words)
        time.sleep(dice.uniform(0.1, 1.0) * lasts)
        process.kill()
        process.communicate()
        until(lambda: not shop.processes("copier.py"), "the processes that copy end with their parent")
        left = objects(store)
        assert whole(store), f"moment {moment}: an object is torn"
        assert oid not in left or len(left) == 702, f"moment {moment}: a listing before its files"
        cut_short += len(left) < 702
        kept = {name: path.stat().st_ino for name, path in left.items()}
        began = time.monotonic()
        shop.run(*words)
        lasts = time.monotonic() - began
        if words == ["push"]:  # a path's files are copied while they are hashed, whatever was there
            assert {name: objects(store)[name].stat().st_ino for name in kept} == kept, "what is up is never sent again"
        assert whole(store) and len(objects(store)) == 702
    assert contents(pulled(store, oid, tmp_path / "room")) == expected
    assert cut_short >= KILLS // 4, "the kills came too late to say anything"


def test_a_dataset_that_is_edited_meanwhile_is_refused(shop: Shop, store: Path) -> None:
    """Somebody writes all the time: whatever is stored is whole, and no listing says that it is a dataset."""
    fill(shop.root / "data", 2000, 3000)
    shop.spec(SPEC, jobs=1)
    writer = (
        "import itertools, pathlib\nfor n in itertools.count(): pathlib.Path('data/5/01995.bin').write_bytes(b'%d' % n)"
    )
    with subprocess.Popen([sys.executable, "-c", writer], cwd=shop.root) as process:
        try:
            done = shop.run("push", code=1)
        finally:
            process.kill()
    assert re.search(r"data/5/01995\.bin (changed|vanished)", done.stderr) and "hint: wait until" in done.stderr
    assert not any(oid.endswith(".dir") for oid in objects(store)) and whole(store)


def test_a_hostile_tree_is_refused_before_anything_is_uploaded(shop: Shop, store: Path) -> None:
    fill(shop.root / "data", 5)
    os.mkfifo(shop.root / "data" / "pipe")
    shop.spec(SPEC, jobs=1)
    done = shop.run("apply", "--yes", code=1)
    assert re.search(
        r"specs/sweep\.yaml:\d+:\d+: dataset 'd': expected a file at .*/data/pipe, found a pipe", done.stderr
    )
    assert not store.exists()


def test_a_directory_is_kept_and_makes_room_for_a_user_who_is_not_root(
    make_shop: Callable[..., Shop], require: Callable[[str], str]
) -> None:
    """Root may move directories that cannot be written; others may not."""
    require("unprivileged")
    shop = make_shop("person", user=54323 if os.geteuid() == 0 else None)
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 1s, cache_size: 1kB}}\n")
    data = shop.root / "data"
    (data / "deep").mkdir(parents=True)
    trees = Path(shop.env["XDG_CACHE_HOME"]) / "monkey/datasets/trees"
    for number in range(3):
        (data / "deep/x").write_text(str(number) * 4096)
        (data / "y").write_text(str(number) * 4096)
        shop.spec("command: [sh, -c, 'cat $MONKEY_DATASET_D/deep/x > result.txt']\ndatasets: {d: data}\n", jobs=1)
        shop.run("apply", "--yes")
        assert shop.states() == {"succeeded": 1}
        until(lambda: not shop.agents, "the agent leaves")
    assert len([path for path in trees.iterdir() if path.is_dir()]) < 3, "what no job uses has made room"
