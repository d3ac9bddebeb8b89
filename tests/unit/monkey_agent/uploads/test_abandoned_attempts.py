"""What attempts left whose agent was killed: a job may have put anything in the place of what the agent wrote there."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.fleet.secret_values import SecretValues
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryStore
from monkey_agent.execution.workspace import Workspaces
from monkey_agent.uploads.abandoned_attempts import LIMIT_FILE, SECRETS, AbandonedAttempts
from tests.loops import Run

KEYS = Keys("p")
#: The job that replaces a file, and another.
JOB, OTHER = "a" * 16, "b" * 16


def leave(state: Path, secrets: str) -> AbandonedAttempts:
    """Have both jobs leave a log with a secret; the names of one's secrets are `secrets`."""
    spaces = Workspaces(state)
    for job, text in ((JOB, secrets), (OTHER, '["TOKEN"]')):
        space = spaces.take(job, 1)
        Path(space.log).write_text("<s3cr3t-s3cr3t>\n")
        Path(space.root, SECRETS).write_text(text)
    return AbandonedAttempts(state, [], SecretValues({"TOKEN": "s3cr3t-s3cr3t"}).get)


@pytest.mark.parametrize("secrets", ["5", "null", "[[]]", "[5]", "{}", '"TOKEN"', "[", '["\\ud800"]'])
def test_names_of_secrets_that_are_none_keep_a_log_back_and_no_more(tmp_path: Path, run: Run, secrets: str) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        left = leave(tmp_path, secrets)
        await left.upload(store, KEYS, JOB)
        assert not await store.list(KEYS.out(JOB, 1)), "what cannot be masked is not uploaded"
        assert not list((tmp_path / "abandoned").glob(f"{JOB}*")), "nor tried again"

    run(scenario())


def test_what_one_job_spoilt_holds_up_no_other(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await leave(tmp_path, "5").upload_all(store, KEYS)
        [item] = await store.list(KEYS.out(OTHER, 1))
        assert await store.get(item.key) == b"<***>\n"

    run(scenario())


@pytest.mark.parametrize("limit", ["-5", "[]", '"1"', "{", "true"])
def test_a_limit_of_the_log_that_is_none_keeps_the_log_back(tmp_path: Path, run: Run, limit: str) -> None:
    space = Workspaces(tmp_path).take(JOB, 1)
    Path(space.log).write_text("text\n")
    Path(space.root, LIMIT_FILE).write_text(limit)

    async def scenario() -> None:
        store = MemoryStore()
        await AbandonedAttempts(tmp_path, [], lambda _: {}).upload(store, KEYS, JOB)
        assert not await store.list(KEYS.out(JOB, 1))

    run(scenario())
