"""What Kubernetes answers, in our words: refusals, and Jobs with their pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey_stacks.kubernetes.fleet import make_marked_engine
from monkey_stacks.kubernetes.kubectl_errors import make_kubectl_error, read_refusals, read_warnings
from monkey_stacks.kubernetes.pilot_jobs import PilotJob, read_jobs

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC).timestamp()
FORBIDDEN = (
    'Error from server (Forbidden): error when creating "STDIN": jobs.batch is forbidden: User "u" cannot create '
    'resource "jobs" in API group "batch" in the namespace "ml"'
)


def make_job(**status: Any) -> dict[str, Any]:
    return {"kind": "Job", "metadata": {"name": "j-0", "uid": "1"}, "spec": {}, "status": status}


def make_pod(phase: str, *, meta: dict[str, Any] | None = None, node: str = "n1", **status: Any) -> dict[str, Any]:
    owner = {"ownerReferences": [{"uid": "1"}], "name": "j-0-abcde", "creationTimestamp": "2026-11-26T11:00:00Z"}
    spec = {"nodeName": node, "activeDeadlineSeconds": 7200}
    return {"kind": "Pod", "metadata": {**owner, **(meta or {})}, "spec": spec, "status": {"phase": phase, **status}}


def read(*objects: dict[str, Any]) -> PilotJob:
    [found] = read_jobs(objects, NOW)
    return found


def test_a_pilot_at_work_has_its_time_left_and_its_agents_name() -> None:
    found = read(make_job(), make_pod("Running", startTime="2026-11-26T11:00:00Z"))
    assert (found.pilot.about, found.pilot.agent, found.lives) == ("on n1, 1h left", "j-0-abcde", True)


def test_a_pilot_that_waits_says_why() -> None:
    why = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    conditions = [{"type": "PodScheduled", "status": "False", "message": why}]
    assert read(make_job(), make_pod("Pending", conditions=conditions)).pilot.about == f"waits: {why}"
    waiting = [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]
    stuck = read(make_job(), make_pod("Pending", initContainerStatuses=waiting)).pilot
    assert stuck.stuck == "ErrImagePull: not found" and "`image:`" in stuck.hint and not stuck.agent
    starting = [{"state": {"waiting": {"reason": "PodInitializing"}}}]
    assert read(make_job(), make_pod("Pending", containerStatuses=starting)).pilot.about == "starts on n1"
    assert read(make_job()).podless
    suspended = {**make_job(), "spec": {"suspend": True}}
    assert "suspended" in read(suspended).pilot.about and not read(suspended).podless


def test_a_pod_on_a_dead_node_is_a_lost_pilot() -> None:
    leaving = {"deletionTimestamp": "2026-11-26T11:59:30Z"}
    assert read(make_job(), make_pod("Running", meta=leaving)).pilot.about == "on n1, leaves"
    overdue = {"deletionTimestamp": "2026-11-26T11:55:00Z"}
    lost = read(make_job(), make_pod("Running", meta=overdue))
    assert lost.lost and not lost.lives and "does not answer" in lost.pilot.about
    both = read(make_job(), make_pod("Running", meta=overdue), make_pod("Running"))
    assert both.lives and not both.lost


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        ({"exitCode": 78, "reason": "Error", "message": "x\n12:00 error: no glibc\nhint: y"}, "no glibc"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "OOMKilled"),
        ({"exitCode": 3, "reason": "Error"}, "exit code 3"),
        ({"exitCode": 128, "reason": "StartError", "message": "python3: not found"}, "StartError: python3: not found"),
    ],
)
def test_a_job_that_failed_says_what_its_pod_said_last(ended: dict[str, Any], why: str) -> None:
    pod = make_pod("Failed", containerStatuses=[{"state": {"terminated": ended}}])
    over = make_job(conditions=[{"type": "Failed", "status": "True", "message": "Job has reached its limit"}])
    found = read(over, pod)
    assert (found.ended, found.failure) == (True, why)
    assert read(over).failure == "Job has reached its limit"
    assert why in read(make_job(), pod).pilot.about
    done = make_job(conditions=[{"type": "Complete", "status": "True"}])
    assert read(done).ended and not read(done).failure


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (FORBIDDEN, "kube: jobs.batch is forbidden: User", "in namespace ml"),
        ('Error from server (NotFound): namespaces "ml" not found', 'namespaces "ml" not found', "create namespace ml"),
        ('error: context "prod" does not exist', 'context "prod" does not exist', "get-contexts"),
        (
            'E1126 memcache.go:265] "Unhandled"\nThe connection to the server 1.2.3.4:6443 was refused - did you?',
            "The connection to the server 1.2.3.4:6443 was refused",
            "--context=prod version",
        ),
        ("error: You must be logged in to the server (Unauthorized)", "logged in", "log in again"),
        ("", "kubectl failed without a word", "get jobs"),
        ("error: EOF", "kube: kubectl asks for a user name: context prod has no credentials", "log in again"),
    ],
)
def test_refusals_say_what_to_do(said: str, message: str, hint: str) -> None:
    error = make_kubectl_error("kube", "prod", "ml", said)
    assert message in error.message and hint in (error.hint or "")


def test_what_kubectl_prints_is_told_apart() -> None:
    said = f"Warning: would violate PodSecurity\n{FORBIDDEN}\nError from server: etcd away\n"
    assert read_warnings(said) == ("would violate PodSecurity",)
    assert [each.reason for each in read_refusals(said)] == ["Forbidden", ""]


@pytest.mark.parametrize(
    "marker",
    [
        {"context": "prod", "namespace": "ml", "label": "monkey-other-kube-00000000"},
        {"context": "prod", "namespace": "--all", "label": "monkey-x-kube-00000000"},
        {"context": "", "namespace": "ml", "label": "monkey-x-kube-00000000"},
        {"context": "prod", "namespace": "ml", "label": "monkey-x-kube-00000000,a!=b"},
    ],
)
def test_a_marker_that_no_apply_writes_is_refused(marker: dict[str, str]) -> None:
    with pytest.raises(CorruptObject):
        make_marked_engine("kube", marker, "x", "s3://b")
