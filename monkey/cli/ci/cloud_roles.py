"""The two roles of CI at a cloud, as commands: one to plan, which only reads, and one to apply."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from monkey.cli.ci.ci_needs import CiNeeds
from monkey.cli.setup.cloud_setup import STARTS

if TYPE_CHECKING:
    from monkey.spec.project.cloud import CloudSettings

_GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
#: Beginnings of the names of calls that change nothing, at AWS; the last part of the same at Google.
_READING = ("Describe", "Get", "List")
_READS = ("get", "list", "getIamPolicy", "getFromFamily", "listParts")


def list_role_commands(needs: CiNeeds, store: str) -> list[str]:
    """Return the commands that make the roles, as lines of a shell script. Raises FleetError, StoreError."""
    lines = []
    for kind, cloud in needs.clouds:
        if f"{kind}-oidc" in needs.logins:
            text = import_module(STARTS[kind][0]).list_permissions(needs.project, store, cloud)
            make = _aws_roles if kind == "aws" else _gcp_roles
            lines += make(needs, json.loads(text), cloud)
    return lines


def keep_reading(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of AWS's policy changes nothing."""
    kept = []
    for statement in policy["Statement"]:
        actions = [name for name in statement["Action"] if name.split(":")[1].startswith(_READING)]
        if actions:
            kept.append({**statement, "Action": actions})
    return {**policy, "Statement": kept}


def list_subjects(needs: CiNeeds) -> dict[str, list[str]]:
    """Return what the forge's tokens say of the jobs that may be each role."""
    if needs.forge == "gitlab":
        ref = f"project_path:{needs.repository}:ref_type:branch:ref:"
        return {"plan": [f"{ref}*"], "apply": [f"{ref}{needs.branch}"]}
    repo = f"repo:{needs.repository}"
    plan = [f"{repo}:pull_request", f"{repo}:ref:refs/heads/{needs.branch}"]
    return {"plan": plan, "apply": [f"{repo}:environment:monkey-apply"]}


def _aws_roles(needs: CiNeeds, policy: Mapping[str, Any], cloud: CloudSettings) -> list[str]:
    issuer = _GITHUB_ISSUER if needs.forge == "github" else needs.server
    audience = "sts.amazonaws.com" if needs.forge == "github" else needs.server
    host = issuer.partition("://")[2]
    found = re.search(r"arn:([\w-]+):", json.dumps(policy))
    partition = found[1] if found else "aws"
    lines = [
        "account=$(aws sts get-caller-identity --query Account --output text)",
        f"aws iam create-open-id-connect-provider --url {issuer} --client-id-list {audience}  # once for the account",
    ]
    policies = {"plan": keep_reading(policy), "apply": policy}
    for role, subjects in list_subjects(needs).items():
        trust = {
            "Effect": "Allow",
            "Principal": {"Federated": f"arn:{partition}:iam::ACCOUNT:oidc-provider/{host}"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {"StringEquals": {f"{host}:aud": audience}, "StringLike": {f"{host}:sub": subjects}},
        }
        # Not of the machines' names: whoever applies may change roles that are called so.
        name = f"ci-monkey-{needs.project}-{role}"
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        lines += [
            f"trust={shlex.quote(document)}",
            f'aws iam create-role --role-name {name} --assume-role-policy-document "${{trust/ACCOUNT/$account}}"',
            *_heredoc("policy", policies[role]),
            f'aws iam put-role-policy --role-name {name} --policy-name monkey --policy-document "$policy"',
            _set_role(needs, role, f"arn:{partition}:iam::$account:role/{name}"),
        ]
    return lines


def _set_role(needs: CiNeeds, role: str, value: str) -> str:
    """Return the command that has the jobs of a role use it."""
    if needs.forge == "gitlab":
        scope = "" if role == "plan" else " --scope monkey-apply --protected"
        return f'glab variable set MONKEY_ROLE "{value}"{scope}'
    return f'gh variable set MONKEY_ROLE --body "{value}"' + ("" if role == "plan" else " --env monkey-apply")


def _heredoc(variable: str, value: Any) -> list[str]:
    return [f"{variable}=$(cat <<'END'", json.dumps(value, indent=1), "END", ")"]


def _gcp_roles(needs: CiNeeds, asked: Mapping[str, Any], cloud: CloudSettings) -> list[str]:
    at = f"--project {cloud.gcp_project}"
    pool = f"{at} --location global"
    claims = "google.subject=assertion.sub,attribute.repository=assertion.repository"
    lines = [
        f"number=$(gcloud projects describe {cloud.gcp_project} --format 'value(projectNumber)')",
        "pool=projects/$number/locations/global/workloadIdentityPools/monkey-ci",
        f"gcloud iam workload-identity-pools create monkey-ci {pool}",
        f"gcloud iam workload-identity-pools providers create-oidc forge {pool} --workload-identity-pool monkey-ci"
        f" --issuer-uri {_GITHUB_ISSUER} --attribute-mapping {claims}"
        f" --attribute-condition \"assertion.repository == '{needs.repository}'\"",
        'gh variable set MONKEY_IDENTITY_PROVIDER --body "$pool/providers/forge"',
    ]
    for name, role in asked["roles"].items():
        lines += _make_gcp_role(name, role, at)
        reads = [call for call in role["includedPermissions"] if call.rpartition(".")[2] in _READS]
        lines += _make_gcp_role(
            f"{name}Reader", {**role, "title": f"{role['title']}, to read", "includedPermissions": reads}, at
        )
    for role, subjects in list_subjects(needs).items():
        account = f"monkey-{role}@{cloud.gcp_project}.iam.gserviceaccount.com"
        lines.append(f"gcloud iam service-accounts create monkey-{role} {at}")
        lines += [
            f"gcloud iam service-accounts add-iam-policy-binding {account} {at} --role roles/iam.workloadIdentityUser"
            f' --member "principal://iam.googleapis.com/$pool/subject/{subject}"'
            for subject in subjects
        ]
        lines += _bind(asked["bindings"], account, reads=role == "plan")
        lines.append(_set_role(needs, role, account))
    return lines


def _make_gcp_role(name: str, role: Mapping[str, Any], at: str) -> list[str]:
    return [f"gcloud iam roles create {name} {at} --file /dev/stdin <<'END'", json.dumps(role, indent=1), "END"]


def _bind(bindings: Sequence[Mapping[str, Any]], account: str, *, reads: bool) -> list[str]:
    """Return the commands that give a service account its roles; one that reads gives no rights to others."""
    lines = []
    for binding in bindings:
        where, role, condition = binding["on"], binding["role"], binding.get("condition")
        if reads and "condition" in binding:
            continue
        kind, name = _name_place(where)
        said = shlex.quote(json.dumps(condition))
        given = f" --condition-from-file /dev/stdin <<< {said}" if condition else ""
        member = f"--member serviceAccount:{account} --role {role}{'Reader' if reads else ''}"
        lines.append(f"gcloud {kind} add-iam-policy-binding {name} {member}{given}")
    return lines


def _name_place(where: str) -> tuple[str, str]:
    if where.startswith("gs://"):
        return "storage buckets", where
    if "/secrets/" in where:
        return "secrets", where
    return "projects", where.partition("/")[2]
