"""What Kubernetes has of a fleet: Jobs and their pods, read into pilots. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from monkey.spec.yaml.units import format_duration
from monkey_stacks.kubernetes.kubectl_errors import find_lasting_reason
from monkey_stacks.kubernetes.manifests.pilot_manifests import IMAGE_LABEL
from monkey_stacks.pilots.pilot_engine import Pilot

#: Reasons of a container that waits, though all is well.
_STARTING = ("PodInitializing", "ContainerCreating")
#: Seconds after a pod should be gone before its node counts as dead; clocks differ by less.
_LOST_SECONDS = 120.0
_MAX_TEXT = 300


@dataclass(frozen=True)
class PilotJob:
    """A Job, by its name and the pods that it has."""

    name: str
    uid: str
    pilot: Pilot
    #: It is over, and why it failed; "" where it did not.
    ended: bool = False
    failure: str = ""
    #: Its pods are on a node that does not answer: Kubernetes replaces them only once the node is gone.
    lost: bool = False
    #: It has no pod, and no queue holds it.
    podless: bool = False

    @property
    def lives(self) -> bool:
        """It works, or will."""
        return not (self.ended or self.lost)


def read_jobs(objects: Iterable[Mapping[str, Any]], now: float) -> tuple[PilotJob, ...]:
    """Return the Jobs among these Jobs and pods; `now`: seconds since the epoch."""
    there = list(objects)
    pods: dict[str, list[Mapping[str, Any]]] = {}
    for each in there:
        if each.get("kind") == "Pod":
            for owner in each["metadata"].get("ownerReferences", ()):
                pods.setdefault(owner["uid"], []).append(each)
    jobs = sorted((each for each in there if each.get("kind") == "Job"), key=lambda job: _sort_name(job))
    return tuple(_note_image(_read_job(job, pods.get(job["metadata"]["uid"], []), now), job) for job in jobs)


def _note_image(read: PilotJob, job: Mapping[str, Any]) -> PilotJob:
    image = str(job["metadata"].get("labels", {}).get(IMAGE_LABEL, ""))
    return replace(read, pilot=replace(read.pilot, image=image))


def _sort_name(job: Mapping[str, Any]) -> tuple[int, str]:
    name = str(job["metadata"]["name"])
    return len(name), name


def _read_job(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: float) -> PilotJob:
    name, uid = str(job["metadata"]["name"]), str(job["metadata"]["uid"])
    over = [each for each in job.get("status", {}).get("conditions", ()) if each.get("status") == "True"]
    over = [each for each in over if each.get("type") in ("Complete", "Failed")]
    if over:
        why = (_find_failure(pods) or str(over[0].get("message", ""))) if over[0]["type"] == "Failed" else ""
        return PilotJob(name, uid, Pilot(name, "ended"), ended=True, failure=why)
    if job["metadata"].get("deletionTimestamp"):
        return PilotJob(name, uid, Pilot(name, "leaves"))
    living = [pod for pod in pods if pod.get("status", {}).get("phase") in ("Pending", "Running", "Unknown")]
    if living and all(is_overdue(pod, now) for pod in living):
        node = living[0]["spec"].get("nodeName", "?")
        return PilotJob(name, uid, Pilot(name, f"on {node}, which does not answer"), lost=True)
    if living:
        return PilotJob(name, uid, _read_pod(name, min(living, key=lambda pod: _is_leaving(pod)), now))
    if job.get("spec", {}).get("suspend"):
        return PilotJob(name, uid, Pilot(name, "waits: it is suspended, as queues do"))
    failure = _find_failure(pods)
    about = f"waits: its pod failed ({failure}), and comes again" if failure else "waits for a pod"
    return PilotJob(name, uid, Pilot(name, about), podless=True)


def _read_pod(name: str, pod: Mapping[str, Any], now: float) -> Pilot:
    status, spec = pod.get("status", {}), pod.get("spec", {})
    if status.get("phase") != "Pending":
        said = ["leaves"] if _is_leaving(pod) else list(_describe_left(status, spec, now))
        return Pilot(name, ", ".join([f"on {spec.get('nodeName', '?')}", *said]), str(pod["metadata"]["name"]))
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Pilot(name, f"waits: {_clean(condition.get('message') or condition.get('reason'))}")
    for container in _list_containers(status):
        waiting = container.get("state", {}).get("waiting", {})
        if (reason := waiting.get("reason", "")) and reason not in _STARTING:
            told = _clean(": ".join(filter(None, [reason, waiting.get("message", "")])))
            hint = find_lasting_reason(reason)
            return Pilot(name, f"waits: {told}", stuck=told if hint else "", hint=hint)
    return Pilot(name, f"starts on {spec['nodeName']}" if spec.get("nodeName") else "waits for a node")


def _list_containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(kind, ())


def _describe_left(status: Mapping[str, Any], spec: Mapping[str, Any], now: float) -> Iterator[str]:
    if "startTime" in status and "activeDeadlineSeconds" in spec:
        left = _parse_time(status["startTime"]) + float(spec["activeDeadlineSeconds"]) - now
        yield f"{format_duration(max(1, round(left)))} left"


def _is_leaving(pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_overdue(pod: Mapping[str, Any], now: float) -> bool:
    """Return whether a pod should be gone: its node does not answer. `now`: seconds since the epoch."""
    end = pod["metadata"].get("deletionTimestamp")
    return bool(end) and now - _parse_time(end) > _LOST_SECONDS


def _find_failure(pods: Sequence[Mapping[str, Any]]) -> str:
    """Return why the newest pod failed, by what its containers said last; "" where none did."""
    failed = [pod for pod in pods if pod.get("status", {}).get("phase") == "Failed"]
    if not failed:
        return ""
    status = max(failed, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))["status"]
    for container in _list_containers(status):
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode"):
            lines = [line.strip() for line in str(ended.get("message", "")).splitlines() if line.strip()]
            errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
            said = (errors or lines or [""])[-1]
            reason = ended.get("reason", "Error")
            told = f"{said}" if said and reason == "Error" else ": ".join(filter(None, [reason, said]))
            return _clean(told if said or reason != "Error" else f"exit code {ended['exitCode']}")
    return _clean(": ".join(filter(None, [status.get("reason", ""), status.get("message", "")])))


def _clean(text: object) -> str:
    return "".join(each if each.isprintable() else " " for each in str(text or ""))[:_MAX_TEXT].strip()


def _parse_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
