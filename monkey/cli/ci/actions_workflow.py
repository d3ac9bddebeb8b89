"""Workflows for GitHub, and for Gitea and Forgejo, whose jobs are written in the same way."""

from __future__ import annotations

import json
from textwrap import indent
from typing import NamedTuple

from monkey.cli.ci.ci_needs import CiNeeds
from monkey.cli.ci.workflow_steps import (
    APPLY,
    AUDIT,
    INSTALL,
    NO_BASE,
    PREVIEW_LABEL,
    SIGNING_KEY,
    SSH_KEY,
    TRUST,
    spell_plugins,
)

#: Actions by the commits of their releases: a tag can be moved, a commit cannot.
CHECKOUT = "actions/checkout@fbc6f3992d24b796d5a048ff273f7fcc4a7b6c09 # v5.1.0"
PYTHON = "actions/setup-python@ece7cb06caefa5fff74198d8649806c4678c61a1 # v6.3.0"
AWS_LOGIN = "aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c # v6.2.3"
GCP_LOGIN = "google-github-actions/auth@7c6bc770dae815cd3e89ee6cdf493a5fab2cc093 # v3.0.0"

#: When notices are sent and previews end, and when drift is looked for (UTC).
NOTIFY_CRON, DRIFT_CRON = "*/15 * * * *", "23 3 * * *"

_OWN = "github.event.pull_request.head.repo.full_name == github.repository"
_OTHER = "github.event.pull_request.head.repo.full_name != github.repository"
_PULL = "github.event_name == 'pull_request'"


class _Job(NamedTuple):
    """One job, as its lines are made."""

    name: str
    condition: str
    steps: tuple[str, ...]
    permissions: str
    #: Of the job's secrets and variables; "" for those of the repository.
    environment: str = ""
    #: The concurrency group, and whether a newer run ends an older one. Gitea looks at it before the condition: a job
    #: that is only going to be skipped cancels one of its group that waits. So the event is part of the name.
    group: str = ""
    cancel: bool = False
    comment: str = ""


def write_workflows(needs: CiNeeds) -> dict[str, str]:
    """Return the files by their paths: Gitea's events do not say which schedule they are of, so it has two."""
    at = f".{needs.forge}/workflows/{_prefix(needs)}"
    place = f" in {needs.directory}" if needs.slug else ""
    plan, fork, apply, notify, preview, drift = _make_jobs(needs)
    daily = ["schedule:", f'  - cron: "{DRIFT_CRON}"', "workflow_dispatch:"]
    often = ["schedule:", f'  - cron: "{NOTIFY_CRON}"', "workflow_dispatch:"]
    branch = f"branches: [{json.dumps(needs.branch)}]"
    # Of this base alone: monkey.yaml of another branch is anyone's who may push.
    pushes = [
        f"pull_request: {{{branch}, types: [opened, synchronize, reopened, labeled]}}",
        f"push: {{{branch}}}",
    ]
    if needs.forge == "gitea":
        return {
            f"{at}.yml": _write(needs, f"monkey{place}", [*pushes, *often], [plan, fork, apply, notify, preview]),
            # A slug has no dot: no project's own file is called so.
            f"{at}{'.' if needs.slug else '-'}drift.yml": _write(needs, f"monkey drift{place}", daily, [drift]),
        }
    both = [*often[:2], daily[1], often[2]]
    jobs = [plan, fork, apply, notify, preview, drift]
    return {f"{at}.yml": _write(needs, f"monkey{place}", [*pushes, *both], jobs)}


def _prefix(needs: CiNeeds) -> str:
    """Return the beginning of names of files and groups: a repository may have more projects, each with its own."""
    return f"monkey-{needs.slug}" if needs.slug else "monkey"


def _make_jobs(needs: CiNeeds) -> tuple[_Job, ...]:
    install, ready = (
        _install(needs),
        [_checkout(whole=needs.forge == "gitea"), *_install(needs), *_login(needs), _TRUST],
    )
    signed = [*ready, _step("Signing key", SIGNING_KEY, SIGNING_KEY="secrets.MONKEY_SIGNING_KEY")]
    notify = _step("Notify", "monkey notify", "if: ${{ !cancelled() }}", **_TOKEN)
    onto = '--onto "origin/$GITHUB_BASE_REF" ' if needs.forge == "gitea" else ""
    plan = _step("Plan", f'monkey plan --comment --prune {onto}--project-file "$RUNNER_TEMP/monkey.yaml"', **_TOKEN)
    preview = _step("Preview", _PREVIEW, NUMBER="github.event.pull_request.number", **_TOKEN)
    # Without Pulumi's plugins: no cloud is asked.
    fork = (_checkout(secret=False), *install[:2], _base(), _step("Plan without store", _FORK_PLAN))
    return (
        _make_plan_job(needs, (*ready, _base(), plan)),
        _Job(
            "fork",
            f"{_PULL} && {_name_label(needs)} && {_OTHER}",
            fork,
            "contents: read",
            comment="A stranger's branch: no secret, no store, no comment.",
        ),
        _make_apply_job(needs, (*signed, _step("Apply", APPLY, **_TOKEN), notify)),
        _make_notify_job(needs, (*signed, notify)),
        _make_preview_job(needs, (*signed, _base(), preview)),
        _Job(
            "drift",
            f"github.event.schedule == '{DRIFT_CRON}'" if needs.forge == "github" else _SCHEDULED,
            (*ready, _step("Drift", AUDIT)),
            f"contents: read{_oidc(needs)}",
            comment="Fails where the branch and the machines differ.",
        ),
    )


_SCHEDULED = "github.event_name == 'workflow_dispatch' || github.event_name == 'schedule'"


def _oidc(needs: CiNeeds) -> str:
    return ", id-token: write" if any(login.endswith("-oidc") for login in needs.logins) else ""


def _name_label(needs: CiNeeds, how: str = "!=") -> str:
    """Return the condition of what a new label does not concern: Gitea's event names it in its own way."""
    return f"github.event.action {how} '{'label_updated' if needs.forge == 'gitea' else 'labeled'}'"


def _writes(needs: CiNeeds) -> str:
    """Return the permissions of jobs that comment and set statuses; Gitea asks for the right to push for the latter."""
    if needs.forge == "gitea":
        return "contents: write, issues: write, pull-requests: write"
    return f"contents: read, pull-requests: write, statuses: write{_oidc(needs)}"


def _make_plan_job(needs: CiNeeds, steps: tuple[str, ...]) -> _Job:
    return _Job(
        "plan",
        f"{_PULL} && {_name_label(needs)} && {_OWN}",
        steps,
        _writes(needs),
        group=f"{_prefix(needs)}-plan-{_NUMBER}-${{{{ {_name_label(needs, '==')} }}}}",
        cancel=True,
        comment="The branch of a pull request: it is read, nothing of it is run, and monkey.yaml is the base's.",
    )


def _make_apply_job(needs: CiNeeds, steps: tuple[str, ...]) -> _Job:
    return _Job(
        "apply",
        "github.event_name == 'push'",
        steps,
        _writes(needs),
        environment="monkey-apply",
        group=f"{_prefix(needs)}-apply-{_EVENT}",
        comment="What was approved on the pull request; the rest is asked for there. Never ended halfway.",
    )


def _make_notify_job(needs: CiNeeds, steps: tuple[str, ...]) -> _Job:
    often = f"github.event_name == 'workflow_dispatch' || github.event.schedule == '{NOTIFY_CRON}'"
    return _Job(
        "notify",
        often if needs.forge == "github" else _SCHEDULED,
        steps,
        _writes(needs),
        environment="monkey-apply",
        group=f"{_prefix(needs)}-notify-{_EVENT}",
        comment="Results on the pull request, and the end of previews whose pull request is closed.",
    )


def _make_preview_job(needs: CiNeeds, steps: tuple[str, ...]) -> _Job:
    return _Job(
        "preview",
        f"{_PULL} && {_OWN} && contains(github.event.pull_request.labels.*.name, '{PREVIEW_LABEL}')",
        steps,
        _writes(needs),
        environment="monkey-preview",
        group=f"{_prefix(needs)}-preview-{_NUMBER}",
        comment="A few jobs of the branch, within the caps of the base's monkey.yaml.",
    )


_NUMBER = "${{ github.event.pull_request.number }}"
_EVENT = "${{ github.event_name }}"
_TOKEN = {"GITHUB_TOKEN": "github.token"}
_FORK_PLAN = (
    'monkey plan --no-store --markdown --project-file "$RUNNER_TEMP/monkey.yaml" | tee -a "$GITHUB_STEP_SUMMARY"'
)
_PREVIEW = 'monkey apply --preview "$NUMBER" --detach --project-file "$RUNNER_TEMP/monkey.yaml"'


def _write(needs: CiNeeds, name: str, events: list[str], jobs: list[_Job]) -> str:
    hint = f"# Written by `monkey init --ci {needs.forge}`; docs/ci.md says what each job may do, and why."
    trusted = ["  MONKEY_TRUSTED_ENDPOINTS: ${{ vars.MONKEY_TRUSTED_ENDPOINTS }}"] if needs.endpoints else []
    where = "" if needs.directory == "." else f", working-directory: {json.dumps(needs.directory)}"
    lines = [
        hint,
        f"name: {json.dumps(name) if needs.slug else name}",
        "on:",
        *(f"  {event}" for event in events),
        "permissions: {}",
    ]
    lines += [f"defaults: {{run: {{shell: bash{where}}}}}", "env:"]
    lines += [f"  MONKEY_PACKAGE: {json.dumps(needs.package)}", *trusted, "jobs:"]
    return "\n".join([*lines, *(_write_job(job, needs) for job in jobs)]) + "\n"


def _write_job(job: _Job, needs: CiNeeds) -> str:
    lines = [f"  # {job.comment}", f"  {job.name}:", f"    if: {job.condition}", "    runs-on: ubuntu-latest"]
    lines += ["    timeout-minutes: 30", f"    permissions: {{{job.permissions}}}"]
    if job.environment and needs.forge == "github":
        lines.append(f"    environment: {job.environment}")
    if job.group:
        cancel = str(job.cancel).lower()
        lines.append(f'    concurrency: {{group: "{job.group}", cancel-in-progress: {cancel}}}')
    return "\n".join([*lines, "    steps:", *(indent(step, " " * 6) for step in job.steps)])


def _checkout(*, secret: bool = True, whole: bool = False) -> str:
    # Without blobs: of the history, only what is read is fetched, by the job's own token. A merge that git makes here
    # needs them all.
    rest = "" if whole else ", filter: blob:none"
    given = f"fetch-depth: 0{rest}" if secret else "fetch-depth: 0, persist-credentials: false"
    return _use(CHECKOUT, f"with: {{{given}}}")


def _install(needs: CiNeeds) -> list[str]:
    steps = [_use(PYTHON, 'with: {python-version: "3.12"}'), _step("Install monkey", INSTALL)]
    return [*steps, *([_step("Install Pulumi's plugins", spell_plugins(needs.kinds))] if needs.kinds else [])]


def _login(needs: CiNeeds) -> list[str]:
    region = next((cloud.region for kind, cloud in needs.clouds if kind == "aws"), "")
    project = next((cloud.gcp_project for kind, cloud in needs.clouds if kind == "gcp"), "")
    steps = {
        "aws-oidc": _use(AWS_LOGIN, f'with: {{role-to-assume: "${{{{ vars.MONKEY_ROLE }}}}", aws-region: {region}}}'),
        "gcp-oidc": _use(
            GCP_LOGIN,
            'with:\n  workload_identity_provider: "${{ vars.MONKEY_IDENTITY_PROVIDER }}"\n'
            f'  service_account: "${{{{ vars.MONKEY_ROLE }}}}"\n  project_id: {project}',
        ),
        "aws-keys": _export("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        "azure-keys": _export("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"),
        "gcp-keys": _step("Google's key", _GOOGLE_KEY, KEY="secrets.GOOGLE_CREDENTIALS"),
        "ssh-key": _step("SSH", SSH_KEY, KEY="secrets.MONKEY_SSH_KEY", HOSTS="vars.MONKEY_SSH_HOSTS"),
    }
    return [steps[login] for login in needs.logins]


_GOOGLE_KEY = """\
umask 077
printf '%s' "$KEY" > "$RUNNER_TEMP/google.json"
echo "GOOGLE_APPLICATION_CREDENTIALS=$RUNNER_TEMP/google.json" >> "$GITHUB_ENV\""""


def _export(*names: str) -> str:
    """Return the step that gives secrets to the steps behind it."""
    lines = [f'echo "{name}=${name}" >> "$GITHUB_ENV"' for name in names]
    return _step("Keys of the store", "\n".join(lines), **{name: f"secrets.{name}" for name in names})


def _base() -> str:
    script = f'git show "origin/$GITHUB_BASE_REF:./monkey.yaml" > "$RUNNER_TEMP/monkey.yaml" || {{\n  {NO_BASE}\n}}'
    return _step("The base's monkey.yaml", script)


def _use(action: str, options: str) -> str:
    return f"- uses: {action}\n{indent(options, '  ')}"


def _step(name: str, script: str, condition: str = "", **env: str) -> str:
    """Return a step. Inputs reach the shell by `env:` alone: in a script, they would be code."""
    given = "".join(f"    {key}: ${{{{ {value} }}}}\n" for key, value in env.items())
    lines = [f"- name: {name}\n", *([f"  {condition}\n"] if condition else []), *(["  env:\n", given] if given else [])]
    run = f"  run: {script}" if "\n" not in script and ": " not in script else "  run: |\n" + indent(script, " " * 4)
    return "".join([*lines, run])


_TRUST = _step("Trust the signers", TRUST, SIGNERS="vars.MONKEY_SIGNERS")
