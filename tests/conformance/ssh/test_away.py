"""A store on an SSH host that is away, on a silent network or a full disk, and callers who change their minds."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import StoreRefused, StoreUnavailable
from monkey.store.create import Won, create_object
from monkey.store.sftp.store import SftpStore
from tests.conformance.ssh.patience import patiently
from tests.loops import Run
from tests.sshd import Sshd


def _unavailable(run: Run, asked: list[Callable[[], Any]], within: float) -> list[str]:
    """Ask for all at once, each of which must be given up in time; returns what is said."""

    async def ask() -> list[Any]:
        async with asyncio.timeout(within):
            return await asyncio.gather(*(each() for each in asked), return_exceptions=True)

    answers = run(ask())
    assert [type(answer) for answer in answers] == [StoreUnavailable] * len(asked), answers
    return [str(answer) for answer in answers]


@pytest.mark.slow
def test_a_host_that_is_away_and_comes_back(host: Sshd, hasty: SftpStore, run: Run) -> None:
    assert run(patiently(lambda: create_object(hasty, "a", b"x"))) == Won()
    host.stop()
    asked: list[Callable[[], Any]] = [
        lambda: hasty.get("a"),
        lambda: hasty.create("b", b"x"),
        lambda: hasty.put("beat", b"x"),
        lambda: hasty.list(""),
    ]
    assert all("refuses connections" in said for said in _unavailable(run, asked, within=25))
    back = threading.Timer(0.5, host.start)
    back.start()
    assert run(patiently(lambda: hasty.get("a"))) == b"x"  # it need not be told
    back.join()


@pytest.mark.slow
def test_a_silent_network_is_given_up(host: Sshd, hasty: SftpStore, run: Run, tmp_path: Path) -> None:
    """The sessions are stopped, and so is whoever takes new connections: nothing answers, nothing is refused."""
    assert run(patiently(lambda: create_object(hasty, "a", b"x"))) == Won()
    (tmp_path / "file").write_bytes(b"x" * 20_000_000)
    asked: list[Callable[[], Any]] = [
        lambda: hasty.get("a"),
        lambda: hasty.create("b", b"x"),
        lambda: hasty.put("beat", b"x"),
        lambda: hasty.put_file("f", tmp_path / "file"),
    ]
    for some in (asked, asked[-1:]):
        host.freeze(whole=True)
        _unavailable(run, some, within=40)
        host.thaw()
        assert run(patiently(lambda: hasty.get("a"))) == b"x"
    run(patiently(lambda: hasty.put_file("f", tmp_path / "file")))


def test_a_frozen_session_is_left_for_a_new_one(host: Sshd, hasty: SftpStore, run: Run) -> None:
    assert run(patiently(lambda: create_object(hasty, "a", b"x"))) == Won()
    host.freeze()
    assert run(patiently(lambda: hasty.get("a"))) == b"x"


def test_cancelled_calls_leave_nothing_behind(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 2_000_000)

    async def cancel() -> None:
        for n in range(40):
            tasks = [
                asyncio.ensure_future(store.create(f"c/{n}", b"x")),
                asyncio.ensure_future(store.put(f"p/{n}", b"x")),
                asyncio.ensure_future(store.put_file(f"f/{n}", tmp_path / "file")),
                asyncio.ensure_future(store.get_file("format", tmp_path / "got")),
            ]
            await asyncio.sleep(0.001 * (n % 8))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run(cancel())
    assert run(store.create("after", b"x"))
    run(store.put_file("after2", tmp_path / "file"))
    run(store.close())
    assert list((tmp_path / "s" / "tmp").iterdir()) == []
    assert list(tmp_path.glob(".got*")) == []


@pytest.mark.parametrize(("option", "said"), [("size=256k", "no space left"), ("ro", "read-only")])
def test_a_full_and_a_read_only_disk(
    require: Callable[[str], str],
    host: Sshd,
    store: SftpStore,
    run: Run,
    tmp_path: Path,
    option: str,
    said: str,
) -> None:
    """The server alone sees the file system, in a namespace of its own."""
    require("mount")
    if os.geteuid() != 0:
        pytest.skip("sshd in a namespace needs root")
    host.stop()
    mount = 'mount -t tmpfs -o size=256k none "$1" && cp -r "$2/." "$1" && mount -o "remount,$3" "$1"'
    root = str(tmp_path / "s")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "format").write_bytes((tmp_path / "s" / "format").read_bytes())
    (copy / "tmp").mkdir()
    host.start(["unshare", "--mount", "sh", "-c", f'{mount} && shift 3 && exec "$@"', "sh", root, str(copy), option])
    (tmp_path / "file").write_bytes(b"x" * 2_000_000)
    for ask in (
        lambda: store.create("a", b"x" * 500_000),
        lambda: store.put("a", b"x" * 500_000),
        lambda: store.put_file("a", tmp_path / "file"),
    ):
        with pytest.raises(StoreRefused, match=said):
            run(ask())
    assert [item.key for item in run(store.list(""))] == ["format"]
