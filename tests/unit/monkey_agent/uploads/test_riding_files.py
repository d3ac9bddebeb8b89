"""What an attempt wrote rides in its end, where that is little and each request costs money."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.protocol.record.end_files import MAX_END_FILES, EndFiles
from monkey.store.format import FILES_IN_ENDS
from monkey.store.memory import MemoryStore
from tests.loops import Run
from tests.unit.monkey_agent.body import Body

LINE = '{"t":1,"step":1,"m":{"loss":2}}'
LOGGED = "echo '" + LINE.replace("{", "{{").replace("}", "}}") + "' > $MONKEY_METRICS_DIR/0.jsonl; echo said"


class Dear(MemoryStore):
    """A store whose requests cost money, as a bucket's do."""

    poll, layout = 10.0, FILES_IN_ENDS


@pytest.fixture
def dear(tmp_path: Path, run: Run) -> Iterator[Body]:
    """Return a machine with a runner on such a store."""

    async def make() -> Body:
        return Body(tmp_path, Dear(), {"TOKEN": "tell-nobody-of-this", "PATH": "/usr/bin:/bin"})

    body = run(make())
    yield body
    run(body.runner.close())
    run(body.runner.telemetry.close())


def test_a_log_and_metrics_ride_and_no_object_is_written(dear: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await dear.start(["sh", "-c", LOGGED])
        outcome = await running.wait()
        assert outcome.files == EndFiles(b"said\n", {"0.jsonl": f"{LINE}\n".encode()}, b"")
        assert outcome.summary["loss"]["last"] == 2
        assert await dear.stored(running) == {}
        await running.keep_files()  # its end was not recorded
        assert await dear.stored(running) == {"log/000000": b"said\n", "metrics/0.jsonl": f"{LINE}\n".encode()}
        silent = await dear.run("true")
        assert silent.files == EndFiles(b"", {}, b"")
        failed = await dear.run(["sh", "-c", "echo why; exit 3"])
        assert (failed.files, failed.log_tail) == (EndFiles(b"why\n", {}, b""), ["why"])

    run(scenario())


def test_what_is_large_is_an_object_and_the_rest_rides(dear: Body, run: Run) -> None:
    async def scenario() -> None:
        many = f"head -c {MAX_END_FILES} /dev/zero; {LOGGED}"
        running = await dear.start(["sh", "-c", many])
        files = (await running.wait()).files
        assert files is not None
        assert (files.log, list(files.metrics or ())) == (None, ["0.jsonl"])
        assert list(await dear.stored(running)) == ["log/000000"]
        blank = f"head -c {MAX_END_FILES} /dev/zero | tr '\\0' '\\n' > $MONKEY_METRICS_DIR/1"
        running = await dear.start(["sh", "-c", f"{LOGGED}; {blank}"])
        assert (await running.wait()).files == EndFiles(b"said\n", None, b"")
        assert list(await dear.stored(running)) == ["metrics/0.jsonl", "metrics/1"]

    run(scenario())


def test_nothing_rides_that_a_checkpoint_stands_on_or_that_older_agents_could_not_read(dear: Body, run: Run) -> None:
    async def scenario() -> None:
        saved = await dear.run(["sh", "-c", f"{LOGGED}; echo 1 > $MONKEY_CHECKPOINT_DIR/x"])
        assert saved.files is None
        dear.store.layout = FILES_IN_ENDS - 1
        assert (await dear.run(["sh", "-c", LOGGED])).files is None
        dear.store.layout, dear.store.poll = FILES_IN_ENDS, 0.5
        assert (await dear.run(["sh", "-c", LOGGED])).files is None

    run(scenario())


def test_no_secret_rides(dear: Body, run: Run) -> None:
    async def scenario() -> None:
        outcome = await dear.run(["sh", "-c", "echo $TOKEN"], settings={"secrets": ["TOKEN"]})
        assert outcome.files is not None
        assert outcome.files.log
        assert b"tell-nobody" not in outcome.files.log

    run(scenario())


def test_a_link_in_place_of_metrics_rides_nowhere(dear: Body, tmp_path: Path, run: Run) -> None:
    (tmp_path / "secret").write_text("not the job's")

    async def scenario() -> None:
        outcome = await dear.run(
            ["sh", "-c", f"ln -s {tmp_path}/secret $MONKEY_METRICS_DIR/x; ln -sf {tmp_path}/secret ../log"]
        )
        assert outcome.files is not None
        assert b"not the job" not in repr(outcome.files).encode()

    run(scenario())
