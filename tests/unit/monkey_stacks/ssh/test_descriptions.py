"""What a plan and an audit say of hosts: Pulumi's changes, and what was found there, in words."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.fleet.fleet_records import FleetWork
from monkey.plan.cost import MachineChange
from monkey.spec.job.recipe import JobResources
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp, StateResource
from monkey_stacks.ssh.descriptions import (
    check_apart,
    describe_limits,
    describe_machine_change,
    describe_missing_runtimes,
    describe_new_host,
    warn_of_missing_runtimes,
    warn_of_unusable_hosts,
)
from monkey_stacks.ssh.host_resource import (
    AWAY,
    DRIFT,
    LACKS_RUNTIME,
    TROUBLE,
    ProviderEnvironment,
    list_host_changes,
    make_host_inputs,
    refresh_outputs,
)
from monkey_stacks.ssh.host_state import HostInventory, HostPlan
from monkey_stacks.ssh.machine_audit import _compare

NAME = "shop-lab-1"


def test_a_plan_says_who_holds_memory_and_what_is_not_shared() -> None:
    seen = {"a": {"memory": "kernel", "others": ""}, "b": {"memory": "looks", "others": "ben, eve"}, "c": {AWAY: True}}
    work = FleetWork(3, asked=((JobResources(memory=1 << 30), 3),))
    assert describe_limits("lab", work, seen, None) == [
        "memory: the kernel ends a job that takes more than it asked for (a)",
        "memory: monkey looks at jobs, and ends one a moment after it took more than it asked for (b)",
        "b has agents of ben, eve, too, which share no CPU or memory with ours: agree on max_slots of lab",
    ]
    assert not describe_limits("lab", FleetWork(3, asked=((JobResources(), 3),)), seen, 2)


def test_a_plan_warns_of_hosts_that_run_no_images() -> None:
    seen = {"a": {LACKS_RUNTIME: "podman does not work: x"}, "b": {}, "c": {AWAY: True}}
    [note] = warn_of_missing_runtimes(["a", "b", "c"], seen)
    assert note == "warning: a runs no job with an image: podman does not work: x"
    assert "no machine of this provider runs images" in warn_of_missing_runtimes(["a"], seen)[1]
    assert not warn_of_missing_runtimes(["b", "new"], seen)


def test_what_an_earlier_apply_saw_of_runtimes_is_said_by_no_later_plan() -> None:
    recorded = make_host_inputs("127.0.0.1:1", HostPlan("/store", "shop", "lab"), "agent")
    seen = refresh_outputs(recorded | {LACKS_RUNTIME: "podman does not work"}, ProviderEnvironment())
    assert seen[AWAY] and not warn_of_missing_runtimes(["127.0.0.1:1"], {"127.0.0.1:1": seen})


def test_doctor_has_a_hint_for_hosts_that_run_no_images() -> None:
    lacks = {LACKS_RUNTIME: "this machine has none of podman, docker (hint: install one of them)"}
    assert describe_missing_runtimes({"a": lacks, "b": {}, "c": {AWAY: True, DRIFT: "c is away\nhint: wait"}}) == [
        ("a runs no job with an image: this machine has none of podman, docker", "install one of them"),
        ("c is away", "wait"),
    ]


def change(op: ResourceOp, **changed: tuple[Any, Any]) -> ResourceChange:
    """Return a change of the host `gpu1`."""
    before, after = (tuple(values[at] for values in changed.values()) for at in (0, 1))
    return ResourceChange(op, "Host", "gpu1", tuple(changed), before, after)


@pytest.mark.parametrize(
    ("made", "seen", "why", "trouble"),
    [
        (change(ResourceOp.DELETE), {}, "everything of it is taken away", ""),
        (change(ResourceOp.UPDATE, max_slots=(None, 2.0)), {DRIFT: ""}, "max_slots none → 2", ""),
        (change(ResourceOp.UPDATE, agent=("a", "b")), {}, "another version of the agent", ""),
        (change(ResourceOp.UPDATE, drift=("no agent lives", "")), {DRIFT: "no agent lives"}, "no agent lives", ""),
        (change(ResourceOp.UPDATE, interrupted=(None, None)), {}, "an apply was cut off in the middle", ""),
        (
            change(ResourceOp.REPLACE, workdir=("~/a", "~/b")),
            {DRIFT: "other secrets"},
            "other secrets; taken away and set up anew; workdir ~/a → ~/b",
            "",
        ),
        (
            change(ResourceOp.REPLACE, workdir=("~/a", "~/b")),
            {DRIFT: "", AWAY: False, TROUBLE: "no right"},
            "left as it is, for it cannot be moved; workdir ~/a → ~/b",
            "no right",
        ),
        (
            change(ResourceOp.UPDATE, max_slots=(1.0, 2.0)),
            {DRIFT: "it is off", AWAY: True},
            "max_slots 1 → 2",
            "it is off",
        ),
        (
            change(ResourceOp.UPDATE, drift=("no agent lives", "")),
            {DRIFT: "no agent lives", AWAY: False, TROUBLE: "its disk is full"},
            "no agent lives",
            "its disk is full",
        ),
    ],
)
def test_a_change_in_words(made: ResourceChange, seen: dict[str, Any], why: str, trouble: str) -> None:
    said = describe_machine_change(made, seen)
    assert (said.op, said.machine, said.why, said.trouble) == (made.op, "gpu1", why, trouble)


def host(name: str, *, cut: bool = False, **inputs: Any) -> StateResource:
    """Return a host of the state, with outputs as Pulumi writes them."""
    said = {"host": name, "workdir": "~/.monkey", "store": "s3://b", "agent": "1", **inputs, DRIFT: ""}
    return StateResource("Host", name, f"{name}:~/.monkey", said, said, cut)


@pytest.mark.parametrize(
    ("known", "wanted", "drift", "expected"),
    [
        (host("h1"), host("h1"), "", None),
        (host("h1"), host("h1"), "no agent lives", "update drift"),
        (host("h1"), host("h1", max_slots=2), "", "update max_slots"),
        (host("h1"), host("h1", lease=300.0), "", "update lease"),
        (host("h1", max_slots=2), host("h1"), "no agent lives", "update max_slots"),
        (host("h1"), host("h1", max_slots=2, workdir="/big"), "", "replace workdir"),
        (host("h1"), host("h1", store="s3://c"), "other secrets", "replace store"),
        (host("h1", cut=True), host("h1"), "", "update interrupted"),
        (host("h1", idle_timeout=600), host("h1", idle_timeout=600.0), "", None),
        (host("h1"), None, "", "delete"),
    ],
)
def test_what_an_apply_would_change_of_a_host(
    known: StateResource, wanted: StateResource | None, drift: str, expected: str | None
) -> None:
    inputs = [wanted.inputs] if wanted else []
    found = list_host_changes([*inputs, host("new").inputs], {"h1": known}, {"h1": {DRIFT: drift}})
    assert [" ".join([each.op, *each.forced_by]) for each in found] == ([expected] if expected else [])
    assert [each.name for each in found] == (["h1"] if expected else []), "a new host is told by its own look"


def inventory(**found: tuple[Any, ...]) -> HostInventory:
    """Return what is on a host, by default all that one agent of ours has."""
    said: dict[str, Any] = {
        "directories": (NAME,),
        "units": (NAME,),
        "crontab": (),
        "processes": (7,),
        "living": (NAME,),
        **found,
    }
    return HostInventory(**said)


EMPTY = inventory(directories=(), units=(), processes=())


@pytest.mark.parametrize(
    ("found", "known", "texts"),
    [
        (inventory(), True, []),
        (EMPTY, False, []),
        (inventory(living=("other-1",)), True, ["no agent lives here, though there is work"]),
        (inventory(directories=(NAME, "other-1"), crontab=("other-1",)), True, []),
        (inventory(), False, ["an agent of this fleet is set up here that no apply has written down"]),
        (EMPTY, True, ["nothing of this fleet is here any more, though it was set up"]),
        (inventory(units=(NAME, "gone-1")), True, ["an orphan unit of systemd, of the fleet gone-1"]),
        (inventory(crontab=("gone-1",)), True, ["an orphan line in the crontab, of the fleet gone-1"]),
        (
            inventory(directories=(), units=(), processes=(7, 8)),
            False,
            ["processes of agents that are gone: 7, 8"],
        ),
        (
            inventory(directories=(), units=(), processes=(), files=("/w/bundles", "/w/lock")),
            False,
            ["files that no agent needs any more: /w/bundles, /w/lock"],
        ),
        (inventory(files=("/w/gone.lock",)), True, ["files that no agent needs any more: /w/gone.lock"]),
    ],
)
def test_what_an_audit_finds_on_a_host(found: HostInventory, known: bool, texts: list[str]) -> None:
    resource = StateResource("Host", "gpu1", "gpu1:~/.monkey", {"workdir": "~/.monkey"}, {}) if known else None
    findings = list(_compare("gpu1", NAME, found, resource, busy=True))
    assert [finding.text for finding in findings] == texts
    assert all(finding.machine == "gpu1" and finding.hint for finding in findings)


def test_an_audit_misses_no_agent_where_there_is_no_work() -> None:
    resource = StateResource("Host", "gpu1", "gpu1:~/.monkey", {"workdir": "~/.monkey"}, {})
    assert not list(_compare("gpu1", NAME, inventory(living=()), resource, busy=False))


def test_files_that_are_left_over_are_helped_with() -> None:
    some, locks = (
        next(
            _compare(
                "me@gpu1:2222", NAME, inventory(directories=(), units=(), processes=(), files=files), None, busy=True
            )
        ).hint
        for files in (("/w/bundles",), ("/w/a b.lock",))
    )
    assert "`monkey apply` uses them again, and `monkey destroy` then" in some
    assert locks == "`ssh -p 2222 me@gpu1 rm '/w/a b.lock'`"


def test_a_fleet_of_which_no_machine_can_be_used_is_warned_of() -> None:
    changes = [MachineChange("create", "h1", trouble="off"), MachineChange("update", "h2", trouble="full")]
    assert not warn_of_unusable_hosts([], []) and not warn_of_unusable_hosts(["h1", "h2", "h3"], changes)
    (warning,) = warn_of_unusable_hosts(["h1", "h2"], [*changes, MachineChange("delete", "h0")])
    assert warning.startswith("warning: no machine of this provider can be used now")


def test_one_machine_under_two_names_is_refused() -> None:
    one = {"where": "h1-06028450", "user": "me", "machine": "h1"}
    check_apart({"h1": one, "h2": {**one, "where": "h2-1"}, "you@h1": {**one, "user": "you"}, "h3": {AWAY: True}})
    with pytest.raises(FleetError, match=r"h1 and me@h1 are the same machine \(h1\)"):
        check_apart({"h1": one, "me@h1": one})


def test_a_new_host_is_told_by_what_was_found() -> None:
    assert describe_new_host("h1", {"about": "kept alive by cron"}).why == "agent, kept alive by cron"
    assert describe_new_host("h1", {DRIFT: "h1 does not answer", AWAY: True}).trouble == "h1 does not answer"
