"""The browser of these tests is an ordinary user's: its pages run in Chromium's sandbox, by what the kernel says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import may_sandbox

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def find_renderers() -> list[dict[str, str]]:
    """Return what the kernel says of the processes of this one's browser that run pages."""
    parents, renderers = dict[int, int](), dict[int, dict[str, str]]()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            lines = (directory / "status").read_text().splitlines()
            status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            parents[int(directory.name)] = int(status["PPid"])
            if b"--type=renderer" in (directory / "cmdline").read_bytes():
                renderers[int(directory.name)] = status
        except OSError:
            continue
    found = []
    for pid, status in renderers.items():
        while pid not in (0, os.getpid()):
            pid = parents.get(pid, 0)
        found += [status] if pid else []
    return found


def test_pages_run_without_rights_in_namespaces_and_filters(browser: Browser) -> None:
    if not may_sandbox():
        pytest.skip("this machine gives users without rights no namespaces")
    page = browser.new_page()
    page.goto("data:text/html,<p>here")
    renderers = find_renderers()
    assert renderers
    for status in renderers:
        assert "0" not in status["Uid"].split()
        assert status["Seccomp"] == "2" and len(status["NSpid"].split()) > 1 and int(status["CapEff"], 16) == 0
    page.close()
