"""What every test gets: a machine of its own to write on, and a say in what it needs of the real one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests import hosts, influx, services, sshd
from tests.bucket import FakeBucket
from tests.forges.gitea import Gitea, serve_gitea
from tests.groups import check_groups, pytest_xdist_make_scheduler  # noqa: F401
from tests.leftovers import collected, pytest_sessionfinish  # noqa: F401
from tests.loops import Run, T
from tests.needs import LIBRARIES, pytest_make_collect_report, pytest_runtest_setup, require_thing  # noqa: F401
from tests.quick import pytest_runtest_call, pytest_terminal_summary, unicode_table  # noqa: F401
from tests.trusting import trust

if TYPE_CHECKING:
    from tests.clouds.account import Account
    from tests.clouds.gcp.desk import Google

#: Folders that need servers, hosts or clouds: all their tests are slow.
SLOW_FOLDERS = {"cloud", "clouds", "stacks"}

#: What a developer or CI may have in the environment, and no test may meet: settings, keys of real clouds, and what
#: says that this is CI, where monkey refuses what would be gone with the machine.
NOT_OURS = ("MONKEY_", "AWS_", "AZURE_", "GOOGLE_", "GCLOUD_", "GITHUB_", "GITEA_", "FORGEJO_", "GITLAB_", "CI_")


def pytest_configure() -> None:
    """Let ^C end what tests start, which a shell's job in the background ignores; let no example have a deadline."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A machine that is busy with other tests stands still for longer than Hypothesis allows an example (200 ms).
    hypothesis.settings.register_profile("monkey", deadline=None)
    hypothesis.settings.load_profile("monkey")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of tests/simulation. They are here because pytest reads no deeper conftest before its command line."""
    group = parser.getgroup("monkey")
    group.addoption("--seeds", type=int, default=None, help="how many runs of the simulation (default: a quick few)")
    group.addoption("--seed", type=int, default=None, help="replay this run of the simulation alone")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no process is left with it while the others have nothing to do."""
    for item in items:
        folders = set(item.path.relative_to(item.config.rootpath).parts)
        if SLOW_FOLDERS & folders or ("acceptance" in folders and _needs_library(item)):
            item.add_marker(pytest.mark.slow)
        check_groups(item)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _needs_library(item: pytest.Item) -> bool:
    """Say whether a test needs more than `[test]`: CI has that for slow tests, and for quick ones of few folders."""
    return any(mark.args[0] in LIBRARIES.values() for mark in item.iter_markers("needs"))


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """Return a function that names what a test needs of the machine, and returns where it is.

    A missing one skips the test, or fails it where MONKEY_REQUIRE (names with commas) says that it must be here.
    """
    return require_thing


@pytest.fixture
def run() -> Iterator[Run]:
    """Return a function that runs a coroutine to its end, always on the same event loop."""
    with asyncio.Runner() as runner:

        async def wrapped(awaitable: Awaitable[T]) -> T:
            return await awaitable

        def run(awaitable: Awaitable[T]) -> T:
            return runner.run(wrapped(awaitable))

        yield run


@pytest.fixture(scope="session")
def moto(require: Callable[[str], str]) -> Iterator[str]:
    """Return the endpoint of moto's S3, which has the bucket of `tests.services`."""
    require("moto")
    with services.moto() as endpoint:
        trust(endpoint)
        yield endpoint


@pytest.fixture(scope="session")
def clouds_moto(require: Callable[[str], str]) -> Iterator[str]:
    """Return the endpoint of a moto that is emptied by every test that asks for an account in it."""
    require("moto")
    with services.moto() as endpoint:
        yield endpoint


@pytest.fixture
def aws(clouds_moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Return an empty account of AWS's; the environment has it, and the double of Pulumi's provider."""
    from tests.clouds.account import account

    with account(clouds_moto, tmp_path) as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def gcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """Return an empty project of Google's; the environment has it, and the double of Pulumi's provider."""
    from tests.clouds.gcp.desk import google

    with google(tmp_path) as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture(scope="session")
def azurite(require: Callable[[str], str]) -> Iterator[str]:
    """Return the endpoint of Azurite, which has the container of `tests.services`."""
    require("azurite")
    with services.azurite() as endpoint:
        yield endpoint


@pytest.fixture
def bucket() -> Iterator[FakeBucket]:
    """Return a bucket of our own that can fail."""
    with FakeBucket() as bucket:
        trust(bucket.endpoint)
        yield bucket


@pytest.fixture(scope="session", autouse=True)
def _apart() -> Iterator[None]:
    """Keep what monkey writes outside of the project, and what the developer's MONKEY_* say, out of each other."""
    # Before it could be taken for something that a test left: multiprocessing wants it until the very end.
    resource_tracker.ensure_running()
    apart = tempfile.mkdtemp(prefix="monkey-tests-")
    kept = dict(os.environ)
    for name in [name for name in os.environ if f"{name}_".startswith(NOT_OURS) and name != "MONKEY_REQUIRE"]:
        del os.environ[name]
    os.environ.update(services.KEYS)
    # Downloads of pip and uv may be shared; they are nobody's state.
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("UV_CACHE_DIR", str(home / "uv"))
    os.environ.setdefault("PIP_CACHE_DIR", str(home / "pip"))
    os.environ["XDG_STATE_HOME"] = f"{apart}/state"
    os.environ["XDG_CACHE_HOME"] = f"{apart}/cache"
    os.environ["XDG_CONFIG_HOME"] = f"{apart}/config"  # the developer's key signs nothing of tests
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.environ["AWS_CONFIG_FILE"] = f"{apart}/no-such-file"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
        _end_leftovers(f"XDG_STATE_HOME={apart}/state".encode())
        shutil.rmtree(apart, ignore_errors=True)


@pytest.fixture(autouse=True)
def _same_directory() -> Iterator[None]:
    """Fail a test that leaves the process in another directory: a later one would not find its files."""
    here = Path.cwd()
    yield
    there = Path.cwd()
    os.chdir(here)
    assert there == here


def _end_leftovers(mark: bytes) -> None:
    """End the agents that a test detached and that have not yet found themselves idle: their directories go now."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # gone by itself, or somebody else's
            if int(environ.parent.name) != os.getpid() and mark in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)


@pytest.fixture(scope="session")
def sshd_running(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    """Return a real SSH server, one for all tests of a process that leave it as it is."""
    require("sshd")
    with sshd.serve(tmp_path_factory.mktemp("sshd") / "home") as server:
        yield server


@pytest.fixture
def ssh_host(sshd_running: sshd.Sshd, monkeypatch: pytest.MonkeyPatch) -> sshd.Sshd:
    """Return the server, known to our ~/.ssh as `there`."""
    monkeypatch.setenv("HOME", str(sshd_running.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return sshd_running


@pytest.fixture(scope="session")
def lab(require: Callable[[str], str]) -> Iterator[hosts.Lab]:
    """Return hosts of our own, booted when a test first asks for them by name: `h1, store = lab("h1", "store")`."""
    require("hosts")
    with contextlib.closing(hosts.Lab()) as made:
        yield made


@pytest.fixture(scope="session")
def gitea(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    """Return a Gitea, one for all tests of a process; each makes repositories of its own there."""
    require("gitea")
    with serve_gitea(tmp_path_factory.mktemp("gitea")) as server:
        yield server


@pytest.fixture(scope="session", params=["influxd", "influxd1"])
def influx_server(
    request: pytest.FixtureRequest, require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[influx.Server]:
    """Return InfluxDB, 2.x and then 1.8, one server for all tests of a process; each asks for credentials."""
    require(request.param)
    with influx.serve(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture
def influxdb(influx_server: influx.Server) -> influx.Database:
    """Return a database (a bucket) of the test's own, with what monkey.yaml says of it."""
    return influx_server.database()
