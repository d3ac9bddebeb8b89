"""Python environments of jobs: one for each content, built once on this machine however many ask, and then shared."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Mapping, Set
from pathlib import Path

from monkey.errors import JobFailed
from monkey_agent.cache import Cache, Use
from monkey_agent.endings import span, trouble
from monkey_agent.failures import REMEMBERED, Failures
from monkey_agent.flight import Flights
from monkey_agent.logs import bounded

#: Part of an environment's name; changed when environments are built in another way.
BUILDER = 1
#: Seconds that a build may take.
LIMIT = 3600.0
#: Times that a build is begun which somebody kills: that says nothing of it, unless it is always so (out of memory?).
TRIES = 3
#: The directory inside an environment in which its setup runs.
SETUP = "setup"
#: Lines of the build's log that its failure keeps, and characters of the one that its reason quotes.
LINES, QUOTED = 30, 160


class Environments:
    """The environments in a cache that all agents of the user share."""

    def __init__(self, cache: Cache, env: Mapping[str, str], remembered: float = REMEMBERED) -> None:
        """Build into `cache`, with the variables `env`; after a failure, rest `remembered` seconds."""
        self._cache, self._env = cache, dict(env)
        self._directory = cache.root / "environments"
        self._flights: Flights[None] = Flights()
        self._failures = Failures(remembered)

    async def use(self, wanted: Mapping[str, str], withheld: Set[str] = frozenset()) -> tuple[Path, Use]:
        """Return the environment for {"requirements", "python", "setup"}, built if need be, and the right to use it.

        `withheld`: variables that the build is not to see. Raises JobFailed with the end of its log (`log_tail`).
        """
        name = name_of(wanted)
        path = self._directory / name
        try:
            use = await self._cache.use(path)
        except OSError as exc:
            raise JobFailed(f"the environment cannot be built: {trouble(exc)}") from exc
        try:
            if not _complete(path):
                await self._flights.join(name, lambda: self._obtain(name, wanted, withheld))
        except BaseException:
            use.close()
            raise
        return path, use

    async def _obtain(self, name: str, wanted: Mapping[str, str], withheld: Set[str]) -> None:
        self._failures.check(name)
        try:
            await self._build_once(self._directory / name, wanted, withheld)
        except OSError as exc:
            failed = JobFailed(f"the environment cannot be built: {trouble(exc)}")
            raise self._failures.remember(name, failed) from exc
        except JobFailed as exc:
            raise self._failures.remember(name, exc) from exc
        self._cache.trim_soon()

    async def _build_once(self, path: Path, wanted: Mapping[str, str], withheld: Set[str]) -> None:
        env = {name: value for name, value in self._env.items() if name not in withheld}
        # The builders have the lock, too: while one of a dead agent still runs, nobody builds beside it.
        async with self._cache.making(path) as lock:
            for left in reversed(range(0 if _complete(path) else TRIES)):
                try:
                    await Build(path, path.with_suffix(".log"), env, lock).run(wanted)
                    await asyncio.to_thread(self._cache.note, path)
                    break
                except (JobFailed, OSError) as exc:
                    again = isinstance(exc, Killed) or (self._cache.is_full() and await self._cache.trim(urgent=True))
                    if not left or not again:
                        raise

    async def close(self) -> None:
        """Stop what is being built."""
        await self._flights.close()


def name_of(wanted: Mapping[str, str]) -> str:
    """Return the name of an environment: a hash of all that makes it what it is."""
    python = wanted.get("python") or f"{sys.version_info[0]}.{sys.version_info[1]}"
    content = [BUILDER, python, sysconfig.get_platform(), sys.implementation.name, wanted.get("requirements", "")]
    content += [wanted["setup"]] if wanted.get("setup") else []
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _complete(path: Path) -> bool:
    """Say whether an environment was built to its end, and its Python is still there."""
    return (path / ".complete").exists() and (path / "bin" / "python").exists()


class Killed(JobFailed):
    """A step of a build was ended by a signal."""


class Build:
    """One build, in place (environments cannot be moved): the file .complete is written when all of it is on disk."""

    def __init__(self, path: Path, log: Path, env: dict[str, str], lock: int) -> None:
        """Build `path`, writing to `log`, while the descriptor `lock` is held by us and by what we start."""
        # uv breaks its lines for a terminal of so many columns, and of an error we quote one line.
        self._path, self._log, self._env, self._lock = path, log, {**env, "COLUMNS": "1000"}, lock
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
            if wanted.get("setup"):
                await self._setup(wanted["setup"])
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

    async def _setup(self, text: str) -> None:
        """Run the spec's own steps, in the environment and a directory of its own, up to the first that fails."""
        directory = self._path / SETUP
        directory.mkdir()
        script = self._path.with_suffix(".sh")
        script.write_text(text)
        env = activated(self._env, self._path)
        await self._must("set the environment up", "/bin/sh", "-e", str(script), env=env, directory=directory)

    def _python(self, version: str | None) -> str:
        if not version or version in (f"{sys.version_info[0]}.{sys.version_info[1]}", str(sys.version_info[0])):
            return sys.executable
        found = shutil.which(f"python{version}", path=self._env.get("PATH"))
        if found is None:
            raise JobFailed(f"Python {version} is not on this machine (hint: install it, or uv, which fetches it)")
        return found

    async def _must(
        self, what: str, *command: str, env: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        code = await self._step(*command, env=env, directory=directory)
        if code:
            log = [line.rstrip() for line in self._log.read_text(errors="replace").splitlines()]
            lines = log[max((i for i, line in enumerate(log) if line.startswith("$ ")), default=0) :]
            kind, how = (Killed, f"killed by signal {-code}") if code < 0 else (JobFailed, f"exit code {code}")
            raise kind(f"could not {what} ({how}){_quoted(lines)}", log_tail=bounded(lines[-LINES:]))

    async def _step(self, *command: str, env: Mapping[str, str] | None = None, directory: Path | None = None) -> int:
        with self._log.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env if env is None else env,
                cwd=directory or self._path.parent,
                pass_fds=[self._lock],
                start_new_session=True,
            )
        try:
            return await asyncio.wait_for(process.wait(), max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            raise JobFailed(f"the environment was not built within {span(LIMIT)} ({command[0]})") from None
        finally:
            # Also what it left in the background: that would hold the lock.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, 9)
            await process.wait()


def activated(env: Mapping[str, str], venv: Path) -> dict[str, str]:
    """Return the variables `env` as they are in a virtual environment."""
    inside = {name: value for name, value in env.items() if name != "PYTHONHOME"}
    return {**inside, "VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin{os.pathsep}{env.get('PATH', os.defpath)}"}


def _quoted(lines: list[str]) -> str:
    """Return the line that tells most of what went wrong: the last that says error, or else the last."""
    said = [" ".join(line.strip(" │╰─▶×").split()) for line in lines if not line.startswith("$ ")]
    said = [line for line in said if line and not line.lower().startswith("hint:")]
    line = next((line for line in reversed(said) if line.lower().startswith("error")), said[-1] if said else "")
    return f": {line if len(line) <= QUOTED else line[: QUOTED - 1] + '…'}" if line else ""


def _names_any(requirements: Path) -> bool:
    lines = (line.strip() for line in requirements.read_text().splitlines())
    return any(line and not line.startswith("#") for line in lines)
