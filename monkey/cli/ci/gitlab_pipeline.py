"""The pipeline for GitLab."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import indent

from monkey.cli.ci.ci_needs import CiNeeds, Login
from monkey.cli.ci.workflow_steps import APPLY, AUDIT, NO_BASE, PREVIEW_LABEL, SSH_KEY_FILE, TRUST, spell_plugins

#: The file that GitLab reads, and what it has of projects below the repository's top.
PIPELINE = ".gitlab-ci.yml"
INCLUDE = ["include:", "  - local: /.gitlab/monkey-*.yml"]
STAGES = "stages: [plan, apply, report]"

_WRITTEN = "# Written by `monkey init --ci gitlab`; docs/ci.md says what each job may do, and why."

_MERGE = '$CI_PIPELINE_SOURCE == "merge_request_event"'
_OWN = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID"
_OTHER = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID != $CI_MERGE_REQUEST_PROJECT_ID"
_LABELS = f"$CI_MERGE_REQUEST_LABELS =~ /(^|,){PREVIEW_LABEL}(,|$)/"
_SCHEDULE = '$CI_PIPELINE_SOURCE == "schedule"'

#: The environment is beside the checkout: nothing of it can be taken for code. On a runner that stays, nothing is left.
_INSTALL = """\
[ -n "$MONKEY_PACKAGE" ] || { echo "set the variable MONKEY_PACKAGE: what pip is to install"; exit 1; }
export MONKEY_TEMP="$(mktemp -d)"
trap 'rm -rf -- "$MONKEY_TEMP"' EXIT
python3 -m venv "$MONKEY_TEMP/venv"
"$MONKEY_TEMP/venv/bin/pip" install --quiet "$MONKEY_PACKAGE"
export PATH="$MONKEY_TEMP/venv/bin:$PATH\""""

#: What other jobs of a runner that stays trust is not ours. The key that signs is no file yet that monkey takes.
_TRUST = f"""\
export XDG_CONFIG_HOME="$MONKEY_TEMP/config"
(
unset MONKEY_SIGNING_KEY
{TRUST.replace("$SIGNERS", "$MONKEY_SIGNERS")}
)"""

#: A file's variable names a file that all users of the runner may read; monkey takes no such key.
_SIGNING_KEY = """\
[ -n "$MONKEY_SIGNING_KEY" ] || { echo "set the file variable MONKEY_SIGNING_KEY: the key that signs"; exit 1; }
install -m 600 "$MONKEY_SIGNING_KEY" "$MONKEY_TEMP/signing_key"
export MONKEY_SIGNING_KEY="$MONKEY_TEMP/signing_key\""""

_BASE = f"""\
base="$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"
git fetch --quiet "${{monkey_base:-origin}}" "+refs/heads/$base:refs/remotes/origin/$base"
git show "origin/$base:./monkey.yaml" > "$MONKEY_TEMP/monkey.yaml" || {{
  {NO_BASE}
}}"""

#: A fork's pipeline runs in the fork's project: its origin is the stranger's, and so is the branch of that name there.
#: Where a member runs it in ours, origin has a login, also for a project that is not public.
_FORK = '[ "$CI_PROJECT_ID" = "$CI_MERGE_REQUEST_PROJECT_ID" ] || monkey_base="$CI_MERGE_REQUEST_PROJECT_URL.git"'

#: boto3 takes the role by the token; all others are given the keys that it gets.
_ROLE = """\
printf '%s' "$MONKEY_ID_TOKEN" > "$MONKEY_TEMP/id_token"
export AWS_ROLE_ARN="$MONKEY_ROLE" AWS_WEB_IDENTITY_TOKEN_FILE="$MONKEY_TEMP/id_token" AWS_ROLE_SESSION_NAME=monkey
eval "$(python -c 'import boto3; c = boto3.Session().get_credentials().get_frozen_credentials(); \
print(f"export AWS_ACCESS_KEY_ID={c.access_key} AWS_SECRET_ACCESS_KEY={c.secret_key} AWS_SESSION_TOKEN={c.token}")')"
unset AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE"""

#: What a login needs besides variables, which GitLab gives to all steps.
_LOGINS: dict[Login, str] = {"aws-oidc": _ROLE, "ssh-key": SSH_KEY_FILE}


def write_pipeline(needs: CiNeeds) -> dict[str, str]:
    """Return the files by their paths: a project below the top has a file of its own, which the one of all includes."""
    if not needs.slug:
        return {PIPELINE: "\n".join([_WRITTEN, *_head(needs), *_jobs(needs)]) + "\n"}
    jobs = [_WRITTEN, f"# Jobs of {json.dumps(needs.directory)}: {PIPELINE} includes them.", *_jobs(needs)]
    main = [_WRITTEN, *INCLUDE, *_head(needs)]
    return {f".gitlab/monkey-{needs.slug}.yml": "\n".join(jobs) + "\n", PIPELINE: "\n".join(main) + "\n"}


def _head(needs: CiNeeds) -> list[str]:
    """Return the lines that a repository has once."""
    return [
        "# A merge request, a push to the branch, and two schedules (one has MONKEY_JOB=drift).",
        STAGES,
        "workflow:",
        "  rules:",
        f"    - if: {_quoted(_MERGE)}",
        f"    - if: {_quoted(_SCHEDULE)}",
        f"    - if: {_quoted(f'$CI_COMMIT_BRANCH == {json.dumps(needs.branch)}')}",
    ]


def _jobs(needs: CiNeeds) -> list[str]:
    file = '--project-file "$MONKEY_TEMP/monkey.yaml"'
    plan = f'monkey plan --comment --prune --onto "origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME" {file}'
    preview = f'monkey apply --preview "$CI_MERGE_REQUEST_IID" --detach {file}'
    pushed = f'$CI_PIPELINE_SOURCE == "push" && $CI_COMMIT_BRANCH == {json.dumps(needs.branch)}'
    # Notices are sent whether or not all was applied.
    apply = f'code=0\n{APPLY} || code=$?\nmonkey notify\nexit "$code"'
    often, drift = (f'{_SCHEDULE} && $MONKEY_JOB {sign} "drift"' for sign in ("!=", "=="))
    # Of this base alone: monkey.yaml of another branch is anyone's who may push.
    merge = f"{_MERGE} && $CI_MERGE_REQUEST_TARGET_BRANCH_NAME == {json.dumps(needs.branch)}"
    own, other, labelled = (f"{merge} && {rule}" for rule in (_OWN, _OTHER, f"{_OWN} && {_LABELS}"))
    secret = _options(needs)
    stranger = f"monkey plan --no-store {file}"
    jobs = (
        ("plan", "plan", own, [".install", ".login", ".base"], plan, [*secret, _CANCEL]),
        ("fork", "plan", other, [".install", ".fork", ".base"], stranger, [_CANCEL]),
        ("preview", "plan", labelled, [*_SIGNED, ".base"], preview, _options(needs, "preview")),
        ("apply", "apply", pushed, _SIGNED, apply, _options(needs, "apply")),
        ("notify", "report", often, _SIGNED, "monkey notify", _options(needs, "apply", "notify")),
        ("drift", "report", drift, [".install", ".login"], AUDIT, secret),
    )
    return [*_write_parts(needs), *(line for job in jobs for line in _job(_suffix(needs), *job))]


def _suffix(needs: CiNeeds) -> str:
    """Return the end of the names of jobs and their parts: GitLab merges those of one name."""
    return f"-{needs.slug}" if needs.slug else ""


_SIGNED = (".install", ".login", ".sign")
_CANCEL = "interruptible: true"


def _write_parts(needs: CiNeeds) -> list[str]:
    """Return the beginnings of scripts that jobs share: all lines of a job run in one shell."""
    enter = [] if needs.directory == "." else [f"cd {json.dumps(needs.directory)}"]
    plugins = [spell_plugins(needs.kinds)] if needs.kinds else []
    logins = [_LOGINS[login] for login in needs.logins if login in _LOGINS]
    parts = {
        ".install": [*enter, _INSTALL, *plugins],
        ".login": [*logins, _TRUST],
        ".sign": [_SIGNING_KEY],
        ".fork": [_FORK],
        ".base": [_BASE],
    }
    end = _suffix(needs)
    given = [f".job{end}:", "  image: python:3.12", "  timeout: 30 minutes", "  variables:", '    GIT_DEPTH: "0"']
    given.append(f"    MONKEY_PACKAGE: {json.dumps(needs.package)}")
    return given + [line for name, of in parts.items() for line in (f"{name}{end}:", "  script:", *_block(of))]


def _options(needs: CiNeeds, environment: str = "", group: str = "") -> list[str]:
    """Return what gives a job its credentials; an environment has variables of its own."""
    lines = []
    if environment:
        lines.append(f"environment: {{name: monkey-{environment}, action: prepare}}")
        lines.append(f"resource_group: monkey{_suffix(needs)}-{group or environment}")
    if "aws-oidc" in needs.logins:
        lines += ["id_tokens:", "  MONKEY_ID_TOKEN: {aud: $CI_SERVER_URL}"]
    return lines


def _job(
    end: str, name: str, stage: str, rule: str, parts: Sequence[str], script: str, options: Sequence[str]
) -> list[str]:
    lines = [f"{name}{end}:", f"  extends: .job{end}", f"  stage: {stage}", "  rules:", f"    - if: {_quoted(rule)}"]
    lines += [f"  {line}" for line in options]
    return [*lines, "  script:", *(f"    - !reference [{part}{end}, script]" for part in parts), *_block([script])]


def _block(steps: Sequence[str]) -> list[str]:
    return ["    - |", indent("\n".join(steps), " " * 6)]


def _quoted(rule: str) -> str:
    return "'" + rule.replace("'", "''") + "'"
