"""The search for a machine's runtime: nothing waits for it, and a missing one is looked for again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey.errors import JobFailed
from monkey_agent.containers.container_sweep import ContainerSweeper
from monkey_agent.containers.runtime_search import RuntimeSearch
from monkey_agent.unexpected_errors import UnexpectedErrors
from tests.loops import Run


def write_program(directory: Path, name: str, script: str = "") -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}")
    (directory / name).chmod(0o755)


def test_a_missing_runtime_is_told_and_looked_for_again_after_a_minute(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        env, now, answered = {"PATH": str(tmp_path)}, 0.0, asyncio.Event()
        search = RuntimeSearch(env, None, ContainerSweeper(tmp_path, env), lambda: now)
        search.on_answer = answered.set

        async def ask() -> str | None:
            answered.clear()
            search.find_lack(gpus=False)
            await asyncio.wait_for(answered.wait(), 10)
            return search.find_lack(gpus=False)

        assert search.find_lack(gpus=False) is None, "nobody waits for the answer"
        assert "this machine has none of apptainer" in (await ask() or "")
        for name in ("ch-run", "ch-image", "setpriv", "unshare"):
            write_program(tmp_path, name)
        now = 59.0
        assert "this machine has none of" in (search.find_lack(gpus=False) or "")
        now = 61.0
        assert await ask() == ""
        assert "hands no GPUs" in (search.find_lack(gpus=True) or "")
        await search.close()

    run(scenario())


def test_a_search_under_way_ends_with_the_agent(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        env, answers = {"PATH": str(tmp_path)}, list[str]()
        search = RuntimeSearch(env, None, ContainerSweeper(tmp_path, env))
        search.on_answer = lambda: answers.append("too late")
        assert search.find_lack(gpus=False) is None and len(asyncio.all_tasks()) == 2
        await search.close()
        assert asyncio.all_tasks() == {asyncio.current_task()} and not answers

    run(scenario())


def test_a_runtime_that_does_not_work_is_asked_once_by_many_jobs(tmp_path: Path, run: Run) -> None:
    write_program(tmp_path, "docker", f'echo "$1" >> {tmp_path}/asked\necho "no daemon" >&2\nexit 1\n')

    async def scenario() -> None:
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        search = RuntimeSearch(env, "docker", ContainerSweeper(tmp_path, env))
        for found in await asyncio.gather(*(search.find() for _ in range(5)), return_exceptions=True):
            assert isinstance(found, JobFailed) and "docker does not work: no daemon" in found.message
        await search.close()

    run(scenario())
    assert (tmp_path / "asked").read_text() == "version\n"


def test_a_search_that_ends_in_a_bug_is_answered_and_told(tmp_path: Path, run: Run) -> None:
    write_program(tmp_path, "docker")

    async def scenario() -> None:
        env = {"PATH": str(tmp_path), "BROKEN": "no program takes a \0"}
        said, answered, sweeper = list[str](), asyncio.Event(), ContainerSweeper(tmp_path, env)
        search = RuntimeSearch(env, None, sweeper, errors=UnexpectedErrors(said.append))
        search.on_answer = answered.set
        assert search.find_lack(gpus=False) is None
        await asyncio.wait_for(answered.wait(), 10)
        why = search.find_lack(gpus=False) or ""
        assert "its image cannot be run: ValueError: embedded null byte (this is a bug in monkey" in why
        assert len(said) == 1 and "in find_runtime" in said[0], "the agent's log has the traceback"
        await search.close()

    run(scenario())
