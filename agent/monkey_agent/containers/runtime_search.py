"""The search for this machine's container runtime: one that works is found once, a missing one is looked for again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from monkey.errors import JobFailed
from monkey.fleet.container_runtime import ContainerRuntime, find_runtime, probe_runtime
from monkey.spec.job.runtime_kind import RuntimeKind
from monkey_agent.containers.container_command import check_gpus
from monkey_agent.containers.container_sweep import ContainerSweeper
from monkey_agent.local_files import explain_os_error
from monkey_agent.unexpected_errors import UnexpectedErrors

#: Seconds after which a runtime is looked for again where there was none: a person may install one meanwhile.
_AGAIN_SECONDS = 60.0


class RuntimeSearch:
    """The runtime of this machine, or why there is none."""

    def __init__(
        self,
        env: Mapping[str, str],
        named: RuntimeKind | None,
        sweeper: ContainerSweeper,
        now: Callable[[], float] = time.monotonic,
        errors: UnexpectedErrors | None = None,
    ) -> None:
        """Look on the PATH of `env` for the one that is `named`, or the first that works; `sweeper` begins with it.

        `now` returns seconds. `errors`: the agent's log.
        """
        self._env, self._named, self._sweeper, self._now = env, named, sweeper, now
        self._errors = errors or UnexpectedErrors()
        self._found: ContainerRuntime | None = None
        self._finding = asyncio.Lock()
        #: Why there was none, and when that was found out.
        self._lack: str | None = None
        self._since = 0.0
        self._task: asyncio.Task[None] | None = None
        #: Called when `find_lack` has a new answer.
        self.on_answer: Callable[[], None] = lambda: None

    async def find(self) -> ContainerRuntime:
        """Return the runtime. Raises JobFailed where there is none, OSError."""
        async with self._finding:
            if self._found is None:
                if self._lack is not None and not self._is_old():
                    raise JobFailed(self._lack)
                try:
                    found = await asyncio.to_thread(find_runtime, self._env, self._named)
                except LookupError as exc:
                    raise JobFailed(self._remember(f"its image cannot be run: {exc}")) from exc
                await self._sweeper.begin(found)
                self._found = found
            return self._found

    async def probe(self, runtime: ContainerRuntime) -> str:
        """Return why a runtime that was found does not work any more; "" if it answers."""
        return await asyncio.to_thread(probe_runtime, runtime, self._env)

    def find_lack(self, *, gpus: bool) -> str | None:
        """Return why no image can be run here, in words; "" if one can; None while that is being found out.

        `gpus`: its jobs ask for some.
        """
        if self._found is not None:
            try:
                check_gpus(self._found, gpus=gpus)
            except JobFailed as exc:
                return exc.message
            return ""
        if self._is_old() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._ask())
        return self._lack

    async def _ask(self) -> None:
        try:
            await self.find()
        except JobFailed:
            pass  # it is known why
        except OSError as exc:
            self._remember(f"its image cannot be run: {explain_os_error(exc)}")
        except Exception as exc:  # without an answer, its sweeps would be held up for ever, and nobody told why
            self._remember(f"its image cannot be run: {self._errors.tell('the search for a runtime', exc)}")
        self.on_answer()

    def _is_old(self) -> bool:
        return self._lack is None or self._now() - self._since >= _AGAIN_SECONDS

    def _remember(self, lack: str) -> str:
        self._lack, self._since = lack, self._now()
        return lack

    async def close(self) -> None:
        """End the search."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
