"""Pulumi's words in ours: what a provider raised, and what an operation failed of."""

from __future__ import annotations

import pytest

from monkey.errors import FleetError, StoreRefused
from monkey_stacks.cloud.cloud_descriptions import describe_emptying
from monkey_stacks.engine.engine_outcome import ChangeStage, EngineProgress, ResourceChange, ResourceOp
from monkey_stacks.engine.errors import translate_engine_error
from monkey_stacks.engine.events import EventListener, extract_reason

TRACEBACK = """Traceback (most recent call last):
  File "/x/pulumi/dynamic/__main__.py", line 84, in wrapper
    return fn(self, request, context)
monkey.errors.FleetError: gpu1: Host key verification failed.
the key is in /etc/ssh
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRACEBACK, "gpu1: Host key verification failed.\nthe key is in /etc/ssh"),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "'a'"),
        ("plain text: of another provider", "plain text: of another provider"),
    ],
)
def test_of_a_traceback_what_was_raised_is_left(text: str, said: str) -> None:
    assert extract_reason(text) == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("error: getting secrets manager: constructing secrets manager of type: incorrect passphrase", "passphrase"),
        (
            "error: no resource plugin 'pulumi-resource-aws' found in the workspace at version v7.1.0 or on your $PATH",
            "Pulumi's plugin aws v7.1.0 is not installed on this machine",
        ),
        ("error: no resource plugin 'pulumi-resource-pulumi-python' found in the workspace", "a plugin of Pulumi's is"),
        (
            "error: could not find latest version for provider pulumi-python: no such host",
            "a plugin of Pulumi's is missing",
        ),
        ("no EC2 IMDS role found, operation error ec2imds", "credentials are missing"),
        ("error reading from server: EOF", "a plugin of Pulumi's ended in the middle"),
        ("error: snapshot integrity failure; refusing to use it", "contradicts itself"),
        ("code: 255\n stdout: \n stderr: error: something else", "Pulumi failed: something else"),
        ("", "it said nothing"),
    ],
)
@pytest.mark.needs("pulumi-library")
def test_errors_say_what_to_do(text: str, message: str) -> None:
    found = translate_engine_error(RuntimeError(text))
    assert isinstance(found, FleetError)
    assert message in found.message
    assert found.hint


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("'pulumi-resource-evil' found in the workspace", "'evil' of any version"),
        ("'pulumi-resource-aws' found in the workspace or on your $PATH", "'aws' of any version"),
        (
            "'pulumi-resource-aws' found in the workspace at version v7.1.0 or on your $PATH from http://x/\x1b[2J",
            r"'aws' v7.1.0 from 'http://x/\x1b[2J'",
        ),
    ],
)
def test_a_plugin_that_only_a_state_asks_for_is_not_to_be_installed(said: str, named: str) -> None:
    found = translate_engine_error(RuntimeError(f"error: no resource plugin {said}"), key="projects/p/x.json")
    assert found.message.startswith("projects/p/x.json names a plugin") and f": {named}. Nothing" in found.message
    assert "plugin install" not in str(found)


def test_a_group_is_emptied_in_time_to_come_or_was() -> None:
    assert [describe_emptying(None), describe_emptying(0.0)] == ["never emptied", "emptied at 1970-01-01 00:00 UTC"]
    assert describe_emptying(4e9) == "to be emptied at 2096-10-02 07:06 UTC"


def test_a_store_that_failed_is_the_reason() -> None:
    trouble = StoreRefused("the disk is full", hint="make room")
    assert (
        translate_engine_error(RuntimeError("An IO error occurred while writing the new snapshot file"), (), trouble)
        is trouble
    )


@pytest.mark.needs("pulumi-library")
def test_events_become_changes_and_failures() -> None:
    from pulumi.automation import EngineEvent

    seen: list[EngineProgress] = []
    listener = EventListener(seen.append)
    urn = "urn:pulumi:lab::shop::pulumi-python:dynamic/ssh:Host::gpu1"
    step = {"op": "update", "urn": urn, "type": "pulumi-python:dynamic/ssh:Host", "provider": ""}
    states = {
        "old": {"inputs": {"agent": "1", "slots": 2, "__provider": "x"}},
        "new": {"inputs": {"agent": "2", "slots": 2, "__provider": "y"}},
    }
    colored = {"message": f"<{{%fg 1%}}>{TRACEBACK}<{{%reset%}}>", "severity": "error", "urn": urn}
    for event in (
        {"resourcePreEvent": {"metadata": {**step, **states}}},
        {"diagnosticEvent": colored},
        {"resOpFailedEvent": {"metadata": {**step, **states}}},
        {"diagnosticEvent": {"message": "update failed", "severity": "error"}},
        {"summaryEvent": {"maybeCorrupt": False, "resourceChanges": {"update": 1}}},
    ):
        listener(EngineEvent.from_json({"sequence": 1, "timestamp": 1, **event}))
    assert listener.partial
    outcome = listener.outcome()
    assert outcome.changes == (
        ResourceChange(ResourceOp.UPDATE, "pulumi-python:dynamic/ssh:Host", "gpu1", ("agent",), ("1",), ("2",)),
    )
    [failure] = outcome.failures
    assert failure.message.startswith("gpu1: Host key verification failed.")
    assert [each.stage for each in seen] == [ChangeStage.BEGAN, ChangeStage.FAILED]
    assert listener.errors == ["update failed"]
