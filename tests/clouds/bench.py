"""An engine of its own for each question, on one store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from monkey.store.open import open_store
from monkey_stacks.aws import requirements as aws_requirements
from monkey_stacks.engine.engine_outcome import EngineOutcome
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from monkey_stacks.gcp import requirements as gcp_requirements
from monkey_stacks.state.state_rules import StateRules
from tests.clouds.aws import firewall, machines, network, roles, routes, storage
from tests.clouds.gcp.kinds import KINDS

T = TypeVar("T")

_KINDS = [*(kind for module in (network, routes, firewall, roles, machines, storage) for kind in module.KINDS), *KINDS]
#: What doubles know may be in the state.
RULES = StateRules(
    types={kind.token for kind in _KINDS},
    settings={"aws": aws_requirements.STATE_RULES.settings["aws"], "gcp": gcp_requirements.STATE_RULES.settings["gcp"]},
)


class Bench:
    """Asks the engine."""

    def __init__(self, base: Path) -> None:
        """Keep the store below `base`."""
        self.url = str(base / "store")

    def run(self, ask: Callable[[PulumiEngine], Awaitable[T]]) -> T:
        async def opened() -> T:
            store = await open_store(self.url, begin=True)
            try:
                return await ask(PulumiEngine(store, "shop", "rig", RULES))
            finally:
                await store.close()

        return asyncio.run(opened())

    def up(self, program: Callable[[], None], *, refresh: bool = False) -> EngineOutcome:
        return self.run(lambda engine: engine.up(program, refresh=refresh))
