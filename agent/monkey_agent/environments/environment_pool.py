"""Python environments of jobs: one for each content, built once on this machine however many ask, and then shared."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import sysconfig
from collections.abc import Callable, Mapping, Set
from pathlib import Path

from monkey.errors import JobFailed
from monkey.spec.job.recipe import BUILD_TIMEOUT_SECONDS
from monkey_agent.cache.cache import Cache, CacheUse
from monkey_agent.cache.recent_failures import REMEMBERED_SECONDS, RecentFailures, copy_error
from monkey_agent.cache.single_flight import SingleFlight
from monkey_agent.environments.environment_build import BUILDER, BuildKilled, EnvironmentBuild
from monkey_agent.local_files import explain_os_error

#: Times that a build is started which somebody kills: that says nothing of it, unless it is always so (out of memory?).
_MAX_TRIES = 3


class EnvironmentPool:
    """The environments in a cache that all agents of the user share."""

    #: What makes an entry; and how the reason begins where an error of the machine prevents it.
    build: Callable[[Cache, Path, Mapping[str, str], int, float], EnvironmentBuild] = EnvironmentBuild
    failure = "the environment cannot be built"

    def __init__(self, cache: Cache, env: Mapping[str, str], remembered: float = REMEMBERED_SECONDS) -> None:
        """Build into `cache`, with the variables `env`; after a failure, rest `remembered` seconds."""
        self._cache, self._env = cache, dict(env)
        self._directory = cache.root / "environments"
        self._flights: SingleFlight[None] = SingleFlight()
        self.failures = RecentFailures(remembered)

    async def use(
        self, wanted: Mapping[str, str], withheld: Set[str] = frozenset(), limit: float = BUILD_TIMEOUT_SECONDS
    ) -> tuple[Path, CacheUse]:
        """Return the environment for {"requirements", "python", "setup", "constraints"}, and the right to use it.

        It is built if need be.

        `withheld`: variables that the build is not to see. `limit`: seconds that it may take; who joins one that is
        under way has the limit of who began it. When all who wait are cancelled, it is given up, and nothing of it is
        left. Raises JobFailed with the end of its log (`log_tail`), BuildFailed where there is a whole log.
        """
        name = self.name_entry(wanted)
        path = self._directory / name
        try:
            use = await self._cache.use(path)
        except OSError as exc:
            raise JobFailed(f"{self.failure}: {explain_os_error(exc)}") from exc
        try:
            if not self.is_complete(path):
                await self._flights.join(name, lambda: self._obtain(name, wanted, withheld, limit))
        except BaseException as exc:
            use.close()
            if isinstance(exc, JobFailed):
                raise copy_error(exc) from exc  # those who waited together got one
            raise
        return path, use

    @staticmethod
    def name_entry(wanted: Mapping[str, str]) -> str:
        """Return the name of the entry for what is wanted."""
        return name_environment(wanted)

    @staticmethod
    def is_complete(path: Path) -> bool:
        """Say whether an entry was made to its end, and is still there."""
        return _complete(path)

    @staticmethod
    def measure_elsewhere(path: Path) -> int:
        """Return the bytes that an entry takes outside of the cache's directory."""
        return 0

    async def _obtain(self, name: str, wanted: Mapping[str, str], withheld: Set[str], limit: float) -> None:
        tried = f"{name} {limit}"  # more time is another try
        self.failures.check(tried)
        try:
            await self._build_once(self._directory / name, wanted, withheld, limit)
        except OSError as exc:
            failed = JobFailed(f"{self.failure}: {explain_os_error(exc)}")
            raise self.failures.remember(tried, failed) from exc
        except JobFailed as exc:
            raise self.failures.remember(tried, exc) from exc
        finally:
            self._cache.trim_soon()

    async def _build_once(self, path: Path, wanted: Mapping[str, str], withheld: Set[str], limit: float) -> None:
        env = {name: value for name, value in self._env.items() if name not in withheld}
        # Builders on this machine have the lock, too: while one of a dead agent still runs, no other builds beside it.
        async with self._cache.making(path, within=limit) as lock:
            for left in reversed(range(0 if self.is_complete(path) else _MAX_TRIES)):
                try:
                    await self.build(self._cache, path, env, lock, limit).run(wanted)
                    await asyncio.to_thread(self._cache.note, path, self.measure_elsewhere(path))
                    break
                except (JobFailed, OSError) as exc:
                    again = isinstance(exc, BuildKilled) or (
                        self._cache.is_full() and await self._cache.trim(urgent=True)
                    )
                    if not left or not again:
                        raise

    async def close(self) -> None:
        """Stop what is being built."""
        await self._flights.close()


def name_environment(wanted: Mapping[str, str]) -> str:
    """Return the name of an environment: a hash of all that makes it what it is."""
    python = wanted.get("python") or f"{sys.version_info[0]}.{sys.version_info[1]}"
    content = [BUILDER, python, sysconfig.get_platform(), sys.implementation.name, wanted.get("requirements", "")]
    content += [wanted["setup"]] if wanted.get("setup") else []
    content += [{"constraints": wanted["constraints"]}] if wanted.get("constraints") else []
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _complete(path: Path) -> bool:
    """Say whether an environment was built to its end, and its Python is still there."""
    return (path / ".complete").exists() and (path / "bin" / "python").exists()
