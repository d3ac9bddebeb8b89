"""A Slurm for stories, one for all tests of a process, and a laptop for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop
from tests.hosts import Lab
from tests.slurm.cluster import Cluster, run_cluster
from tests.slurm.laptop import Laptop

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(lab: Lab) -> Iterator[Cluster]:
    """Return a running Slurm on two hosts of the lab; nothing of it stays there."""
    with run_cluster(lab) as made:
        yield made
    assert not made.list_remains()


@pytest.fixture
def laptop(lab: Lab, cluster: Cluster, tmp_path: Path) -> Iterator[Laptop]:
    """Return a project on a laptop that reaches the cluster by SSH alone."""
    shop = Shop(tmp_path / "shop")
    made = Laptop(shop, cluster, lab.config, next(_NUMBERS))
    try:
        yield made
    finally:
        made.close()
        shop.kill_all()
