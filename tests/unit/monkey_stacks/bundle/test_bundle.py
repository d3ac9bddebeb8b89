"""An agent's code as one file: the same for the same contents, for any host, and nothing that is altered on the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.store.open import open_store
from monkey_stacks.bundle import bundle, wheels
from monkey_stacks.bundle.bundle import build_bundle, publish_bundle
from monkey_stacks.bundle.unpack import WrongBundle
from monkey_stacks.bundle.wheels import WheelTarget, is_fitting
from monkey_stacks.ssh.remote.bundles import install_bundle, list_bundles
from monkey_stacks.ssh.remote.paths import FleetDirectory
from tests.loops import Run

HERE = WheelTarget((sys.version_info[0], sys.version_info[1]), "linux-x86_64", "glibc 2.36")


@pytest.mark.parametrize(
    ("tag", "python", "platform", "libc", "expected"),
    [
        ("py3-none-any", (3, 11), "linux-x86_64", "musl", True),
        ("py2.py3-none-any", (3, 13), "linux-aarch64", "", True),
        ("cp311-abi3-manylinux_2_28_x86_64", (3, 13), "linux-x86_64", "glibc 2.28", True),
        ("cp312-abi3-manylinux_2_28_x86_64", (3, 11), "linux-x86_64", "glibc 2.36", False),
        ("cp311-abi3-manylinux_2_34_x86_64", (3, 11), "linux-x86_64", "glibc 2.31", False),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", (3, 11), "linux-x86_64", "glibc 2.17", True),
        ("cp311-cp311-manylinux2014_x86_64", (3, 12), "linux-x86_64", "glibc 2.36", False),
        ("cp311-cp311-manylinux2014_x86_64", (3, 11), "linux-aarch64", "glibc 2.36", False),
        ("cp311-cp311-manylinux2014_x86_64", (3, 11), "linux-x86_64", "musl", False),
        ("cp311-cp311-musllinux_1_2_x86_64", (3, 11), "linux-x86_64", "musl", True),
        ("cp311-cp311-macosx_11_0_arm64", (3, 11), "linux-x86_64", "glibc 2.36", False),
    ],
)
def test_which_wheels_fit(tag: str, python: tuple[int, int], platform: str, libc: str, expected: bool) -> None:
    assert is_fitting([tag], WheelTarget(python, platform, libc)) is expected


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "ssh", "s3"])
def test_the_same_contents_are_the_same_bundle(tmp_path: Path, scheme: str) -> None:
    one, two = build_bundle(scheme, HERE, tmp_path / "one"), build_bundle(scheme, HERE, tmp_path / "two")
    assert one.sha256 == two.sha256 == hashlib.sha256(gzip.decompress(one.path.read_bytes())).hexdigest()
    with tarfile.open(one.path) as made:
        names = made.getnames()
    assert names == sorted(names) and "monkey_agent/command_line.py" in names and "__main__.py" in names
    assert not any("__pycache__" in name or "RECORD" in name or ".." in name for name in names)
    assert "pynvml.py" in names and not any(name.startswith("psutil/") for name in names)
    assert any(name.startswith("obstore/") for name in names) == (scheme == "s3")
    assert {"cryptography/__init__.py", "pycparser/__init__.py", "monkey/signing/entry_signers.py"} <= {*names}
    assert any(name.startswith("_cffi_backend.") for name in names) and "monkey/config_directory.py" in names
    assert build_bundle(scheme, HERE, tmp_path / "one") == one


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "ssh", "s3"])
def test_an_agent_runs_from_its_bundle_alone(tmp_path: Path, scheme: str) -> None:
    place = FleetDirectory(str(tmp_path / "work"), "fleet")
    made = build_bundle(scheme, HERE, tmp_path / "cache")
    with made.path.open("rb") as stream:
        install_bundle(place, made.sha256, stream)
    modules = {
        "": "monkey.store.directory.store",
        "ssh": "monkey.store.sftp.scheme",
        "s3": "monkey.store.bucket.scheme",
    }
    code = f"import sys; sys.path[:0] = [{str(place.bundle(made.sha256))!r}]\n"
    code += f"import monkey_agent.command_line, {modules[scheme]}; print(monkey_agent.command_line.__file__)\n"
    code += "from monkey.signing.keys.private_key import make_private_key; make_private_key()"
    # The system's own Python would do; ours stands for it, without what is installed in it.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(str(place.bundles)), done.stderr


@pytest.mark.slow
def test_what_does_not_fit_there_is_fetched(tmp_path: Path) -> None:
    elsewhere = WheelTarget((3, 12 if sys.version_info[1] != 12 else 13), "linux-aarch64", "glibc 2.31")
    made = build_bundle("ssh", elsewhere, tmp_path)
    with tarfile.open(made.path) as found:
        names = found.getnames()
    libraries = [name for name in names if name.endswith(".so")]
    assert f"_cffi_backend.cpython-3{elsewhere.python[1]}-aarch64-linux-gnu.so" in libraries
    assert all("x86_64" not in name for name in names)
    assert any(name.startswith("asyncssh/") for name in names), "what fits anywhere is taken from here"


def test_a_fetch_that_fails_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIP_INDEX_URL": "http://127.0.0.1:9",
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(FleetError, match=r"cffi==[\d.]+, .* for Python 3\.99 on linux-riscv64") as caught:
        build_bundle("ssh", WheelTarget((3, 99), "linux-riscv64", "glibc 2.40"), tmp_path)
    assert "the internet is needed" in (caught.value.hint or "")


def tar(*members: tuple[str, bytes, bytes]) -> bytes:
    """Return a tar of members (name, type, contents)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(data)
            member.linkname = "/etc/passwd"
            made.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    "member",
    [
        ("../escape", tarfile.REGTYPE, b"x"),
        ("/tmp/escape", tarfile.REGTYPE, b"x"),
        ("a/../../escape", tarfile.REGTYPE, b"x"),
        ("link", tarfile.SYMTYPE, b""),
        ("hard", tarfile.LNKTYPE, b""),
        ("pipe", tarfile.FIFOTYPE, b""),
    ],
)
def test_nothing_escapes_from_a_bundle(tmp_path: Path, member: tuple[str, bytes, bytes]) -> None:
    place = FleetDirectory(str(tmp_path / "work"), "fleet")
    data = tar(("monkey/a.py", tarfile.REGTYPE, b"a"), member)
    with pytest.raises(WrongBundle, match="something in it"):
        install_bundle(place, hashlib.sha256(data).hexdigest(), io.BytesIO(gzip.compress(data)))
    assert not list(tmp_path.iterdir())


def test_only_what_was_announced_is_installed(tmp_path: Path) -> None:
    place = FleetDirectory(str(tmp_path / "work"), "fleet")
    good, bad = tar(("a.py", tarfile.REGTYPE, b"good")), tar(("a.py", tarfile.REGTYPE, b"evil"))
    sha256 = hashlib.sha256(good).hexdigest()
    for came in (gzip.compress(bad), gzip.compress(good)[:-30], b"", b"no bundle at all"):
        with pytest.raises(WrongBundle):
            install_bundle(place, sha256, io.BytesIO(came))
        assert not place.workdir.exists() and not list_bundles(place)
    install_bundle(place, sha256, io.BytesIO(gzip.compress(good)))
    assert list_bundles(place) == [sha256] and (place.bundle(sha256) / "a.py").read_bytes() == b"good"
    install_bundle(place, sha256, io.BytesIO(b"what is there already is not read again"))


def test_a_bundle_travels_by_the_store(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "ALWAYS", ())
    store = run(open_store(str(tmp_path / "store"), begin=True))
    made, said = build_bundle("", HERE, tmp_path / "cache"), list[str]()
    for _ in range(2):
        run(publish_bundle(store, made, said.append))
    assert len(said) == 1 and sorted(item.key for item in run(store.list("bundle/"))) == sorted(made.keys)
    assert b"".join(run(store.get(key)) for key in made.keys) == made.path.read_bytes()
    run(store.close())


def test_a_changed_source_is_another_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "ALWAYS", ())  # they take a second to pack
    files = {"a": b"1", "b": b"2"}
    assert bundle.pack_files(files) == bundle.pack_files(dict(reversed(files.items())))
    assert bundle.pack_files(files) != bundle.pack_files({**files, "b": b"3"})
    kept = tmp_path / "bundles"
    build_bundle("", HERE, tmp_path)
    (said,) = kept.glob("*.json")
    said.write_text(json.dumps({"sha256": "of another", "parts": [1]}))
    assert build_bundle("", HERE, tmp_path).sha256 == "of another", "it is not built again while nothing changed"
    (kept / said.name).unlink()
    assert build_bundle("", HERE, tmp_path).sha256 != "of another"


def test_tools_that_are_installed_here_lie_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "lib/uv-99.dist-info"
    about.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(wheels, "ALWAYS", ())
    (tmp_path / "bin/uv").write_bytes(b"a program")
    (about / "METADATA").write_text("Name: uv\nVersion: 99\n")
    (about / "WHEEL").write_text("Tag: py3-none-any\n")
    (about / "RECORD").write_text("../bin/uv,,\n../bin/uvx,,\n")
    without = build_bundle("", HERE, tmp_path / "cache")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert build_bundle("", HERE, tmp_path / "cache") == without, "hosts have tools of their own"
    made = build_bundle("", HERE, tmp_path / "cache", ("uv", "nobody-has-this"))
    assert made.sha256 != without.sha256
    with tarfile.open(made.path) as tar:
        assert [name for name in tar.getnames() if name.startswith("tools/")] == ["tools/uv"]
