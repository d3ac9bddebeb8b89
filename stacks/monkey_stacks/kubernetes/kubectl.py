"""kubectl, with the user's own login: each question is one run of it, without a shell, and what it gets is JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.kubernetes.kubectl_errors import ApiRefusal, make_kubectl_error, read_refusals, read_warnings

#: Seconds for one answer of the API server, and for a run of kubectl, which may ask for a login first.
_ANSWER_SECONDS, _RUN_SECONDS = 30, 120


@dataclass(frozen=True)
class KubectlAnswer:
    """What kubectl printed."""

    text: str
    warnings: tuple[str, ...] = ()
    #: What the API server refused.
    refusals: tuple[ApiRefusal, ...] = ()


@dataclass(frozen=True)
class Kubectl:
    """One namespace of one cluster, by a context of the user's kubeconfig."""

    provider: str
    context: str
    namespace: str

    @property
    def place(self) -> str:
        """How people name it."""
        return f"{self.context}/{self.namespace}"

    def make_error(self, said: str) -> FleetError:
        """Return the error for what kubectl printed."""
        return make_kubectl_error(self.provider, self.context, self.namespace, said)

    def try_verb(self, *words: str, given: Mapping[str, Any] | None = None) -> KubectlAnswer:
        """Run a verb; `given` is its input. Refusals of the API server are part of the answer. Raises FleetError."""
        program = shutil.which("kubectl")
        if program is None:
            raise FleetError(
                f"{self.provider}: there is no program `kubectl` on the PATH",
                hint="install kubectl, as https://kubernetes.io/docs/tasks/tools says",
            )
        where = [f"--context={self.context}", f"--namespace={self.namespace}", f"--request-timeout={_ANSWER_SECONDS}s"]
        data = json.dumps(given).encode() if given is not None else b""
        env = {**os.environ, "LC_ALL": "C"}
        try:
            run = subprocess.run(
                [program, *where, *words], input=data, capture_output=True, timeout=_RUN_SECONDS, env=env
            )
        except subprocess.TimeoutExpired:
            raise FleetError(
                f"{self.provider}: kubectl did not end within {_RUN_SECONDS} s",
                hint=f"try: kubectl --context={self.context} version",
            ) from None
        said = run.stderr.decode(errors="replace")
        refusals = read_refusals(said)
        if run.returncode and not refusals:
            raise self.make_error(said)
        return KubectlAnswer(run.stdout.decode(errors="replace"), read_warnings(said), refusals)

    def run_verb(self, *words: str, given: Mapping[str, Any] | None = None, missing: bool = False) -> KubectlAnswer:
        """Run a verb that must succeed; `missing`: what is not there is no failure. Raises FleetError."""
        answer = self.try_verb(*words, given=given)
        for refusal in answer.refusals:
            if not (missing and refusal.reason == "NotFound"):
                raise self.make_error(refusal.line)
        return answer

    def list_objects(self, kinds: str, label: str) -> Sequence[Mapping[str, Any]]:
        """Return the objects of these kinds ("jobs,pods") that have a label. Raises FleetError."""
        answer = self.run_verb("get", kinds, f"--selector={label}", "--output=json")
        try:
            found: Sequence[Mapping[str, Any]] = json.loads(answer.text)["items"]
        except (ValueError, KeyError, TypeError):
            raise FleetError(f"{self.provider}: kubectl printed no list of {kinds}", hint="try it by hand") from None
        return found

    def delete_version(self, path: str, uid: str) -> None:
        """Delete an object of the API at `path`, unless another took its name meanwhile. Raises FleetError."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        given = {**options, "preconditions": {"uid": uid}}
        answer = self.try_verb("delete", f"--raw={path}", "--filename=-", given=given)
        for refusal in answer.refusals:
            if refusal.reason not in ("NotFound", "Conflict"):
                raise self.make_error(refusal.line)
