"""What a cloud announces to a machine, as its agent takes it: real metadata over HTTP, and an agent that notes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from monkey.fleet.cloud import instance_metadata
from monkey.fleet.cloud.machine_paths import GOODBYE
from monkey_agent.lifecycle import cloud_notices, draining
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.unexpected_errors import UnexpectedErrors
from tests.loops import Run
from tests.rented.metadata import Metadata

NOTICE, REBALANCE = "meta-data/spot/instance-action", "meta-data/events/recommendations/rebalance"


class Noting:
    """An agent, as far as its cloud is concerned."""

    def __init__(self) -> None:
        self.told, self.stopped = list[str](), list[str]()
        self.errors, self.stop = UnexpectedErrors(self.told.append), self.stopped.append


@pytest.fixture(params=["aws", "gcp"])
def metadata(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    made = Metadata(request.param, {"preempted": "FALSE"} if request.param == "gcp" else {})
    address = made.serve_here()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://{address}")
    monkeypatch.setenv("GCE_METADATA_HOST", address)
    monkeypatch.setattr(cloud_notices, "ASK", 0.01)
    yield made
    made.close()


async def heeded(
    metadata: Metadata, directory: Path, acts: Callable[[Noting], Iterator[Callable[[], bool]]]
) -> tuple[Noting, list[float]]:
    """Let the cloud act, step after step, each once what the one before waits for is so."""
    agent, hurried = Noting(), list[float]()
    heeding = asyncio.create_task(
        cloud_notices.leave_on_notice(cast(AgentDaemon, agent), metadata.kind, directory, hurried.append)
    )
    async with asyncio.timeout(30):
        for so in acts(agent):
            while not so():
                await asyncio.sleep(0.005)
                assert not heeding.done() or heeding.exception() is None
        await heeding
    return agent, hurried


def asked_twice(metadata: Metadata) -> Callable[[], bool]:
    """Return whether it has asked twice since."""
    before = metadata.counts.total()
    return lambda: metadata.counts.total() >= before + 6


def test_who_is_taken_away_stops_at_once(metadata: Metadata, tmp_path: Path, run: Run) -> None:
    def acts(agent: Noting) -> Iterator[Callable[[], bool]]:
        yield asked_twice(metadata)
        assert not agent.told and not agent.stopped, "nothing was announced"
        metadata.said |= {"preempted": "TRUE"} if metadata.kind == "gcp" else {NOTICE: '{"action": "terminate"}'}

    agent, hurried = run(heeded(metadata, tmp_path, acts))
    assert agent.stopped == [instance_metadata.SPOT] and hurried == [{"aws": 30.0, "gcp": 7.5}[metadata.kind]]
    assert (tmp_path / GOODBYE).read_text() == instance_metadata.SPOT
    assert agent.told == ["spot notice: this machine is taken away"]
    assert not (tmp_path / draining._DRAIN_FILE).exists()


@pytest.mark.parametrize("metadata", ["aws"], indirect=True)
def test_who_may_be_taken_away_drains_and_goes_on_listening(metadata: Metadata, tmp_path: Path, run: Run) -> None:
    def acts(agent: Noting) -> Iterator[Callable[[], bool]]:
        metadata.said[REBALANCE] = '{"noticeTime": "2026-11-22T10:00:00Z"}'
        yield (tmp_path / draining._DRAIN_FILE).exists
        assert (tmp_path / GOODBYE).read_text() == instance_metadata.REBALANCE
        yield asked_twice(metadata)
        assert agent.told == ["rebalance: this machine may be taken away"], "said once"
        assert not agent.stopped, "what runs goes on"
        metadata.said[NOTICE] = '{"action": "terminate"}'

    agent, hurried = run(heeded(metadata, tmp_path, acts))
    assert agent.stopped == [instance_metadata.SPOT] and hurried == [30.0]
    assert (tmp_path / GOODBYE).read_text() == instance_metadata.SPOT


def test_metadata_that_fail_are_asked_again(metadata: Metadata, tmp_path: Path, run: Run, monkeypatch: Any) -> None:
    answer, refused = metadata.answer, list[str]()

    def refuse(method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        refused.append(path)
        return 503, ""

    def acts(agent: Noting) -> Iterator[Callable[[], bool]]:
        metadata.said |= {"preempted": "TRUE"} if metadata.kind == "gcp" else {NOTICE: "{}"}
        monkeypatch.setattr(metadata, "answer", refuse)
        yield lambda: len(refused) > 5
        assert not agent.stopped
        monkeypatch.setattr(metadata, "answer", answer)

    agent, _ = run(heeded(metadata, tmp_path, acts))
    assert agent.stopped == [instance_metadata.SPOT]
