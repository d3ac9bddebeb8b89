"""The plan of a text that no file has yet, by a process of its own: planning takes long, and must not stop the page.

`python -m monkey.web.editing.draft_planning` reads a DraftRequest as JSON from its input, and prints JSON.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from monkey.apply.planning import plan_draft
from monkey.apply.world.world import open_world
from monkey.errors import MonkeyError, SpecError
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.lines import (
    PlanLine,
    format_fleet_plan,
    format_sweep_plan,
    format_verdict,
    format_warnings,
)
from monkey.process_exit import exit_now
from monkey.spec.project.project import STORE_VARIABLE, Project, load_project
from monkey.transfer.code.git_files import read_origin_url
from monkey.web.editing.spec_folder import SpecFolder
from monkey.web.safe_json import encode_json


class DraftRequest(NamedTuple):
    """What is to be planned."""

    #: The name of a file of specs/, and its text to be.
    file: str
    text: str
    #: The user's file in place of monkey.yaml; "" for the project's.
    project_file: str = ""


def locate_project_file(project: Project) -> str:
    """Return the path of the user's file in place of monkey.yaml, for processes that start elsewhere; "" for none."""
    return str(project.file.absolute()) if project.file else ""


async def ask_planner(project: Project, file: str, text: str) -> dict[str, Any]:
    """Plan a draft by a process; return the plan as the page shows it, or `error`. The process ends with the caller."""
    request = DraftRequest(file, text, locate_project_file(project))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "monkey.web.editing.draft_planning"),
        cwd=project.root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await process.communicate(json.dumps(request._asdict()).encode())
    except BaseException:
        process.terminate()
        await process.wait()
        raise
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        last = (err.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise MonkeyError(f"planning ended with exit code {process.returncode}: {last}") from None
    return answer


def serialize_error(error: MonkeyError) -> dict[str, Any]:
    """Return an error, and the problems of a spec with their lines."""
    if isinstance(error, SpecError):
        problems = [dataclasses.asdict(problem) for problem in error.problems]
        return {"error": "the spec is not valid", "hint": "", "problems": problems}
    return {"error": error.message, "hint": error.hint or "", "problems": []}


def serialize_plan_lines(plan: Plan) -> dict[str, Any]:
    """Return what `monkey plan` shows, line by line, with the digest that an apply is bound to."""
    parts = [_serialize_part(f"{one.name} ({one.desired.source})", format_sweep_plan(one)) for one in plan.sweeps]
    shown = [fleet for fleet in plan.fleets if fleet.changes or fleet.notes]
    machines = [*(line for fleet in shown for line in format_fleet_plan(fleet)), *format_warnings(plan)]
    return {
        "parts": [*parts, *([_serialize_part("machines", machines)] if machines else [])],
        "verdict": format_verdict(plan),
        "digest": compute_plan_digest(plan),
        "changes": plan.changes and len(plan.accepted) == len(plan.sweeps),
    }


def _serialize_part(title: str, lines: list[PlanLine]) -> dict[str, Any]:
    return {
        "title": title,
        "lines": [{"mark": str(mark), "text": text, "detail": detail} for mark, text, detail in lines],
    }


async def _plan(request: DraftRequest) -> dict[str, Any]:
    file = Path(request.project_file) if request.project_file else None
    project = load_project(Path.cwd(), file, os.environ.get(STORE_VARIABLE), read_origin_url)
    folder = SpecFolder(project)
    folder.check_spec(request.file, request.text)
    async with open_world(project, remember=False) as world:
        planned = await plan_draft(world, folder.locate(request.file), request.text)
    return serialize_plan_lines(planned.plan)


def answer_request() -> None:
    """Answer one request."""
    try:
        answer = asyncio.run(_plan(DraftRequest(**json.load(sys.stdin))))
    except MonkeyError as exc:
        answer = serialize_error(exc)
    except OSError as exc:
        answer = serialize_error(MonkeyError(f"{exc.strerror or exc}: {exc.filename or ''}".rstrip(": ")))
    sys.stdout.buffer.write(encode_json(answer))
    sys.stdout.flush()
    exit_now(0)


if __name__ == "__main__":
    answer_request()
