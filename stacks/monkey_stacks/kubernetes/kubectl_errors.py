"""What kubectl and the API server say, in our words, with what to do: the one place of that. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monkey.errors import FleetError

_REFUSED = re.compile(r"Error from server(?: \((\w+)\))?: (.*)")
#: What is said, and what to do; {context} and {namespace} are filled in. The most telling first.
_HINTS = (
    (
        r"is forbidden: User",
        "ask for a role that may get, list, create and delete jobs and pods, and get, create, patch and delete secrets "
        "in namespace {namespace}; docs/kubernetes.md has it",
    ),
    (r"namespaces? \"?[^ ]+ not found", "create it: kubectl --context={context} create namespace {namespace}"),
    (r"context .* does not exist|no context exists", "write a `context:` that `kubectl config get-contexts` shows"),
    (r"exceeded quota", "lower `pilots:`, `cpus:`, `memory:` or `gpus:`, or ask for a larger quota"),
    (r"PodSecurity", "take out of `pod:` what the namespace's policy forbids"),
    (r"unknown field|strict decoding|Invalid value|Required value|cannot unmarshal", "correct `pod:`"),
    (r"priority ?class", "write a `priority_class:` that `kubectl get priorityclasses` shows"),
    (r"service ?account", "write a `service_account:` that `kubectl get serviceaccounts` shows"),
    (
        r"[Uu]nauthorized|must be logged in|asks for a user name|getting credentials|exec plugin",
        "log in again, as for kubectl itself",
    ),
    (
        r"refused|no such host|timeout|timed out|deadline|unable to connect|no route",
        "is the cluster up, and your network? Try: kubectl --context={context} version",
    ),
)
#: Reasons for which a container does not start, and what to do.
_STUCK = {
    "ErrImagePull": "correct `image:`, or allow the pull: `service_account:` with imagePullSecrets",
    "ImagePullBackOff": "correct `image:`, or allow the pull: `service_account:` with imagePullSecrets",
    "InvalidImageName": "correct `image:`",
    "ErrImageNeverPull": "correct `image:`",
    "CreateContainerConfigError": "correct what `pod:` names, or apply again",
    "CreateContainerError": "correct `image:` or `pod:`",
    "RunContainerError": "correct `image:`: it needs a program `python3`",
}


@dataclass(frozen=True)
class ApiRefusal:
    """One answer of the API server that is an error."""

    #: "Forbidden", "AlreadyExists"; "" where it names none.
    reason: str
    #: As kubectl printed it.
    line: str


def read_refusals(said: str) -> tuple[ApiRefusal, ...]:
    """Return the API server's refusals in what kubectl printed as errors."""
    found = (_REFUSED.match(line.strip()) for line in said.splitlines())
    return tuple(ApiRefusal(match[1] or "", match[0]) for match in found if match)


def read_warnings(said: str) -> tuple[str, ...]:
    """Return the API server's warnings in what kubectl printed as errors."""
    found = (line.strip().partition("Warning: ")[2] for line in said.splitlines())
    return tuple(dict.fromkeys(filter(None, found)))


def make_kubectl_error(provider: str, context: str, namespace: str, said: str) -> FleetError:
    """Return the error for a run of kubectl that did not do as asked; `said`: what it printed."""
    told = shorten_refusal(said) or "kubectl failed without a word"
    if told == "EOF":
        told = f"kubectl asks for a user name: context {context} has no credentials"
    hint = (
        find_hint(f"{said}\n{told}", context, namespace)
        or f"try it: kubectl --context={context} --namespace={namespace} get jobs"
    )
    return FleetError(f"{provider}: {told}", hint=hint)


def find_hint(said: str, context: str, namespace: str) -> str:
    """Return what to do about what was said; "" where that is not known."""
    for pattern, hint in _HINTS:
        if re.search(pattern, said):
            return hint.format(context=context, namespace=namespace)
    return ""


def shorten_refusal(said: str) -> str:
    """Return what kubectl printed as an error, in one line, without where it read its input."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Warning: ")]
    # Where discovery fails, kubectl repeats itself; the last line is for people.
    told = next((line for line in lines if _REFUSED.match(line)), lines[-1] if lines else "")
    told = re.sub(r"^(Error from server(?: \(\w+\))?|error): ", "", told)
    told = re.sub(r"^error when (?:creating|applying) \"STDIN\": ", "", told)
    return "".join(each if each.isprintable() else " " for each in told)[:400]


def find_lasting_reason(reason: str) -> str:
    """Return what to do about a reason for which a container would wait for ever; "" for all that pass."""
    return _STUCK.get(reason, "")
