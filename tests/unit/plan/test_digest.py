"""A plan's digest: the same as long as the same changes, and another one as soon as something else does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from monkey.errors import UnexpectedPlan
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.cost import FleetCost, MachineChange
from monkey.plan.digest import check_plan_digest, compute_plan_digest, find_applied_sweeps, is_done
from monkey.plan.gone_sweeps import GoneSweep
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.expires import Expiry
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import FILES, Revision, grid, seen, want
from tests.unit.plan.sweep_of_ten import CODE, EDITED, JOBS, OLD, WORLD

MORE = grid(lr=[0.01, 0.1, 0.5], seed=range(5))
ADDS = compute_plan([want(MORE)], WORLD)
COST = FleetCost(4, "g5.xlarge", 12.0, 1e9, price=1.01, limit=100.0)
CLOUD = FleetPlan("local", 5, 0, "aws", 0, 4, {"max_instances": 4}, (MachineChange("create", "group", part=True),))


def digest(*wants: object, world: ObservedProject = WORLD, keep: tuple[str, ...] = ()) -> str:
    return compute_plan_digest(compute_plan(wants, world, keep))


def with_sweep(**options: object) -> ObservedProject:
    return replace(WORLD, sweeps={"digits": replace(OLD, **options)})


def test_digest_is_16_hexadecimal_digits_and_that_of_nothing_is_one_too() -> None:
    nothing = digest(want(JOBS))
    assert len(nothing) == 16 and int(nothing, 16)
    assert nothing == digest() == compute_plan_digest(Plan(()))
    assert digest(want(MORE)) not in ("", nothing)


def test_a_plan_of_another_project_has_another_digest_also_one_that_changes_nothing() -> None:
    for wanted in (want(MORE), want(JOBS)):
        assert digest(wanted, world=replace(WORLD, project="p2")) != digest(wanted, world=replace(WORLD, project="p1"))


@pytest.mark.parametrize(
    "world",
    [
        with_sweep(head=9, paused=True),
        with_sweep(head=9, expires=9e9, over=True),
        with_sweep(succeeded=frozenset(OLD.applied.table.ids), running=frozenset()),
        with_sweep(failed=frozenset(OLD.applied.table.ids[5:])),
        with_sweep(unmarked=("local",)),
        replace(WORLD, sweeps={"digits": OLD, "other": seen(JOBS, head=3)}),
        replace(WORLD, failed={"digits": set(compute_plan([want(MORE)], WORLD).sweeps[0].desired.table.ids)}),
        replace(WORLD, at=1e9, agents={}, store="another", code=frozenset()),
        replace(WORLD, finished=frozenset(compute_plan([want(MORE)], WORLD).sweeps[0].desired.table.ids)),
    ],
)
def test_what_changes_by_itself_is_left_out(world: ObservedProject) -> None:
    assert digest(want(MORE), world=world) == digest(want(MORE))


def test_commit_and_place_of_the_spec_are_left_out() -> None:
    moved = replace(want(MORE, git={"commit": "b" * 40, "branch": "main", "dirty": True}), source="specs/x/y.yaml")
    assert digest(moved) == digest(want(MORE, git={"commit": "a" * 40, "branch": "pr", "dirty": False}))
    assert digest(want(MORE), want(JOBS, name="z")) == digest(want(JOBS, name="z"), want(MORE))


def test_more_results_to_adopt_are_progress() -> None:
    edit, ids = want(JOBS, CODE, code_files=EDITED), OLD.applied.table.ids
    few, many = (digest(edit, world=replace(WORLD, finished=set(ids[:n])), keep=("code",)) for n in (3, 5))
    assert few == many != digest(edit)


ONE = Equivalence(renamed={"lr": "rate"}, line=3)


@pytest.mark.parametrize(
    "other",
    [
        digest(want(MORE[:-1])),
        digest(want([*reversed(MORE)])),
        digest(want(MORE, CODE)),
        digest(want(MORE, settings=SweepSettings(max_retries=1))),
        digest(want(MORE, settings=SweepSettings(expires=Expiry(after=3600.0)))),
        digest(want(MORE, name="more")),
        digest(want(MORE), want(JOBS, name="more")),
        digest(want(MORE, equivalences=(ONE,))),
        digest(want(MORE), keep=("code",)),
        digest(want(MORE), world=with_sweep(applied_at=3)),
        digest(want(MORE), world=with_sweep(applied=seen(JOBS[1:]).applied)),
        digest(want(MORE), world=with_sweep(cancelled="too dear")),
        compute_plan_digest(replace(ADDS, gone=(GoneSweep("b", "specs/b.yaml", 3, 1, 0, pruned=True),))),
        compute_plan_digest(ADDS.with_fleets([CLOUD])),
    ],
)
def test_every_change_counts(other: str) -> None:
    assert other != digest(want(MORE))


def test_spec_s_line_of_an_equivalence_is_left_out() -> None:
    assert digest(want(MORE, equivalences=(ONE,))) == digest(want(MORE, equivalences=(replace(ONE, line=9),)))


def test_sweep_that_is_gone_counts_only_if_it_is_cancelled() -> None:
    gone = GoneSweep("b", "specs/b.yaml", 3, 1, 0)
    assert compute_plan_digest(replace(ADDS, gone=(gone,))) == compute_plan_digest(ADDS)
    cancelled = replace(gone, pruned=True)
    later = replace(cancelled, running=0, waiting=7)
    first, second = (compute_plan_digest(replace(ADDS, gone=(one,))) for one in (cancelled, later))
    assert first == second != compute_plan_digest(replace(ADDS, gone=(replace(cancelled, revision=4),)))


@pytest.mark.parametrize(
    "fleet",
    [
        replace(CLOUD, before=4, machines=()),
        replace(CLOUD, jobs=9, agents=3, notes=("spot is away",)),
        replace(CLOUD, machines=(MachineChange("update", "group", trouble="no right"),)),
        replace(CLOUD, cost=replace(COST, hours=3.0, until=2e9, rented=1e9, dearer=True)),
    ],
)
def test_machines_that_another_apply_made_meanwhile_are_the_same_plan(fleet: FleetPlan) -> None:
    before = replace(CLOUD, cost=COST) if fleet.cost else CLOUD
    assert compute_plan_digest(ADDS.with_fleets([fleet])) == compute_plan_digest(ADDS.with_fleets([before]))


@pytest.mark.parametrize(
    "fleet",
    [
        replace(CLOUD, inputs={"max_instances": 40}),
        replace(CLOUD, type="gcp"),
        replace(CLOUD, cost=COST),
        replace(CLOUD, cost=replace(COST, price=9.0)),
        replace(CLOUD, cost=replace(COST, machines=5)),
    ],
)
def test_what_monkey_yaml_says_of_machines_counts(fleet: FleetPlan) -> None:
    assert compute_plan_digest(ADDS.with_fleets([fleet])) != compute_plan_digest(ADDS.with_fleets([CLOUD]))


def test_fleet_counts_without_changes_of_sweeps_only_if_its_machines_change() -> None:
    still = compute_plan([want(JOBS)], WORLD)
    nothing = compute_plan_digest(still)
    quiet = replace(CLOUD, before=4, machines=())
    broken = replace(quiet, machines=(MachineChange("update", "h1", trouble="it does not answer"),))
    assert (
        compute_plan_digest(still.with_fleets([quiet])) == compute_plan_digest(still.with_fleets([broken])) == nothing
    )
    assert compute_plan_digest(still.with_fleets([CLOUD])) != nothing
    rents = replace(quiet, before=1, cost=COST)
    assert compute_plan_digest(still.with_fleets([rents])) != nothing
    here = FleetPlan("local", 5, 0, "local")
    assert here.changes and compute_plan_digest(still.with_fleets([here])) == nothing


def test_other_digest_names_both_and_what_changes() -> None:
    plan = replace(ADDS, gone=(GoneSweep("b", "specs/b.yaml", 3, 1, 0, pruned=True),)).with_fleets([CLOUD])
    check_plan_digest(plan, compute_plan_digest(plan))
    with pytest.raises(UnexpectedPlan) as raised:
        check_plan_digest(plan, "0" * 16)
    assert raised.value.message.splitlines() == [
        f"expected a plan with digest {'0' * 16}, found {compute_plan_digest(plan)}, which changes:",
        "  sweep digits: 5 new, 10 kept, from revision 2",
        "  sweep b: cancelled, as its spec is gone",
        "  provider local: its machines",
    ]


def test_plan_that_was_applied_already_is_done_and_another_is_not() -> None:
    digest = compute_plan_digest(ADDS)
    revision = seen(MORE).applied
    assert isinstance(revision, Revision)
    there = replace(WORLD, sweeps={"digits": replace(seen(MORE, applied_at=3), applied=replace(revision, plan=digest))})
    done, more = compute_plan([want(MORE)], there), compute_plan([want(JOBS)], there)
    assert is_done(done, digest) and find_applied_sweeps(done, digest) == ["digits (revision 3)"]
    assert not is_done(more, digest) and not is_done(done, "0" * 16), "there is more to do; it was another plan"
    with pytest.raises(UnexpectedPlan, match="a part of the expected plan was applied already: digits"):
        check_plan_digest(more, digest)
    with pytest.raises(UnexpectedPlan, match=r"which changes:\n  nothing \(hint") as raised:
        check_plan_digest(done, "0" * 16)
    assert raised.value.hint.startswith("nothing is left to agree to")


def test_names_that_are_no_unicode_have_a_digest() -> None:
    assert len(digest(want(MORE, name="a\udcff", code_files={**FILES, "\udcff": "1"}))) == 16


def test_random_histories_never_agree_to_another_plan_nor_refuse_the_same() -> None:
    """Others apply, pause, cancel, finish jobs, and edit specs: the digest moves exactly if what would be done does."""
    tables = [MORE, JOBS[2:], JOBS[:-1], JOBS]
    seen_by: dict[str, tuple[object, ...]] = {}
    same = 0
    for seed in range(200):
        dice = random.Random(seed)
        at, cancelled, jobs, applied, other = 2, None, 0, 3, 1
        options: dict[str, object] = {}
        for _ in range(dice.randrange(12)):
            step = dice.choice(["apply", "pause", "cancel", "reopen", "finish", "edit", "other", "revert"])
            if step == "apply":
                at, cancelled, applied = at + 1, None, dice.randrange(4)
            elif step == "other":
                other += 1
            elif step in ("cancel", "reopen"):
                cancelled = "too dear" if step == "cancel" else None
            elif step in ("edit", "revert"):
                jobs = dice.randrange(4) if step == "edit" else 0
            else:
                options |= {"paused": dice.random() < 0.5} if step == "pause" else {"succeeded": ids_of(JOBS, dice)}
        sweep = seen(tables[applied], head=at + 50, applied_at=at, cancelled=cancelled)
        world = replace(WORLD, sweeps={"digits": replace(sweep, **options), "b": seen(JOBS, applied_at=other)})
        found = digest(want(tables[jobs]), world=world)
        truth = ("nothing",) if jobs == applied else (at, applied, jobs, cancelled)
        assert seen_by.setdefault(found, truth) == truth
        same += truth in list(seen_by.values())[:-1]
    assert len(set(seen_by.values())) == len(seen_by) > 20 and same > 20


def ids_of(jobs: list[dict[str, object]], dice: random.Random) -> frozenset[str]:
    """Return the ids of some of the jobs."""
    return frozenset(job for job in want(jobs).table.ids if dice.random() < 0.5)
