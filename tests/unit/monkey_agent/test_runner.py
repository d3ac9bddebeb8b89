"""Attempts, from workspace to outcome, with real processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import Corrupt, JobFailed, StoreError, StoreUnavailable
from monkey.store.memory import MemoryStore
from monkey_agent import processes
from monkey_agent.ports import Ending
from tests.unit.monkey_agent.body import Body, alive, seated, until

Run = Callable[[Any], Any]
PYTHON = sys.executable


def script(text: str) -> list[str]:
    """Return a job that runs this Python text."""
    return [PYTHON, "-c", text.replace("{", "{{").replace("}", "}}")]


def test_what_a_job_makes_is_in_the_store(body: Body, run: Run) -> None:
    async def scenario() -> None:
        command = script(
            "import monkey, os, sys\n"
            "monkey.log('loss', 0.5, step=1)\nmonkey.log('loss', 0.25, step=2)\n"
            "(monkey.output_dir() / 'deep').mkdir()\n(monkey.output_dir() / 'deep' / 'a b.txt').write_text('made')\n"
            "open('model.npz', 'wb').write(b'\\0' * 3_000_000)\nopen('scratch', 'w').write('not kept')\n"
            "print('out')\nprint('err', file=sys.stderr)\n"
        )
        running = await body.start(command, outputs=["*.npz"])
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (Ending.SUCCEEDED, "", 0), outcome
        stored = await body.stored(running)
        assert stored.pop("log/000000") == b"out\nerr\n"
        assert outcome.outputs == {
            "deep/a b.txt": hashlib.sha256(b"made").hexdigest(),
            "model.npz": hashlib.sha256(b"\0" * 3_000_000).hexdigest(),
        }
        assert {name: hashlib.sha256(stored.pop(f"outputs/{name}")).hexdigest() for name in outcome.outputs} == (
            outcome.outputs
        )
        ((name, metrics),) = stored.items()
        assert name.startswith("metrics/")
        assert metrics.count(b"\n") == 2
        assert outcome.summary["loss"]["last"] == 0.25
        assert outcome.log_tail == []
        assert 0 < outcome.seconds < 20

    run(scenario())


def test_a_job_is_told_what_it_is(tmp_path: Path, run: Run) -> None:
    inherited = {"PATH": os.environ["PATH"], "KEPT": "yes", "OTHER": "agent", "MONKEY_STORE": "secret"}

    async def scenario() -> None:
        body = Body(tmp_path, env=inherited)
        command = script("import os, json; print(json.dumps([dict(os.environ), os.getcwd()]))")
        running = await body.start(
            command, job="j" * 16, k=3, parameters={"optimizer.lr": 0.1, "name": "é\n$(x)"}, env={"OTHER": "spec"}
        )
        outcome = await running.wait()
        assert outcome.ending is Ending.SUCCEEDED, outcome
        env, cwd = json.loads((await body.stored(running))["log/000000"])
        assert json.loads(env["MONKEY_PARAMS"]) == {"optimizer": {"lr": 0.1}, "name": "é\n$(x)"}
        assert (env["MONKEY_JOB"], env["MONKEY_ATTEMPT"], env["MONKEY_SWEEP"]) == ("j" * 16, "3", "sweep")
        assert (env["KEPT"], env["OTHER"], env["PYTHONUNBUFFERED"]) == ("yes", "spec", "1")
        assert "MONKEY_STORE" not in env
        assert cwd == env["PWD"] == f"{body.state}/attempts/{'j' * 16}.3/work"
        await body.runner.close()

    run(scenario())


def test_bytes_that_are_no_text_are_kept_as_they_are(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start(script(r"import os; os.write(1, b'a\xff\xfe\x00\nb\n'); raise SystemExit(3)"))
        outcome = await running.wait()
        assert (await body.stored(running))["log/000000"] == b"a\xff\xfe\x00\nb\n"
        assert outcome.log_tail == ["a\ufffd\ufffd\x00", "b"]
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (Ending.FAILED, "exit code 3", 3)

    run(scenario())


def test_a_failure_keeps_its_last_lines(body: Body, run: Run) -> None:
    async def scenario() -> None:
        outcome = await body.run(script("print('x' * 9_000_000)\nfor i in range(500): print(i)\n1 / 0"))
        assert len(outcome.log_tail) == 100
        assert outcome.log_tail[-1] == "ZeroDivisionError: division by zero"
        assert outcome.log_tail[0].isdigit()
        outcome = await body.run(script("print('x' * 9_000_000, end='')\n1 / 0"))
        assert max(map(len, outcome.log_tail)) <= 500
        outcome = await body.run(script("for i in range(500): print(i, 'é' * 600)\nprint('last')\nraise SystemExit(1)"))
        assert outcome.log_tail[-1] == "last"
        assert outcome.log_tail[-2].startswith("499 éé")
        assert 4 << 10 < len("\n".join(outcome.log_tail).encode()) <= 8 << 10

    run(scenario())


def test_a_log_that_is_a_pipe_or_a_link_holds_nobody_up(body: Body, tmp_path: Path, run: Run) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not the job's")

    async def scenario() -> None:
        for replace in (
            "mkfifo ../log",
            f"ln -s {secret} ../log",
            f"mkfifo ../log; ln -s {secret} $MONKEY_METRICS_DIR/x",
        ):
            body.runner.follow(True)
            command = f"rm ../log; {replace}; mkfifo $MONKEY_METRICS_DIR/pipe.jsonl; exit 3"
            running = await body.start(["sh", "-c", command])
            await running._process.ended
            running.progress()
            # What is between a look at the directory and the opening of a file.
            assert running._metrics._feed("pipe.jsonl", 100) == running._metrics._feed("x", 100) == 0
            running.log.note("lost")
            outcome = await asyncio.wait_for(running.wait(), 10)
            assert (outcome.ending, outcome.exit_code, outcome.log_tail) == (Ending.FAILED, 3, [])
            assert await body.stored(running, "log/") == {}
            assert secret.read_text() == "not the job's"
            # The next one gets the same workspace.
            running = await body.start("echo fine")
            assert (await running.wait()).ending is Ending.SUCCEEDED
            assert (await body.stored(running))["log/000000"] == b"fine\n"

    run(scenario())


def loud(megabytes: int) -> list[str]:
    """Return a job that prints so much, no line like another."""
    return script(
        "import os\nfor i in range(" + str(megabytes) + "):\n"
        "    os.write(1, b''.join(b'%015d\\n' % n for n in range(i * 65536, (i + 1) * 65536)))"
    )


async def _prints(body: Body, megabytes: int) -> None:
    running = await body.start(loud(megabytes))
    outcome = await running.wait()
    assert outcome.ending is Ending.SUCCEEDED, outcome
    count, size = 0, 0
    expected = b"".join(b"%015d\n" % n for n in range(65536))
    items = await body.store.list(running._prefix + "log/")
    for item in items:
        data = await body.store.get(item.key)
        assert len(data) <= 4 << 20
        for at in range(0, len(data), 1 << 20):
            first = int(data[at : at + 15])
            assert first == count * 65536
            assert count or data[at : at + (1 << 20)] == expected
            count += 1
        size += len(data)
    assert (count, size) == (megabytes, megabytes << 20)


def test_fifty_megabytes_of_output(body: Body, run: Run) -> None:
    run(_prints(body, 50))


@pytest.mark.slow
def test_a_gigabyte_of_output_in_little_memory(tmp_path: Path, run: Run) -> None:
    import resource

    from monkey.store.open import open_store

    async def scenario() -> None:
        store = await open_store(str(tmp_path / "store"), begin=True)
        body = Body(tmp_path, store)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await _prints(body, 1024)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
        await body.runner.close()
        await store.close()

    run(scenario())


def test_lines_are_shipped_while_somebody_watches(body: Body, run: Run) -> None:
    async def scenario() -> None:
        text = "import time\nfor i in range(200):\n  for j in range(100): print(i * 100 + j)\n  time.sleep(0.01)"
        body.runner.follow(True)
        running = await body.start(script(text))
        seen = []
        while not running._process.ended.done():
            seen.append(len(await body.stored(running)))
            await asyncio.sleep(0.05)
        await running.wait()
        stored = await body.stored(running)
        assert max(seen) > 0, "nothing was shipped while it ran"
        assert b"".join(data for _, data in sorted(stored.items())) == b"".join(b"%d\n" % n for n in range(20000))

    run(scenario())


class Flaky(MemoryStore):
    """A store that fails every other write, half of those after it took it."""

    writes = 0

    def _flaw(self) -> None:
        self.writes += 1
        if self.writes % 2 == 0:
            raise StoreUnavailable("away")

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        done = await super().create(key, data, durable=durable) if self.writes % 4 else False
        self._flaw()
        return done or await super().create(key, data, durable=durable)

    async def put_file(self, key: str, path: Path) -> None:
        self._flaw()
        await super().put_file(key, path)


def test_an_end_waits_for_a_store_that_is_away(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Flaky()
        body = Body(tmp_path, store)
        code = await body.code({})
        text = (
            "import os\nfor i in range(20): open(f\"{os.environ['MONKEY_OUTPUT_DIR']}/{i}\", 'w').write(str(i))\n"
            "print('x')"
        )
        running = await body.start(script(text), code=code)
        failures = 0
        while True:
            try:
                outcome = await running.wait()
                break
            except StoreError:
                failures += 1
        assert failures
        stored = await body.stored(running)
        assert outcome.outputs == {
            str(i): hashlib.sha256(str(i).encode()).hexdigest() for i in sorted(range(20), key=str)
        }
        assert {f"outputs/{i}": str(i).encode() for i in range(20)}.items() <= stored.items()
        assert b"".join(data for key, data in sorted(stored.items()) if key.startswith("log/")) == b"x\n"
        await body.runner.close()

    run(scenario())


def test_no_job_can_change_the_code_of_another(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"train.py": "import vandal", "vandal.py": VANDAL, "pkg/deep.py": "x = 1\n"})
        for _ in range(4):
            running = await body.start([PYTHON, "train.py"], code=code)
            assert (await running.wait()).ending is Ending.SUCCEEDED, await body.stored(running)

    run(scenario())


VANDAL = """
import os, pathlib
import pkg.deep
assert pkg.deep.x == 1
assert sorted({*os.listdir()} - {"__pycache__"}) == ["pkg", "train.py", "vandal.py"], os.listdir()
for name in ("train.py", "vandal.py", "pkg/deep.py"):
    pathlib.Path(name).write_text("raise SystemExit(1)")
os.remove("train.py")
pathlib.Path("left-behind").write_text("x")
os.chmod("pkg", 0o500)
"""


def test_nothing_passes_from_job_to_job(body: Body, run: Run) -> None:
    async def scenario() -> None:
        mess = (
            "import os, pathlib\n"
            "for d in (os.getcwd(), *(os.environ[f'MONKEY_{n}_DIR'] for n in ('OUTPUT', 'METRICS', 'CHECKPOINT'))):\n"
            "    assert os.listdir(d) == [], (d, os.listdir(d))\n"
            "    pathlib.Path(d, '.hidden').write_text('x')\n"
            "    pathlib.Path(d, 'sub').mkdir()\n"
            "    pathlib.Path(d, 'sub', 'file').write_text('x')\n"
        )
        for end in ("", "os.chmod('.', 0o500)", "import shutil; shutil.rmtree(os.getcwd())", "os.chmod('sub', 0)", "1"):
            running = await body.start(script(mess + end))
            assert (await running.wait()).ending is Ending.SUCCEEDED, (end, await body.stored(running))

    run(scenario())


def test_only_files_are_kept(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"plots/old.png": "old", "plots/redrawn.png": "old"})
        text = (
            "import os\nout = os.environ['MONKEY_OUTPUT_DIR']\n"
            "open(f'{out}/fine', 'w').write('x')\nos.symlink('/etc/passwd', f'{out}/link')\nos.mkfifo(f'{out}/pipe')\n"
            "open(os.fsencode(out) + b'/\\xff', 'w')\nopen('plots/new.png', 'w')\nopen('plots/redrawn.png', 'w')\n"
            "open('fine', 'w').write('other')\n"
        )
        running = await body.start(script(text), code=code, outputs=["plots/", "fine"])
        outcome = await running.wait()
        assert sorted(outcome.outputs) == ["fine", "plots/new.png", "plots/redrawn.png"]
        stored = await body.stored(running)
        assert stored["outputs/fine"] == b"x"
        notes = stored["log/000000"].decode()
        assert all(word in notes for word in ("'link' is not kept", "'pipe' is not kept", "not UTF-8", "fine is both"))

    run(scenario())


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
        assert outcome.ending is Ending.FAILED
        assert words in outcome.reason

    run(scenario())


def test_scripts_that_cannot_run_say_why(body: Body, tmp_path: Path, run: Run) -> None:
    bare, lost = tmp_path / "bare", tmp_path / "lost"
    bare.write_text("echo\n")
    lost.write_text("#!/no/such/interpreter -x\n")
    for file in (bare, lost):
        file.chmod(0o755)

    async def scenario() -> None:
        assert "begins with #!" in (await body.run([str(bare)])).reason
        assert "the interpreter of" in (reason := (await body.run([str(lost)])).reason)
        assert "/no/such/interpreter -x" in reason

    run(scenario())


def test_what_cannot_be_prepared_fails(body: Body, run: Run) -> None:
    async def scenario() -> None:
        with pytest.raises(JobFailed, match="not in the store"):
            await body.start("true", code="0" * 64)
        code = await body.code({"a": "b"})
        await body.store.put(body.keys.code(code), b"nonsense")
        with pytest.raises(Corrupt):
            await body.start("true", code=code)
        with pytest.raises(JobFailed, match="lr"):
            await body.start("train {lr}", parameters={"other": 1})
        (body.state / "attempts").rename(body.state / "gone")
        with pytest.raises(JobFailed, match="No such file"):
            await body.start("true")
        (body.state / "gone").rename(body.state / "attempts")
        assert (await body.run("true")).ending is Ending.SUCCEEDED

    run(scenario())


def test_a_code_cache_that_lost_a_file_heals(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"large": "x" * 100_000, "small": "y"})
        assert (await body.run("test -s large", code=code)).ending is Ending.SUCCEEDED
        (body.cache / "code" / code / "large").unlink()
        with pytest.raises(JobFailed, match="lost a file"):
            await body.start("test -s large", code=code)
        assert (await body.run("test -s large", code=code)).ending is Ending.SUCCEEDED

    run(scenario())


async def no_seat() -> None:
    """Say that it may not run."""


def test_who_has_no_right_to_run_is_not_started(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start(["true"])
        attempt = running._attempt
        await running.wait()
        assert await body.runner.start(attempt, no_seat) is None
        body.runner.renew(body.runner.clock.now())
        assert await body.runner.start(attempt, seated) is None
        body.runner.renew(body.runner.clock.now() + 3600)
        assert await body.runner.start(attempt, seated) is not None

    run(scenario())


def test_a_job_that_ignores_the_request_is_killed_after_its_grace(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        deaf = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
        running = await body.start(["sh", "-c", deaf], settings={"grace": 0.3})
        await until((tmp_path / "ready").exists)
        began = time.monotonic()
        await running.stop("cancelled")
        assert 0.3 <= time.monotonic() - began < 30
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (Ending.STOPPED, "cancelled", 137)

    run(scenario())


def test_a_job_that_listens_has_its_grace(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        command = f"trap 'echo saved; exit 0' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
        running = await body.start(["sh", "-c", command], settings={"grace": 60})
        await until((tmp_path / "ready").exists)
        await running.stop("cancelled")
        outcome = await running.wait()
        assert (outcome.ending, outcome.exit_code) == (Ending.STOPPED, 0)
        assert (await body.stored(running))["log/000000"].endswith(b"saved\n")

    run(scenario())


def test_a_timeout_counts_only_what_ran(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("sleep 1000", settings={"timeout": 0.6, "grace": 5})
        began = time.monotonic()
        await asyncio.sleep(0.2)
        running.freeze()
        await asyncio.sleep(1)
        assert not running._process.ended.done()
        running.thaw()
        outcome = await running.wait()
        assert 1.5 <= time.monotonic() - began < 30
        assert (outcome.ending, outcome.reason) == (Ending.FAILED, "timed out after 0.6s")
        assert 0.5 <= outcome.seconds < 15

    run(scenario())


def test_a_timeout_does_not_count_what_the_warden_froze(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("sleep 2", settings={"timeout": 3})
        body.runner.renew(body.runner.clock.now() + 0.5)
        await asyncio.sleep(0)
        # The agent stands still; so does the job, most of that.
        time.sleep(3.5)  # noqa: ASYNC251
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running._process.ended), 0.5)
        assert await running._process.active() < 2
        body.runner.renew(body.runner.clock.now() + 3600)
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (Ending.SUCCEEDED, "")
        assert outcome.seconds < 1.2

    run(scenario())


def test_stopping_what_has_ended_changes_nothing(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("true")
        await until(running._process.ended.done)
        await running.stop("too late")
        assert (await running.wait()).ending is Ending.SUCCEEDED
        assert await running.wait() is await running.wait()

    run(scenario())


def test_progress_is_there_while_it_runs(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        wait = f"while not os.path.exists('{tmp_path}/go'): time.sleep(.01)"
        text = f"import monkey, os, time\nmonkey.log('loss', 1.5)\n{wait}"
        running = await body.start(script(text))
        assert running.progress() == {}
        await until(lambda: running.progress().get("loss", {}).get("last") == 1.5)
        (tmp_path / "go").touch()
        assert (await running.wait()).summary["loss"]["count"] == 1

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
    for _ in range(3):  # turns of the loop, after which its workspace is cleared
        await asyncio.sleep(0)
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
    import subprocess

    require("mount")
    (tmp_path / "disk").mkdir()
    inside = f"mount -t tmpfs -o size=1m none {tmp_path}/disk && exec {PYTHON} - {tmp_path}"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", inside]
    done = subprocess.run(command, input=FULL, capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert "the disk of this machine is full" in done.stdout


@pytest.mark.skipif(not processes.HAS_PROC, reason="needs /proc")
def test_many_jobs_at_once(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"say.sh": "echo $MONKEY_JOB; (setsid sleep 1000 &); exit $1"})

        async def one(i: int) -> None:
            running = await body.start(["sh", "say.sh", str(i % 3)], job=f"{i:016x}", code=code)
            outcome = await running.wait()
            assert outcome.exit_code == i % 3
            assert await body.stored(running) == {"log/000000": f"{i:016x}\n".encode()}

        await asyncio.gather(*map(one, range(60)))

    run(scenario())
    left = [pid for pid in processes.everyone() if (processes.mark(pid) or "").startswith(f"{body.state}:")]
    assert len([pid for pid in left if alive(pid)]) == 2, "the warden and its guard, and nobody else"
