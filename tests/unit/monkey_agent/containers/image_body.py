"""A machine whose jobs run in containers of a double of podman; `runtime_doubles` says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monkey_agent.containers.image_choice import ImageChoice
from monkey_agent.execution.runner import LocalRunner
from monkey_agent.ports import AttemptOutcome
from tests.unit.monkey_agent.body import Body
from tests.unit.monkey_agent.containers.runtime_doubles import DIGEST, IMAGE, Podman


class ImageBody(Body):
    """A machine whose one runtime is the double."""

    def __init__(self, place: Path, podman: Podman) -> None:
        super().__init__(place)
        self.podman = podman

    async def begin(self) -> None:
        """Have the runtime found on the PATH."""
        await self.runner.close()
        inherited, images = {"PATH": self.podman.path}, ImageChoice("podman")
        self.runner = LocalRunner(self.store, self.keys, self.state, self.cache, inherited, images=images)
        self.runner.renew(self.runner.clock.now() + 3600)

    async def run(self, command: str | list[str], **more: Any) -> AttemptOutcome:
        return await super().run(command, **{"image": DIGEST, "settings": IMAGE, **more})
