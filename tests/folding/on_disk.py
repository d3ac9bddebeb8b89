"""Tests on a disk that does not tell upper from lower case, nor Unicode forms: FOLDING_DISK names it.

`test_folding.py` runs them in a machine that has such a disk. On a Mac, any disk will do:
`pytest tests/folding/on_disk.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.errors import JobFailed, OneName
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryStore
from monkey.store.open import open_store
from monkey.transfer.code.code_snapshot import extract_snapshot
from monkey.transfer.download import Download, DownloadFile
from monkey.transfer.fetch_directory import FETCHED, FetchDirectory
from monkey.transfer.globs import GlobPatterns
from monkey.untrusted_files import UntrustedFile
from monkey_agent.cache.cache import Cache
from monkey_agent.checkpoints.checkpoint_manifest import CheckpointManifest, FileEntry
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.restore import restore_checkpoint
from monkey_agent.datasets.dataset_pool import DatasetPool
from monkey_agent.uploads.job_outputs import OutputUpload, resolve_twins
from tests.acceptance.shop import Shop
from tests.loops import Run
from tests.unit.monkey_agent.trees import send

pytestmark = pytest.mark.slow

#: Names that such a disk takes for one.
TWINS = {
    "case": ("Model.pt", "model.pt"),
    "form": ("caf\u00e9.pt", "cafe\u0301.pt"),
    "both": ("runs/\u00c9t\u00e9/a", "Runs/e\u0301te\u0301/a"),
    "directories": ("Cats/1.png", "cats/2.png"),
    "file and directory": ("data", "Data/1"),
}
twins = pytest.mark.parametrize("pair", TWINS.values(), ids=list(TWINS))
JOB = "0123456789abcdef"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return an empty directory on the disk."""
    found = Path(tempfile.mkdtemp(dir=os.environ.get("FOLDING_DISK", tmp_path)))
    (found / "a").touch()
    assert (found / "A").exists(), f"the disk of {found} tells upper from lower case"
    (found / "a").unlink()
    return found


@pytest.fixture
def make_shop(tmp_path: Path, disk: Path) -> Iterator[Callable[[str], Shop]]:
    """Return a function that makes a project of that name, on another disk; its store is on this one."""
    made: list[Shop] = []

    def make(project: str) -> Shop:
        shop = Shop(tmp_path / f"shop-{len(made)}")
        (shop.root / "monkey.yaml").write_text(
            f"project: {project}\nstore: {disk}/store\nproviders: {{local: {{idle_timeout: 1s}}}}\n"
        )
        made.append(shop)
        return shop

    yield make
    for shop in made:
        shop.kill_all()


def check_words(message: str, pair: tuple[str, str], *, where: Path | str = "") -> None:
    """Hold that an error names both, and where."""
    parts = [ascii(part) for name in pair for part in (name, name.partition("/")[0])]
    assert any(part in message for part in parts[:2]), message
    assert any(part in message for part in parts[2:]), message
    assert str(where) in message
    assert "Unicode" in message


@twins
def test_two_files_of_one_name_are_not_fetched(disk: Path, pair: tuple[str, str]) -> None:
    store = MemoryStore()
    files = [DownloadFile(f"out/{name}", name, hashlib.sha256(name.encode()).hexdigest()) for name in pair]

    async def scenario() -> None:
        for name in pair:
            await store.put(f"out/{name}", name.encode())
        with pytest.raises(OneName) as caught:
            await Download(store, FetchDirectory(disk / "to")).run(files)
        check_words(caught.value.message, pair, where=disk / "to")

    asyncio.run(scenario())
    assert [path.name for path in (disk / "to").iterdir()] == [FETCHED]


def test_files_of_different_names_are_fetched(disk: Path) -> None:
    store, names = MemoryStore(), ["Model.pt", "model.pth", "run/a", "run/b"]

    async def scenario() -> int:
        for name in names:
            await store.put(f"out/{name}", name.encode())
        files = [DownloadFile(f"out/{name}", name, hashlib.sha256(name.encode()).hexdigest()) for name in names]
        return (await Download(store, FetchDirectory(disk / "to")).run(files)).fetched

    assert asyncio.run(scenario()) == len(names)


@twins
def test_code_whose_names_fall_together_is_refused(disk: Path, tmp_path: Path, pair: tuple[str, str]) -> None:
    archive = tmp_path / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in pair:
            member = tarfile.TarInfo(name)
            member.size = len(name.encode())
            tar.addfile(member, io.BytesIO(name.encode()))
    with pytest.raises(OneName) as caught:
        extract_snapshot(archive, disk / "into", "0" * 64)
    check_words(caught.value.message, pair, where=disk)
    assert not list(disk.iterdir())


@twins
def test_a_dataset_whose_names_fall_together_is_refused(disk: Path, run: Run, pair: tuple[str, str]) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, {name: name.encode() for name in pair})
        pool = DatasetPool(store, Cache(disk / "cache"))
        with pytest.raises(JobFailed) as caught:
            await pool.use(oid)
            await pool.look(oid)
        check_words(caught.value.message, pair, where=disk)

    run(scenario())


@twins
def test_a_checkpoint_whose_names_fall_together_is_kept_for_another_machine(
    disk: Path, run: Run, pair: tuple[str, str]
) -> None:
    async def scenario() -> None:
        store, keys, files = MemoryStore(), Keys("project"), {}
        for name in pair:
            data = name.encode()
            files[name] = FileEntry(hashlib.sha256(data).hexdigest(), len(data), 0, 0o600)
            await store.put(keys.checkpoint_file(JOB, 1, files[name].sha256), data)
        await store.put(keys.checkpoint(JOB, 1, 1), CheckpointManifest(files).encode())
        held = len(await store.list(""))
        (disk / "space").mkdir()
        kept = LocalCheckpoints(disk)
        with pytest.raises(OneName) as caught:
            await restore_checkpoint(store, keys, kept, JOB, f"{disk}/space")
        check_words(caught.value.message, pair, where=disk)
        assert len(await store.list("")) == held

    run(scenario())


def test_outputs_are_found_by_the_form_in_which_a_disk_keeps_names(disk: Path) -> None:
    for name in ("caf\u00e9.npz", "cafe\u0301 2.npz"):
        (disk / name).touch()
    for pattern in ("caf\u00e9*.npz", "cafe\u0301*.npz"):
        globs = GlobPatterns([pattern])
        assert all(globs.match(name) for name in os.listdir(disk)), pattern  # noqa: PTH208


def test_outputs_whose_names_fall_together_in_the_store_are_all_kept_and_named(
    make_shop: Callable[[str], Shop], disk: Path, tmp_path: Path
) -> None:
    shop = make_shop("shop")
    script = "echo one >Model.pt; echo two >model.pt; mkdir out; echo three >out/caf\u00e9; echo four >out/cafe\u0301"
    shop.spec(f"command: [sh, -c, '{script}']\nparameters: {{}}\noutputs: ['*.pt', out/]\n")
    shop.run("apply", code=1)
    (job,) = shop.json("list", "jobs", "sweep")
    told = shop.json("info", job["job"])["attempts"][-1]["reason"]
    # They are sent beside each other: either pair may be met first.
    pairs = [TWINS["case"], ("out/caf\u00e9", "out/cafe\u0301")]
    check_words(told, next((pair for pair in pairs if ascii(pair[0]) in told), pairs[0]), where=disk)
    shop.run("fetch", job["job"], "-o", str(tmp_path / "here"))
    kept = [path for path in (tmp_path / "here").rglob("*") if path.is_file() and FETCHED not in path.name]
    assert sorted(path.read_text().strip() for path in kept) == ["four", "one", "three", "two"]
    assert {"Model.pt", "out/caf\u00e9"} & {path.relative_to(tmp_path / "here").as_posix() for path in kept}
    left = [path for path in disk.rglob("outputs/*") if path.is_dir() and path.name != "out"]
    assert not left, "the look for twins left something in the store"


def test_outputs_in_directories_that_fall_together_are_all_kept(disk: Path, tmp_path: Path, run: Run) -> None:
    made = ["A/x", "A/X", "a/x", "a/X", "b", "B/c"]
    for number, name in enumerate(made):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))

    async def scenario() -> None:
        store = await open_store(str(disk / "store"), begin=True)
        found = {name: UntrustedFile(str(tmp_path), name) for name in made}
        told = [why async for why in resolve_twins(store, "out/", found)]
        assert len(told) == 4
        await OutputUpload(store, "out/").send(found)
        kept = [await store.get(item.key) for item in await store.list("out/")]
        assert sorted(kept) == [str(number).encode() for number in range(len(made))]
        assert [why async for why in resolve_twins(store, "out/", found)] == []
        await store.close()

    run(scenario())


def test_two_sweeps_whose_names_fall_together_are_refused(make_shop: Callable[[str], Shop], disk: Path) -> None:
    shop = make_shop("shop")
    shop.spec(jobs=1, name="Digits")
    shop.run("apply")
    (shop.root / "specs/Digits.yaml").unlink()
    shop.spec(jobs=2, name="digits")
    for verb in ("plan", "apply"):
        told = shop.run(verb, code=1).stderr
        check_words(told, ("Digits", "digits"), where=disk)
    assert {one["name"] for one in shop.json("status")["sweeps"]} == {"Digits"}


def test_two_new_sweeps_whose_names_fall_together_are_refused(make_shop: Callable[[str], Shop], disk: Path) -> None:
    shop = make_shop("shop")
    shop.spec(jobs=1, name="Digits")
    shop.spec(jobs=2, name="digits")
    shop.run("apply", code=1)
    told = shop.run("apply", code=1).stderr
    check_words(told, ("Digits", "digits"), where=disk)
    assert [one["name"] for one in shop.json("status")["sweeps"]] == ["Digits"]
    assert sum(shop.states("Digits").values()) == 1


def test_two_projects_whose_names_fall_together_are_refused(make_shop: Callable[[str], Shop], disk: Path) -> None:
    first, second = make_shop("Lab"), make_shop("lab")
    first.spec(jobs=1)
    first.run("apply")
    second.spec(jobs=2)
    for verb in ("plan", "apply", "status"):
        told = second.run(verb, code=1).stderr
        check_words(told, ("Lab", "lab"), where=disk)
    assert first.states() == {"succeeded": 1}


def test_doctor_names_what_does_not_tell_names_apart(make_shop: Callable[[str], Shop], disk: Path) -> None:
    shop = make_shop("shop")
    shop.env["XDG_STATE_HOME"] = str(disk / "state")
    shop.env["XDG_CACHE_HOME"] = str(disk / "cache")
    shop.spec(jobs=1)
    shop.run("apply")
    lines = [line for line in shop.run("doctor").stdout.splitlines() if "Unicode" in line]
    for place in ("store", "state", "cache"):
        assert any(str(disk / place) in line for line in lines), place
    assert not any(str(shop.root) in line for line in lines), "the project is on another disk"
    assert not [path for path in disk.rglob("*") if path.name.endswith(".names")]
