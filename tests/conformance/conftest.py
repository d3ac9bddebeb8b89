"""The backends that the suite runs over. A new one adds a function to BACKENDS."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.bucket import FakeBucket
from tests.loops import Run
from tests.services import BUCKET

_names = itertools.count()


def directory(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet."""
    return str(tmp_path / "store")


def memory(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet."""
    return f"memory://conformance-{next(_names)}"


def s3_moto(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet."""
    return f"s3://{BUCKET}/conformance/{next(_names)}?endpoint={request.getfixturevalue('moto')}"


def s3(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet: a whole bucket, whose listings have many small pages."""
    bucket: FakeBucket = request.getfixturevalue("bucket")
    bucket.page = 7
    return bucket.url("s3")


def gs(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet."""
    bucket: FakeBucket = request.getfixturevalue("bucket")
    bucket.page = 7
    return bucket.url("gs", "a prefix/größe")


def az(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet."""
    return f"az://{BUCKET}/conformance/{next(_names)}?endpoint={request.getfixturevalue('azurite')}"


def ssh(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a place where no store is yet, on a host that is this machine."""
    request.getfixturevalue("ssh_host")
    return f"ssh://there{tmp_path}/a store"


BACKENDS = {"directory": directory, "memory": memory, "s3-moto": s3_moto, "s3": s3, "gs": gs, "az": az, "ssh": ssh}


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> str:
    """Return the backend's name."""
    return str(request.param)


@pytest.fixture
def url(backend: str, request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> str:
    """Return the URL of a store that was just begun."""
    place = BACKENDS[backend](tmp_path, request)
    run(run(open_store(place, begin=True)).close())
    return place


@pytest.fixture
def clients(url: str, run: Run) -> Iterator[Callable[[], Store]]:
    """Return a function that opens one more client of the store."""
    opened: list[Store] = []

    def client() -> Store:
        opened.append(run(open_store(url)))
        return opened[-1]

    yield client
    for store in opened:
        run(store.close())


@pytest.fixture
def store(clients: Callable[[], Store]) -> Store:
    """Return a client of the store."""
    return clients()
