"""A host of the test's own, to be spoiled and ill-treated, and clients of a store on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.store.open import open_store
from monkey.store.sftp.store import SftpStore
from tests.conformance.ssh.patience import LONG, SHORT, client
from tests.loops import Run
from tests.sshd import Sshd, serve


@pytest.fixture
def host(require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """Return a server of the test's own, to be spoiled and ill-treated."""
    require("sshd")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with serve(tmp_path / "home") as server:
        monkeypatch.setenv("HOME", str(server.home))
        yield server


@pytest.fixture
def url(host: Sshd, tmp_path: Path, run: Run) -> str:
    """Return the URL of a store that was just begun."""
    place = f"ssh://there{tmp_path}/s"
    run(run(open_store(place, begin=True)).close())
    return place


@pytest.fixture
def store(url: str, run: Run) -> Iterator[SftpStore]:
    """Return a client with much patience."""
    with client(url, LONG, run) as made:
        yield made


@pytest.fixture
def rival(url: str, run: Run) -> Iterator[SftpStore]:
    """Return another client of the same store."""
    with client(url, LONG, run) as made:
        yield made


@pytest.fixture
def hasty(url: str, run: Run) -> Iterator[SftpStore]:
    """Return a client with little patience."""
    with client(url, SHORT, run) as made:
        yield made
