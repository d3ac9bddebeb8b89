"""Nothing of jobs in containers is left, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.image_shop import (
    LEFT,
    LONG,
    RUNTIMES,
    SETS,
    VICTIMS,
    apply,
    belongs,
    find_all,
    find_sleepers,
    list_containers,
    list_lines,
    needing,
    read_state,
)
from tests.acceptance.shop import Shop, until
from tests.registry import Registry

pytestmark = [pytest.mark.slow, pytest.mark.needs("docker-registry"), pytest.mark.needs("busybox")]

QUICK = {
    "podman": ("client", "agent client supervisor"),
    "docker": ("agent client supervisor",),
    "charliecloud": ("client supervisor",),
}
KILLS = [(name, victims) for name in RUNTIMES for victims in SETS if LONG or victims in QUICK[name]]


def is_inside(pid: int) -> bool:
    """Say whether a process sees the files of the image."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/root/inside").exists()
    return False


@pytest.mark.parametrize(
    ("runtime", "victims"),
    [pytest.param(*kill, marks=pytest.mark.needs(kill[0])) for kill in KILLS],
    indirect=["runtime"],
)
def test_no_container_is_left(shop: Shop, registry: Registry, runtime: str, victims: str) -> None:
    apply(shop, registry, "sleep 4247{i} & sleep 4246{i}; true", "--detach", jobs=2)
    running = until(lambda: (found := find_sleepers()) and len(found) == 4 and found, "jobs run", 40)
    inside = {pid for pid in running if is_inside(pid)}
    assert inside == running, "the jobs are in containers"
    listed = list_containers(shop, runtime)
    assert len(listed) == (0 if runtime == "charliecloud" else 2)
    words = [word for victim in victims.split() for word in VICTIMS[victim]]
    killed = [pid for word in words for pid in find_all(word) if belongs(pid, shop)]
    assert len(killed) >= len(victims.split())
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not running & find_sleepers(), f"containers end once {victims} is killed", LEFT)
    until(lambda: not listed & list_containers(shop, runtime), "the engine lists none of them", LEFT)
    if "agent" in victims:
        assert not find_sleepers(), "nobody is left who would start the jobs again"


@pytest.mark.parametrize(
    "runtime", [needing[name] for name in RUNTIMES if LONG or name == "charliecloud"], indirect=True
)
def test_a_container_that_stands_still_is_left_no_more_than_others(
    shop: Shop, registry: Registry, runtime: str
) -> None:
    apply(shop, registry, "sleep 4245{i}; true", "--detach", jobs=1)
    until(find_sleepers, "the job runs", 40)
    # As when its lease is lost: the shell that waits for the supervisor's end stands still, too.
    inside = {pid for pid, _ in list_lines() if is_inside(pid) and belongs(pid, shop)}
    assert inside
    for group in {os.getpgid(pid) for pid in inside}:
        os.killpg(group, signal.SIGSTOP)
    killed = [pid for victim in ("agent", "supervisor") for pid in find_all(*VICTIMS[victim]) if belongs(pid, shop)]
    # All at once: none of them sees another's end, and kills the job itself.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in killed:
            os.kill(pid, number)
    until(lambda: not inside & {pid for pid, _ in list_lines()}, "the container ends", LEFT)


@pytest.mark.skipif(not LONG, reason="a lease is a minute long; MONKEY_LONG=1 waits for it")
def test_a_container_stands_still_when_its_lease_is_lost(shop: Shop, registry: Registry, runtime: str) -> None:
    apply(shop, registry, "sleep 4249{i}", "--detach", jobs=1)
    running = until(find_sleepers, "the job runs", 40)
    agents = [pid for pid in find_all(*VICTIMS["agent"]) if belongs(pid, shop)]
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)
    still = {"T", "t", "Z", ""}
    until(lambda: {read_state(pid) for pid in running} <= still, "the job stands still, or is gone", 90)
    assert not find_sleepers() - running, "nobody runs it meanwhile"


@pytest.mark.parametrize("runtime", [needing["podman"]], indirect=True)
def test_what_even_the_sweeper_left_goes_with_the_next_agent(shop: Shop, registry: Registry, runtime: str) -> None:
    apply(shop, registry, "sleep 4248{i}", "--detach", jobs=1)
    until(find_sleepers, "the job runs", 40)
    [left] = list_containers(shop, runtime)
    words = ("monkey.state=", *(word for words in VICTIMS.values() for word in words))
    # podman's monitor, too, which would remove it.
    for pid in [*find_all(left), *(pid for word in words for pid in find_all(word) if belongs(pid, shop))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not find_sleepers(), "the container ended", LEFT)
    assert left in list_containers(shop, runtime), "nobody was left to remove it"
    shop.run("apply", "--detach")
    until(lambda: left not in list_containers(shop, runtime), "the next agent removed it", 40)


@pytest.mark.parametrize("runtime", [needing["podman"]], indirect=True)
def test_a_build_that_is_killed_is_listed_no_more_while_its_agent_lives(
    shop: Shop, registry: Registry, runtime: str
) -> None:
    files: dict[str, bytes | str] = {"bin/busybox": Path("/bin/busybox").read_bytes(), "tmp/.keep": b""}
    files |= {f"bin/{name}": "busybox" for name in ("sh", "sleep", "cat")}
    registry.push("lab/slow", "v1", {**files, "bin/python3": b"#!/bin/sh\nexec sleep 4244\n"})
    image = f"{registry.name}/lab/slow:v1"
    shop.spec(f"command: python train.py\nenvironment: {{image: '{image}', requirements: [stub]}}\noutputs: []\n")
    shop.run("apply", "--detach")
    until(find_sleepers, "the environment is built", 40)
    [left] = list_containers(shop, runtime)
    # podman's monitor, too, which would remove it.
    for pid in [*find_all(left), *(pid for pid in find_all("run --rm") if belongs(pid, shop))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: left not in list_containers(shop, runtime), "the engine lists it no more", LEFT)
    assert shop.agents, "the agent lives"
