"""Whoever rents, and what Pulumi needs in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import services
from tests.stacks.conftest import pulumi
from tests.trusting import trust

if TYPE_CHECKING:
    from tests.clouds.account import Account
    from tests.clouds.gcp.shelf import Shelf
    from tests.clouds.renter import Renter

__all__ = ["pulumi"]


@pytest.fixture
def renter(pulumi: None, aws: Account) -> Iterator[Renter]:
    """Return one whose store is in moto too, past the wire."""
    from tests.clouds.renter import Renter

    trust(aws.wire.upstream.geturl())
    yield Renter(f"s3://{services.BUCKET}/sweeps?endpoint={aws.wire.upstream.geturl()}", image=aws.image())


@pytest.fixture
def google(pulumi: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Return an empty cloud of Google's, and have the double of Pulumi's provider for it on the PATH."""
    from tests.clouds.account import plugins
    from tests.clouds.double import LEDGER
    from tests.clouds.gcp.shelf import SHELF, Shelf

    monkeypatch.setenv("PATH", f"{plugins(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(SHELF, str(tmp_path / "google"))
    monkeypatch.setenv(LEDGER, str(tmp_path / "cloud-ledger"))
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "test")
    return Shelf(tmp_path / "google")
