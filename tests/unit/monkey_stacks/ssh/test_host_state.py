"""In what a host is not as wanted."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from monkey.fleet.machine_capacity import MEMORY_BY_KERNEL, MEMORY_BY_LOOKS, MEMORY_NOT_HELD
from monkey.fleet.secret_values import parse_secrets
from monkey_stacks.bundle.wheels import WheelTarget
from monkey_stacks.ssh.host_state import HostAgent, HostPlan, ObservedHost, list_differences
from monkey_stacks.ssh.remote.agents import digest_secret

KEY = "00" * 16
WANTED = HostPlan(
    "s3://bucket",
    "shop",
    "lab",
    secrets={"TOKEN": "t"},
    credentials={"AWS_SECRET_ACCESS_KEY": "k"},
    signers="owner ssh-ed25519 A\n",
)
AGENT = HostAgent(
    number=1,
    bundle="b",
    digest=WANTED.digest("b"),
    credentials=(KEY, digest_secret(KEY, '{"AWS_SECRET_ACCESS_KEY": "k"}')),
    kept="systemd",
    after_boot=True,
    alive=True,
    left=False,
    draining=False,
)
SEEN = ObservedHost(
    host="h1-1234",
    name="h1",
    user="worker",
    target=WheelTarget((3, 11), "linux-x86_64", "glibc 2.36"),
    workdir="/home/worker/.monkey",
    writable=True,
    occupied=False,
    free=1 << 40,
    linger=True,
    user_systemd=True,
    ends_at_logout=False,
    cron=True,
    gpus=(),
    bundles=("b",),
    agents=(AGENT,),
    orphans=(),
    secrets=(KEY, {name: digest_secret(KEY, line) for name, line in WANTED.secret_lines.items()}),
    key="",
    signers=sha256(WANTED.signers.encode()).hexdigest(),
)


def test_nothing_differs() -> None:
    assert not list_differences(SEEN, WANTED, "b") and not SEEN.empty


@pytest.mark.parametrize(
    ("seen", "wanted", "bundle", "expected"),
    [
        (SEEN, WANTED, "c", ("another version of the agent",)),
        (SEEN, replace(WANTED, max_slots=3), "b", ("other settings",)),
        (SEEN, replace(WANTED, credentials={}), "b", ("other credentials",)),
        (SEEN, replace(WANTED, secrets={"TOKEN": "u"}), "b", ("other secrets",)),
        (SEEN, replace(WANTED, signers="owner ssh-ed25519 B\n"), "b", ("other signers",)),
        (replace(SEEN, signers=""), WANTED, "b", ("other signers",)),
        (replace(SEEN, linger=False), WANTED, "b", ("kept alive by systemd, not by cron",)),
        (replace(SEEN, linger=False, cron=False), WANTED, "b", ("kept alive by systemd, not by detached",)),
        (
            replace(SEEN, agents=(replace(AGENT, after_boot=False),)),
            WANTED,
            "b",
            ("not begun again after a boot",),
        ),
        (replace(SEEN, agents=()), WANTED, "b", ("there is no agent",)),
        (replace(SEEN, agents=(), key="", secrets=(KEY, {})), WANTED, "b", ("there is no agent",)),
        (replace(SEEN, agents=(replace(AGENT, alive=False),)), WANTED, "b", ("no agent lives",)),
        (
            replace(SEEN, agents=(replace(AGENT, alive=False, left=True),)),
            WANTED,
            "b",
            ("the agent left, for there was nothing to do",),
        ),
        (replace(SEEN, agents=(replace(AGENT, draining=True),)), WANTED, "b", ("no agent lives",)),
        (replace(SEEN, agents=(AGENT, replace(AGENT, number=2))), WANTED, "b", ("more than one agent takes claims",)),
        (replace(SEEN, orphans=("monkey-x.service",)), WANTED, "b", ("an orphan unit monkey-x.service",)),
    ],
)
def test_what_differs(seen: ObservedHost, wanted: HostPlan, bundle: str, expected: tuple[str, ...]) -> None:
    assert list_differences(seen, wanted, bundle) == expected


def test_an_old_agent_that_drains_is_no_difference() -> None:
    old = replace(AGENT, number=1, bundle="a", draining=True)
    assert not list_differences(replace(SEEN, agents=(old, replace(AGENT, number=2))), WANTED, "b")


@pytest.mark.parametrize(
    ("groups", "linger", "platform", "how"),
    [
        ((2,), True, "linux-x86_64", MEMORY_BY_KERNEL),
        ((2,), False, "linux-x86_64", MEMORY_BY_LOOKS),
        ((1,), False, "linux-x86_64", MEMORY_BY_KERNEL),
        ((), True, "linux-x86_64", MEMORY_BY_LOOKS),
        ((), False, "macosx-14-arm64", MEMORY_NOT_HELD),
    ],
)
def test_who_holds_memory_follows_from_who_keeps_the_agent(
    groups: tuple[int, ...], linger: bool, platform: str, how: str
) -> None:
    target = WheelTarget((3, 11), platform, "")
    assert replace(SEEN, groups=groups, linger=linger, target=target).memory == how


def test_secrets_are_written_as_they_are_read() -> None:
    values = {"A": 'a "b" $c \\ d', "B": "one\ntwo\r\n\tthree", "C": "# no comment", "D": " spaces ", "E": "ünï"}
    lines = replace(WANTED, secrets=values).secret_lines
    assert not any("\n" in line for line in lines.values()), "hosts keep them by lines"
    assert parse_secrets("\n".join(lines.values()), "a file") == values


def test_nothing_secret_is_shown() -> None:
    wanted = replace(WANTED, secrets={"TOKEN": "hidden"}, credentials={"KEY": "hidden"})
    assert "hidden" not in repr(wanted) and KEY not in repr(SEEN)
