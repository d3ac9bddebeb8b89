"""The resources of an attempt on this machine, besides code: environment, datasets, secrets; held while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from monkey.errors import FleetError, JobFailed
from monkey.fleet.secret_values import SecretValues
from monkey.spec.sweep.datasets import format_dataset_variable
from monkey_agent.cache.cache import CacheUse
from monkey_agent.datasets.dataset_pool import DatasetPool
from monkey_agent.environments.environment_build import EnvironmentBuildFailed
from monkey_agent.environments.environment_pool import EnvironmentPool
from monkey_agent.logs.masking import LogMask
from monkey_agent.ports import Attempt


class AttemptResources:
    """The resources that one attempt holds; none is removed from the machine until it is given back."""

    __slots__ = ("_uses", "datasets", "mask", "secrets", "venv")

    def __init__(self) -> None:
        """Start without any."""
        self.venv: Path | None = None
        self.datasets: dict[str, Path] = {}
        self.secrets: dict[str, str] = {}
        self.mask: LogMask | None = None
        self._uses: list[CacheUse] = []

    def add(self, use: CacheUse) -> None:
        """Hold the right to use a cache entry, too."""
        self._uses.append(use)

    def close(self) -> None:
        """Give all resources back; may be called again."""
        while self._uses:
            self._uses.pop().close()


class JobNeeds:
    """The provider of the resources that recipes need."""

    def __init__(self, environments: EnvironmentPool, datasets: DatasetPool, secrets: SecretValues) -> None:
        """Take resources from these pools and secrets."""
        self._environments, self._datasets, self._secrets = environments, datasets, secrets

    async def hold(self, attempt: Attempt) -> AttemptResources | None:
        """Return the resources of an attempt, made or fetched if need be; None where it needs none.

        Raises JobFailed, CorruptObject, StoreError.
        """
        recipe, secrets = attempt.recipe, attempt.settings.secrets
        if not (recipe.environment or recipe.datasets or secrets):
            return None
        hold = AttemptResources()
        try:
            if secrets:
                self._tell(hold, secrets)
            if recipe.environment:
                limit = attempt.settings.build_timeout
                hold.venv, use = await self._environments.use(recipe.environment, attempt.withheld, limit)
                hold.add(use)
            for name, oid in recipe.datasets.items():
                path, use = await self._datasets.use(oid)
                hold.add(use)
                hold.datasets[name] = self._datasets.named(path, attempt.settings.dataset_files.get(name, ""))
        except BaseException as exc:
            if isinstance(exc, EnvironmentBuildFailed):
                exc.mask = hold.mask
            hold.close()
            raise
        return hold

    def secrets(self, attempt: Attempt) -> AttemptResources | None:
        """Return the secrets of an attempt that has ended, to mask them. Raises JobFailed where they are unknown."""
        hold = AttemptResources()
        if attempt.settings.secrets:
            self._tell(hold, attempt.settings.secrets)
        return hold if attempt.settings.secrets else None

    async def look(self, attempt: Attempt) -> None:
        """Check, right before an attempt begins, that its datasets are not altered. Raises as `hold` does."""
        for oid in attempt.recipe.datasets.values():
            await self._datasets.look(oid)

    def _tell(self, hold: AttemptResources, secrets: list[str]) -> None:
        try:
            hold.secrets = self._secrets.get(secrets)
        except FleetError as exc:
            raise JobFailed(str(exc)) from exc
        hold.mask = LogMask(hold.secrets.values())

    async def close(self) -> None:
        """Stop all builds of environments and fetches of datasets."""
        await self._environments.close()
        await self._datasets.close()


def list_variables(datasets: Mapping[str, Path]) -> dict[str, str]:
    """Return the environment variables that have the paths of a job's datasets."""
    return {format_dataset_variable(name): str(path) for name, path in datasets.items()}
