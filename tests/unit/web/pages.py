"""A page that is served from a small project, and somebody who has its link."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from monkey.apply.world.world import World
from monkey.protocol.record.shipment import METRICS, Piece
from monkey.web.page_guard import KEY_HEADER, PageGuard
from monkey.web.page_server import serve_page
from tests.unit.apply.small_project import Pen, apply, opened, write_project


@dataclass
class Page:
    """A served page, its project, and a pen that plays the agent."""

    world: World
    pen: Pen
    jobs: list[str]
    address: str
    guard: PageGuard
    session: aiohttp.ClientSession
    key: str = ""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.guard.port}"

    async def log_in(self) -> None:
        """Exchange the token, as the page does."""
        status, body = await self.post("login", token=self.guard.token)
        assert status == 200
        self.key = body["key"]

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; a `headers` of None leaves out one of ours."""
        ours = {"Origin": self.origin, KEY_HEADER: self.key} | options.pop("headers", {})
        headers = {name: value for name, value in ours.items() if value is not None}
        async with self.session.request(method, self.address + path, headers=headers, **options) as answer:
            kind = answer.content_type
            return answer.status, await answer.json() if kind == "application/json" else await answer.text()

    async def get(self, path: str) -> Any:
        """Return the JSON of what the page shows."""
        status, body = await self.ask("GET", f"api/{path}")
        assert status == 200, body
        return body

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        """Give an order."""
        return await self.ask("POST", f"api/{path}", json=body)

    async def log_metrics(self, job: str, k: int, lines: str, at: int = 0) -> None:
        """Ship lines of a running job's metrics."""
        self.pen.heart.shipment.add(Piece(job, k, f"{METRICS}0.jsonl", at, lines.encode()))
        await self.pen.heart.beat()


@asynccontextmanager
async def serving(root: Path, spec: str | None = None, *, known: bool = True, **about: Any) -> AsyncIterator[Page]:
    """Apply a small sweep, and serve its page; `known`: log in."""
    write_project(root, spec) if spec else write_project(root)
    guard = PageGuard(**about)
    async with opened(root) as world:
        jobs = (await apply(world)).wanted[0].desired.table.ids
        jar = aiohttp.CookieJar(unsafe=True)  # of an address without a name
        async with serve_page(world, guard) as address, aiohttp.ClientSession(cookie_jar=jar) as session:
            page = Page(world, Pen(world), list(jobs), f"http://127.0.0.1:{guard.port}/", guard, session)
            assert address in (page.address, f"{guard.base_url}/")
            if known:
                await page.log_in()
            yield page
