"""`monkey init --ci`: files that the forges' own checkers take, what jobs may do there, and what is left to do."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from monkey.cli.commands.init import init_command
from monkey.errors import MonkeyError
from tests.ci_clone import MACHINES, Clone
from tests.ci_linters import lint_workflows, list_gitlab_jobs

#: Rights at AWS are asked for by its library.
NEEDED = [pytest.param(name, marks=[pytest.mark.needs("boto3")] if name == "aws" else []) for name in MACHINES]
FORGES = ("github", "gitea", "gitlab")
FILES = {
    "github": [".github/workflows/monkey.yml"],
    "gitea": [".gitea/workflows/monkey.yml", ".gitea/workflows/monkey-drift.yml"],
    "gitlab": [".gitlab-ci.yml"],
}


def steps(jobs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return itertools.chain.from_iterable(job["steps"] for job in jobs.values())


@pytest.mark.needs("actionlint")
@pytest.mark.parametrize("forge", FORGES[:2])
@pytest.mark.parametrize("machines", NEEDED)
def test_workflows_are_as_the_linter_wants_them(clone: Clone, forge: str, machines: str) -> None:
    assert clone.init(forge, MACHINES[machines]).exit_code == 0
    assert lint_workflows([clone.root / name for name in FILES[forge]]) == ""


def test_the_linter_would_say_what_is_wrong(clone: Clone, require: Callable[[str], str]) -> None:
    require("actionlint")
    clone.init("github", MACHINES["lab"])
    file = clone.root / FILES["github"][0]
    file.write_text(file.read_text().replace("github.event_name == 'push'", "github.evnt == 'push'"))
    assert 'property "evnt" is not defined' in lint_workflows([file])


#: What GitLab sets for the event → the jobs that run.
EVENTS: list[tuple[dict[str, str], list[str]]] = [
    ({"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "trunk"}, ["apply"]),
    ({"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "trunk"}, ["notify"]),
    ({"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "trunk", "MONKEY_JOB": "drift"}, ["drift"]),
    ({"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7"}, ["plan"]),
    (
        {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "mine",
        },
        [],
    ),
    (
        {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_LABELS": "big,monkey-preview",
        },
        ["plan", "preview"],
    ),
    (
        {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8",
            "CI_MERGE_REQUEST_LABELS": "monkey-preview",
        },
        ["fork"],
    ),
]


@pytest.mark.slow
@pytest.mark.needs("boto3")
@pytest.mark.needs("gitlab-ci-local")
@pytest.mark.parametrize(("event", "jobs"), EVENTS)
def test_gitlab_s_schema_holds_and_each_event_runs_its_jobs(
    clone: Clone, event: dict[str, str], jobs: list[str]
) -> None:
    assert clone.init("gitlab", MACHINES["aws" if len(jobs) > 1 else "lab"], "--branch", "trunk").exit_code == 0
    clone.git("add", ".")
    clone.git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "ci")
    event = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "trunk", **event}
    assert sorted(list_gitlab_jobs(clone.root, CI_MERGE_REQUEST_PROJECT_ID="7", **event)) == jobs


@pytest.mark.slow
@pytest.mark.needs("gitlab-ci-local")
def test_gitlab_s_schema_would_say_what_is_wrong(clone: Clone) -> None:
    assert clone.init("gitlab", MACHINES["lab"], "--branch", "trunk").exit_code == 0
    file = clone.root / FILES["gitlab"][0]
    file.write_text(file.read_text().replace("action: prepare", "action: look"))
    clone.git("add", ".")
    with pytest.raises(AssertionError, match="'action' property must be one of"):
        list_gitlab_jobs(clone.root, CI_PIPELINE_SOURCE="push", CI_COMMIT_BRANCH="trunk")


@pytest.mark.parametrize("forge", FORGES[:2])
@pytest.mark.parametrize("machines", NEEDED)
def test_what_jobs_may_do(clone: Clone, forge: str, machines: str) -> None:
    assert clone.init(forge, MACHINES[machines]).exit_code == 0
    for name in FILES[forge]:
        text, workflow, jobs = (clone.root / name).read_text(), clone.read(name), clone.jobs(name)
        assert "pull_request_target" not in text and "--yes" not in text
        assert workflow["permissions"] == {}, "a job has what it says, and nothing besides"
        for step in steps(jobs):
            assert "${{" not in step.get("run", ""), "inputs come by the environment: in a script they would be code"
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a@" + "0" * 40))
        oidc = forge == "github" and machines in ("aws", "gcp")
        assert ("id-token" in text) is oidc
    assert clone.read(FILES[forge][0])["on"]["pull_request"]["branches"] == ["trunk"], "its monkey.yaml is trusted"
    jobs = clone.jobs(FILES[forge][0])
    fork = jobs["fork"]
    assert fork["permissions"] == {"contents": "read"}
    assert not any("env" in step for step in fork["steps"]), "a stranger's branch gets no secret, and no token"
    assert fork["steps"][0]["with"]["persist-credentials"] is False
    assert "--no-store" in fork["steps"][-1]["run"]
    for name in ("plan", "preview"):
        assert "head.repo.full_name == github.repository" in jobs[name]["if"]
        assert "--project-file" in jobs[name]["steps"][-1]["run"]
    group = "monkey-apply-${{ github.event_name }}"
    assert jobs["apply"]["concurrency"] == {"group": group, "cancel-in-progress": False}
    signing = {name for name, job in jobs.items() if "SIGNING_KEY" in str(job)}
    assert signing == {"apply", "notify", "preview"}
    if forge == "github":
        assert {name: job.get("environment") for name, job in jobs.items() if name in signing} == {
            "apply": "monkey-apply",
            "notify": "monkey-apply",
            "preview": "monkey-preview",
        }
    else:
        assert "--onto" in jobs["plan"]["steps"][-1]["run"], "Gitea checks the head out, and not what a merge makes"


@pytest.mark.needs("boto3")
def test_gitlab_s_jobs_have_only_what_they_need(clone: Clone) -> None:
    assert clone.init("gitlab", MACHINES["aws"]).exit_code == 0
    jobs = clone.read(".gitlab-ci.yml")
    assert "id_tokens" not in jobs["fork"] and "environment" not in jobs["fork"]
    assert "id_tokens" in jobs["plan"] and "environment" not in jobs["plan"]
    assert jobs["apply"]["environment"]["name"] == jobs["notify"]["environment"]["name"] == "monkey-apply"
    assert "--yes" not in (clone.root / ".gitlab-ci.yml").read_text()


def test_only_apply_has_the_token_that_may_merge_at_gitlab(clone: Clone) -> None:
    script = clone.init("gitlab", MACHINES["lab"]).stdout
    assert [line for line in script.splitlines() if "variable set GITLAB_TOKEN" in line] == [
        "ask GITLAB_TOKEN | glab variable set GITLAB_TOKEN --masked",
        "ask GITLAB_TOKEN of monkey-apply | glab variable set GITLAB_TOKEN --masked --scope monkey-apply --protected",
    ]


@pytest.mark.parametrize("forge", FORGES)
def test_what_would_be_lost_gets_no_ci(clone: Clone, forge: str) -> None:
    for text, said in {
        "": "expected a store that CI and machines share, found .*/.monkey/store",
        "store: /data/x\nproviders: {lab: {type: ssh, hosts: [h]}}\n": "found /data/x, which a runner lacks",
        "store: s3://b/x\n": "found only local ones",
    }.items():
        refused = clone.init(forge, text)
        assert isinstance(refused.exception, MonkeyError)
        assert re.search(said, str(refused.exception)) and "monkey sync" in str(refused.exception.hint)
        assert not any((clone.root / name).exists() for name in FILES[forge])


def test_files_of_others_stay_and_own_ones_are_kept(clone: Clone) -> None:
    assert "Wrote .github/workflows/monkey.yml." in clone.init("github", MACHINES["ssh"]).stderr
    file = clone.root / FILES["github"][0]
    before = file.stat()
    assert "Kept .github/workflows/monkey.yml." in clone.init("github", MACHINES["ssh"]).stderr
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    file.write_text(text := file.read_text() + "# ours\n")
    refused = clone.init("github", MACHINES["ssh"])
    assert "another file than `monkey init --ci` writes; nothing was written" in str(refused.exception)
    assert file.read_text() == text


@pytest.mark.parametrize(("forge", "action"), [("github", "labeled"), ("gitea", "label_updated")])
def test_a_label_makes_no_plan_again(clone: Clone, forge: str, action: str) -> None:
    assert clone.init(forge, MACHINES["lab"]).exit_code == 0
    jobs = clone.jobs(FILES[forge][0])
    for name in ("plan", "fork"):
        assert f"github.event.action != '{action}'" in jobs[name]["if"]


def test_a_project_below_the_repository_s_top(clone: Clone) -> None:
    assert clone.init("github", MACHINES["ssh"], "--branch", 'we"ird', at="deep/down").exit_code == 0
    workflow = clone.read(".github/workflows/monkey-deep--down.yml")
    assert workflow["defaults"]["run"]["working-directory"] == "deep/down"
    assert workflow["on"]["push"]["branches"] == ['we"ird']
    assert not (clone.root / "deep/down/.github").exists()


def test_what_is_left_to_do_is_a_script(clone: Clone) -> None:
    done = clone.init("github", MACHINES["lab"])
    script = done.stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).stderr == ""
    assert "gh api 'repos/team/sweeps/environments/monkey-apply/deployment-branch-policies' -f name=trunk" in script
    assert "https://minio.lab" in script and "MONKEY_TRUSTED_ENDPOINTS" in script
    assert "gh secret set AWS_ACCESS_KEY_ID --env monkey-apply" in script


@pytest.mark.needs("pulumi-aws")
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_two_roles_at_amazon_one_of_which_only_reads(clone: Clone, forge: str) -> None:
    script = clone.init(forge, MACHINES["aws"]).stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).stderr == ""
    plan, apply = (script.partition(f"ci-monkey-sweeps-{role} ")[2].partition("put-role-policy")[0] for role in ROLES)
    assert "s3:GetObject" in plan and "ec2:Describe*" in plan
    for verb in ("Put", "Delete", "Create", "Run", "Pass", "Terminate", "Update", "Modify"):
        assert not re.search(rf":{verb}\w+", plan) and re.search(rf":{verb}\w*", apply)
    subject = "environment:monkey-apply" if forge == "github" else "ref_type:branch:ref:trunk"
    assert re.search(rf"trust=.*team/sweeps:{subject}\"\]", script)
    assert "sweeps:pull_request" in script or forge == "gitlab"


ROLES = ("plan", "apply")


@pytest.mark.needs("pulumi-gcp")
def test_two_service_accounts_at_google_one_of_which_only_reads(clone: Clone) -> None:
    script = clone.init("github", MACHINES["gcp"]).stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).stderr == ""
    reader = (
        script.partition("gcloud iam roles create monkeyStoreReader")[2].partition("'END'\n")[2].partition("END")[0]
    )
    assert "storage.objects.get" in reader and "create" not in reader and "delete" not in reader
    binding = "gcloud storage buckets add-iam-policy-binding gs://b --member serviceAccount:monkey-"
    assert f"{binding}plan@my-project-1" in script and "roles/monkeyStoreReader" in script
    given = [line for line in script.splitlines() if "projectIamAdmin" in line]
    assert given and all("monkey-apply@" in line for line in given), "who plans gives nobody rights"


@pytest.mark.parametrize(("words", "said"), [(("--package", "x"), "need --ci"), (("--branch", "x"), "need --ci")])
def test_options_of_ci_need_it(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    refused = CliRunner().invoke(init_command, [str(tmp_path), *words])
    assert said in str(refused.exception)
