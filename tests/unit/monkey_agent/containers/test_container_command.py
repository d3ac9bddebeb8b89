"""The command lines by which runtimes run jobs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import JobFailed
from monkey.fleet.container_runtime import ContainerRuntime
from monkey.spec.job.runtime_kind import RuntimeKind
from monkey_agent.containers.container_command import ContainerRun, build_container_command
from monkey_agent.containers.first_process import make_shell_arguments
from monkey_agent.containers.mount_points import make_mount_points

ENV = {"MONKEY_JOB": "1", "TOKEN": "hunter2", "PATH": "/opt/bin", "PYTHONPATH": "/cache/client"}
IMAGE = f"docker.io/library/python@sha256:{'0a' * 32}"


RUN = ContainerRun(
    name="monkey-1.1",
    image=IMAGE,
    argv=["python", "train.py", "a b"],
    work="/state/1.1/work",
    writable=("/state/1.1",),
    readable=("/cache/client", "/cache/data"),
    env=ENV,
    uid=1000,
    gid=1000,
)


def build(kind: RuntimeKind, **more: Any) -> tuple[str, dict[str, str]]:
    run = replace(RUN, **more)
    argv, env = build_container_command(ContainerRuntime(kind, f"/usr/bin/{kind}"), run, "/usr/bin/{}".format)
    assert argv[-3:] == ["python", "train.py", "a b"]
    assert not any("hunter2" in word for word in argv), "no secret is in a command line"
    return " ".join(argv), env


def test_podman() -> None:
    line, env = build("podman")
    assert line.startswith("/usr/bin/podman run --rm --name monkey-1.1 ")
    for words in (
        *(
            "--volume=/dev/shm:/dev/shm",
            "--network=host",
            "--user 1000:1000",
            "--userns=keep-id",
            "--preserve-fds=1",
            "--workdir /state/1.1/work",
        ),
        *("--volume /state/1.1:/state/1.1", "--volume /cache/data:/cache/data:ro", "--env TOKEN ", "--env MONKEY_JOB "),
        *(
            "--env MONKEY_AGENT ",
            "--env PATH=/opt/bin",
            "--env HOME=/tmp",
            f"--entrypoint=/bin/sh {IMAGE} -c exec 3<&3",
        ),
    ):
        assert words in line, words
    assert "--memory" not in line and "--device" not in line
    assert env["TOKEN"] == "hunter2" and env["MONKEY_LIFELINE"] == "3"
    assert "PATH" not in env and "HOME" not in env, "the runtime's client keeps its own"
    assert "keep-id" not in build("podman", uid=0)[0]
    assert env["MONKEY_CONTAINER_USAGE"] == "" and "/sys/fs/cgroup" not in line
    line, env = build("podman", report="/state/1.1/the usage")
    assert env["MONKEY_CONTAINER_USAGE"] == "/state/1.1/the usage" and ">'/state/1.1/the usage'" in line
    line, _ = build("podman", gpus=True, memory=1 << 30)
    assert "--device=nvidia.com/gpu=all --memory=1073741824 --memory-swap=1073741824" in line


def test_docker() -> None:
    line, env = build("docker", gpus=True)
    for words in (
        "--interactive",
        "--gpus=all",
        "--user 1000:1000",
        "--volume /cache/data:/cache/data:ro",
        "exec 3<&0",
    ):
        assert words in line, words
    assert "keep-id" not in line and "preserve-fds" not in line
    assert env["MONKEY_LIFELINE"] == "0", "its daemon gets no descriptor but stdin"


#: Options of `apptainer exec` and `singularity exec` that we use, by their manuals; those with a value, and others.
VALUED, FLAGS = {"--bind", "--pwd"}, {"--containall", "--no-init", "--cleanenv", "--no-home", "--nv"}


@pytest.mark.parametrize("program", ["apptainer", "singularity"])
def test_apptainer(program: str) -> None:
    run = replace(RUN, image="/cache/image.sif", scratch="/state/1.1/tmp", gpus=True)
    argv, env = build_container_command(ContainerRuntime("apptainer", f"/usr/bin/{program}"), run)
    assert argv[:2] == [f"/usr/bin/{program}", "exec"]
    at, options = 2, list[tuple[str, str]]()
    while argv[at].startswith("-"):
        name, valued = argv[at], argv[at] in VALUED
        assert valued or name in FLAGS, name
        options.append((name, argv[at + 1] if valued else ""))
        at += 1 + valued
    assert argv[at : at + 3] == ["/cache/image.sif", "/bin/sh", "-c"], "the image, and a command of it"
    binds = ["/state/1.1:/state/1.1", "/cache/client:/cache/client:ro", "/cache/data:/cache/data:ro"]
    assert [value for name, value in options if name == "--bind"] == binds
    assert FLAGS | {"--pwd"} == {name for name, _ in options if name != "--bind"}
    assert ("--pwd", "/state/1.1/work") in options
    prefix = f"{program}ENV_".upper()
    assert env[f"{prefix}TOKEN"] == "hunter2" and "TOKEN" not in env and "hunter2" not in " ".join(argv)
    assert env[f"{prefix}TMPDIR"] == "/state/1.1/tmp", "its own /tmp holds 64 MiB"
    assert f"{prefix}HOME" not in env and "export HOME=/state/1.1/tmp\n" in argv[at + 3], "it refuses a HOME of ours"


def test_a_home_and_a_directory_for_temporary_files_that_the_spec_names_are_kept() -> None:
    line, env = build("apptainer", env={**ENV, "HOME": "/my home", "TMPDIR": "/fast"}, scratch="/state/1.1/tmp")
    assert "export HOME='/my home'\n" in line and env["APPTAINERENV_TMPDIR"] == "/fast"


def test_charliecloud() -> None:
    line, env = build("charliecloud")
    began = (
        "/usr/bin/setpriv --pdeathsig KILL /usr/bin/unshare --user --map-current-user --pid --fork --kill-child=KILL "
    )
    assert line.startswith(f"{began}/usr/bin/charliecloud ")
    assert "--bind /state/1.1:/state/1.1" in line and env["TOKEN"] == "hunter2"
    assert "--map-current-user" not in build("charliecloud", uid=0)[0]
    with pytest.raises(JobFailed, match="hands no GPUs"):
        build("charliecloud", gpus=True)


def test_a_path_that_runtimes_would_misread_is_refused() -> None:
    with pytest.raises(JobFailed, match="/a:b cannot be mounted"):
        build("podman", readable=("/a:b",))


def test_the_first_process_has_the_exit_code_of_the_job_and_ends_when_the_pipe_is_closed() -> None:
    words = ["/bin/sh", *make_shell_arguments(["sh", "-c", "cat; echo done; exit 7"], 0)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        assert shell.stdout.read() == b"done\n", "the job reads nothing"
        assert shell.wait() == 7
    words = ["/bin/sh", *make_shell_arguments(["sh", "-c", 'echo "$VIRTUAL_ENV $PATH"'], 0, "/a b/venv")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env={"PATH": "/bin"}) as shell:
        assert shell.stdout is not None
        assert shell.stdout.read() == "/a b/venv /a b/venv/bin:/bin\n"
    words = ["/bin/sh", *make_shell_arguments(["sleep", "5"], 0)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        shell.stdin.close()
        assert shell.wait() == 137


def test_mount_points_stay_in_the_image(tmp_path: Path) -> None:
    image, outside = tmp_path / "image", tmp_path / "outside"
    image.mkdir(), outside.mkdir()
    make_mount_points(str(image), ["/var/lib/monkey", "/tmp/x"])
    assert (image / "var/lib/monkey").is_dir() and not (image / "tmp").exists()
    (image / "home").symlink_to(outside)
    with pytest.raises(JobFailed, match="has 'home' there, no directory"):
        make_mount_points(str(image), ["/home/ada"])
    assert not list(outside.iterdir())


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_a_secret_that_the_runtimes_client_would_heed_is_refused(kind: RuntimeKind) -> None:
    env = {**ENV, "DOCKER_TOKEN": "hunter2", "GOOGLE_API_KEY": "hunter2"}
    with pytest.raises(JobFailed, match="DOCKER_TOKEN would stand in a command line"):
        build(kind, env=env, secrets=("TOKEN", "DOCKER_TOKEN"))
    del env["DOCKER_TOKEN"]
    assert "--env GOOGLE_API_KEY " in build(kind, env=env, secrets=("TOKEN", "GOOGLE_API_KEY"))[0]
