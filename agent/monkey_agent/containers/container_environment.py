"""The environment of jobs with requirements or a setup beside an image: made in containers of this image."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from monkey.errors import MachineFault
from monkey.fleet.container_runtime import ContainerRuntime
from monkey.processes.process_tree import MARK
from monkey.removal import remove_tree
from monkey.spec.command.strict_shell import SETUP_SHELL
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.recent_failures import REMEMBERED_SECONDS
from monkey_agent.containers.container_command import ContainerRun, build_container_command
from monkey_agent.containers.container_start import has_begun, is_image_at_fault, quote_runtime, write_start_mark
from monkey_agent.containers.container_sweep import ContainerSweeper
from monkey_agent.containers.job_container import JobContainer
from monkey_agent.containers.mount_points import make_mount_points
from monkey_agent.environments.environment_build import (
    SETUP,
    BuildKilled,
    EnvironmentBuild,
    EnvironmentBuildFailed,
)
from monkey_agent.environments.environment_pool import EnvironmentPool

#: Part of an entry's name; changed when such environments are built in another way.
_BUILDER = 1
#: Variables of the agent that a build in a container has, too: they say where packages come from.
_HANDED = re.compile(r"PIP_((EXTRA_)?INDEX_URL|TRUSTED_HOST|TIMEOUT|RETRIES)|(?i:https?|no)_proxy")
#: The directory of an entry that containers see: an image may be hostile, and the rest of the entry is the agent's.
VENV = "venv"
#: That for temporary files while it is built.
_SCRATCH = "scratch"
#: Words: the environment, and what else pip is told. An image without a Python may have a setup alone.
_SCRIPT = """\
venv=$1; shift
python=$(command -v python3 || command -v python) || {
  [ $# != 0 ] || exit 0
  echo "error: the image has no Python (hint: choose one that has, or install packages by its Dockerfile)"; exit 1
}
"$python" -c "import ensurepip, venv" || {
  echo "error: $python of the image makes no environments (hint: install python3-venv by its Dockerfile)"; exit 1
}
"$python" -m venv --system-site-packages "$venv" || exit 1
[ $# = 0 ] || "$venv/bin/python" -m pip --disable-pip-version-check --no-input --no-cache-dir install "$@"
"""
#: Words: the directory in which the setup runs, and what runs it.
_SETUP_SCRIPT = 'cd "$1" && shift && exec "$@"'


class ContainerEnvironmentBuild(EnvironmentBuild):
    """One build; `wanted` has requirements, constraints and setup, and the image as its runtime takes it."""

    #: Some runtimes hand descriptors on to the container, whose image could then unlock the entry.
    hands_lock = False

    def __init__(
        self, cache: Cache, path: Path, env: Mapping[str, str], lock: int, limit: float, sweeper: ContainerSweeper
    ) -> None:
        """See `EnvironmentBuild`; `sweeper` removes the containers of builds that were killed."""
        super().__init__(cache, path, env, lock, limit)
        self._sweeper = sweeper

    async def _steps(self, wanted: Mapping[str, str]) -> None:
        asked, words = self._path / "asked", list[str]()
        # Now, before any image can have put links there.
        for directory in (self._path / VENV / "bin", self._path / VENV / SETUP, asked, self._path / _SCRATCH):
            directory.mkdir(parents=True)
        for option, name in (("-r", "requirements"), ("-c", "constraints")):
            if wanted.get(name, "").strip():
                (asked / f"{name}.txt").write_text(wanted[name])
                words += [option, f"{asked}/{name}.txt"]
        if wanted.get("setup"):
            (asked / "setup.sh").write_text(wanted["setup"])
        venv, of_image = str(self._path / VENV), f"in the image {wanted['name']}"
        await self._run(wanted, f"make the environment {of_image}", [_SCRIPT, "monkey", venv, *words])
        if wanted.get("setup"):
            words = [_SETUP_SCRIPT, "monkey", f"{venv}/{SETUP}", *SETUP_SHELL, f"{asked}/setup.sh"]
            await self._run(wanted, f"set the environment up {of_image}", words, venv)
        remove_tree(self._path / _SCRATCH)

    async def _run(self, wanted: Mapping[str, str], what: str, script: list[str], active: str = "") -> None:
        """Run a script in a container that ends when this process does; `active`: a virtual environment to activate.

        Raises MachineFault where the runtime ran nothing.
        """
        venv = str(self._path / VENV)
        kind, name, number = wanted["runtime"], f"monkey-environment-{secrets.token_hex(4)}", secrets.token_hex(16)
        run = ContainerRun(
            name=name,
            mark=f"{self._path / _SCRATCH}/{name}",
            image=wanted["image"],
            argv=["/bin/sh", "-c", *script],
            work=venv,
            writable=(venv, str(self._path / _SCRATCH)),
            scratch=str(self._path / _SCRATCH),
            readable=(str(self._path / "asked"),),
            env={name: value for name, value in self._env.items() if _HANDED.fullmatch(name)},
            uid=os.getuid(),
            gid=os.getgid(),
            venv=active,
            labels=tuple(wanted["labels"].split()),
        )
        if kind == "charliecloud":
            make_mount_points(run.image, (*run.writable, *run.readable))
        runtime = ContainerRuntime(kind, wanted["program"])
        command, env = build_container_command(runtime, run)
        base = {MARK: self._mark} if kind == "charliecloud" else self._env
        # By podman, the container's pipe is descriptor 3, and otherwise stdin.
        prefix = ["/bin/sh", "-c", 'exec 3<&0 "$@" </dev/null', "monkey"] if kind == "podman" else []
        write_start_mark(run.mark, number)
        ours, its = os.pipe()[::-1]
        try:
            await self._must(what, *prefix, *command, env={**base, **env}, stdin=its, shown=what)
        except BaseException as exc:
            self._sweeper.remove(run.name)  # its client may not have seen the end
            failed = exc if isinstance(exc, EnvironmentBuildFailed) and not isinstance(exc, BuildKilled) else None
            if failed and not has_begun(run.mark, number) and not is_image_at_fault(failed.log_tail):
                said = quote_runtime(kind, failed.log_tail)
                raise MachineFault(f"{kind} could not start the container that was to {what}: {said}") from exc
            raise
        finally:
            os.close(its)
            os.close(ours)


class ContainerEnvironmentPool(EnvironmentPool):
    """The environments that images' own Pythons made."""

    def __init__(
        self,
        cache: Cache,
        env: Mapping[str, str],
        sweeper: ContainerSweeper,
        remembered: float = REMEMBERED_SECONDS,
    ) -> None:
        """See `EnvironmentPool`; `sweeper` removes the containers of builds that were killed."""
        super().__init__(cache, env, remembered)
        self.build = partial(ContainerEnvironmentBuild, sweeper=sweeper)

    @staticmethod
    def name_entry(wanted: Mapping[str, str]) -> str:
        """See `EnvironmentPool`: of the image, its digest alone counts."""
        content = ["image", _BUILDER, os.uname().machine, wanted["digest"]]
        content += [wanted.get("requirements", ""), wanted.get("constraints", "")]
        content += [{"setup": wanted["setup"]}] if wanted.get("setup") else []
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    @staticmethod
    def is_complete(path: Path) -> bool:
        """See `EnvironmentPool`: its Python is in the image, and not on this machine."""
        return (path / ".complete").exists()


def describe_container_environment(
    container: JobContainer, name: str, digest: str, asked: Mapping[str, str]
) -> dict[str, str]:
    """Return what `ContainerEnvironmentPool.use` takes, for the recipe's environment `asked`."""
    runtime = container.runtime
    inside = {"image": container.image, "name": name, "digest": digest}
    return {
        **asked,
        **inside,
        "runtime": runtime.kind,
        "program": runtime.program,
        "labels": " ".join(container.sweeper.labels),
    }
