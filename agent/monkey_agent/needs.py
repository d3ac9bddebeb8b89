"""What a recipe needs of this machine besides its code: an environment and datasets, held while an attempt runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from monkey.spec.datasets import variable
from monkey.spec.recipe import Recipe
from monkey_agent.cache import Use
from monkey_agent.datasets import Datasets
from monkey_agent.environment import Environments


class Hold:
    """What one attempt uses of the cache; nothing of it is removed until it is given back."""

    __slots__ = ("_uses", "datasets", "venv")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.venv: Path | None = None
        self.datasets: dict[str, Path] = {}
        self._uses: list[Use] = []

    def add(self, use: Use) -> None:
        """Hold this, too."""
        self._uses.append(use)

    def close(self) -> None:
        """Give everything back; may be called again."""
        while self._uses:
            self._uses.pop().close()


class Needs:
    """Provides what recipes need."""

    def __init__(self, environments: Environments, datasets: Datasets) -> None:
        """Take them from these."""
        self._environments, self._datasets = environments, datasets

    async def hold(self, recipe: Recipe) -> Hold | None:
        """Return what a recipe needs, made or fetched if need be; None where it needs nothing.

        Raises JobFailed, Corrupt, StoreError.
        """
        if not recipe.environment and not recipe.datasets:
            return None
        hold = Hold()
        try:
            if recipe.environment:
                hold.venv, use = await self._environments.use(recipe.environment)
                hold.add(use)
            for name, oid in recipe.datasets.items():
                hold.datasets[name], use = await self._datasets.use(oid)
                hold.add(use)
        except BaseException:
            hold.close()
            raise
        return hold

    async def close(self) -> None:
        """Stop what is being made or fetched."""
        await self._environments.close()
        await self._datasets.close()


def variables(datasets: Mapping[str, Path]) -> dict[str, str]:
    """Return the variables in which a job finds its datasets."""
    return {variable(name): str(path) for name, path in datasets.items()}
