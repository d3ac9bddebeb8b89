"""Building one environment: the steps, each in a session of its own, and nothing of them left when it is over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from monkey.errors import JobFailed
from monkey.processes import process_tree
from monkey.processes.process_tree import BUILD, MARK
from monkey.removal import remove_file
from monkey.spec.command.strict_shell import SETUP_SHELL
from monkey.spec.yaml.units import format_duration
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.single_flight import run_to_end
from monkey_agent.environments import interpreters
from monkey_agent.facts.interpreter_facts import LOCK, list_installed_packages
from monkey_agent.logs.job_log import bound_lines
from monkey_agent.logs.masking import LogMask

#: Part of an environment's name; changed when environments are built in another way.
BUILDER = 1
#: The directory inside an environment in which its setup runs.
SETUP = "setup"
#: Lines of the build's log that its failure keeps, characters of the one that its reason quotes, and bytes looked at.
LINES, QUOTED, _END = 30, 160, 64 * 1024
#: A digest of an image, whose first digits are enough.
_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")
#: Seconds that killed processes may take to go.
_PATIENCE_SECONDS = 10.0


@dataclass
class BuildLog:
    """The whole log of a build that failed."""

    path: Path
    #: The job whose log it has become; "" until one did.
    job: str = ""


class EnvironmentBuildFailed(JobFailed):
    """An environment could not be built."""

    #: Where its build wrote.
    log: BuildLog | None = None
    #: What must not be seen of it where it is told.
    mask: LogMask | None = None


class BuildKilled(EnvironmentBuildFailed):
    """A step of a build was ended by a signal."""


class EnvironmentBuild:
    """One build, in place (environments cannot be moved): the file .complete is written when all of it is on disk."""

    #: Whether its steps hold the lock, too: then nobody builds beside one that outlives the agent.
    hands_lock = True

    def __init__(self, cache: Cache, path: Path, env: Mapping[str, str], lock: int, limit: float) -> None:
        """Build `path` within `limit` seconds, while we hold the descriptor `lock`; if `hands_lock`, steps do too."""
        self._cache, self._path, self._lock, self._limit = cache, path, lock, limit
        self._log, self._script, self._requirements, self._constraints = (
            path.with_suffix(end) for end in (".log", ".sh", ".txt", ".constraints")
        )
        #: Tells what this build started from what others did.
        self._mark = f"{env.get(MARK, f':{BUILD}')}.{secrets.token_hex(6)}"
        # uv breaks its lines for a terminal of so many columns, and of an error we quote one line.
        self._env = {**env, MARK: self._mark, "COLUMNS": "1000"}
        self._until = time.monotonic() + limit

    async def run(self, wanted: Mapping[str, str]) -> None:
        """Build.

        Raises EnvironmentBuildFailed (BuildKilled where a signal ended it), OSError. Cancelled, it leaves nothing.
        """
        self._cache.trash(self._path)  # half-built, or its Python is gone
        # Never written over: somebody may read it.
        remove_file(self._log)
        try:
            try:
                await self._steps(wanted)
            finally:
                await run_to_end(self._sweep)
            await run_to_end(os.sync)  # a cache outlives a loss of power, and is not read again to be verified
            (self._path / ".complete").write_text(f"{BUILDER}\n")
            remove_file(self._failed)
        except BaseException as exc:
            self._cache.trash(self._path)
            if isinstance(exc, asyncio.CancelledError):
                for file in (self._log, self._script, self._requirements, self._constraints):
                    remove_file(file)
            if isinstance(exc, EnvironmentBuildFailed):
                with contextlib.suppress(OSError):
                    self._log.replace(self._failed)
                exc.log = BuildLog(self._failed)
            raise

    @property
    def _files(self) -> list[str]:
        """What to install, and in which versions where a check repeats an environment."""
        limits = ["-c", str(self._constraints)] if self._constraints.exists() else []
        return ["-r", str(self._requirements), *limits]

    @property
    def _failed(self) -> Path:
        return self._path.with_suffix(".failed")

    async def _steps(self, wanted: Mapping[str, str]) -> None:
        self._requirements.write_text(wanted.get("requirements", ""))
        if wanted.get("constraints"):
            self._constraints.write_text(wanted["constraints"])
        uv = shutil.which("uv", path=self._env.get("PATH"))
        if uv and await self._step(uv, "--version") == 0:
            await self._with_uv(uv, wanted.get("python"))
        else:
            await self._with_venv(wanted.get("python"))
        if wanted.get("setup"):
            await self._setup(wanted["setup"])
        # Now, before any job may install more: it is what was built.
        packages = await list_installed_packages(self._path, self._env)
        if packages is not None:
            (self._path / LOCK).write_text("".join(f"{line}\n" for line in packages))

    async def _with_uv(self, uv: str, version: str | None) -> None:
        import ssl
        import sys

        # As pip would: behind a proxy with a certificate of its own, the machine trusts it, and uv's own list does not.
        if ssl.get_default_verify_paths().cafile:
            self._env = {"UV_SYSTEM_CERTS": "1", **self._env}
        try:
            command = [uv, "venv", "--no-project", "--python", version or sys.executable, str(self._path)]
            await self._must("make the environment", *command)
        except EnvironmentBuildFailed as exc:
            if version and not isinstance(exc, BuildKilled):
                exc.message += await interpreters.suggest_python_version(uv, version, self._env)
            raise
        if _names_any(self._requirements):
            into = ["--python", str(self._path / "bin" / "python"), "--compile-bytecode", *self._files]
            await self._must("install the requirements", uv, "pip", "install", *into)

    async def _with_venv(self, version: str | None) -> None:
        try:
            python = await interpreters.find_interpreter(version, self._env)
        except LookupError as exc:
            raise EnvironmentBuildFailed(str(exc)) from exc
        await self._must("make the environment", python, "-m", "venv", str(self._path))
        if _names_any(self._requirements):
            pip = [str(self._path / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
            await self._must("install the requirements", *pip, "install", *self._files)

    async def _setup(self, text: str) -> None:
        """Run the spec's own steps, in the environment and a directory of its own, up to the first that fails."""
        directory = self._path / SETUP
        directory.mkdir()
        self._script.write_text(text)
        env = activate_environment(self._env, self._path)
        command = [*SETUP_SHELL, str(self._script)]
        shown = f"setup: {self._script}"
        await self._must("set the environment up", *command, env=env, directory=directory, shown=shown)

    # -- a step -------------------------------------------------------------------------------------------------------

    async def _must(
        self,
        what: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stdin: int = asyncio.subprocess.DEVNULL,
        shown: str = "",
    ) -> None:
        try:
            code = await self._step(*command, env=env, directory=directory, stdin=stdin, shown=shown)
        except TimeoutError:
            why = f"could not {what} within {format_duration(self._limit)}"
            hint = " (hint: it may hang; `environment: {timeout: …}` in the spec gives it more time)"
            lines = self._last_lines()
            raise EnvironmentBuildFailed(why + _quoted(lines) + hint, log_tail=bound_lines(lines[-LINES:])) from None
        if code:
            lines = self._last_lines()
            kind, how = (
                (BuildKilled, f"killed by signal {-code}")
                if code < 0
                else (EnvironmentBuildFailed, f"exit code {code}")
            )
            raise kind(f"could not {what} ({how}){_quoted(lines)}", log_tail=bound_lines(lines[-LINES:]))

    def _last_lines(self) -> list[str]:
        """Return the end of the log, of the last step alone."""
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _END))
            log = [line.rstrip() for line in file.read().decode(errors="replace").splitlines()]
        return log[max((i for i, line in enumerate(log) if line.startswith("$ ")), default=0) :]

    async def _step(
        self,
        *command: str,
        env: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stdin: int = asyncio.subprocess.DEVNULL,
        shown: str = "",
    ) -> int:
        """Run a command and return its exit code, or minus the signal; nothing of its session is left.

        `shown`: what the log says in place of a long command.

        Raises OSError; TimeoutError where the build's time is over.
        """
        with self._log.open("ab") as log:
            log.write(f"$ {shown or ' '.join(command)}\n".encode())
            log.flush()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stdout=log,
                stderr=log,
                env=self._env if env is None else env,
                cwd=directory or self._path.parent,
                pass_fds=[self._lock] if self.hands_lock else [],
                start_new_session=True,
            )
        try:
            return await asyncio.wait_for(process.wait(), max(0.0, self._until - time.monotonic()))
        finally:
            process_tree.send_group(process.pid, process_tree.KILL)
            with contextlib.suppress(TimeoutError):  # a disk or share that does not answer holds it; nobody else
                await asyncio.wait_for(process.wait(), _PATIENCE_SECONDS)

    def _sweep(self) -> None:
        """Kill what left the sessions of its steps: it would hold the lock, and work beside the next build."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while (left := self._orphans()) and time.monotonic() < until:
            for pid in left:
                process_tree.send_signal(pid, process_tree.KILL)
            time.sleep(0.005)

    def _orphans(self) -> list[int]:
        ours = os.getpid()
        found = {
            pid for pid in process_tree.list_processes() if pid != ours and process_tree.read_mark(pid) == self._mark
        }
        found.update(process_tree.list_descendants(list(found)))
        # One that hides its environment has the lock still; not so our own children, which have it until they exec.
        found.update(set(process_tree.list_lock_holders(self._lock)) - {ours, *process_tree.list_children(ours)})
        return [pid for pid in found if not process_tree.is_dead(pid)]


def activate_environment(env: Mapping[str, str], venv: Path) -> dict[str, str]:
    """Return the variables `env` as they are in a virtual environment."""
    inside = {name: value for name, value in env.items() if name != "PYTHONHOME"}
    return {**inside, "VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin{os.pathsep}{env.get('PATH', os.defpath)}"}


def _quoted(lines: list[str]) -> str:
    """Return the line that tells most of what went wrong: the last that says error, or else the last."""
    said = [" ".join(line.strip(" │╰─▶×").split()) for line in lines if not line.startswith("$ ")]
    said = [line for line in said if line and not line.lower().startswith("hint:")]
    line = next((line for line in reversed(said) if line.lower().startswith("error")), said[-1] if said else "")
    line = _DIGEST.sub(r"\1…", line)
    # Its end names the cause, after the steps that failed for it.
    whole = len(line) <= QUOTED
    return f": {line if whole else f'{line[: QUOTED // 4]}…{line[1 - QUOTED + QUOTED // 4 :]}'}" if line else ""


def _names_any(requirements: Path) -> bool:
    lines = (line.strip() for line in requirements.read_text().splitlines())
    return any(line and not line.startswith("#") for line in lines)
