"""The server of the page: aiohttp on the loopback address, with the files of the page in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources

from aiohttp import web

from monkey.apply.world.world import World
from monkey.web.editing.edit_routes import EditRoutes
from monkey.web.live_store import LiveStore
from monkey.web.page_guard import PageGuard, make_guard_middleware, set_headers
from monkey.web.page_routes import PageRoutes

#: Bytes of a request's body: the text of a spec, as JSON.
_MAX_BODY = 1 << 20
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def load_assets() -> dict[str, web.Response | bytes]:
    """Return the files of the page by name: a request names one of them, and never a path."""
    folder = resources.files("monkey.web") / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


def make_app(live: LiveStore, guard: PageGuard) -> web.Application:
    """Return the application: assets, the API, and the guard before both."""
    app = web.Application(middlewares=[make_guard_middleware(guard)], client_max_size=_MAX_BODY)
    app.on_response_prepare.append(set_headers)
    assets = load_assets()

    async def show_asset(request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        body = assets.get(name)
        if not isinstance(body, bytes):
            raise web.HTTPNotFound(text="there is no such page")
        kind = _TYPES[name.rpartition(".")[2]]
        return web.Response(body=body, content_type=kind, charset="utf-8")

    app.router.add_get("/", show_asset, allow_head=False)
    app.router.add_get("/assets/{name}", show_asset, allow_head=False)
    app.router.add_routes(PageRoutes(live, guard).list_routes())
    app.router.add_routes(EditRoutes(live, guard).list_routes())
    return app


@asynccontextmanager
async def serve_page(world: World, guard: PageGuard, port: int = 0) -> AsyncIterator[str]:
    """Serve the page at a port of the loopback address (0: any that is free); yields the address of the page."""
    live = LiveStore(world)
    # Access logs would hold what users look at; a browser that went away is no error.
    runner = web.AppRunner(make_app(live, guard), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        guard.port = runner.addresses[0][1]
        yield guard.base_url.rstrip("/") + "/" if guard.base_url else f"http://127.0.0.1:{guard.port}/"
    finally:
        await live.close()
        await runner.cleanup()
