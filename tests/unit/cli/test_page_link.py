"""The link to a served page that verbs print: to terminals alone, and none of a server that is gone."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from monkey.cli.links.page_link import PageLink, find_page_link, publish_page_link
from tests.acceptance.shop import MONKEY
from tests.unit.apply.small_project import apply, opened, write_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    async def prepare() -> None:
        async with opened(tmp_path) as world:
            await apply(world)

    write_project(tmp_path)
    asyncio.run(prepare())
    return tmp_path


@contextmanager
def page(root: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve the page; gives the process, and the link that it printed."""
    arguments = [*MONKEY, "web", "--no-browser"]
    with subprocess.Popen(arguments, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def show(root: Path, *arguments: str) -> str:
    """Return what a verb writes to a wide terminal."""
    ours, theirs = pty.openpty()
    with closing(os.fdopen(ours, "rb", buffering=0)) as screen:
        environment = {**os.environ, "COLUMNS": "300", "TERM": "dumb"}
        process = subprocess.Popen([*MONKEY, *arguments], cwd=root, stdout=theirs, env=environment)
        os.close(theirs)
        said = b""
        with suppress(OSError):  # how a terminal ends on Linux
            while part := screen.read(65536):
                said += part
        assert process.wait(60) == 0
    return said.decode()


@pytest.mark.needs("terminal")
def test_verbs_print_the_link_to_what_they_show_until_the_page_ends(project: Path) -> None:
    with page(project) as (process, link):
        address, _, token = link.partition("#")
        to_sweep = f"page {address}?sweep=small#{token}"
        for verb in (["status", "small"], ["list", "jobs"], ["info", "small"]):
            assert to_sweep in show(project, *verb).splitlines()
        assert f"page {link}" in show(project, "list", "sweeps").splitlines()
        job = subprocess.check_output([*MONKEY, "list", "jobs"], cwd=project, text=True)
        assert token not in job  # a pipe may end in a log that others read
        process.kill()  # it cannot tell anybody that it ends
        process.wait()
        assert "page " not in show(project, "status", "small")


def test_the_file_of_the_link_is_its_user_s_alone_and_goes_with_the_server(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = project / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))

    async def main() -> None:
        async with opened(project) as world:
            assert find_page_link(world) is None
            link = PageLink("http://127.0.0.1:1/", "secret")
            umask = os.umask(0)
            try:
                with publish_page_link(world, link):
                    (file,) = state.glob("monkey/*/.page/*")
                    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
                    assert find_page_link(world) == link
                    with publish_page_link(world, later := PageLink("http://127.0.0.1:2/", "other")):
                        assert find_page_link(world) == later
                    assert find_page_link(world) is None
            finally:
                os.umask(umask)
            assert not file.exists()
            with publish_page_link(world, link):
                copy = file.read_text().replace(os.uname().nodename, "elsewhere")
                file.write_text(copy)  # as a home that two machines share shows it
                assert find_page_link(world) is None

    asyncio.run(main())


def test_a_link_leads_to_a_job_whatever_the_sweep_s_name(project: Path) -> None:
    assert PageLink("http://h/", "a+b").point("x&y", "0" * 16) == f"http://h/?sweep=x%26y&job={'0' * 16}#token=a%2Bb"
