"""Datasets, end to end: real processes, real DVC, and the store's own directory as the witness."""

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

from tests.acceptance.shop import Shop, until

SPEC = "datasets: {d: data}\ncommand: [python3, -c, 'pass']\noutputs: []\n"
LISTING = re.compile(r"\b[0-9a-f]{32}\.dir\b")


def fill(root: Path, files: int, size: int = 100) -> Path:
    """Make a tree of files, each with content of its own."""
    for n in range(files):
        path = root / f"{n % 10}" / f"{n:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(b"%d" % n).digest() * (size // 32 + 1))
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below, and its bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def objects(store: Path) -> dict[str, Path]:
    """Return what lies under `files/md5` by MD5, as the file system has it."""
    return {path.parent.name + path.name: path for path in (store / "files/md5").rglob("*") if path.is_file()}


def whole(store: Path) -> bool:
    """Tell whether every object's bytes are those of its name."""
    return all(
        hashlib.md5(path.read_bytes()).hexdigest() == oid.removesuffix(".dir") for oid, path in objects(store).items()
    )


def site(root: Path) -> Path:
    """Return where DVC keeps what it shares between repositories: beside this one, or it would be code."""
    return root.with_name(f"{root.name}.dvc-site")


def dvc(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real DVC."""
    # It keeps a cache of listings by URL in a place of its own, which would answer in a store's stead.
    env = {**os.environ, "DVC_SITE_CACHE_DIR": str(site(cwd)), "DVC_NO_ANALYTICS": "1"}
    words = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"dvc {' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"
    return done


def pulled(store: Path, oid: str, room: Path) -> Path:
    """Have DVC, in a repository of its own, pull this hash from the store; DVC verifies what it pulls."""
    if not room.exists():
        room.mkdir(parents=True)
        dvc("init", "-q", "--no-scm", cwd=room)
        remote = f"    url = {store}\n    verify = true\n"
        config = f"[core]\n    no_scm = True\n    remote = store\n['remote \"store\"']\n{remote}"
        (room / ".dvc" / "config").write_text(config)
    for left in (room / ".dvc/cache", site(room), room / "data"):
        shutil.rmtree(left, ignore_errors=True)
    (room / "data.dvc").write_text(f"outs:\n- md5: {oid}\n  hash: md5\n  path: data\n")
    dvc("pull", "-q", cwd=room)
    return room / "data"


@pytest.fixture
def store(shop: Shop) -> Path:
    """Return where the shop's store is."""
    return shop.root / ".monkey" / "store"


def oid_of(output: str) -> str:
    """Return the hash that `monkey push` told."""
    (found,) = LISTING.findall(output)
    return found


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


def test_a_path_is_pushed_by_itself(shop: Shop, store: Path, tmp_path: Path) -> None:
    """Every file is read once, hashed on its way into the store."""
    data = fill(shop.root / "data", 1200)
    (data / "large").write_bytes(os.urandom(1 << 16) * 100)
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


@pytest.mark.slow
def test_an_upload_that_is_killed_goes_on(shop: Shop, store: Path, tmp_path: Path) -> None:
    """kill -9 at random moments: never a torn object, never a listing before its files."""
    data = fill(shop.root / "data", 700, 2000)
    (data / "large").write_bytes(os.urandom(1 << 16) * 600)
    expected = contents(data)
    shop.spec(SPEC, jobs=1)
    shop.run("push")
    (oid,) = (oid for oid in objects(store) if oid.endswith(".dir"))
    cut_short, dice = 0, random.Random(4)
    lasts = 1.0
    for moment in range(KILLS):
        shutil.rmtree(store / "files")
        shutil.rmtree(Path(shop.env["XDG_CACHE_HOME"]), ignore_errors=True)
        process = shop.start("push")
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
        shop.run("push")
        lasts = time.monotonic() - began
        assert {name: objects(store)[name].stat().st_ino for name in kept} == kept, "what is up is never sent again"
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


COUNT = "datasets: {d: data}\ncommand: [sh, -c, 'ls -R $MONKEY_DATASET_D | grep -c bin > result.txt', sh, '{i}']\n"


@pytest.fixture
def clone(shop: Shop, store: Path, make_shop: Callable[..., Shop]) -> Callable[[], Shop]:
    """Return a function that makes a colleague's clone: what git has, and no data."""

    def make() -> Shop:
        made = make_shop("clone")
        shutil.copytree(shop.root / "specs", made.root / "specs")
        if (shop.root / ".dvc").exists():
            shutil.copytree(shop.root / ".dvc", made.root / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
            shutil.copy(shop.root / "data.dvc", made.root)
        made.env["DVC_SITE_CACHE_DIR"] = str(site(made.root))
        (made.root / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
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


def test_in_a_dvc_repository_dvc_says_what_the_data_is(tracked: Shop, store: Path) -> None:
    before = names(tracked.root)
    oid = oid_of(tracked.run("push").stdout)
    assert whole(store) and len(objects(store)) == 31
    assert names(tracked.root) == before
    assert not (tracked.root / ".dvc" / "cache" / "files").exists(), "nothing is added to DVC's cache"
    (tracked.root / "data" / "pipe.tmp").unlink()
    dvc("add", "-q", "data", cwd=tracked.root)
    assert oid in (tracked.root / "data.dvc").read_text(), "`dvc add` names it the same"


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
