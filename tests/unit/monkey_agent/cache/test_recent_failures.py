"""What cannot be started, or fails, says why."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import CorruptObject, JobFailed
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body


@pytest.mark.parametrize(
    ("files", "command", "words"),
    [
        ({}, ["no-such-program"], "command not found: no-such-program"),
        ({}, ["./missing"], "command not found: ./missing"),
        ({"plain": "echo"}, ["./plain"], "not executable"),
        ({}, ["sh", "-c", "no-such-program"], "exit code 127 (the shell did not find the command)"),
        ({}, ["sh", "-c", "kill -SEGV $$"], "killed by SIGSEGV"),
        ({}, ["sh", "-c", "kill -KILL $$"], "killed by SIGKILL (out of memory?"),
        ({}, ["sh", "-c", "exit 137"], "exit code 137 (out of memory?"),
        ({}, ["sh", "-c", "exit 139"], "exit code 139 (SIGSEGV)"),
        ({}, ["true", "x" * 300_000], "too long"),
    ],
)
def test_failures_say_why(body: Body, run: Run, files: dict[str, str], command: list[str], words: str) -> None:
    async def scenario() -> None:
        outcome = await body.run(command, code=await body.code(files))
        assert outcome.ending is AttemptEnd.FAILED
        assert words in outcome.reason

    run(scenario())


def test_scripts_that_cannot_run_say_why(body: Body, tmp_path: Path, run: Run) -> None:
    bare, lost, windows = tmp_path / "bare", tmp_path / "lost", tmp_path / "windows"
    bare.write_text("echo\n")
    lost.write_text("#!/no/such/interpreter -x\n")
    windows.write_bytes(b"#!/bin/sh\r\necho works\r\n")
    for file in (bare, lost, windows):
        file.chmod(0o755)

    async def scenario() -> None:
        assert "begins with #!" in (await body.run([str(bare)])).reason
        assert "the interpreter of" in (reason := (await body.run([str(lost)])).reason)
        assert "/no/such/interpreter -x" in reason
        reason = (await body.run([str(windows)])).reason
        assert "end as on Windows" in reason
        remedy = shlex.split(reason.split("`")[1])
        assert (await body.run(remedy)).ending is AttemptEnd.SUCCEEDED
        assert (await body.run([str(windows)])).ending is AttemptEnd.SUCCEEDED

    run(scenario())


def test_what_cannot_be_prepared_fails(body: Body, run: Run) -> None:
    async def scenario() -> None:
        with pytest.raises(JobFailed, match="not in the store"):
            await body.start("true", code="0" * 64)
        code = await body.code({"a": "b"})
        await body.store.put(body.keys.code(code), b"nonsense")
        with pytest.raises(CorruptObject):
            await body.start("true", code=code)
        with pytest.raises(JobFailed, match="lr"):
            await body.start("train {lr}", parameters={"other": 1})
        (body.state / "attempts").rename(body.state / "gone")
        with pytest.raises(JobFailed, match="No such file"):
            await body.start("true")
        (body.state / "gone").rename(body.state / "attempts")
        assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED

    run(scenario())


def test_a_code_cache_that_lost_a_file_heals(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"large": "x" * 100_000, "small": "y"})
        assert (await body.run("test -s large", code=code)).ending is AttemptEnd.SUCCEEDED
        (body.cache / "code" / code / "large").unlink()
        with pytest.raises(JobFailed, match="lost a file"):
            await body.start("test -s large", code=code)
        assert (await body.run("test -s large", code=code)).ending is AttemptEnd.SUCCEEDED

    run(scenario())


FULL = """
import asyncio, pathlib, sys
from monkey.errors import JobFailed
from tests.unit.monkey_agent.body import Body

async def main(place):
    body = Body(place / "disk")
    body.cache = place / "cache"
    code = await body.code({"data": "x" * 200_000})
    assert (await body.run("test -s data", code=code)).ending == "succeeded"
    running = await body.start(["sh", "-c", "cat /dev/zero > big; echo full; exit 1"], code=code)
    outcome = await running.wait()
    assert outcome.ending == "failed", outcome
    print(outcome.reason)
    running.leave(recorded=True)
    filler = place / "disk" / "filler"
    try:
        filler.write_bytes(b"x" * 10_000_000)
    except OSError:
        pass
    try:
        await (await body.start("true", code=code)).wait()
    except JobFailed as exc:
        print(exc.message)
    filler.unlink()
    assert (await body.run("test -s data", code=code)).ending == "succeeded"
    await body.runner.close()

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


def test_a_full_disk_is_a_clear_failure(tmp_path: Path, require: Callable[[str], str]) -> None:

    require("mount")
    (tmp_path / "disk").mkdir()
    inside = f"mount -t tmpfs -o size=1m none {tmp_path}/disk && exec {sys.executable} - {tmp_path}"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", inside]
    done = subprocess.run(command, input=FULL, capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert "the disk of this machine is full" in done.stdout
    reason = f"exit code 1, while the disk of this machine was full: {tmp_path}/disk/state/attempts (hint: make room"
    assert done.stdout.startswith(reason)
