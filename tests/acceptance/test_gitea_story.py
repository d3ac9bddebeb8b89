"""The whole loop on a real Gitea, by the workflows that `monkey init --ci gitea` writes: no word of them is changed.

The runner has no monkey, no key and no store: all comes by the workflow, from the repository's secrets and variables.
Machines are hosts of the lab, and the store is a bucket. The chapters are one test, since each begins where the one
before it ends: what is expensive is made once. MONKEY_LONG=1 kills `monkey notify` twenty times.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.cli.ci.actions_workflow import PYTHON
from tests import services
from tests.acceptance.gitea_story import Story, await_job, find_tasks
from tests.acceptance.hostile_fork import try_a_hostile_fork
from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import until
from tests.forges.gitea import Gitea
from tests.forges.gitea_runner import FAILURE, SKIPPED, SUCCESS, GiteaRunner, Task, run_tasks

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitea"), pytest.mark.needs("act"), pytest.mark.needs("dvc")]

PLAN = "<!-- monkey:plan:shop -->"
ASKED = "<!-- monkey:apply:shop -->"
RESULTS = "<!-- monkey:results:shop:sweep -->"
#: What act prints as `apply --detach` has returned, and as `notify` begins.
NOTIFY = "Run Main Notify"
#: Seconds that the job of the sweep `other` takes: it runs all the while.
ALWAYS = 100_000
#: A Python that copies the environment which it made before: each job makes one, and each would take seconds.
VENV = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
cp -a {made} "$3" && sed -i "s#{made}#$3#" "$3"/bin/pip* "$3"/bin/activate* "$3"/pyvenv.cfg
"""
#: act throws the run's summary away, which Gitea does not show either: here is a copy of what goes there.
TEE = """\
#!/bin/sh
[ "$*" = "-a $GITHUB_STEP_SUMMARY" ] || exit 1
exec /usr/bin/tee -a "$HOME/summary.md" "$@"
"""
KILLS = 20 if "MONKEY_LONG" in os.environ else 2


@pytest.fixture
def python_action(tmp_path: Path) -> dict[str, Path]:
    """Return an action in the place of setup-python: the Python of these tests, whose environments are made once."""
    at = tmp_path / "setup-python"
    subprocess.run([sys.executable, "-m", "venv", at / "made"], check=True)
    (at / "bin").mkdir()
    (at / "bin/python").write_text(VENV.format(python=sys.executable, made=at / "made"))
    (at / "bin/tee").write_text(TEE)
    for program in (at / "bin").iterdir():
        program.chmod(0o755)
    steps = f"    - {{run: 'echo {at}/bin >> \"$GITHUB_PATH\"', shell: bash}}\n"
    inputs = "inputs: {python-version: {description: any}}\n"
    (at / "action.yml").write_text(f"name: python\n{inputs}runs:\n  using: composite\n  steps:\n{steps}")
    return {PYTHON.partition(" ")[0]: at}


@pytest.fixture
def endpoint(lab_site: LabSite, require: Callable[[str], str]) -> Iterator[str]:
    """Return a bucket server that hosts and runner reach."""
    require("moto")
    with services.moto(f"{lab_site.lab.network}.1") as found:
        yield found


@pytest.fixture
def story(lab_site: LabSite, gitea: Gitea, endpoint: str, tmp_path: Path) -> Iterator[Story]:
    yield Story(lab_site, gitea.make_repository(gitea.make_person("monkey")), endpoint, tmp_path)
    lab_site.run("destroy", "-y")


@pytest.fixture
def runner(story: Story, gitea: Gitea, tmp_path: Path, python_action: dict[str, Path]) -> Iterator[GiteaRunner]:
    """Return a runner that has Python, git and Pulumi, and a home of its own; a second one has another home."""
    kept = {name: story.site.shop.env[name] for name in ("PATH", "XDG_CACHE_HOME", "TERM")}
    kept |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    homes = []
    for home in (tmp_path / "runner-home", tmp_path / "second-home"):
        home.mkdir()
        homes.append({"HOME": str(home), "XDG_STATE_HOME": str(home / "state")})
    with run_tasks(gitea, tmp_path / "runner", {**kept, **homes[0]}, python_action) as made:
        made.elsewhere = homes[1]
        yield made


def test_a_commit_is_a_sweep(story: Story, runner: GiteaRunner) -> None:
    begin(story, runner)
    merge_by_squash(story, runner)
    newest = merge_by_rebase(story, runner)
    push_five_at_once(story, runner, newest)
    lose_the_runner(story, runner)
    try_a_hostile_fork(story, runner)
    # What is common to all chapters: no job ran twice, nor did a secret come into a log.
    assert set(story.ledger.begins.values()) == {1} and not story.ledger.overlaps
    assert not [task.job for task in runner.tasks for secret in story.planted if secret in task.log]
    assert {"plan", "fork", "apply", "notify", "drift"} <= {task.job for task in runner.tasks if task.result == SUCCESS}


def begin(story: Story, runner: GiteaRunner) -> None:
    """Push two sweeps to main; `other` is never changed before its spec is deleted."""
    story.site.sweep(jobs=2)
    story.site.sweep(jobs=1, seconds=ALWAYS, name="other")
    first = story.push("main", "two sweeps, and their CI")
    await_job(runner, "apply", first, "push")
    assert story.status(first, "monkey/apply")[0] == "success"
    until(lambda: story.ledger.executions == 3, "the jobs of the first push run")


def merge_by_squash(story: Story, runner: GiteaRunner) -> None:
    """Push twice to a pull request, and merge it; two runners run the merge's job at once."""
    site, repository = story.site, story.repository
    site.sweep(jobs=3)
    commit = story.push("more", "one value more")
    pull = repository.open_pull("more")
    await_job(runner, "plan", commit, "pull_request")
    [(number, said)] = story.comments(pull, PLAN)
    assert said.startswith(f"{PLAN}\n### monkey plan: 1 new")
    site.sweep(jobs=4)
    head = story.clone.push("more", "and another")
    # A label makes no plan again, and ends none: Gitea names that event in its own way.
    repository.add_label(pull, "big")
    plans = until(lambda: (found := find_tasks(runner, "plan", head, "pull_request"))[1:] and found, "plan, label")
    assert sorted(task.result for task in plans) == [SUCCESS, SKIPPED], [task.log for task in plans]
    [(again, said)] = story.comments(pull, PLAN)
    state, planned = story.status(head, "monkey/plan")
    assert again == number and said.startswith(f"{PLAN}\n### monkey plan: 2 new") and state == "success"
    runner.beside = lambda job, commit: [commit] if job == "apply" else []
    merged = repository.merge(pull, "squash", delete_branch=True)
    until(lambda: len(find_tasks(runner, "apply", merged, "push")) == 2, "both runners have applied", step=0.2)
    runner.beside = lambda job, commit: []
    both = find_tasks(runner, "apply", merged, "push")
    assert {task.result for task in both} == {SUCCESS}
    # One wins, and the other says so.
    assert [task.log.count("sweep: revision") for task in both].count(1) == 1
    assert any("applied the same just now" in task.log or "Nothing to change." in task.log for task in both)
    assert (f"{planned.partition(' ')[0]} applied") in [
        each["description"] for each in repository.list_statuses(merged, "monkey/apply")
    ]
    assert story.status(merged, "monkey/apply")[0] == "success" and not story.comments(pull, ASKED)
    until(lambda: len(story.ledger.digests) == 4, "the new jobs end")
    assert story.ledger.executions == 5


def merge_by_rebase(story: Story, runner: GiteaRunner) -> str:
    """Rebase a pull request onto main; two runners apply it and the next push at once. Return that push."""
    site, repository = story.site, story.repository
    site.sweep(jobs=5)
    head = story.push("again", "a fifth value")
    pull = repository.open_pull("again")
    await_job(runner, "plan", head, "pull_request")
    [(_, said)] = story.comments(pull, PLAN)
    assert said.startswith(f"{PLAN}\n### monkey plan: 1 new")
    pushed = []

    def push(job: str, commit: str) -> list[str]:
        if job != "apply" or pushed:
            return []
        site.sweep(jobs=6)
        pushed.append(story.push("main", "a sixth value"))
        return pushed

    runner.beside = push
    merged = repository.merge(pull, "rebase", delete_branch=True)
    until(lambda: pushed and len(find_tasks(runner, "apply", pushed[0], "push")) == 2, "the push is applied", step=0.2)
    runner.beside = lambda job, commit: []
    newest = str(pushed[0])
    # Whoever came first, the newest is applied.
    until(lambda: len(story.ledger.digests) == 6, "both new jobs end")
    assert story.ledger.executions == 7 and story.status(newest, "monkey/apply")[0] == "success"
    assert [task.result for task in find_tasks(runner, "apply", newest, "push")] == [SUCCESS] * 2
    state, said = story.status(merged, "monkey/sweep")
    assert state == "success" or said.startswith(f"superseded by {newest[:10]}")
    return newest


def push_five_at_once(story: Story, runner: GiteaRunner, newest: str) -> None:
    """Push a revert and four more commits before the first is applied."""
    site, repository = story.site, story.repository
    story.clone.git("revert", "--no-edit", newest)
    revert = story.clone.git("rev-parse", "HEAD")
    before, pushed = story.ledger.executions, [revert]
    for jobs in (7, 8, 9, 8):
        site.sweep(jobs=jobs)
        pushed.append(story.clone.commit(f"{jobs} values"))

    def push(job: str, commit: str) -> list[str]:
        if (job, commit) == ("apply", revert):
            for each in pushed[1:]:
                story.clone.git("push", "--quiet", "origin", f"{each}:main")
        return []

    runner.beside = push
    story.clone.git("push", "--quiet", "origin", f"{revert}:main")
    await_job(runner, "apply", revert, "push")
    assert story.ledger.executions == before, "a revert runs nothing"
    last = pushed[-1]
    await_job(runner, "apply", last, "push")
    until(lambda: len(story.ledger.digests) == 8, "the jobs of the newest end")
    # The sixth value has its result still: what a commit brings back does not run again.
    assert story.ledger.executions == before + 2
    assert story.status(last, "monkey/apply")[0] == "success"
    superseded = f"superseded by {last[:10]}"
    for commit in pushed[1:-1]:
        assert repository.list_jobs("apply", commit, "push") == ["cancelled"]
        assert story.status(commit, "monkey/sweep") == ("failure", superseded)
    state, said = story.status(revert, "monkey/sweep")
    assert state == "success" or said.startswith(superseded)


def lose_the_runner(story: Story, runner: GiteaRunner) -> None:
    """Merge a value more and a spec less; the runner is killed as `apply` returned, and `notify`, too."""
    site, repository = story.site, story.repository
    site.sweep(jobs=9)
    (site.shop.root / "specs/other.yaml").unlink()
    head = story.push("last", "a value more, a spec less")
    pull = repository.open_pull("last")
    await_job(runner, "plan", head, "pull_request")
    [(_, said)] = story.comments(pull, PLAN)
    assert said.startswith(f"{PLAN}\n### monkey plan: 1 new") and "sweep other: its spec is gone (1 running)" in said
    assert [len(story.ledger.begins), story.host.processes().count(str(ALWAYS))] == [9, 1], "it runs as before"
    story.ledger.hold()
    runner.kills = lambda job, row: job == "apply" and NOTIFY in row
    merged = repository.merge(pull, "merge", delete_branch=True)
    killed = await_job(runner, "apply", merged, "push", FAILURE)
    assert killed.killed and "Detached: sweep goes on without this terminal" in killed.log
    until(lambda: not story.host.processes().count(str(ALWAYS)), "what was deleted is cancelled")
    until(lambda: story.ledger.executions == 10, "the new job begins")
    story.ledger.release()
    until(lambda: len(story.ledger.digests) == 9, "the agent finishes it")
    for number in range(KILLS):
        runner.kills = lambda job, row: job == "notify" and NOTIFY in row and wait_a_moment()
        repository.dispatch("monkey.yml")
        until(lambda n=number: len(find_notify(runner, merged)) == n + 1, "a run of notify is killed", step=0.2)
        assert len(story.comments(pull, RESULTS)) <= 1
    runner.kills = lambda job, row: False
    repository.dispatch("monkey.yml")
    repository.dispatch("monkey-drift.yml")
    # Jobs without a key see no difference either: all is as the branch says.
    assert "No changes" in await_job(runner, "drift", merged, "workflow_dispatch").log
    [(_, results)] = story.comments(pull, RESULTS)
    assert "`sweep` has finished" in results
    assert story.status(merged, "monkey/sweep") == ("success", "9 succeeded")
    assert [row["state"] for row in site.rows()] == ["succeeded"] * 9


def find_notify(runner: GiteaRunner, commit: str) -> list[Task]:
    """Return the runs of `notify` by hand that were meant."""
    found = find_tasks(runner, "notify", commit, "workflow_dispatch")
    return [task for task in found if task.result != SKIPPED]


def wait_a_moment() -> bool:
    """Let a command be killed anywhere between its beginning and its end."""
    time.sleep(random.uniform(0, 4))
    return True
