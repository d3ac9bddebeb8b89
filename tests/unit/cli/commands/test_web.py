"""`monkey web` as it opens a browser: other users of the machine see the browser's arguments."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.shop import MONKEY, until
from tests.unit.apply.small_project import apply, opened, write_project

#: A browser that notes what it is called with, and what is in the file that it is to open.
BROWSER = """\
#!{python}
import json, os, pathlib, sys, urllib.parse
file = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path))
modes = [oct(each.stat().st_mode & 0o777) for each in (file, file.parent)]
told = {{"arguments": sys.argv[1:], "text": file.is_file() and file.read_text(), "modes": modes, "file": str(file)}}
pathlib.Path({noted!r} + ".part").write_text(json.dumps(told))
os.rename({noted!r} + ".part", {noted!r})
"""


async def prepare(root: Path) -> None:
    async with opened(root) as world:
        await apply(world)


def test_the_link_s_token_is_in_no_argument_of_the_browser(tmp_path: Path) -> None:
    root, browser, noted = tmp_path / "project", tmp_path / "browser", tmp_path / "noted.json"
    write_project(root)
    asyncio.run(prepare(root))
    browser.write_text(BROWSER.format(python=sys.executable, noted=str(noted)))
    browser.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen([*MONKEY, "web", "small"], cwd=root, env=env, stdout=subprocess.PIPE, text=True, umask=0)
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        told = json.loads(until(lambda: noted.exists() and noted.read_text(), "the browser was called"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    (address,) = told["arguments"]
    token = link.partition("#token=")[2]
    assert address.startswith("file:///") and len(token) > 30 and token not in address
    assert f'content="0; url={link}"' in told["text"] and "?sweep=small#" in link
    assert told["modes"] == ["0o600", "0o700"]
    assert not Path(told["file"]).exists() and not list((tmp_path / "tmp").iterdir())
