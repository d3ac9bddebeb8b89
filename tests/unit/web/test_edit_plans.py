"""Plans and applies of the form, by real processes: only what was shown is applied."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.planning import make_plan
from monkey.plan.digest import compute_plan_digest
from monkey.protocol.sweeps.sweep_log import list_sweeps
from monkey.web.page_guard import KEY_HEADER
from tests.unit.apply.small_project import SPEC, apply, opened
from tests.unit.web.pages import Page, serving
from tests.unit.web.test_editing import look_at_files

FRESH = SPEC.replace("small", "fresh")


def test_only_a_plan_that_was_shown_and_saved_is_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            before = look_at_files(tmp_path)
            status, plan = await page.post("specs/fresh.yaml/plan", text=FRESH)
            assert status == 200 and plan["changes"] and plan["verdict"].startswith("Plan: 3 new")
            assert look_at_files(tmp_path) == before
            # A digest that a raw client computes is no plan that was shown; a shown one needs its text in the file.
            assert (await page.post("specs/fresh.yaml/apply", digest="0" * 16))[0] == 409
            assert (await page.post("specs/small.yaml/apply", digest=plan["digest"]))[0] == 409
            assert (await page.post("specs/fresh.yaml/apply", digest=plan["digest"]))[0] == 404
            status, _ = await page.post("specs/fresh.yaml/save", text=FRESH + "# other\n", base="")
            assert status == 200
            assert (await page.post("specs/fresh.yaml/apply", digest=plan["digest"]))[0] == 409
            assert await list_sweeps(page.world.at, page.world.keys) == ["small"]
            async with opened(tmp_path) as world:
                planned = await make_plan(world, [str(tmp_path / "specs" / "fresh.yaml")])
                assert compute_plan_digest(planned.plan) == plan["digest"]  # as `monkey plan` has it
            status, wrong = await page.post("specs/fresh.yaml/plan", text=FRESH.replace("{lr}", "{x}"))
            assert status == 422 and wrong["problems"][0]["line"] == 2

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asyncio.run(main())


async def wait_for_end(page: Page, run: dict[str, Any]) -> tuple[int, str]:
    """Return the exit code of an apply, and what it said."""
    said, at = "", 0
    while run["code"] is None:
        run = await page.get(f"applies/{run['id']}?at={at}")
        said, at = said + run["text"], run["next"]
        await asyncio.sleep(0.05)
    return run["code"], said


async def check_sweep_is_there(page: Page, run: str, file: Path) -> None:
    """Once an apply is seen to have ended, its sweep is there, not with the next reading of the store."""
    async with page.session.get(f"{page.address}api/events", headers={KEY_HEADER: page.key}) as events:
        await events.content.readline()
        await asyncio.to_thread(file.write_text, FRESH)
        await apply(page.world)
        await page.get(f"applies/{run}")
        assert (await page.get("sweep/fresh"))["jobs"] == 3


def test_a_plan_that_the_world_left_behind_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            text = SPEC.replace("3]", "3, 4]")
            _, plan = await page.post("specs/small.yaml/plan", text=text)
            assert plan["verdict"].startswith("Plan: 1 new, 3 kept")
            base = (await page.get("specs/small.yaml"))["base"]
            assert (await page.post("specs/small.yaml/save", text=text, base=base))[0] == 200
            file = tmp_path / "specs" / "small.yaml"
            file.write_text(SPEC.replace("3]", "3, 5]"))
            await apply(page.world)  # someone else's
            file.write_text(text)
            status, run = await page.post("specs/small.yaml/apply", digest=plan["digest"])
            assert status == 200 and (await page.get("specs"))["run"] == {"id": run["id"], "file": "small.yaml"}
            assert (await page.post("specs/small.yaml/apply", digest=plan["digest"]))[0] == 409  # one at a time
            code, said = await wait_for_end(page, run)
            assert code == 3 and f"expected a plan with digest {plan['digest']}" in said
            assert (await page.get("specs"))["run"] is None
            await check_sweep_is_there(page, run["id"], file.with_name("fresh.yaml"))

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asyncio.run(main())
