"""An attempt: what it is told and given, and what it leaves, with real processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from monkey.errors import StoreError, StoreUnavailable
from monkey.processes import process_tree
from monkey.store.memory import MemoryStore
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, alive, script, turn, until


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
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (AttemptEnd.SUCCEEDED, "", 0), outcome
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
        assert outcome.ending is AttemptEnd.SUCCEEDED, outcome
        env, cwd = json.loads((await body.stored(running))["log/000000"])
        assert json.loads(env["MONKEY_PARAMS"]) == {"optimizer": {"lr": 0.1}, "name": "é\n$(x)"}
        assert (env["MONKEY_JOB"], env["MONKEY_ATTEMPT"], env["MONKEY_SWEEP"]) == ("j" * 16, "3", "sweep")
        assert (env["KEPT"], env["OTHER"], env["PYTHONUNBUFFERED"]) == ("yes", "spec", "1")
        assert "MONKEY_STORE" not in env
        assert cwd == env["PWD"] == f"{body.state}/attempts/{'j' * 16}.3/work"
        await body.runner.close()

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
            running = await body.start([sys.executable, "train.py"], code=code)
            assert (await running.wait()).ending is AttemptEnd.SUCCEEDED, await body.stored(running)

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
            assert (await running.wait()).ending is AttemptEnd.SUCCEEDED, (end, await body.stored(running))

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


async def no_slot() -> None:
    """Say that it may not run."""


def test_who_has_no_right_to_run_is_not_started(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start(["true"])
        attempt = running._attempt
        await running.wait()
        running.leave(recorded=True)
        assert await body.runner.start(attempt, no_slot) is None
        body.runner.renew(body.runner.clock.now())
        assert await body.runner.start(attempt, turn) is None
        body.runner.renew(body.runner.clock.now() + 3600)
        assert await body.runner.start(attempt, turn) is not None

    run(scenario())


def test_progress_is_there_while_it_runs(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        begin, go = (f"while not os.path.exists('{tmp_path}/{name}'): time.sleep(.01)" for name in ("begin", "go"))
        text = f"import monkey, os, time\n{begin}\nmonkey.log('loss', 1.5)\n{go}"
        running = await body.start(script(text))
        assert running.progress() == {}
        (tmp_path / "begin").touch()
        await until(lambda: running.progress().get("loss", {}).get("last") == 1.5)
        (tmp_path / "go").touch()
        assert (await running.wait()).summary["loss"]["count"] == 1

    run(scenario())


def test_lines_of_metrics_that_are_none_are_counted(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        good, bad, late = ({"t": t, "m": {"loss": 1}} for t in (1, "now", 2))
        spoilt = "\n".join(["no record", *map(json.dumps, (good, bad, {**late, "m": {"loss": "low"}}))])
        (tmp_path / "lines").write_text(f"{spoilt}\n")
        running = await body.start(["sh", "-c", f"cp {tmp_path}/lines $MONKEY_METRICS_DIR/0.jsonl; sleep 1000"])
        await until(running.progress)
        assert running.usage()["skipped_lines"] == 3
        await running.stop("enough")
        assert (await running.wait()).usage["skipped_lines"] == 3
        log = (await body.stored(running, "log/")).popitem()[1].decode()
        assert "monkey: lines or values of its metrics that are no records, and were skipped: 3" in log
        fine = await body.run(["sh", "-c", f"grep 1, {tmp_path}/lines > $MONKEY_METRICS_DIR/0.jsonl"])
        assert fine.summary["loss"]["count"] == 1 and "skipped_lines" not in fine.usage

    run(scenario())


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_many_jobs_at_once(body: Body, run: Run) -> None:
    async def scenario() -> None:
        code = await body.code({"say.sh": "echo $MONKEY_JOB; (setsid sleep 1000 &); exit $1"})

        async def one(i: int) -> None:
            running = await body.start(["sh", "say.sh", str(i % 3)], job=f"{i:016x}", code=code)
            outcome = await running.wait()
            assert outcome.exit_code == i % 3
            note = "" if i % 3 else "monkey: the command left processes running (1), which were ended\n"
            assert await body.stored(running) == {"log/000000": f"{i:016x}\n{note}".encode()}

        await asyncio.gather(*map(one, range(60)))

    run(scenario())
    left = [
        pid for pid in process_tree.list_processes() if (process_tree.read_mark(pid) or "").startswith(f"{body.state}:")
    ]
    assert len([pid for pid in left if alive(pid)]) == 3, "the supervisor, its guard and the keeper, and nobody else"
