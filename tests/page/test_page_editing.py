"""A sweep that is made on the page from nothing: written, planned, applied; and a file that an editor changed, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.shop import Shop, until
from tests.browser import find_faults, open_tab
from tests.page.test_page_attacks import HOSTILE
from tests.page.test_page_story import check_looks, see, web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

#: Each run of a job leaves a line outside of the store.
TRAIN = """\
import sys
with open(sys.argv[1], "a") as ledger:
    ledger.write(f"{sys.argv[2]}\\n")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "shop")
    made.hurry()
    (made.root / "train.py").write_text(TRAIN)
    (made.root / "specs").mkdir()
    (made.root / "specs" / "first.yaml").write_text(f"name: first\ncommand: [python3, train.py, {tmp_path}/ran, '0']\n")
    yield made
    made.kill_all()


def fill(tab: Page, label: str, text: str) -> None:
    """Fill a field, and leave it by the keyboard."""
    box = tab.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Tab")


def wait_for_text(tab: Page, text: str) -> None:
    """Wait until the text of the spec has a text in it."""
    until(lambda: text in tab.locator("textarea").input_value(), f"{text!r} is in the text")


def make_sweep(tab: Page, ledger: Path) -> None:
    """Fill the form in: the text follows."""
    tab.get_by_role("link", name="New sweep").click()
    fill(tab, "Name", "fresh")
    wait_for_text(tab, "name: fresh\n")
    assert tab.get_by_label("File in specs/").input_value() == "fresh.yaml"
    fill(tab, "Command", f"python3 train.py {ledger} {{i}}")
    wait_for_text(tab, "{i}")
    see(tab, "specs/fresh.yaml:2:", ".mistakes")
    assert tab.get_by_role("button", name="Plan", exact=True).is_disabled()
    assert not find_faults(tab)
    tab.get_by_role("button", name="Remove lr").click()
    tab.get_by_label("Name of seed").fill("i")
    tab.get_by_label("Name of seed").press("Enter")
    wait_for_text(tab, "  i: {range: [0, 3]}\n")
    fill(tab, "First, end and step of i", "4, 9")
    wait_for_text(tab, "  i: {range: [4, 9]}\n")
    tab.locator(".mistakes li").wait_for(state="detached")


def test_a_sweep_is_made_planned_and_applied(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    shop.run("apply", "--yes")
    ledger, file = tmp_path / "ran", shop.root / "specs" / "fresh.yaml"
    with web(shop) as link, open_tab(browser, link, "409") as tab:
        make_sweep(tab, ledger)
        apply = tab.get_by_role("button", name="Save and apply this plan")
        assert apply.is_disabled()  # no plan was seen
        tab.get_by_role("button", name="Plan", exact=True).click()
        see(tab, "Plan: 5 new", ".plan")
        assert not file.exists()
        check_looks(tab)
        tab.locator("textarea").press("End")
        tab.locator("textarea").type("#")
        assert apply.is_disabled()  # the plan that was seen is of another text
        tab.locator("textarea").press("Backspace")
        digest = tab.locator(".plan code").inner_text()
        apply.click()
        tab.get_by_role("link", name="to the sweep fresh").wait_for()
        assert f"Digest: {digest}" in tab.locator("pre.log").inner_text()
        until(lambda: sorted(ledger.read_text().split()) == ["0", *"45678"], "each job ran once")
        assert file.read_text() == tab.locator("textarea").input_value()
        tab.get_by_role("link", name="to the sweep fresh").click()  # it is there at once: the console is empty
        edit_beside_an_editor(tab, file)
        show_hostile_text(tab)
        tab.locator("textarea").fill(file.read_text().replace("[4, 9]", "[4, 12]"))
        tab.get_by_role("button", name="Plan", exact=True).click()
        see(tab, "Plan: 3 new, 5 kept", ".plan")
        apply.click()
        see(tab, "Apply", "h2#apply")
    # The server is gone now: what was begun is done.
    until(lambda: len(ledger.read_text().split()) == 9, "the apply was brought to its end")


def test_a_refused_value_is_planned_by_no_click_on_plan(browser: Browser, shop: Shop) -> None:
    """The text does not have the value, and a plan of the text would be taken for one of it."""
    shop.run("apply", "--yes")
    with web(shop) as link, open_tab(browser, link.replace("#", "?view=edit&file=first.yaml#"), "422") as tab:
        box, plan = tab.get_by_label("Jobs at once", exact=True), tab.get_by_role("button", name="Plan", exact=True)
        box.fill("[2,")
        plan.click()  # which leaves the field
        see(tab, "", ".trouble")
        until(plan.is_enabled, "it is over")
        assert tab.locator(".trouble").inner_text() and not tab.locator(".plan").count()
        box.fill("2")
        plan.click()
        see(tab, "max_concurrent_jobs", ".plan")
        assert "max_concurrent_jobs: 2" in tab.locator("textarea").input_value()


def test_a_name_typed_just_before_the_click_names_the_file(browser: Browser, shop: Shop) -> None:
    shop.run("apply", "--yes")
    with web(shop) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="New sweep").click()
        wait_for_text(tab, "name: sweep-1\n")
        tab.get_by_label("Name", exact=True).fill("late")
        tab.get_by_role("button", name="Save", exact=True).click()  # which leaves the field
        tab.locator("h1", has_text="specs/late.yaml").wait_for()
        assert (shop.root / "specs" / "late.yaml").read_text().startswith("name: late\n")
        assert not (shop.root / "specs" / "sweep-1.yaml").exists()


def click_save(tab: Page) -> None:
    """Click where Save is, at once, as a user does: a test's click would wait until the button is enabled."""
    box = tab.get_by_role("button", name="Save", exact=True).bounding_box()
    assert box
    tab.mouse.click(box["x"] + 5, box["y"] + 5)


def test_save_takes_what_is_in_a_field(browser: Browser, shop: Shop) -> None:
    """In one of a file that is saved, in one that was refused before, and in a text that was not checked yet."""
    shop.run("apply", "--yes")
    specs = shop.root / "specs"
    with web(shop) as link, open_tab(browser, link.replace("#", "?view=edit&file=first.yaml#")) as tab:
        tab.get_by_label("Timeout of a job", exact=True).fill("5m")
        click_save(tab)
        until(lambda: "timeout: 5m" in (specs / "first.yaml").read_text(), "a field is saved")
        fill(tab, "Name", "bad name")
        see(tab, "specs/first.yaml:1:", ".mistakes")
        tab.get_by_label("Name", exact=True).fill("second")
        click_save(tab)
        until(lambda: "name: second" in (specs / "first.yaml").read_text(), "a corrected field is saved")
        tab.locator("textarea").fill("name: bad name\n")
        see(tab, "specs/first.yaml:1:", ".mistakes")
        tab.locator("textarea").fill("name: third\ncommand: python3 train.py\n")
        click_save(tab)
        until(lambda: "name: third" in (specs / "first.yaml").read_text(), "a corrected text is saved")
        assert tab.get_by_role("button", name="Save", exact=True).is_disabled()


def test_what_was_not_saved_outlives_other_files_and_the_server(browser: Browser, shop: Shop) -> None:
    """A file that this page made is left, and then its server ends: the text is there, and asked about on leaving."""
    shop.run("apply", "--yes")
    first = ExitStack()
    link = first.enter_context(web(shop))
    with first, open_tab(browser, link, "Failed to load") as tab:
        port = link.split(":")[2].split("/")[0]
        tab.get_by_role("link", name="New sweep").click()
        tab.locator("textarea").fill("name: fresh\ncommand: python3 train.py\n")
        until(lambda: tab.get_by_label("File in specs/").input_value() == "fresh.yaml", "the file is named")
        tab.get_by_role("button", name="Save", exact=True).click()
        tab.locator("h1", has_text="specs/fresh.yaml").wait_for()
        leave_a_draft(tab)
        tab.get_by_role("link", name="Sweeps").first.click()
        first.close()
        with web(shop, "--port", port) as other:
            see(tab, "This page needs its link", "body")
            tab.evaluate("(link) => { location.href = link }", other)
            tab.get_by_role("link", name="New sweep").click()
            tab.get_by_label("Open").select_option("fresh.yaml")
            wait_for_text(tab, "# not saved")


def leave_a_draft(tab: Page) -> None:
    """Look at another file, and come back: what was not saved is still there."""
    box = tab.locator("textarea")
    saved = box.input_value()
    box.fill(f"{saved}# not saved\n")
    tab.get_by_label("Open").select_option("")
    tab.locator("h1", has_text="New sweep").wait_for()
    until(lambda: "name: sweep-1\n" in box.input_value(), "a new file is shown")
    tab.get_by_label("Open").select_option("fresh.yaml")
    wait_for_text(tab, "# not saved")


def edit_beside_an_editor(tab: Page, file: Path) -> None:
    """Save a text whose file an editor changed meanwhile: nothing is lost, and both are shown."""
    tab.get_by_role("link", name="Edit").click()
    fill(tab, "Timeout of a job", "5m")
    wait_for_text(tab, "timeout: 5m")
    theirs = file.read_text() + "# by an editor\n"
    file.write_text(theirs)
    tab.get_by_role("button", name="Save", exact=True).click()
    see(tab, "# by an editor", ".conflict")
    see(tab, "timeout: 5m", ".conflict")
    assert file.read_text() == theirs
    check_looks(tab)
    tab.get_by_role("button", name="Take the file's text").click()
    wait_for_text(tab, "# by an editor")


def show_hostile_text(tab: Page) -> None:
    """Whatever the text holds is text on the page."""
    spec = "name: fresh\ncommand: python3 {x}\nparameters:\n"
    tab.locator("textarea").fill(spec + "".join(f"  x{at}: {text!a}\n" for at, text in enumerate(HOSTILE[:4])))
    see(tab, "specs/fresh.yaml:")
    until(lambda: tab.locator(".parameter").count() >= 5, "the fields follow")
    assert tab.evaluate("() => window.pwned") is None and tab.locator("#app img, #app script").count() == 0
