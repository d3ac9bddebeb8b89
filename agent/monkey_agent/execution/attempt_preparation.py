"""The preparation of attempts: their recipe, the resources that they hold, and the code in their workspaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from monkey.errors import JobFailed
from monkey.protocol.layout import Keys
from monkey_agent.cache.code_cache import CodeCache, UnpackedSnapshot
from monkey_agent.environments.environment_build import EnvironmentBuildFailed
from monkey_agent.execution.attempt_resources import AttemptResources, JobNeeds
from monkey_agent.execution.recipes import PreparedRecipe, RecipePreparer
from monkey_agent.execution.workspace import Workspace
from monkey_agent.ports import Attempt

#: Sends the log of a build that failed to the store. Raises StoreError, OSError.
ShipBuildLog = Callable[[Attempt, EnvironmentBuildFailed], Awaitable[None]]


class AttemptPreparation:
    """The preparer of an agent's attempts."""

    def __init__(
        self, code: CodeCache, keys: Keys, preparer: RecipePreparer, needs: JobNeeds, ship_build_log: ShipBuildLog
    ) -> None:
        """Prepare with code from `code`, recipes by `preparer` and resources from `needs`."""
        self._code, self._keys, self._preparer, self._needs = code, keys, preparer, needs
        self._ship_build_log = ship_build_log

    async def fetch_code(self, attempt: Attempt) -> UnpackedSnapshot:
        """Return the code of an attempt. Raises CorruptObject, StoreError, OSError."""
        return await self._code.get(attempt.recipe.code, self._keys.code(attempt.recipe.code))

    async def prepare(self, attempt: Attempt) -> tuple[PreparedRecipe, AttemptResources | None]:
        """Return the part that all jobs of a recipe share, and the resources that this attempt holds.

        Raises JobFailed, CorruptObject, StoreError, OSError.
        """
        recipe = attempt.recipe
        prepared = self._preparer.known(recipe, attempt.withheld)
        code = prepared.code if prepared else await self.fetch_code(attempt)
        try:
            hold = await self._needs.hold(attempt)
        except EnvironmentBuildFailed as exc:
            await self._ship_build_log(attempt, exc)
            raise
        if prepared is None:
            try:
                prepared = self._preparer.prepare(recipe, code, hold, attempt.withheld)
            except BaseException:
                if hold is not None:
                    hold.close()
                raise
        return prepared, hold

    async def fill(self, code: UnpackedSnapshot, space: Workspace) -> None:
        """Copy the code into a workspace. Raises JobFailed, OSError."""
        try:
            if code.large:
                await asyncio.to_thread(code.copy_to, space.work)
            else:
                code.copy_to(space.work)
        except FileNotFoundError as exc:
            sha = Path(code.root).name
            self._code.forget(sha)
            self._preparer.forget(sha)
            raise JobFailed(f"the cache lost a file of the code snapshot ({exc.filename}); it is fetched anew") from exc
