"""The addresses of the page: what each GET shows, and what each POST orders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from monkey.apply.inspect.named_sides import find_sides
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.differences.compare_sides import compare_sides
from monkey.web.curve_cache import CurveCache, JobCurves
from monkey.web.job_data import serialize_job_page
from monkey.web.live_store import LiveStore
from monkey.web.log_parts import read_log_part
from monkey.web.page_data import serialize_failure_kinds, serialize_machines, serialize_progress, serialize_project
from monkey.web.page_guard import LOGIN_PATH, PageGuard, refuse_request
from monkey.web.page_orders import ORDERS, OrderQuestion, send_order
from monkey.web.safe_json import encode_shown_json

#: Jobs whose curves one request asks for, and points of each, at most.
_JOBS, _POINTS = 200, 2_000
#: Seconds after which an event is sent though nothing changed, so that a dead connection is noticed.
_HEARTBEAT = 20.0

_Answer = Callable[[web.Request], Awaitable[Any]]


class PageRoutes:
    """The handlers of one server."""

    def __init__(self, live: LiveStore, guard: PageGuard) -> None:
        """Answer from `live`, for those whom `guard` lets pass."""
        self._live, self._guard = live, guard
        self._curves = CurveCache(live)

    def list_routes(self) -> list[web.RouteDef]:
        """Return the routes: GETs change nothing, and POSTs are orders."""
        shown: dict[str, _Answer] = {
            "/api/sweeps": self._show_project,
            "/api/sweep/{sweep}": self._show_sweep,
            "/api/failures/{sweep}": self._show_failures,
            "/api/job/{sweep}/{job}": self._show_job,
            "/api/difference/{sweep}/{job}": self._show_difference,
            "/api/job-curves/{sweep}/{job}": self._show_job_curves,
            "/api/log/{sweep}/{job}": self._show_log,
            "/api/curves/{sweep}": self._show_curves,
            "/api/machines": self._show_machines,
        }
        routes = [web.get(path, make_handler(answer), allow_head=False) for path, answer in shown.items()]
        routes += [web.get("/api/events", self._stream_events, allow_head=False), web.post(LOGIN_PATH, self._log_in)]
        return [*routes, web.post("/api/orders/{order}", make_handler(self._take_order))]

    async def _log_in(self, request: web.Request) -> web.Response:
        return self._guard.log_in(request, (await read_body(request)).get("token"))

    async def _stream_events(self, request: web.Request) -> web.StreamResponse:
        """Send the number of each new version: the page then asks for what it shows."""
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        version = -1
        with suppress(ConnectionResetError):  # the page was closed
            async with self._live.watch():
                while True:
                    await self._live.wait_for_change(version, _HEARTBEAT)
                    version = self._live.version
                    told = {"version": version, "trouble": self._live.trouble}
                    await stream.write(b"data: " + encode_shown_json(told) + b"\n\n")
        return stream

    async def _show_project(self, request: web.Request) -> Any:
        snapshot = await self._live.snapshot()
        return serialize_project(self._live, snapshot, read_only=self._guard.read_only)

    async def _show_sweep(self, request: web.Request) -> Any:
        view, table = await self._live.find_sweep(request.match_info["sweep"])
        since = _read_number(request, "since", 0)
        rows = await self._live.compute(lambda: table.encode_rows(since))
        body = (
            encode_shown_json(serialize_progress(view, table, self._live.world.project.grafana))[:-1] + b"," + rows[1:]
        )
        return web.Response(body=body, content_type="application/json")

    async def _show_failures(self, request: web.Request) -> Any:
        view, _ = await self._live.find_sweep(request.match_info["sweep"])
        return await self._live.compute(lambda: serialize_failure_kinds(view))

    async def _show_machines(self, request: web.Request) -> Any:
        return serialize_machines(await self._live.snapshot())

    async def _find_job(self, request: web.Request) -> tuple[SweepView, str]:
        job = request.match_info["job"]
        return await self._live.find_job(request.match_info["sweep"], job), job

    async def _show_job(self, request: web.Request) -> Any:
        return await serialize_job_page(self._live.world, *await self._find_job(request))

    async def _show_difference(self, request: web.Request) -> Any:
        """Return what differs from the job that `against` names, as `monkey diff --json` prints it."""
        world, (view, job) = self._live.world, await self._find_job(request)
        whats = f"{view.state.name}/{job}", request.query.get("against", "")
        sides = await find_sides(world, await self._live.snapshot(), whats)
        return (await compare_sides(world.at, world.keys, *sides)).to_json()

    async def _show_job_curves(self, request: web.Request) -> Any:
        curves, growing = await self._curves.read(*await self._find_job(request))
        points = min(_read_number(request, "points", 500), _POINTS)
        names = sorted(curves)[:_JOBS]
        return {"growing": growing, "curves": {name: curves[name].serialize(points) for name in names}}

    async def _show_curves(self, request: web.Request) -> Any:
        """Return one metric of several jobs, named in `jobs` by the beginning of a query, separated by commas."""
        view, _ = await self._live.find_sweep(request.match_info["sweep"])
        metric, points = request.query.get("metric", ""), min(_read_number(request, "points", 500), _POINTS)
        known = view.state.revision.rows if view.state.revision else {}
        jobs = [job for job in request.query.get("jobs", "").split(",")[:_JOBS] if job in known]
        found: dict[str, Any] = {}
        for job, (curves, growing) in zip(jobs, await self._read_curves(view, jobs), strict=True):
            curve = curves.get(metric)
            found[job] = {"growing": growing, **(curve.serialize(points) if curve else {})}
            await asyncio.sleep(0)  # others are answered meanwhile
        return {"curves": found}

    async def _read_curves(self, view: SweepView, jobs: list[str]) -> list[JobCurves]:
        return await asyncio.gather(*(self._curves.read(view, job) for job in jobs))

    async def _show_log(self, request: web.Request) -> Any:
        view, job = await self._find_job(request)
        attempt, at = _read_number(request, "attempt", 0), _read_number(request, "at", 0)
        part = await read_log_part(self._live, view, job, attempt, at)
        text = part.data.decode(errors="replace")
        return {"text": text, "start": part.start, "next": part.start + len(part.data), "growing": part.growing}

    async def _take_order(self, request: web.Request) -> Any:
        order = request.match_info["order"]
        if self._guard.read_only:
            return refuse_request(403, "behind a proxy this page only shows", "give the order by `monkey` itself")
        if order not in ORDERS:
            return refuse_request(404, f"expected one of {', '.join(ORDERS)}, found {order!r}")
        try:
            said = await send_order(self._live.world, order, await read_body(request))
        except OrderQuestion as exc:
            return web.json_response({"ask": exc.message}, status=409)
        await self._live.refresh()
        return said


def make_handler(answer: _Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler that makes JSON of an answer, and words of an error."""

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            told = await answer(request)
        except NotFound as exc:
            return refuse_request(404, exc.message, exc.hint or "")
        except MonkeyError as exc:
            return refuse_request(503, exc.message, exc.hint or "")
        except OSError as exc:
            return refuse_request(503, exc.strerror or str(exc))
        return told if isinstance(told, web.StreamResponse) else _make_json_answer(told)

    return handler


def _make_json_answer(told: Any) -> web.Response:
    return web.Response(body=encode_shown_json(told), content_type="application/json")


def _read_number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default


async def read_body(request: web.Request) -> dict[str, Any]:
    """Return the JSON of a POST; {} for what is no mapping."""
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {}
