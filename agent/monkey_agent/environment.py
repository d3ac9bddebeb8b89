"""Python environments of jobs: one for each content, built once on this machine however many ask, and then shared."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from monkey.errors import JobFailed
from monkey_agent.endings import span, trouble
from monkey_agent.flight import Flights
from monkey_agent.logs import bounded

#: Part of an environment's name; changed when environments are built in another way.
BUILDER = 1
#: Seconds for which a failure is remembered: 10,000 jobs must not try one after the other, nor fail for ever.
REMEMBERED = 60.0
#: Seconds that a build may take.
LIMIT = 3600.0
#: Times that a build is begun which somebody kills: that says nothing of it, unless it is always so (out of memory?).
TRIES = 3
#: Seconds between looks whether another agent has finished the build.
LOOK = 0.1
#: Lines of the build's log that its failure keeps, and characters of the one that its reason quotes.
LINES, QUOTED = 30, 160


class Environments:
    """The environments in a cache that all agents of the user share."""

    def __init__(self, cache: Path, env: Mapping[str, str], remembered: float = REMEMBERED) -> None:
        """Build into `cache`/environments, with the variables `env`; after a failure, rest `remembered` seconds."""
        self._directory, self._env, self._remembered = cache / "environments", dict(env), remembered
        self._flights: Flights[Path] = Flights()
        self._ready: dict[str, Path] = {}
        #: When which environment failed, and how.
        self._failed: dict[str, tuple[float, JobFailed]] = {}

    async def get(self, wanted: Mapping[str, str]) -> Path:
        """Return the virtual environment for {"requirements": text, "python": version}, built if need be.

        Raises JobFailed with the end of the build's log (`log_tail`).
        """
        name = name_of(wanted)
        path = self._ready.get(name)
        if path is None or not _complete(path):
            self._ready[name] = path = await self._flights.join(name, lambda: self._obtain(name, wanted))
        return path

    async def _obtain(self, name: str, wanted: Mapping[str, str]) -> Path:
        at, failed = self._failed.pop(name, (0.0, None))
        if failed is None or time.monotonic() - at >= self._remembered:
            try:
                return await self._build_once(name, wanted)
            except OSError as exc:
                failed = JobFailed(f"the environment cannot be built: {trouble(exc)}")
            except JobFailed as exc:
                failed = exc
            at = time.monotonic()
        self._failed[name] = at, failed
        raise JobFailed(failed.message, log_tail=failed.log_tail)

    async def _build_once(self, name: str, wanted: Mapping[str, str]) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / name
        lock = os.open(self._directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _acquire(lock)
            for left in reversed(range(0 if _complete(path) else TRIES)):
                try:
                    await Build(path, self._directory / f"{name}.log", self._env, lock).run(wanted)
                    break
                except Killed:
                    if not left:
                        raise
        finally:
            # The builders have it too: while one of a dead agent still runs, nobody builds beside it.
            os.close(lock)
        return path

    async def close(self) -> None:
        """Stop what is being built."""
        await self._flights.close()


def name_of(wanted: Mapping[str, str]) -> str:
    """Return the name of an environment: a hash of all that makes it what it is."""
    python = wanted.get("python") or f"{sys.version_info[0]}.{sys.version_info[1]}"
    content = [BUILDER, python, sysconfig.get_platform(), sys.implementation.name, wanted.get("requirements", "")]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _complete(path: Path) -> bool:
    """Say whether an environment was built to its end, and its Python is still there."""
    return (path / ".complete").exists() and (path / "bin" / "python").exists()


async def _acquire(lock: int) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            await asyncio.sleep(LOOK)


class Killed(JobFailed):
    """A step of a build was ended by a signal."""


class Build:
    """One build, in place (environments cannot be moved): the file .complete is written when all of it is on disk."""

    def __init__(self, path: Path, log: Path, env: dict[str, str], lock: int) -> None:
        """Build `path`, writing to `log`, while the descriptor `lock` is held by us and by what we start."""
        self._path, self._log, self._env, self._lock = path, log, env, lock
        self._until = time.monotonic() + LIMIT

    async def run(self, wanted: Mapping[str, str]) -> None:
        """Build; raises JobFailed (Killed where a signal ended it), OSError."""
        if self._path.exists():  # half-built, or its Python is gone
            await asyncio.to_thread(shutil.rmtree, self._path)
        self._log.write_bytes(b"")
        requirements = self._path.with_suffix(".txt")
        requirements.write_text(wanted.get("requirements", ""))
        uv = shutil.which("uv", path=self._env.get("PATH"))
        try:
            if uv and await self._step(uv, "--version") == 0:
                await self._with_uv(uv, wanted.get("python"), requirements)
            else:
                await self._with_venv(wanted.get("python"), requirements)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, self._path, ignore_errors=True)
            raise
        await asyncio.to_thread(os.sync)  # a cache outlives a loss of power, and is not read again to be verified
        (self._path / ".complete").write_text(f"{BUILDER}\n")

    async def _with_uv(self, uv: str, version: str | None, requirements: Path) -> None:
        python = version or sys.executable
        import ssl

        # As pip would: behind a proxy with a certificate of its own, the machine trusts it, and uv's own list does not.
        if ssl.get_default_verify_paths().cafile:
            self._env = {"UV_SYSTEM_CERTS": "1", **self._env}
        await self._must("make the environment", uv, "venv", "--no-project", "--python", python, str(self._path))
        if _names_any(requirements):
            into = ["--python", str(self._path / "bin" / "python"), "--compile-bytecode", "-r", str(requirements)]
            await self._must("install the requirements", uv, "pip", "install", *into)

    async def _with_venv(self, version: str | None, requirements: Path) -> None:
        await self._must("make the environment", self._python(version), "-m", "venv", str(self._path))
        if _names_any(requirements):
            pip = [str(self._path / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
            await self._must("install the requirements", *pip, "install", "-r", str(requirements))

    def _python(self, version: str | None) -> str:
        if not version or version in (f"{sys.version_info[0]}.{sys.version_info[1]}", str(sys.version_info[0])):
            return sys.executable
        found = shutil.which(f"python{version}", path=self._env.get("PATH"))
        if found is None:
            raise JobFailed(f"Python {version} is not on this machine (hint: install it, or uv, which fetches it)")
        return found

    async def _must(self, what: str, *command: str) -> None:
        code = await self._step(*command)
        if code:
            log = [line.rstrip() for line in self._log.read_text(errors="replace").splitlines()]
            lines = log[max((i for i, line in enumerate(log) if line.startswith("$ ")), default=0) :]
            kind, how = (Killed, f"killed by signal {-code}") if code < 0 else (JobFailed, f"exit code {code}")
            raise kind(f"could not {what} ({how}){_quoted(lines)}", log_tail=bounded(lines[-LINES:]))

    async def _step(self, *command: str) -> int:
        with self._log.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                cwd=self._path.parent,
                pass_fds=[self._lock],
                start_new_session=True,
            )
        try:
            return await asyncio.wait_for(process.wait(), max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            raise JobFailed(f"the environment was not built within {span(LIMIT)} ({command[0]})") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, 9)
                await process.wait()


def _quoted(lines: list[str]) -> str:
    """Return the line that tells most of what went wrong: the last that says error, or else the last."""
    said = [" ".join(line.strip(" │╰─▶×").split()) for line in lines if not line.startswith("$ ")]
    said = [line for line in said if line and not line.lower().startswith("hint:")]
    line = next((line for line in reversed(said) if line.lower().startswith("error")), said[-1] if said else "")
    return f": {line if len(line) <= QUOTED else line[: QUOTED - 1] + '…'}" if line else ""


def _names_any(requirements: Path) -> bool:
    lines = (line.strip() for line in requirements.read_text().splitlines())
    return any(line and not line.startswith("#") for line in lines)
