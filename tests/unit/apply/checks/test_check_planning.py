"""What checks run, and which jobs are chosen: from a store, without an agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.checks.check_choice import JobToCheck, select_sample
from monkey.apply.checks.check_planning import CheckOrder, plan_checks
from monkey.apply.checks.check_recipes import CHECK_PRIORITY, make_check_recipe, make_check_settings
from monkey.apply.execute import execute_plan
from monkey.cli.main import run_guarded
from monkey.errors import FleetError, MonkeyError, NotFound
from monkey.spec.job.expires import Expiry
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.influx_settings import InfluxSettings
from tests.unit.apply.small_project import Pen, apply, opened, write_project

RECIPE = Recipe("train", "0" * 64, environment={"requirements": "--pre\nnumpy\n", "python": "3.11"})


def test_recorded_versions_are_constraints_and_no_packages_of_their_own() -> None:
    lock = ["evil @ https://evil/x.whl", "-r /etc/passwd", "numpy==2.4.6\nevil", "numpy==2.4.6"]
    made = make_check_recipe(RECIPE, "check-1.digits", lock)
    assert made.environment == {**RECIPE.environment, "constraints": "numpy==2.4.6\n"}
    assert made == replace(RECIPE, environment=made.environment, env={"_MONKEY_CHECK": "check-1.digits"})


@pytest.mark.parametrize("text", ["numpy==2.4.6\n", "numpy==2.4.6 --hash=sha256:00\n"])
def test_an_environment_that_has_these_versions_anyway_is_the_same(text: str) -> None:
    pinned = replace(RECIPE, environment={"requirements": text})
    assert make_check_recipe(pinned, "check-1.a", ["numpy==2.4.6"]).environment == pinned.environment
    # Resolved anew, it is one that no machine has yet.
    assert make_check_recipe(pinned, "check-1.a", None).environment["constraints"] == "# check-1.a\n"


def test_a_check_tells_nobody_and_is_in_no_ones_way() -> None:
    rules = [StopRule("loss", kind="nan"), StopRule("acc", above=0.9, sweep=True)]
    expiry = Expiry(at=1.0)
    settings = SweepSettings(
        max_retries=2, fail_fast=True, influx=InfluxSettings("http://x", "b"), stop_when=rules, expires=expiry
    )
    made = make_check_settings(settings, ["lab"], rented=False)
    assert (made.influx, made.notify, made.fail_fast, made.stop_when) == (None, [], False, rules[:1])
    assert (made.priority, made.providers, made.max_retries, made.expires) == (CHECK_PRIORITY, ["lab"], 2, None)
    assert make_check_settings(settings, ["lab"], rented=True).expires == Expiry(after=86_400.0)
    hours = replace(settings, expires=Expiry(after=60.0))
    assert make_check_settings(hours, ["lab"], rented=True).expires == Expiry(after=60.0)


def test_a_sample_is_about_its_share_and_another_one_each_day() -> None:
    nowhere: Any = None
    jobs = [JobToCheck(nowhere, f"{n:016x}") for n in range(5_000)]
    days = [select_sample(jobs, 0.1, f"2026-11-{day}") for day in (24, 25)]
    assert all(400 < len(chosen) < 600 for chosen in days) and select_sample(jobs, 0.1, "2026-11-24") == days[0]
    assert len(set(days[0]) & set(days[1])) < 100
    assert select_sample(jobs, 1.0, "2026-11-24") == jobs


def test_checks_of_succeeded_jobs_are_sweeps_of_their_own(tmp_path: Path) -> None:
    write_project(tmp_path)

    async def go() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            pen = Pen(world)
            view = (await world.reader().read()).sweeps["small"]
            for job in view.ids[:2]:
                await pen.begin(job)
                await pen.end(job)
            with pytest.raises(MonkeyError, match="expected a job that has succeeded, found"):
                await plan_checks(world, CheckOrder([view.ids[2]]))
            with pytest.raises(NotFound):
                await plan_checks(world, CheckOrder(["nothing"]))
            with pytest.raises(FleetError, match="expected one of this project's providers"):
                await plan_checks(world, CheckOrder(["small"], provider="moon"))
            for number in (1, 2):
                planned, chosen, among = await plan_checks(world, CheckOrder(["small"]))
                assert planned is not None and (chosen, among) == (2, 2)
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
                revision = (await world.reader().read()).sweeps[f"check-{number}.small"].state.revision
                assert revision is not None and list(revision.checks.values()) == list(view.ids[:2])
                assert [revision.table.parameters(row) for row in range(2)] == [{"lr": 1}, {"lr": 2}]
                assert list(revision.checks) == list(revision.table.ids)
            with pytest.raises(MonkeyError, match="is a check"):
                await plan_checks(world, CheckOrder(["check-1.small"]))

    asyncio.run(go())


def test_a_check_that_has_ended_is_named_beside_the_sweeps_and_is_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)

    async def go() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            pen = Pen(world)
            jobs = (await world.reader().read()).sweeps["small"].ids
            await pen.begin(jobs[0])
            await pen.end(jobs[0])
            for number in (1, 2):
                planned, _, _ = await plan_checks(world, CheckOrder(["small"]))
                assert planned is not None
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
                (check,) = (await world.reader().read()).sweeps[f"check-{number}.small"].ids
                await pen.begin(check, f"check-{number}.small")
            await pen.end(check, sweep="check-2.small")

    asyncio.run(go())
    for verb in (["status"], ["list", "sweeps"]):
        run_guarded(verb)
        told = capsys.readouterr().out
        assert "Checks that have ended: check-2.small; `monkey rerun --show NAME` has their verdicts." in told
        assert told.count("check-2.small") == 1 and told.count("check-1.small") == 1, told
        run_guarded([*verb, "--json"])
        assert "check-2.small" in capsys.readouterr().out
    run_guarded(["status", "check-2.small"])
    assert "Checks that" not in capsys.readouterr().out
