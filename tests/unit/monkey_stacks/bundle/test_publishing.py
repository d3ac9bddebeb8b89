"""What machines of a cloud fetch: code that runs on any Python that they may have, and the list of their signers."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import subprocess
from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing.machine_list import hash_signers, spell_signers_key
from monkey.store.open import open_store
from monkey_stacks.bundle import publishing, wheels
from monkey_stacks.bundle.bundle import build_bundle
from monkey_stacks.bundle.unpack import unpack_bundle
from monkey_stacks.bundle.wheels import WheelTarget
from tests import pythons
from tests.loops import Run

CHECK = """
import sys
sys.path[:0] = [sys.argv[1]]
from monkey.signing.keys.private_key import make_private_key
key = make_private_key()
print(key.public.has_signed(b"x", key.sign(b"x")), sys.version_info[:2])
"""


@pytest.mark.slow
def test_signatures_are_checked_on_each_python_of_machines(tmp_path: Path) -> None:
    built = publishing.build_for_store("s3://bucket", platform.machine())
    with built.path.open("rb") as stream:
        unpack_bundle(stream, tmp_path / "bundle")
    compiled = sorted(path.name for path in (tmp_path / "bundle").glob("_cffi_backend.*"))
    assert [name.split("-")[1] for name in compiled] == [f"3{minor}" for _, minor in publishing.PYTHONS]
    found = [there for name in pythons.PYTHONS if (there := pythons.find(name))]
    assert found
    for python in found:
        command = [python, "-I", "-S", "-c", CHECK, str(tmp_path / "bundle")]
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.defpath})
        assert done.stdout.startswith("True (3, "), f"{python}: {done.stderr}"


def test_a_list_is_in_the_store_once_and_another_in_its_place_is_no_list(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "ALWAYS", ())
    store = run(open_store(str(tmp_path / "store"), begin=True))
    built = build_bundle("", WheelTarget(publishing.PYTHONS[0], "linux-x86_64", publishing.LIBC), tmp_path / "cache")
    key = spell_signers_key(hash_signers("alice\n"))
    for _ in range(2):
        run(publishing.publish_once(store, built, "alice\n", lambda said: None))
    assert [item.key for item in run(store.list("signers/"))] == [key]
    assert run(store.get(key)) == b"alice\n"
    data = b"".join(run(store.get(key)) for key in built.keys)
    assert hashlib.sha256(gzip.decompress(data)).hexdigest() == built.sha256
    run(store.delete(key))
    run(store.put(key, b"mallory\n"))
    with pytest.raises(SigningError, match=f"what the store has as {key} is another list"):
        run(publishing.publish_once(store, built, "alice\n", lambda said: None))
    run(store.close())
