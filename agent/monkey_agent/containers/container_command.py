"""The command line that runs a job in a container: a function of values, for each runtime."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monkey.errors import JobFailed
from monkey.fleet.container_runtime import ContainerRuntime
from monkey.processes.container_usage import USAGE_REPORT
from monkey.processes.process_tree import MARK
from monkey_agent.containers.first_process import make_shell_arguments
from monkey_agent.supervisor.spawn import LIFELINE

#: Variables that would change what the runtime's own client does: their values are said, and the client has its own.
_OF_CLIENT = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "NOTIFY_SOCKET", "GODEBUG", "GOMAXPROCS", "GOGC")
_OF_CLIENT_PREFIXES = ("XDG_", "DOCKER_", "CONTAINER", "PODMAN_", "BUILDAH_", "STORAGE_", "REGISTRY_", "LD_")
#: Where a job's home is: its user may have none in the image.
_HOME = "/tmp"


@dataclass(frozen=True)
class ContainerRun:
    """A job to run in a container."""

    #: The container's name, for people who list containers.
    name: str
    #: The image, as its runtime takes it: NAME@DIGEST, a file, or a directory.
    image: str
    argv: list[str]
    #: Its working directory.
    work: str
    #: Directories that it sees at their own paths: those that it may write to, and those that it may read.
    writable: tuple[str, ...]
    readable: tuple[str, ...]
    #: The job's variables.
    env: Mapping[str, str]
    uid: int
    gid: int
    #: The environment whose programs stand before the image's own; "" for none.
    venv: str = ""
    #: A directory, one of the writable, for temporary files where those of the container have little room; "" for none.
    scratch: str = ""
    #: Whether it gets the machine's GPUs; CUDA_VISIBLE_DEVICES says which it may use.
    gpus: bool = False
    #: Most bytes of memory; 0 for no limit.
    memory: int = 0
    #: Variables whose values may stand in no command line.
    secrets: tuple[str, ...] = ()
    #: "NAME=VALUE", by which podman and docker find the containers of an agent.
    labels: tuple[str, ...] = ()
    #: The file to which podman and docker have it write what it used; "" where it has no control group of its own.
    report: str = ""
    #: The file that it empties right before the job's command; "" for none.
    mark: str = ""


#: What to start: argv, and its variables over those of the agent's own (for charliecloud, over none).
ContainerCommand = tuple[list[str], dict[str, str]]


def build_container_command(
    runtime: ContainerRuntime, run: ContainerRun, find_program: Callable[[str], str | None] = shutil.which
) -> ContainerCommand:
    """Return the command that runs a job; `find_program`: name of a program beside the runtime's own to its path.

    Raises JobFailed where the runtime cannot do it.
    """
    for path in (*run.writable, *run.readable, run.work):
        if ":" in path or "," in path:
            raise JobFailed(f"the path {path} cannot be mounted in a container (hint: it may have no ':' and no ',')")
    run_env = {"HOME": _HOME, **run.env}
    if runtime.kind == "charliecloud":
        return _build_charliecloud(runtime, run, run_env, find_program)
    if runtime.kind == "apptainer":
        return _build_apptainer(runtime, run, run_env)
    return _build_engine(runtime, run, run_env)


def check_gpus(runtime: ContainerRuntime, *, gpus: bool) -> None:
    """Raise JobFailed where a job asks for GPUs, and the runtime hands on none."""
    if gpus and runtime.kind == "charliecloud":
        raise JobFailed("charliecloud hands no GPUs to containers (hint: install podman, apptainer or docker)")


def _build_engine(runtime: ContainerRuntime, run: ContainerRun, env: Mapping[str, str]) -> ContainerCommand:
    """Return the command for podman or docker, whose options are the same but for a few."""
    podman = runtime.kind == "podman"
    fd = 3 if podman else 0
    argv = [runtime.program, "run", "--rm", "--name", run.name, "--pull=missing", "--log-driver=none"]
    argv += [f"--label={label}" for label in run.labels]
    # Rootless, podman cannot share the machine's IPC where it has no /dev/mqueue; its shared memory is a directory.
    argv += ["--volume=/dev/shm:/dev/shm"] if podman else ["--ipc=host"]
    argv += ["--network=host", "--security-opt=label=disable", "--user", f"{run.uid}:{run.gid}"]
    # By docker, the pipe to the supervisor is stdin: a daemon starts the container, and gets no other descriptor.
    argv += ["--preserve-fds=1"] if podman else ["--interactive"]
    argv += ["--userns=keep-id"] if podman and run.uid else []
    if run.gpus:
        argv += ["--device=nvidia.com/gpu=all"] if podman else ["--gpus=all"]
    argv += [f"--memory={run.memory}", f"--memory-swap={run.memory}"] if run.memory else []
    argv += ["--workdir", run.work]
    for path in run.writable:
        argv += ["--volume", f"{path}:{path}"]
    for path in run.readable:
        argv += ["--volume", f"{path}:{path}:ro"]
    ours = {name: value for name, value in env.items() if not _is_of_client(name)}
    if told := [name for name in run.secrets if name not in ours]:
        raise JobFailed(
            f"the secret {told[0]} would stand in a command line (hint: {runtime.kind} heeds it: rename it)"
        )
    # By name alone: the values of secrets are in no command line.
    for name in (*ours, MARK):
        argv += ["--env", name]
    for name, value in env.items():
        if name not in ours:
            argv += ["--env", f"{name}={value}"]
    argv += ["--entrypoint=/bin/sh", run.image]
    argv += make_shell_arguments(run.argv, fd, run.venv, run.report, mark=run.mark)
    return argv, {**ours, LIFELINE: str(fd), USAGE_REPORT: run.report}


def _build_apptainer(runtime: ContainerRuntime, run: ContainerRun, env: Mapping[str, str]) -> ContainerCommand:
    # Its own first process would hand SIGTERM on to ours, which gets it from the supervisor.
    argv = [runtime.program, "exec", "--containall", "--no-init", "--cleanenv", "--no-home", "--pwd", run.work]
    argv += ["--nv"] if run.gpus else []
    for path in run.writable:
        argv += ["--bind", f"{path}:{path}"]
    for path in run.readable:
        argv += ["--bind", f"{path}:{path}:ro"]
    prefix = "SINGULARITYENV_" if runtime.program.endswith("singularity") else "APPTAINERENV_"
    # It refuses a HOME of ours, and its /tmp holds 64 MiB.
    env = {"TMPDIR": run.scratch or _HOME, **env, "HOME": run.env.get("HOME") or run.scratch or _HOME}
    given = {f"{prefix}{name}": value for name, value in env.items() if name != "HOME"}
    argv += [run.image, "/bin/sh", *make_shell_arguments(run.argv, 0, run.venv, home=env["HOME"], mark=run.mark)]
    return argv, {**given, LIFELINE: "0"}


def _build_charliecloud(
    runtime: ContainerRuntime, run: ContainerRun, env: Mapping[str, str], find_program: Callable[[str], str | None]
) -> ContainerCommand:
    check_gpus(runtime, gpus=run.gpus)
    setpriv, unshare = find_program("setpriv"), find_program("unshare")
    if not (setpriv and unshare):
        raise JobFailed("its image cannot be run: charliecloud needs setpriv and unshare (hint: install util-linux)")
    # It makes no namespace of processes itself. Where all processes stand still, the shell does not see that the
    # supervisor is gone: the kernel kills them.
    argv = [setpriv, "--pdeathsig", "KILL"]
    argv += [unshare, *(["--user", "--map-current-user"] if run.uid else []), "--pid", "--fork", "--kill-child=KILL"]
    argv += [runtime.program, "--private-tmp", "--set-env", "--cd", run.work]
    for path in (*run.writable, *run.readable):
        argv += ["--bind", f"{path}:{path}"]
    argv += [run.image, "--", "/bin/sh", *make_shell_arguments(run.argv, 0, run.venv, mark=run.mark)]
    return argv, {"USER": "monkey", **env, LIFELINE: "0"}


def _is_of_client(name: str) -> bool:
    return name in _OF_CLIENT or name.startswith(_OF_CLIENT_PREFIXES)
