"""What policies of AWS's IAM allow, by a published evaluator: moto looks neither at resources nor at conditions.

judge(policy, [Ask("s3:GetObject", "arn:aws:s3:::bucket/a"), …])  # → [True, …]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import services

ACCOUNT = "123456789012"
#: Who asks, unless a test says otherwise: a machine, by its role.
ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/monkey/i-0123456789abcdef0"


#: The evaluator knows no key whose end anybody may choose: another text of KMS's stands in for it.
_CHOSEN, _STAND_IN = re.compile(r"kms:EncryptionContext:\w+"), "kms:RequestAlias"


#: One policy or several, as JSON or parsed.
Policies = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Ask:
    """A request; `resource` is "*" for actions that know none."""

    action: str
    resource: str = "*"
    #: Keys of conditions, as AWS would send them with it.
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    principal: str = ROLE


def judge(policies: Policies, asks: Iterable[Ask]) -> list[bool]:
    """Return whether each is allowed, by these identity policies (as JSON or parsed) and nothing else.

    Raises AssertionError where a policy is not valid, or AWS knows no such action, resource or key of a condition.
    """
    with Judge() as found:
        return found(policies, asks)


class Judge:
    """The evaluator, for who asks it again and again."""

    def __enter__(self) -> Judge:
        """Start it."""
        environment = {**os.environ, "NODE_PATH": str(services.iam_modules())}
        command = ["node", str(Path(__file__).parent / "tools/iam/judge.cjs")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._node: subprocess.Popen[str] = subprocess.Popen(command, env=environment, **pipes)
        self._turn = threading.Lock()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._node.communicate()

    def __call__(self, policies: Policies, asks: Iterable[Ask]) -> list[bool]:
        """See `judge`."""
        given = [policies] if isinstance(policies, str | Mapping) else policies
        parsed = [json.loads(each) if isinstance(each, str) else each for each in given]
        asked = list(asks)
        return _judged(
            asked, self._ask([{**vars(each), "policies": parsed, "context": dict(each.context)} for each in asked])
        )

    def _ask(self, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
        stdin, stdout = self._node.stdin, self._node.stdout
        assert stdin is not None and stdout is not None
        with self._turn:
            stdin.write(f"{_CHOSEN.sub(_STAND_IN, json.dumps(asked))}\n")
            stdin.flush()
            answer: list[dict[str, Any]] = json.loads(stdout.readline())
        return answer


def _judged(asked: Sequence[Ask], told: Sequence[Mapping[str, Any]]) -> list[bool]:
    for ask, answer in zip(asked, told, strict=True):
        assert answer["result"] != "error", f"{ask}: {json.dumps(answer['errors'], indent=1)}"
        assert not answer["ignored"], f"{ask.action} knows no {answer['ignored']}"
    return [answer["result"] == "Allowed" for answer in told]


def table(policies: Policies, rows: Mapping[Ask, bool]) -> None:
    """Assert of each request whether it is allowed."""
    wrong = [
        f"{'denied' if wanted else 'ALLOWED'}: {ask.action} {ask.resource} {dict(ask.context) or ''}"
        for (ask, wanted), found in zip(rows.items(), judge(policies, rows), strict=True)
        if found is not wanted
    ]
    assert not wrong, "\n".join(wrong)
