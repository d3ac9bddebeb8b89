"""Previews of pull requests: who may, what is planned and applied, what it may cost, and how it ends."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.orders import cancel_sweep, pause_sweep
from monkey.apply.planning import PlanningResult
from monkey.apply.previews import check_preview, converge_previews, end_preview, end_previews, plan_preview
from monkey.apply.world.world import World
from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.errors import MonkeyError, PlanError, SweepRefused
from monkey.plan.commits.refusals import check_refusals
from monkey.plan.text.lines import format_verdict
from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.spec.project.project import load_project
from tests.unit.apply.paper import renting, write_rented
from tests.unit.apply.small_project import SPEC, Pen, apply, opened

LIMITS = "project: test\npreviews: {jobs: 2, max_concurrent_jobs: 1, expires: 1h, secrets: [KEY]}\n"


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be no run of CI."""
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def project(root: Path) -> Path:
    """Return the root of a project that allows previews."""
    (root / "monkey.yaml").write_text(LIMITS)
    return root


def write_spec(root: Path, name: str, more: str = "", rates: str = "[1, 2, 3]") -> None:
    text = SPEC.replace("name: small", f"name: {name}").replace("[1, 2, 3]", rates)
    (root / "specs" / f"{name}.yaml").write_text(text + more)


async def preview(world: World, pull: int, *specs: str) -> PlanningResult:
    """Plan and apply previews, as the verb does."""
    made = await plan_preview(world, pull, specs)
    check_refusals(made.plan)
    if made.plan.changes:
        await world.begin()
        await execute_plan(world, made.plan, made.wanted, lambda what, done: None)
    await converge_previews(world, made.plan)
    return made


async def cancelled(world: World) -> dict[str, str | None]:
    """Return why each sweep was cancelled."""
    return {name: view.state.cancelled for name, view in (await world.reader().read()).sweeps.items()}


def rates(made: PlanningResult) -> dict[str, Sequence[object]]:
    return {sweep.name: [row["lr"] for _, row in sweep.desired.table.rows()] for sweep in made.plan.sweeps}


def test_each_push_previews_the_same_extremes_and_merged_jobs_are_previewed_no_more(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as world:
            first = await preview(world, 12)
            assert rates(first) == {"pr-12.small": [1, 3]}
            pen = Pen(world)
            for job in first.plan.sweeps[0].desired.table.ids:
                await pen.begin(job, "pr-12.small")
                await pen.end(job, sweep="pr-12.small")
            again = await preview(world, 12)
            assert rates(again) == {"pr-12.small": [1, 3]} and not again.plan.changes
            merged = (await apply(world)).plan.sweeps[0].jobs
            assert (len(merged.new), dict(merged.elsewhere)) == (1, {"pr-12.small": 2})
            write_spec(project, "small", rates="[1, 2, 3, 4, 5, 6]")
            assert rates(await preview(world, 13)) == {"pr-13.small": [4, 6]}

    asyncio.run(main())


def test_a_preview_ends_when_its_pull_request_is_closed_and_continues_when_it_is_open_again(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as world:
            assert await end_previews(world, set()) == []  # there is no store yet
            write_spec(project, "plain", rates="[7, 8]")
            await apply(world, str(project / "specs/plain.yaml"))
            write_spec(project, "other", rates="[4, 5, 6]")
            for pull in (1, 2, 12):
                await preview(world, pull)
            await pause_sweep(world, "pr-1.small")
            await cancel_sweep(world, "pr-12.other", "too dear")
            ended = await end_previews(world, {2})
            assert [one.view.state.name for one in ended] == ["pr-1.other", "pr-1.small", "pr-12.small"]
            one, twelve = "pull request 1 was closed", "pull request 12 was closed"
            kept = {"plain": None, "pr-2.small": None, "pr-2.other": None}
            ends = {"pr-1.small": one, "pr-1.other": one, "pr-12.small": twelve, "pr-12.other": "too dear"}
            assert await cancelled(world) == kept | ends
            heads = [(await read_sweep(world.at, world.keys, world.signers, name)).head for name in ends]
            assert await end_previews(world, {2}) == [] and await end_preview(world, 1) == []
            assert heads == [(await read_sweep(world.at, world.keys, world.signers, name)).head for name in ends]
            reopened = await preview(world, 12, str(project / "specs/other.yaml"))
            assert not reopened.plan.continued  # a person's word holds
            reopened = await preview(world, 12)
            assert reopened.plan.continued == ("pr-12.small",) and reopened.plan.changes
            assert format_verdict(reopened.plan) == "Plan: 4 kept; 1 preview continues."
            assert "pull request 12 is open again" in reopened.plan.warnings[0]
            assert (await cancelled(world))["pr-12.small"] is None
            assert [one.view.state.name for one in await end_preview(world, 2, "too dear")] == [
                "pr-2.other",
                "pr-2.small",
            ]
            assert (await cancelled(world))["pr-2.small"] == "too dear"

    asyncio.run(main())


def test_a_sweep_that_the_pull_request_no_longer_changes_is_previewed_no_longer(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as world:
            write_spec(project, "other")
            await preview(world, 12)
            await preview(world, 13)
            (project / "specs" / "other.yaml").unlink()
            named = await preview(world, 12, str(project / "specs/small.yaml"))
            assert not named.plan.ended  # what was not asked about is left alone
            made = await preview(world, 12)
            assert made.plan.ended == ("pr-12.other",) and "no longer previews it" in made.plan.warnings[0]
            assert {name for name, why in (await cancelled(world)).items() if why} == {"pr-12.other"}

    asyncio.run(main())


def test_a_job_that_a_sweep_waits_for_is_never_run_by_a_preview(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as world:
            await apply(world)
            write_spec(project, "thief", "timeout: 1s\n", rates="[2, 3, 4]")
            assert rates(await preview(world, 12)) == {"pr-12.thief": [4]}

    asyncio.run(main())


def test_a_branch_of_many_specs_multiplies_no_limit(project: Path) -> None:
    (project / "monkey.yaml").write_text(LIMITS.replace("jobs: 2", "sweeps: 2, jobs: 2", 1))
    for name in "abcd":
        write_spec(project, name)
    (project / "specs" / "small.yaml").unlink()
    spec = {name: str(project / f"specs/{name}.yaml") for name in "abcd"}

    async def main() -> None:
        async with opened(project) as world:
            assert rates(await preview(world, 12, spec["d"])) == {"pr-12.d": [1, 3]}
            named = await preview(world, 12, spec["b"], spec["c"])
            assert rates(named).keys() == {"pr-12.b"}
            said = "pr-12.c: left out, as a pull request previews at most 2 sweeps at once"
            assert named.plan.warnings == (said,)
            both = await preview(world, 12)
            assert rates(both).keys() == {"pr-12.a", "pr-12.b"} and both.plan.ended == ("pr-12.d",)
            assert rates(await preview(world, 13)).keys() == {"pr-13.a", "pr-13.b"}  # each has its own

    asyncio.run(main())


def test_a_spec_that_may_not_be_previewed_holds_up_no_other(project: Path) -> None:
    write_spec(project, "other", "secrets: [OTHER]\n")

    async def main() -> None:
        async with opened(project) as world:
            made = await plan_preview(world, 12, ())
            assert rates(made).keys() == {"pr-12.small"}
            assert made.plan.warnings[0].startswith("left out: specs/other.yaml: expected no secret but")
            with pytest.raises(PlanError, match="found OTHER"):
                await plan_preview(world, 12, [str(project / "specs")])

    asyncio.run(main())


def test_a_rewritten_branch_is_previewed_and_a_late_run_of_an_older_commit_is_not(project: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", "-C", project, *who, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(text: str, *more: str) -> None:
        (project / "train.py").write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", text, *more)

    async def main() -> None:
        async with opened(project) as world:
            git("init", "-q")
            commit("# base")
            commit("# first")
            await preview(world, 12)
            commit("# first, rewritten", "--amend")
            await preview(world, 12)
            git("checkout", "-q", "HEAD~1")
            with pytest.raises(SweepRefused, match=r"pr-12\.small"):
                await preview(world, 12)

    asyncio.run(main())


def test_without_limits_there_is_no_preview(root: Path) -> None:
    with pytest.raises(MonkeyError, match=r"monkey\.yaml: expected `previews:`") as caught:
        check_preview(load_project(root), 12)
    assert "previews: {jobs: 8" in (caught.value.hint or "")


def test_in_ci_the_limits_are_not_the_pull_requests_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = project.parent / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 12}}))
    for name, value in {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MonkeyError, match=r"expected the base's monkey\.yaml") as caught:
        check_preview(load_project(project), 12)
    assert "--project-file" in (caught.value.hint or "")
    (project / "link.yaml").symlink_to("monkey.yaml")
    with pytest.raises(MonkeyError, match=r"expected the base's monkey\.yaml"):
        check_preview(load_project(project, project / "link.yaml"), 12)
    base = project.parent / "base.yaml"
    base.write_text(LIMITS)
    check_preview(load_project(project, base), 12)
    with pytest.raises(MonkeyError, match=r"expected --preview 12, .* found --preview 13"):
        check_preview(load_project(project, base), 13)


def test_a_fork_gets_no_secret(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_spec(project, "small", "secrets: [KEY]\n")
    base, event = project.parent / "base.yaml", project.parent / "event.json"
    base.write_text(LIMITS.replace("project: test", f"project: test\nstore: {project.parent}/store"))
    monkeypatch.setenv("KEY", "sesame")
    for name, value in {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event)}.items():
        monkeypatch.setenv(name, value)

    async def main(head: str) -> None:
        repos = {"head": {"repo": {"full_name": head}}, "base": {"repo": {"full_name": "us/it"}}}
        event.write_text(json.dumps({"pull_request": {"number": 12, **repos}}))
        async with opened(project) as world:
            world.project = load_project(project, base)
            world.fleets["local"].check_secrets = lambda names: None  # type: ignore[method-assign]  # it knows them
            await plan_preview(world, 12, ())

    asyncio.run(main("us/it"))
    with pytest.raises(PlanError, match=r"expected no secret but those that previews may have \(none\), found KEY"):
        asyncio.run(main("them/it"))


@pytest.mark.parametrize(
    ("most", "found"),
    [
        # 2 of the 3 jobs, each on a machine of its own, for an hour each at 1.01.
        ("2.02", ""),
        ("2.01", r"at most \$2\.01 \(max_cost of previews\), found \$2\.02: at most 2 × paper\.large × 1 h"),
    ],
)
def test_rented_machines_of_previews_cost_no_more_than_their_limit_and_no_one_is_asked(
    most: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rented(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    limits = f"previews: {{jobs: 2, expires: 1h, providers: cloud, max_cost: {most}}}\n"
    (tmp_path / "monkey.yaml").write_text((tmp_path / "monkey.yaml").read_text() + limits)

    async def main() -> None:
        async with renting(tmp_path) as (world, cloud):
            with pytest.raises(MonkeyError, match="applying would rent"):
                await _apply(world, ApplyOrder([], [], detach=True))
            await _apply(world, ApplyOrder([], [], detach=True, preview=12))
            assert cloud.rented()["machines"] == 2

    if found:
        with pytest.raises(PlanError, match=found):
            asyncio.run(main())
    else:
        asyncio.run(main())


def test_machines_that_would_stay_longer_for_a_preview_count_all(tmp_path: Path) -> None:
    write_rented(tmp_path, expires="30m")
    limits = "previews: {jobs: 1, expires: 1h, providers: cloud, max_cost: 3}\n"
    (tmp_path / "monkey.yaml").write_text((tmp_path / "monkey.yaml").read_text() + limits)

    async def main() -> None:
        async with renting(tmp_path) as (world, _):
            await apply(world)
            write_rented(tmp_path, spec=SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            with pytest.raises(PlanError, match=r"found \$4\.04: at most 4 × paper\.large × 1 h"):
                await plan_preview(world, 12, ())

    asyncio.run(main())
