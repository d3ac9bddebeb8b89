"""Agents of one user share the machine evenly, whatever their projects."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.spec.job.recipe import JobResources
from monkey_agent.ports import Slot
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.machine_agents import WAITS, MachineAgents, identify_machine
from monkey_agent.slots.slot_allocator import SETTLES
from tests.loops import Run
from tests.unit.monkey_agent.slots.slot_site import GIB, MACHINE, SlotSite, refused, take


def test_whoever_has_more_makes_room_for_who_waits(site: SlotSite) -> None:
    ana = site.start("ana")
    held = [take(ana) for _ in range(4)]
    ben = site.start("ben")
    assert refused(ben), "all CPUs are ana's"
    site.pass_time()
    assert refused(ben)
    ana.give(held.pop())
    assert refused(ana) and ana.wanted_by_others, "ben waits, and has less"
    site.pass_time()
    take(ben)
    assert refused(ben)
    ana.give(held.pop())
    site.pass_time(1)
    assert refused(ana)
    take(ben)
    assert refused(ben)
    ana.give(held.pop())
    site.pass_time(2 * WAITS)
    take(ana)
    assert not ana.wanted_by_others, "ben has not asked for long"


def test_agents_that_begin_at_one_moment_see_each_other_before_they_take_anything(site: SlotSite) -> None:
    ana, ben = site.start("ana", settled=False), site.start("ben", settled=False)
    assert refused(ana, gpus=2) and refused(ben, gpus=2)
    site.pass_time(SETTLES)
    take(ana, gpus=2)
    assert refused(ben, gpus=2)


def test_an_agent_alone_takes_at_once(site: SlotSite) -> None:
    take(site.start("ana", settled=False), gpus=2)


def test_an_agent_that_finds_no_job_for_a_slot_holds_back_no_other(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben")
    held = [take(ana) for _ in range(4)]
    site.pass_time()
    assert ben.take(JobResources()) is None and ben.held_by_others, "no job of ben's waits"
    site.pass_time()
    assert not ana.wanted_by_others
    ana.give(held.pop())
    take(ana)


def test_an_agent_that_begins_anew_holds_nothing_of_its_former_life(site: SlotSite) -> None:
    take(site.start("ana"), cpus=4)
    site.homes.pop("ana").close()
    ana = site.start("ana")
    take(site.start("ben"), cpus=4)
    assert refused(ana)


def test_what_a_job_does_not_take_does_not_hold_it_back(site: SlotSite) -> None:
    ana, ben = site.start("ana", counted=(("licence", 1),)), site.start("ben", counted=(("licence", 2),))
    take(ben, cpus=0.1, counted=(("licence", 2),))
    site.pass_time()
    assert take(ana) and refused(ana, counted=(("licence", 1),))


def test_memory_and_gpus_are_shared_as_well(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben")
    assert take(ana, cpus=0.1, gpus=1, memory=6 * GIB).gpus == ("a",)
    site.pass_time()
    assert refused(ben, cpus=0.1, memory=3 * GIB)
    assert take(ben, cpus=0.1, gpus=1, memory=2 * GIB).gpus == ("b",)
    site.pass_time()
    assert refused(ana, cpus=0.1, gpus=0.5)


def test_counted_resources_are_shared_by_those_who_have_them(site: SlotSite) -> None:
    ana, ben = site.start("ana", counted=(("tpu", 2),)), site.start("ben", counted=(("tpu", 2),))
    held = take(ana, cpus=0.1, counted=(("tpu", 2),))
    assert refused(ana, cpus=0.1, counted=(("tpu", 1),))
    site.pass_time()
    assert refused(ben, cpus=0.1, counted=(("tpu", 1),)) and take(ben)
    site.pass_time()
    assert ana.wanted_by_others and take(ana), "a CPU takes no TPU of ben's"
    ana.give(held)
    site.pass_time(1)
    assert refused(ana, cpus=0.1, counted=(("tpu", 2),)), "ben has less"
    take(ben, cpus=0.1, counted=(("tpu", 1),))
    assert ben.fits(JobResources(counted=(("tpu", 2),)))
    assert not ben.fits(JobResources(counted=(("tpu", 3),))) and not ben.fits(JobResources(counted=(("fpga", 1),)))


def test_a_larger_job_gets_its_turn(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben")
    held = [take(ana) for _ in range(3)]
    site.pass_time()
    assert refused(ben, cpus=4)
    for slot in held:
        ana.give(slot)
        site.pass_time(1)
        assert not refused(ben, cpus=4) or refused(ana), "ana goes on before ben"


def test_who_waits_for_a_gpu_holds_back_no_job_that_leaves_him_room(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben")
    held = take(ana, gpus=2)
    site.pass_time()
    assert refused(ben, gpus=1), "ana has both GPUs"
    site.pass_time(1)
    assert ana.wanted_by_others
    take(ana)
    take(ana)
    assert refused(ana), "the last CPU is kept for ben's job"
    site.pass_time(1)
    assert refused(ben, gpus=1)
    ana.give(held)
    assert ana.take(JobResources(gpus=1)) is not None, "a GPU is left for ben"
    site.pass_time(1)
    assert refused(ana, cpus=0.1, gpus=0.5), "it would have ben's GPU"
    assert take(ben, gpus=1).gpus == ("b",)


def test_who_waits_for_gpus_on_which_others_compute_says_so(site: SlotSite, run: Run) -> None:
    busy = BusyGpus(lambda: frozenset({"a", "b"}))
    run(busy._find_out())
    ana, ben = site.start("ana"), site.start("ben", foreign=busy)
    take(ana, gpus=2)
    site.pass_time()
    assert refused(ben, gpus=1)
    site.pass_time()
    assert ana.wanted_by_others, "the driver names ana's GPUs as busy, too"


def test_an_agent_that_is_gone_or_elsewhere_holds_nothing(site: SlotSite) -> None:
    ana, far, ben = site.start("ana"), site.start("far", machine="other"), site.start("ben")
    take(ana, cpus=4)
    take(far, cpus=4)
    site.pass_time()
    assert refused(ben)
    site.homes.pop("ana").close()
    site.pass_time()
    take(ben, cpus=4)


def test_max_slots_counts_our_own_jobs(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben", max_slots=1)
    take(ana)
    site.pass_time()
    take(ben)
    assert refused(ben) and not ana.wanted_by_others, "it waits for itself"


def test_what_is_written_wrongly_counts_for_nothing(site: SlotSite) -> None:
    ben = site.start("ben")
    site.start("ana")
    for text in ("", "[]", "{", json.dumps({"slots": 1}), json.dumps({"slots": 0, "cpus": 9, "memory": 0, "gpus": 3})):
        (site.homes["ana"].directory / "slots.json").write_text(text)
        site.pass_time()
        ben.give(take(ben, cpus=4))


@pytest.mark.parametrize("seed", range(20))
def test_they_never_hold_more_than_there_is_and_all_get_work(site: SlotSite, seed: int) -> None:
    rng, agents = random.Random(seed), [site.start(name) for name in ("ana", "ben", "eve")]
    held: list[list[Slot]] = [[], [], []]
    runs = [0, 0, 0]
    for _ in range(120):
        at = rng.randrange(3)
        if held[at] and rng.random() < 0.5:
            agents[at].give(held[at].pop(rng.randrange(len(held[at]))))
        for _ in range(4):
            resources = JobResources(cpus=rng.choice([1, 1, 2]), gpus=rng.choice([0, 0.5, 1]))
            slot = agents[at].take(resources)
            if slot is None and agents[at].held_by_others:
                agents[at].wait(resources)
            if slot is not None:
                held[at].append(slot)
                runs[at] += 1
        site.pass_time(rng.choice([0.1, 0.6, 2.5]))
        slots = [slot for each in held for slot in each]
        assert sum(slot.cpus for slot in slots) <= 4
        for gpu in MACHINE.gpus:
            assert sum(slot.part for slot in slots if gpu in slot.gpus) <= 1000
    assert min(runs) > max(runs) / 4, runs


@pytest.mark.parametrize(
    ("environ", "shared"), [({}, True), ({"SLURM_JOB_ID": "7"}, False), ({"MONKEY_CPUS": "2"}, False)]
)
def test_a_part_that_an_engine_gave_is_not_shared(environ: dict[str, str], shared: bool) -> None:
    assert bool(identify_machine(environ)) is shared


def test_other_directories_are_not_looked_through(tmp_path: Path, run: Callable[..., object]) -> None:
    assert not MachineAgents(tmp_path / "x").machine and not MachineAgents(Path("/state")).machine
