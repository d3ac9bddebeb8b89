"""The IAM role of machines, as small as works; tests ask an evaluator of IAM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.aws.api.naming import AwsStack
from monkey_stacks.cloud import store_rights

Statement = Mapping[str, Any]

#: What is done with objects of a store.
_READ = ("s3:GetObject", "s3:ListMultipartUploadParts")
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def write_document(statements: Sequence[Statement]) -> str:
    """Return a policy: the same text for the same statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, sort_keys=True)


def write_trust() -> str:
    """Return who may be the machines' role: machines."""
    allowed = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return write_document([allowed])


def write_machine_rights(
    store_url: str, stack: AwsStack, region: str, partition: str, secrets: Mapping[str, str]
) -> str:
    """Return what a machine may do: use its project, take a machine of its own group away, read the secrets named."""
    arn = f"arn:{partition}:autoscaling:{region}:*:autoScalingGroup:*:autoScalingGroupName/{stack.name}"
    leave = _allow("Leave", ["autoscaling:TerminateInstanceInAutoScalingGroup"], arn)
    return write_document([*_use(store_url, stack, partition), leave, *_secrets(secrets, region, partition)])


def write_store_rights(store_url: str, partition: str = "aws") -> list[Statement]:
    """Return the right to read and write what is below the store's prefix, and nothing else of its bucket."""
    below = _below(store_url, partition)
    return [_list(store_url, partition), _allow("Objects", [*_READ, *_WRITE], f"{below}*")]


def _use(store_url: str, stack: AwsStack, partition: str) -> list[Statement]:
    """Return the right to read a store, and to write what a machine of this fleet writes there.

    An entry of a log may be created and not overwritten: AWS looks for the header that says so.
    """
    below = _below(store_url, partition)
    own, entries = (
        [f"{below}{key}" for key in list_keys(stack.project, stack.fleet)]
        for list_keys in (store_rights.list_own_keys, store_rights.list_entry_keys)
    )
    return [
        _list(store_url, partition),
        _allow("Read", _READ, f"{below}*"),
        _allow("Write", _WRITE, own),
        {**_allow("Append", ["s3:PutObject"], entries), "Condition": {"Null": {"s3:if-none-match": "false"}}},
    ]


def _below(store_url: str, partition: str) -> str:
    """Return what the ARNs of all objects of a store begin with."""
    where = parse_bucket_url(store_url)
    return f"arn:{partition}:s3:::{where.bucket}/{where.prefix}{'/' if where.prefix else ''}"


def _list(store_url: str, partition: str) -> Statement:
    where = parse_bucket_url(store_url)
    listed = _allow("List", ["s3:ListBucket"], f"arn:{partition}:s3:::{where.bucket}")
    return {**listed, "Condition": {"StringLike": {"s3:prefix": [f"{where.prefix}/*"]}}} if where.prefix else listed


def _allow(sid: str, actions: Sequence[str], resource: str | Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resource}


def _secrets(secrets: Mapping[str, str], region: str, partition: str) -> list[Statement]:
    """Return the right to read these secrets alone, and to have a key of one's own open them."""
    parameters, kept = [], []
    for place in secrets.values():
        kind, _, name = place.partition(":")
        if kind == "ssm":
            parameters.append(f"arn:{partition}:ssm:{region}:*:parameter/{name.lstrip('/')}")
        elif name.startswith("arn:"):
            kept.append(name)
        else:  # AWS adds six characters to a secret's name
            kept.append(f"arn:{partition}:secretsmanager:{region}:*:secret:{name}-??????")
    found = []
    if parameters:
        found += [_read("Parameters", "ssm:GetParameter", parameters)]
        found += [_open("ParametersKey", f"ssm.{region}.amazonaws.com", "PARAMETER_ARN", parameters)]
    if kept:
        found += [_read("Secrets", "secretsmanager:GetSecretValue", kept)]
        found += [_open("SecretsKey", f"secretsmanager.{region}.amazonaws.com", "SecretARN", kept)]
    return found


def _read(sid: str, action: str, arns: Sequence[str]) -> Statement:
    return {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": sorted(set(arns))}


def _open(sid: str, via: str, context: str, arns: Sequence[str]) -> Statement:
    """Let a key of the account open these through the service that keeps them, and through nothing else."""
    condition = {
        "StringEquals": {"kms:ViaService": via},
        "StringLike": {f"kms:EncryptionContext:{context}": sorted(set(arns))},
    }
    return {"Sid": sid, "Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*", "Condition": condition}
