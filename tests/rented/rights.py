"""What machines may do, call by call: by the policy of their role in the account, as an evaluator of IAM reads it.

Whoever has no machine's keys is somebody else, whom this lets through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.clouds.account import REGION, Account
from tests.clouds.wire import Answer, Call, Fault, Wire, refusal
from tests.iam import ACCOUNT, Ask, Judge

#: What is left out of an object's key before anybody is asked: policies know no more of it.
_NAMES = re.compile(r"(/projects/[^/]+/jobs/).+")
#: What requests for objects are called, by their method; for parts of one that is sent in several.
_OBJECTS = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "POST": "PutObject", "DELETE": "DeleteObject"}
_PARTS = {"DELETE": "AbortMultipartUpload", "GET": "ListMultipartUploadParts"}


@dataclass(frozen=True)
class Session:
    """A machine's keys, as its metadata tell them."""

    machine: str
    role: str
    keys: Credentials


@dataclass
class Rights:
    """Lets machines do what their role allows."""

    account: Account
    judge: Judge
    sessions: dict[str, Session] = field(default_factory=dict)
    #: What machines asked for and were refused: machine, and why.
    refused: list[tuple[str, str]] = field(default_factory=list)
    #: What they did.
    used: set[str] = field(default_factory=set)
    _policies: dict[str, list[str]] = field(default_factory=dict)
    _known: dict[tuple[str, str, str, str], bool] = field(default_factory=dict)

    def admit(self, machine: str, role: str) -> Credentials:
        """Give a machine the keys of its role."""
        arn = self.account.client("iam").get_role(RoleName=role)["Role"]["Arn"]
        keys = self.account.client("sts").assume_role(RoleArn=arn, RoleSessionName=machine)["Credentials"]
        found = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        self.sessions[keys["AccessKeyId"]] = Session(machine, role, found)
        return found

    def who(self, call: Call) -> Session | None:
        """Return the machine that asks; None where it is nobody's."""
        found = re.search(r"Credential=([^/]*)/", dict(call.headers).get("authorization", ""))
        return self.sessions.get(found[1]) if found else None

    def answer(self, wire: Wire, call: Call) -> Answer | None:
        """Answer a machine's call; None where it is not refused."""
        if call.action in ("PutRolePolicy", "DeleteRolePolicy"):
            self._policies.clear()
            self._known.clear()
        session = self.who(call)
        if session is None:
            return None
        if not _signed(call, session.keys):
            return self._refuse(session, call, "SignatureDoesNotMatch")
        asks = list(self._asks(call))
        if not asks or not all(self._allowed(session, each) for each in asks):
            return self._refuse(session, call, "AccessDenied")
        self.used |= {each.action for each in asks}
        return self._missing(wire, call, session) if asks[0].action == "s3:GetObject" else None

    def _missing(self, wire: Wire, call: Call, session: Session) -> Answer:
        """Return an object; that there is none is told to those alone who may list it."""
        answer = wire.forward(call)
        bucket, key = _object(call)
        listed = Ask("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": key})
        if answer.status == 404 and not self._allowed(session, listed):
            return self._refuse(session, call, "AccessDenied")
        return answer

    def _refuse(self, session: Session, call: Call, why: str) -> Answer:
        self.refused.append((session.machine, f"{why}: {call.service}:{call.action} {call.path}"))
        json_told = any(key == "x-amz-target" for key, _ in call.headers)
        fault = Fault(call.action, f"{why}{'Exception' * json_told}", "not authorized", 400 if json_told else 403)
        return refusal(call, fault)

    def _allowed(self, session: Session, ask: Ask) -> bool:
        policies = self._policies.get(session.role) or self._policies.setdefault(session.role, self._read(session.role))
        cut = _NAMES.sub(r"\1*", ask.resource)
        known = (session.role, ask.action, cut, json.dumps(dict(ask.context)))
        if known not in self._known:
            principal = f"arn:aws:sts::{ACCOUNT}:assumed-role/{session.role}/{session.machine}"
            [self._known[known]] = self.judge(policies, [Ask(ask.action, ask.resource, ask.context, principal)])
        return self._known[known]

    def _read(self, role: str) -> list[str]:
        iam = self.account.client("iam")
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        assert not iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        found = (iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names)
        return [each if isinstance(each, str) else json.dumps(each) for each in found]

    def _asks(self, call: Call) -> Iterator[Ask]:
        """Yield what a call needs to be allowed; nothing for those that no machine of ours makes."""
        if call.service == "s3":
            yield from _of_s3(call)
        elif call.action == "TerminateInstanceInAutoScalingGroup":
            yield Ask(f"autoscaling:{call.action}", self._group(call.form["InstanceId"]))
        elif call.action == "GetParameter":
            name = json.loads(call.body)["Name"].lstrip("/")
            yield Ask("ssm:GetParameter", f"arn:aws:ssm:{call.region}:{ACCOUNT}:parameter/{name}")
        elif call.action == "GetSecretValue":
            kept = self.account.client("secretsmanager", call.region)
            arn = kept.describe_secret(SecretId=json.loads(call.body)["SecretId"])["ARN"]
            yield Ask("secretsmanager:GetSecretValue", arn)

    def _group(self, instance: str) -> str:
        groups = self.account.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        mine = (each for each in groups if any(one["InstanceId"] == instance for one in each["Instances"]))
        nobodys = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/nobody"
        return next((str(each["AutoScalingGroupARN"]) for each in mine), nobodys)


def _object(call: Call) -> tuple[str, str]:
    bucket, _, key = unquote(urlsplit(call.path).path).lstrip("/").partition("/")
    return bucket, key


def _of_s3(call: Call) -> Iterator[Ask]:
    bucket, key = _object(call)
    query = parse_qs(urlsplit(call.path).query, keep_blank_values=True)
    arn = f"arn:aws:s3:::{bucket}"
    if key:
        action = _PARTS.get(call.method) if "uploadId" in query else None
        asked = action or _OBJECTS[call.method]
        absent = dict(call.headers).get("if-none-match")
        given = {"s3:if-none-match": absent} if absent and asked == "PutObject" else {}
        yield Ask(f"s3:{asked}", f"{arn}/{key}", given)
    elif call.method == "POST" and "delete" in query:
        for each in re.findall(r"<Key>([^<]*)</Key>", call.body.decode()):
            yield Ask("s3:DeleteObject", f"{arn}/{each}")
    elif call.method in ("GET", "HEAD"):
        yield Ask("s3:ListBucket", arn, {"s3:prefix": query["prefix"][0]} if "prefix" in query else {})


def _signed(call: Call, keys: Credentials) -> bool:
    """Say whether a call is signed with these keys."""
    headers = dict(call.headers)
    told = headers["authorization"]
    names = re.search(r"SignedHeaders=([^,]*)", told)
    if names is None or headers.get("x-amz-security-token") != keys.token:
        return False
    kept = {name: headers[name] for name in names[1].split(";")}
    request = AWSRequest(call.method, f"http://{headers['host']}{call.path}", kept, call.body)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = (S3SigV4Auth if call.service == "s3" else SigV4Auth)(keys, call.service, call.region)
    asked = auth.string_to_sign(request, auth.canonical_request(request))
    return told.endswith(f"Signature={auth.signature(asked, request)}")
