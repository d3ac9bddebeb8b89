"""A store on an SSH host that lets a user read, and not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import StoreForbidden
from monkey.store.open import open_store
from tests.loops import Run
from tests.sshd import Sshd, serve


def test_a_host_that_only_lets_one_read_forbids_each_change(
    host: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """An agent that may not write ends for good: it is not to try again, as it does when a host is away."""
    begun = run(open_store(f"ssh://there{tmp_path}/s", begin=True))
    run(begun.create("a/b", b"x"))
    run(begun.close())
    (tmp_path / "file").write_bytes(b"y")
    with serve(tmp_path / "reader", "Subsystem sftp internal-sftp -P write,mkdir,remove") as server:
        monkeypatch.setenv("HOME", str(server.home))
        store = run(open_store(f"ssh://there{tmp_path}/s"))
        for ask in (
            lambda: store.create("a/c", b"y"),
            lambda: store.create("n/c", b"y", durable=False),
            lambda: store.put("a/b", b"y"),
            lambda: store.put_file("a/d", tmp_path / "file"),
            lambda: store.delete("a/b"),
        ):
            with pytest.raises(StoreForbidden, match="permission denied") as caught:
                run(ask())
            assert "rights to read and write" in (caught.value.hint or "")
        assert (run(store.get("a/b")), [item.key for item in run(store.list(""))]) == (b"x", ["a/b", "format"])
        run(store.close())
    with serve(tmp_path / "all", "Subsystem sftp internal-sftp -R") as server:
        monkeypatch.setenv("HOME", str(server.home))
        with pytest.raises(StoreForbidden, match="lets nothing be written"):
            run(open_store(f"ssh://there{tmp_path}/s"))
