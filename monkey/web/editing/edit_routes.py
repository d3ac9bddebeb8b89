"""The addresses of the form: what it opens, checks, plans, saves and applies. Behind a proxy there are none."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from monkey.apply.world.desired_state import SPECS
from monkey.errors import MonkeyError, NotFound, SpecError
from monkey.web.editing.apply_runs import ApplyRuns
from monkey.web.editing.draft_planning import ask_planner, serialize_error
from monkey.web.editing.form_fields import apply_edit, serialize_form
from monkey.web.editing.spec_folder import OpenedSpec, SpecConflict, SpecFolder, check_size
from monkey.web.live_store import LiveStore
from monkey.web.page_guard import PageGuard, refuse_request
from monkey.web.page_routes import make_handler, read_body
from monkey.web.safe_json import encode_json

#: Plans that were shown and may be applied; older ones are planned again.
_SEEN = 20


class EditRoutes:
    """The handlers of the form of one server."""

    def __init__(self, live: LiveStore, guard: PageGuard) -> None:
        """Edit the specs of the project of `live`, for those whom `guard` lets pass."""
        self._live, self._project, self._guard = live, live.world.project, guard
        self._folder = SpecFolder(self._project)
        self._runs = ApplyRuns(self._project)
        #: File and digest of the plans that were shown, to the text that each is of.
        self._seen: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._saving, self._planning = asyncio.Lock(), asyncio.Lock()

    def list_routes(self) -> list[web.RouteDef]:
        """Return the routes: GETs change nothing."""
        file = "/api/specs/{file}"
        posts = {"form": self._change_form, "plan": self._plan, "save": self._save, "apply": self._apply}
        gets = {"/api/specs": self._list_specs, file: self._open_spec, "/api/applies/{id}": self._show_apply}
        return [
            *(web.get(path, self._wrap(answer), allow_head=False) for path, answer in gets.items()),
            *(web.post(f"{file}/{order}", self._wrap(answer)) for order, answer in posts.items()),
        ]

    def _wrap(
        self, answer: Callable[[web.Request], Awaitable[Any]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler that refuses where the page only shows, and says what is wrong with specs."""

        async def guarded(request: web.Request) -> Any:
            if self._guard.read_only:
                return refuse_request(403, "behind a proxy this page only shows", "edit specs by an editor")
            try:
                told = await answer(request)
                # As it is: the text of a spec comes back, and is saved.
                return told if isinstance(told, web.StreamResponse) else _answer(200, told)
            except SpecConflict as exc:
                found = {"text": exc.found.text, "base": exc.found.base}
                return _answer(409, {**serialize_error(exc), "found": found})
            except SpecError as exc:
                return _answer(422, serialize_error(exc))

        return make_handler(guarded)

    async def _list_specs(self, request: web.Request) -> Any:
        newest = self._runs.newest
        return {
            "files": await asyncio.to_thread(self._folder.list_specs),
            "run": {"id": newest.id, "file": newest.file} if newest and newest.code is None else None,
        }

    async def _open_spec(self, request: web.Request) -> Any:
        file = request.match_info["file"]
        opened = await asyncio.to_thread(self._folder.open_spec, file)
        return {"base": opened.base, **await asyncio.to_thread(self._describe, file, opened.text)}

    async def _change_form(self, request: web.Request) -> Any:
        """Return a text with one change, or as it is; its fields, and what is wrong with it. Nothing is written."""
        body, file = await read_body(request), request.match_info["file"]
        edit = body.get("edit")

        def change() -> dict[str, Any]:
            self._folder.locate(file)
            text = _read_text(body)
            check_size(text, f"{SPECS}/{file}")
            return self._describe(file, apply_edit(text, edit) if isinstance(edit, dict) else text)

        try:
            return await asyncio.to_thread(change)
        except (NotFound, SpecError):
            raise
        except MonkeyError as exc:
            return _answer(422, serialize_error(exc))

    def _describe(self, file: str, text: str) -> dict[str, Any]:
        form = serialize_form(text, self._project.providers)
        try:
            self._folder.check_spec(file, text)
        except MonkeyError as exc:
            wrong = serialize_error(exc)
            return {"text": text, "form": form, "problems": wrong["problems"] or [{**wrong, "message": wrong["error"]}]}
        return {"text": text, "form": form, "problems": []}

    async def _plan(self, request: web.Request) -> Any:
        """Plan a text, saved or not; nothing is written."""
        body, file = await read_body(request), request.match_info["file"]
        text = _read_text(body)
        self._folder.locate(file)
        check_size(text, f"{SPECS}/{file}")
        async with self._planning:
            plan = await ask_planner(self._project, file, text)
        if "error" in plan:
            return _answer(422, plan)
        self._seen[file, plan["digest"]] = text
        self._seen.move_to_end((file, plan["digest"]))
        while len(self._seen) > _SEEN:
            self._seen.popitem(last=False)
        return plan

    async def _save(self, request: web.Request) -> Any:
        body, file = await read_body(request), request.match_info["file"]
        text, base = _read_text(body), str(body.get("base", ""))
        async with self._saving:
            saved = await asyncio.to_thread(self._folder.save_spec, file, text, base)
        return {"base": saved.base}

    async def _apply(self, request: web.Request) -> Any:
        """Apply a file as its plan was shown: its text must be the one of that plan, and saved."""
        body, file = await read_body(request), request.match_info["file"]
        digest = str(body.get("digest", ""))
        text = self._seen.get((file, digest))
        if text is None:
            return refuse_request(409, "no plan of this file with this digest was shown", "plan it, and look at that")
        found: OpenedSpec = await asyncio.to_thread(self._folder.open_spec, file)
        if found.text != text:
            return refuse_request(409, f"{SPECS}/{file} is not what the plan was made of", "save it, or plan it again")
        try:
            run = await self._runs.start_apply(file, digest)
        except MonkeyError as exc:
            return refuse_request(409, exc.message, exc.hint or "")
        return run.serialize()

    async def _show_apply(self, request: web.Request) -> Any:
        run = self._runs.newest
        if run is None or run.id != request.match_info["id"]:
            raise NotFound("there is no such apply", hint="a newer one took its place; see `monkey history`")
        at = request.query.get("at", "")
        if run.code is not None:
            # The page links to the sweep then: a reading from before the apply would not have it.
            with suppress(MonkeyError):
                await self._live.refresh()
        return run.serialize(int(at) if at.isascii() and at.isdecimal() and len(at) < 16 else 0)


def _read_text(body: dict[str, Any]) -> str:
    text = body.get("text")
    if not isinstance(text, str):
        raise MonkeyError("expected the text of a spec")
    return text


def _answer(status: int, told: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=encode_json(told), content_type="application/json")
