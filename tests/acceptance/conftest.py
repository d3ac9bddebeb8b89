"""A project for each test; nothing of it outlives the test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.image_shop import docker, registry, runtime  # noqa: F401 - fixtures
from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import Site
from tests.acceptance.slurm_desk import describe
from tests.hosts import Lab
from tests.local_slurm import LocalSlurm, run_slurm


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Return a function that makes a project; `user`: who works in it, if that is not us."""
    made: list[Shop] = []
    # pytest's own directories are closed to other users.
    base = Path(tempfile.mkdtemp(prefix="monkey-shops-"))
    base.chmod(0o755)

    def make(name: str = "shop", *, user: int | None = None, group: int | None = None) -> Shop:
        made.append(Shop((tmp_path if user is None else base) / name, user=user, group=group))
        return made[-1]

    yield make
    for shop in made:
        shop.kill_all()
    shutil.rmtree(base)


@pytest.fixture
def shop(make_shop: Callable[..., Shop]) -> Shop:
    """Return a project."""
    return make_shop()


@pytest.fixture
def store(shop: Shop) -> Path:
    """Return where the shop's store is."""
    return shop.root / ".monkey" / "store"


_NUMBERS = itertools.count(1)


@pytest.fixture
def site(lab: Lab, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return a project for hosts of the lab, with its store on one; nothing of it stays on any."""
    monkeypatch.setenv("MONKEY_SSH_CONFIG", str(lab.config))
    made = Site(lab, shop, next(_NUMBERS))
    yield made
    made.close()


@pytest.fixture
def lab_site(
    lab: Lab,
    shop: Shop,
    require: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LabSite]:
    """Return a project whose hosts are set up by `monkey apply`; nothing of it stays on any, or here."""
    require("pulumi")
    monkeypatch.setenv("MONKEY_SSH_CONFIG", str(lab.config))
    made = LabSite(lab, shop, next(_NUMBERS), tmp_path_factory.mktemp("programs"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def slurm() -> Iterator[LocalSlurm]:
    """Run a Slurm on this machine."""
    with (
        tempfile.TemporaryDirectory(prefix="mk-slurm-", dir="/tmp", ignore_cleanup_errors=True) as home,
        run_slurm(Path(home)) as cluster,
    ):
        yield cluster


@pytest.fixture
def desk(shop: Shop, slurm: LocalSlurm, tmp_path: Path) -> Iterator[Shop]:
    """Return a project whose jobs run on pilots of that Slurm."""
    shop.env |= slurm.environment
    (tmp_path / "scratch").mkdir()
    describe(shop, tmp_path)
    yield shop
    slurm.run("scancel", "-u", "root")
    until(lambda: not slurm.queue(), "the queue is empty")
