"""Archives that somebody else wrote."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.errors import CorruptObject
from monkey.transfer.code.code_manifest import MAX_FILE, ManifestEntry, PathKind, hash_manifest
from monkey.transfer.code.code_snapshot import extract_snapshot, pack_code, read_code
from tests.unit.transfer.conftest import write


def file(name: str, data: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    """Return a member that is a file."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def other(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """Return a member of another type."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def archive_of(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], level: int = 6) -> Path:
    """Write an archive."""
    with gzip.open(path, "wb", compresslevel=level) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def refused(archive: Path, sha: str = "0" * 64) -> str:
    """Return why; and see that nothing was left, here or elsewhere."""
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(CorruptObject) as caught:
        extract_snapshot(archive, archive.parent / "into", sha)
    assert sorted(archive.parent.rglob("*")) == before
    assert caught.value.key == f"code/{sha}.tar.gz"
    return caught.value.message


LINK, SYM = tarfile.LNKTYPE, tarfile.SYMTYPE

HOSTILE: dict[str, tuple[list[tuple[tarfile.TarInfo, bytes]], str]] = {
    "absolute": ([file("/tmp/monkey-evil")], "no path inside"),
    "up": ([file("../evil")], "no path inside"),
    "up later": ([file("a/../../evil")], "no path inside"),
    "empty part": ([file("a//b")], "no path inside"),
    "dot": ([file("./a")], "no path inside"),
    "absolute link": ([other("l", SYM, "/etc")], "leads out"),
    "link up": ([other("d/l", SYM, "../../x")], "leads out"),
    "no target": ([other("l", SYM, "")], "leads out"),
    "link through a link": ([other("a/d", SYM, ".."), other("l", SYM, "a/d/../x")], "leads out"),
    "deep": ([file("/".join("d" * 2_000))], "deeper than 256 directories"),
    "hard link": ([file("a"), other("b", LINK, "a")], "neither a file nor a link"),
    "hard link out": ([other("b", LINK, "/etc/passwd")], "neither a file nor a link"),
    "device": ([other("d", tarfile.CHRTYPE)], "neither a file nor a link"),
    "pipe": ([other("p", tarfile.FIFOTYPE)], "neither a file nor a link"),
    "directory": ([other("d", tarfile.DIRTYPE)], "neither a file nor a link"),
    "twice": ([file("a"), file("a", b"y")], "comes twice"),
    "link and file": ([other("a", SYM, "b"), file("a")], "comes twice"),
    "below a file": ([file("a"), file("a/b")], "lies below a file"),
    "over a directory": ([file("a/b"), file("a")], "a file and a directory"),
    "through a link": ([other("a", SYM, "b"), file("b/x"), file("a/y")], "a link and a directory"),
    "other contents": ([file("a")], "its contents have the code hash"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_snapshot_has_is_refused(tmp_path: Path, name: str) -> None:
    members, why = HOSTILE[name]
    assert why in refused(archive_of(tmp_path / "archive", members))


def test_a_file_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    info, _ = file("a")
    info.size = MAX_FILE + 1
    with gzip.open(tmp_path / "archive", "wb") as zipped:
        zipped.write(info.tobuf() + bytes(10_240))
    assert "too large" in refused(tmp_path / "archive")


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "archive", [file(f"{n}", bytes(1000)) for n in range(11)])
    with pytest.raises(CorruptObject, match="too large"):
        extract_snapshot(archive, tmp_path / "into", "0" * 64, max_total=10_999)


@pytest.fixture
def good(tmp_path: Path) -> tuple[Path, str]:
    """Return a good archive and its hash."""
    root = tmp_path / "code"
    write(root, a_py="a" * 3000, b__c_py="c")
    (root / "l").symlink_to("b/c.py")
    taken = read_code(root)
    with (tmp_path / "archive").open("wb") as into:
        pack_code(taken, into)
    return tmp_path / "archive", taken.hash


def cuts(whole: bytes) -> Iterator[bytes]:
    """Yield what a loss of power, or a flipped bit, can make of an archive."""
    for at in range(len(whole)):
        yield whole[:at]
        yield whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]


def test_damaged_at_any_byte_it_is_refused_or_unpacks_to_the_same(good: tuple[Path, str], tmp_path: Path) -> None:
    archive, sha = good
    count = 0
    for n, damaged in enumerate(cuts(archive.read_bytes())):
        archive.write_bytes(damaged)
        into = tmp_path / f"into{n}"
        try:
            extract_snapshot(archive, into, sha)
        except CorruptObject:
            assert not into.exists()
            count += 1
        else:
            assert read_code(into).hash == sha
    assert count > n / 2


def test_no_archive_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"<html>404</html>")
    assert "no archive" in refused(tmp_path / "archive")


def test_the_gzip_does_not_matter(tmp_path: Path) -> None:
    sha = hash_manifest(
        [ManifestEntry("a", PathKind.FILE, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")]
    )
    for level in (0, 1, 9):
        extract_snapshot(archive_of(tmp_path / "archive", [file("a")], level), tmp_path / f"into{level}", sha)
        assert (tmp_path / f"into{level}" / "a").read_bytes() == b"x"


def test_what_is_there_already_is_left_alone(good: tuple[Path, str], tmp_path: Path) -> None:
    archive, sha = good
    into = tmp_path / "deep" / "into"
    extract_snapshot(archive, into, sha)
    (into / "mine").write_text("x")
    archive.write_bytes(b"")
    extract_snapshot(archive, into, sha)
    assert (into / "mine").exists()
    assert os.listdir(into.parent) == ["into"]  # noqa: PTH208


def test_a_directory_that_cannot_be_written_is_not_the_archives_fault(good: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        extract_snapshot(good[0], tmp_path / "file" / "into", good[1])
