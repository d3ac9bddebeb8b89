"""A provider's `lease:` reaches the agents of every type of provider, and is in no command line where nobody set it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.fleet.local_fleet import LocalFleet
from monkey.spec.job.lease_length import LEASE
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey_agent.arguments import parse_arguments
from monkey_stacks.aws.api.naming import AwsStack
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud.machine_settings import make_settings
from monkey_stacks.pilots.agent_arguments import list_agent_arguments
from monkey_stacks.ssh.host_resource import ProviderEnvironment, make_host_inputs, parse_host_plan
from monkey_stacks.ssh.host_state import HostPlan


def ask_local(lease: float) -> list[str]:
    return LocalFleet("/store", "p", lease=lease)._command()[4:]


def ask_pilots(lease: float) -> list[str]:
    return list_agent_arguments(Provider("slurm", lease=lease), "/store", "p", "f")


def ask_hosts(lease: float) -> list[str]:
    inputs = make_host_inputs("h", HostPlan("/store", "p", "f", lease=lease), "agent")
    return parse_host_plan(inputs, ProviderEnvironment()).arguments


def test_lease_is_among_the_settings_of_a_rented_machine() -> None:
    provider = Provider("aws", lease=300.0, cloud=CloudSettings("eu-central-1", ("g5.xlarge",)))
    bundle = Bundle("b", Path("b"), (1,))
    assert make_settings(provider, AwsStack("p", "f", "1"), "s3://b", bundle, "g", "signers").lease == 300


@pytest.mark.parametrize("ask", [ask_local, ask_pilots, ask_hosts])
def test_lease_reaches_the_agent(ask: Callable[[float], list[str]]) -> None:
    assert parse_arguments(ask(300.0)).lease == 300
    assert parse_arguments(ask(LEASE)).lease == LEASE and "--lease" not in ask(LEASE)


@pytest.mark.parametrize("text", ["89", "601", "soon", "-5", "nan"])
def test_agent_refuses_another_lease(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--store", "s", "--project", "p", "--lease", text])
    assert "expected a" in capsys.readouterr().err
