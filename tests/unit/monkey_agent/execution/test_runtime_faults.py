"""A job whose container its runtime does not start is released, and what fails in a container stays the job's own.

podman is a double here; `runtime_doubles` says why.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest

from monkey.errors import JobFailed, MachineFault
from monkey_agent.containers.runtime_faults import StartedKind
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.containers.image_body import ImageBody
from tests.unit.monkey_agent.containers.runtime_doubles import DIGEST, IMAGE, OTHER, WORKS, fail
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

_DENIED = "Error: runc: runc create failed: unable to start container process: error during container init: "
_DENIED += "error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: OCI "
_DENIED += "permission denied"
_NO_WORKDIR = 'Error: workdir "/work" does not exist on container 0cb3'
_SHELL = 'Error: runc: runc create failed: unable to start container process: exec: "/bin/sh": '
JOB = f"{1:016x}"


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (
            fail(125, "trying", 'Error: default OCI runtime "gone" not found: invalid argument'),
            "(exit code 125): Error: ",
        ),
        (fail(126, _DENIED), "rlimit type 7: operation not permitted"),
        (fail(126, _NO_WORKDIR), "does not exist on container"),
        (fail(127, "/bin/sh: 1: runc.real: not found", "Error: OCI runtime error: runc"), "OCI runtime error"),
        (fail(1), "(exit code 1): it said nothing"),
        (fail(0, "there is nothing to do"), "(exit code 0): there is nothing to do"),
        ("kill -9 $$", "(killed by signal 9)"),
    ],
    ids=["engine", "denied", "workdir", "runtime", "silent", "success", "killed"],
)
def test_a_job_is_released_if_its_runtime_ran_nothing(machine: ImageBody, run: Run, does: str, why: str) -> None:
    async def scenario() -> None:
        machine.podman.does(does)
        outcome = await machine.run(["/bin/true"])
        assert outcome.ending is AttemptEnd.STOPPED, outcome
        assert outcome.reason.startswith("podman could not start the container ") and why in outcome.reason, outcome

    run(scenario())


def test_no_further_job_is_given_to_a_runtime_that_just_failed(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        machine.podman.does(fail(125, "Error: no control groups"))
        await machine.run(["/bin/true"])
        for _ in range(3):
            with pytest.raises(MachineFault, match="Error: no control groups; it is tried again after 1m"):
                await machine.run(["/bin/true"])
        assert machine.podman.asked == 1
        machine.podman.does(WORKS)
        assert (await machine.run(["/bin/true"], image=OTHER)).ending is AttemptEnd.SUCCEEDED, "another image is tried"

    run(scenario())


def test_the_next_life_of_an_agent_takes_no_exit_of_a_runtime_for_the_jobs_own(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        machine.podman.does(fail(125, "Error: no control groups"))
        running = await machine.start(["/bin/true"], job=JOB, image=DIGEST, settings=IMAGE)
        await running.process.ended  # and its agent dies before it could look at that
        machine.podman.does(WORKS)
        await machine.begin()
        outcome = await machine.run(["/bin/true"], job=JOB, k=2, ours_since=1)
        assert outcome.ending is AttemptEnd.SUCCEEDED, outcome

    run(scenario())


def test_a_runtime_that_is_not_there_any_more_is_no_fault_of_a_job(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED
        machine.podman.program.unlink()
        outcome = await machine.run(["/bin/true"])
        assert outcome.ending is AttemptEnd.STOPPED, outcome
        assert outcome.reason == "podman could not be started: No such file or directory"

    run(scenario())


def test_a_runtime_that_may_not_be_run_is_no_fault_of_a_job(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED
        machine.podman.program.chmod(0o644)
        outcome = await machine.run(["/bin/true"])
        assert outcome.ending is AttemptEnd.STOPPED, outcome
        assert outcome.reason == "podman could not be started: Permission denied"

    run(scenario())


def test_a_variable_that_no_program_can_be_given_fails_its_job_alone(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        outcome = await machine.run(["/bin/true"], env={"LARGE": "x" * (1 << 18)})
        assert outcome.ending is AttemptEnd.FAILED, outcome
        assert outcome.reason.endswith("are too long (hint: pass large values by a file)"), outcome
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED, "others of its image do not rest"

    run(scenario())


def test_a_working_directory_that_vanished_fails_its_job_alone(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        ours: dict[str, Any] = {"image": DIGEST, "settings": IMAGE}
        go = machine.place / "go"
        first = await machine.start(["sh", "-c", f"while ! test -e {go}; do sleep 0.01; done"], **ours)
        second = await machine.start(["/bin/true"], after=first, **ours)
        shutil.rmtree(second._space.work)
        go.touch()
        assert (await first.wait()).ending is AttemptEnd.SUCCEEDED
        outcome = await second.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.FAILED, "its working directory vanished")
        first.leave(recorded=True)
        second.leave(recorded=True)
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED, "others of its image do not rest"

    run(scenario())


@pytest.mark.parametrize(
    ("does", "code", "why"),
    [
        (fail(127, f"{_SHELL}stat /bin/sh: no such file or directory: OCI runtime attempted"), 127, "has no /bin/sh"),
        (fail(127, "Error: crun: executable file `/bin/sh` not found in $PATH: No such file"), 127, "has no /bin/sh"),
        (fail(126, f"{_SHELL}permission denied: OCI permission denied"), 126, "permission denied"),
        (fail(1, "exec /bin/sh: exec format error"), 1, "exec /bin/sh: exec format error"),
    ],
    ids=["none", "none by crun", "no program", "other machine"],
)
def test_an_image_without_a_shell_that_runs_here_fails_its_job(
    machine: ImageBody, run: Run, does: str, code: int, why: str
) -> None:
    async def scenario() -> None:
        machine.podman.does(does)
        for _ in range(2):
            outcome = await machine.run(["/bin/true"])
            assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, code), outcome
            assert outcome.reason.startswith("podman could not start the container") and why in outcome.reason

    run(scenario())


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
        (["sh", "-c", "echo Error: mine >&2; exit 125"], 125),
        (["sh", "-c", 'echo "$0" >../container.start; echo Error: mine >&2; exit 125'], 125),
        (["sh", "-c", "rm -f ../container.start; mkdir ../container.start; exit 125"], 125),
    ],
    ids=["not found", "not executable", "engine's code", "mark written", "mark removed"],
)
def test_a_command_that_ran_fails_by_itself_whatever_it_says(
    machine: ImageBody, run: Run, command: list[str], code: int
) -> None:
    async def scenario() -> None:
        for _ in range(2):
            outcome = await machine.run(command)
            assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, code), outcome
            assert "could not start" not in outcome.reason, outcome

    run(scenario())


def test_a_pull_by_a_runtime_that_stopped_working_is_no_fault_of_a_job(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED
        machine.podman.answers(fail(125, "Error: the daemon is away"))
        with pytest.raises(MachineFault, match="podman could not pull it: Error: the daemon is away"):
            await machine.run(["/bin/true"], image=OTHER)
        machine.podman.answers("")
        with pytest.raises(MachineFault, match="it is tried again after 1m"):
            await machine.run(["/bin/true"], image=OTHER)

    run(scenario())


@pytest.mark.parametrize(
    ("line", "released"),
    [
        (
            "Error: processing tar file(potentially insufficient UIDs or GIDs available in user namespace (requested "
            "0:42 for /etc/gshadow): Check /etc/subuid and /etc/subgid): exit status 1",
            True,
        ),
        ("Error: initializing source docker://lab/train: manifest unknown", False),
    ],
)
def test_a_failed_pull_is_a_jobs_own_unless_its_user_has_too_few_ids(
    machine: ImageBody, run: Run, line: str, released: bool
) -> None:
    async def scenario() -> None:
        machine.podman.pulls(fail(125, line))
        with pytest.raises(MachineFault if released else JobFailed, match=line.split("(")[0]):
            await machine.run(["/bin/true"])

    run(scenario())


@pytest.mark.parametrize(
    ("does", "released"), [(fail(125, "Error: no control groups"), True), (f"PATH=/nowhere {WORKS}", False)]
)
def test_a_build_in_a_container_that_never_began_is_no_fault_of_a_job(
    machine: ImageBody, run: Run, does: str, released: bool
) -> None:
    async def scenario() -> None:
        machine.podman.does(does)
        why = "could not start the container that was to .*: Error: no control groups" if released else r"exit code 5"
        with pytest.raises(MachineFault if released else JobFailed, match=why):
            await machine.run(["/bin/true"], environment={"setup": "exit 5\n"})

    run(scenario())


def test_sweeps_without_an_image_are_not_looked_up_among_the_faults(machine: ImageBody) -> None:
    needs, settings = machine.runner.needs, replace(REVISION.settings, **IMAGE)
    pictured = replace(REVISION, recipe=replace(REVISION.recipe, image=DIGEST), settings=settings)
    for image in ("", DIGEST):
        needs._faults.note(StartedKind(image, settings.resources), "no containers here")
    assert needs.find_rest(pictured) and not needs.find_rest(REVISION)
