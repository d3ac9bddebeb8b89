"""What a job prints: kept as it is, all of it, in little memory."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path

import pytest

from monkey.protocol.record.packed_segments import pack_gzip, read_log_segment
from monkey.store.format import PACKED_SEGMENTS
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.pieces import join_pieces
from tests.unit.monkey_agent.body import Body, script


def test_bytes_that_are_no_text_are_kept_as_they_are(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start(script(r"import os; os.write(1, b'a\xff\xfe\x00\nb\n'); raise SystemExit(3)"))
        outcome = await running.wait()
        assert (await body.stored(running))["log/000000"] == b"a\xff\xfe\x00\nb\n"
        assert outcome.log_tail == ["a\ufffd\ufffd", "b"]
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (AttemptEnd.FAILED, "exit code 3", 3)

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
            odd = "mkfifo $MONKEY_METRICS_DIR/pipe.jsonl; touch $MONKEY_METRICS_DIR/$(printf '\\377').jsonl"
            command = f"rm ../log; {replace}; {odd}; exit 3"
            running = await body.start(["sh", "-c", command])
            await running.process.ended
            running.progress()
            # What is between a look at the directory and the opening of a file.
            assert running._metrics._feed("pipe.jsonl", 100) == running._metrics._feed("x", 100) == 0
            running.log.note("lost")
            outcome = await asyncio.wait_for(running.wait(), 60)
            assert (outcome.ending, outcome.exit_code, outcome.log_tail) == (AttemptEnd.FAILED, 3, [])
            assert await body.stored(running, "log/") == {}
            assert secret.read_text() == "not the job's"
            running.leave(recorded=True)
            # The next one gets the same workspace.
            running = await body.start("echo fine")
            assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
            assert (await body.stored(running))["log/000000"] == b"fine\n"

    run(scenario())


def test_what_an_earlier_agent_packed_otherwise_is_not_sent_again(body: Body, run: Run) -> None:
    body.store.layout = PACKED_SEGMENTS

    async def scenario() -> None:
        job, text = "a" * 16, b"x" * 100_000
        first = f"{body.keys.out(job, 1)}log/000000"
        for before, expected in (
            (pack_gzip(text, 9, "0"), {"log/000000": text}),
            (pack_gzip(text, 9, "0")[:-1], {"log/000001": text}),
            (pack_gzip(b"other", 9, "0"), {"log/000000": b"other", "log/000001": text}),
        ):
            await body.store.put(first, before)
            running = await body.start(["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"], job=job)
            await running.wait()
            left = await body.stored(running, "log/")
            assert left["log/000000"] == before
            found = {key: read_packed(data) for key, data in left.items()}
            assert {key: data for key, data in found.items() if data} == expected
            running.leave(recorded=True)
            for key in left:
                await body.store.delete(body.keys.out(job, 1) + key)

    run(scenario())


def read_packed(data: bytes) -> bytes:
    """Return what a segment has; b"" where it is torn."""
    try:
        return gzip.decompress(data)
    except EOFError:
        return b""


def loud(megabytes: int) -> list[str]:
    """Return a job that prints so much, no line like another."""
    return script(
        "import os\nfor i in range(" + str(megabytes) + "):\n"
        "    os.write(1, b''.join(b'%015d\\n' % n for n in range(i * 65536, (i + 1) * 65536)))"
    )


async def _prints(body: Body, megabytes: int) -> None:
    running = await body.start(loud(megabytes))
    outcome = await running.wait()
    assert outcome.ending is AttemptEnd.SUCCEEDED, outcome
    count, size = 0, 0
    expected = b"".join(b"%015d\n" % n for n in range(65536))
    items = await body.store.list(body.keys.out(running.job, 1) + "log/")
    for item in items:
        data = (await read_log_segment(body.store, item.key)).data
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
def test_much_output_in_little_memory(tmp_path: Path, run: Run) -> None:
    import resource

    from monkey.store.open import open_store

    async def scenario() -> None:
        store = await open_store(str(tmp_path / "store"), begin=True)
        body = Body(tmp_path, store)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await _prints(body, 1024 if "MONKEY_LONG" in os.environ else 320)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
        await body.runner.close()
        await store.close()

    run(scenario())


def test_what_is_shipped_while_a_job_runs_is_what_its_files_have_in_the_end(body: Body, run: Run) -> None:
    async def scenario() -> None:
        text = (
            "import json, os, time\n"
            "metrics = open(os.environ['MONKEY_METRICS_DIR'] + '/0.jsonl', 'w', buffering=1)\n"
            "for i in range(200):\n"
            "  for j in range(50):\n"
            "    print(i * 100 + j)\n"
            "    print(json.dumps({'m': {'loss': i * 100 + j}, 'step': None, 't': 1.5}), file=metrics)\n"
            "  time.sleep(0.01)"
        )
        running = await body.start(script(text))
        pieces = []
        while not running.process.ended.done():
            took = list(body.runner.take_unshipped(1000))
            assert sum(len(piece.data) for piece in took) <= 1000
            pieces += took
            await asyncio.sleep(0.05)
        assert pieces, "nothing was to be shipped while it ran"
        while took := list(body.runner.take_unshipped(1000)):
            pieces += took
        await running.wait()
        assert not list(body.runner.take_unshipped(1000)), "its files are whole in the store"
        stored = await body.stored(running)
        stored["log"] = stored.pop("log/000000")
        assert join_pieces(pieces, running.job, 1) == stored

    run(scenario())
