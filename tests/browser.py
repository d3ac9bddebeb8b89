"""A real Chromium, as tests of the page drive it: Debian's, by Playwright's library; axe-core judges what it shows.

Nothing is downloaded by Playwright itself. `page.wait_for_function` of a text, and `add_script_tag`, would be refused
by the page's own policy, as they should be: tests evaluate functions, and wait for locators.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.services import CACHE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

AXE = "axe-core@4.14.1"
#: Starts Chromium as a user without rights, for root.
AS_NOBODY = Path(__file__).parent / "tools/chromium_as_nobody.sh"
#: Milliseconds within which anything in a browser must have happened, however busy the machine is.
PATIENCE = 60_000


def axe_script() -> Path:
    """Return where axe-core's script is, or would be."""
    return CACHE / AXE / "node_modules/axe-core/axe.min.js"


def may_sandbox() -> bool:
    """Return whether Chromium gets its sandbox here: a container may refuse namespaces to users without rights."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    try:
        return subprocess.run([*become, "unshare", "--user", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def check_browser() -> None:
    """Raise SystemExit, with what to install, where a program needs a browser and there is none."""
    if shutil.which("chromium") is None:
        raise SystemExit(
            "expected Chromium on the PATH, found none: `invoke services` installs it, or `apt-get install chromium`"
        )
    if importlib.util.find_spec("playwright") is None:
        raise SystemExit("expected Playwright's library, found none: `pip install -e '.[dev]'` installs it")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run Chromium in its sandbox, as a user without rights, where this machine lets such users make namespaces."""
    from playwright.sync_api import sync_playwright

    sandboxed = may_sandbox()
    program = str(AS_NOBODY) if sandboxed and os.geteuid() == 0 else shutil.which("chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, chromium_sandbox=sandboxed)
        yield made
        made.close()


@contextmanager
def open_tab(
    browser: Browser, link: str, allowed: str = "none", agree: Callable[[str], bool] | None = None, **about: Any
) -> Iterator[Page]:
    """Open a link in a tab of a browser without cookies; fails for a foreign request, and for anything in its console.

    `link`: of a server, or of a report's file. `allowed`: what messages in the console may have in them. `agree`: what
    the user answers to a question of the page; None where it may ask none.
    """
    context = browser.new_context(**about)
    context.set_default_timeout(PATIENCE)
    tab, said, asked = context.new_page(), list[str](), set[str]()
    tab.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: said.append(f"error: {error}"))

    def reply(dialog: Dialog) -> None:
        if agree is None:
            said.append(f"dialog: {dialog.message}")
        if agree is not None and agree(dialog.message):
            dialog.accept()
        else:
            dialog.dismiss()

    tab.on("dialog", reply)
    tab.on("request", lambda request: asked.add(request.url.split("/", 3)[2]))
    try:
        tab.goto(link)
        # Of a server, the token is exchanged, and the stream is open; a report has unpacked what it holds.
        tab.locator(".pulse.live, .pulse.kept").wait_for()
        yield tab
    except BaseException as error:
        error.add_note(f"the page shows: {tab.locator('body').inner_text()[:2000]}\nconsole: {said}")
        raise
    assert not [text for text in said if allowed not in text], said
    assert asked == {link.split("/")[2]}, asked
    context.close()


def find_faults(tab: Page) -> list[str]:
    """Return what axe-core finds that is serious or critical."""
    tab.evaluate(axe_script().read_text() + ";0")
    found = tab.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
