"""The runner of attempts on this machine: workspace, process, and all that an attempt leaves in the store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.errors import FleetError, JobFailed
from monkey.fleet.fleet_port import keep_silent
from monkey.fleet.secret_values import WITHHELD, SecretValues
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart
from monkey.protocol.record.shipment import Piece
from monkey.spec.command.command import CommandError
from monkey.store.store_port import Store
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.code_cache import CodeCache
from monkey_agent.checkpoints.checkpoint_saver import CheckpointSaver, CheckpointSavers, ship_nothing
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.containers.image_choice import ANY_IMAGE, ImageChoice
from monkey_agent.environments.environment_build import EnvironmentBuildFailed
from monkey_agent.environments.job_import_path import install_client
from monkey_agent.execution.attempt_preparation import AttemptPreparation
from monkey_agent.execution.attempt_resources import JobNeeds
from monkey_agent.execution.build_log import ship_build_log
from monkey_agent.execution.container_launch import make_container_command
from monkey_agent.execution.launched_process import LaunchedProcess
from monkey_agent.execution.recipes import PreparedRecipe, RecipePreparer, select_outputs
from monkey_agent.execution.running_attempt import RunningAttempt
from monkey_agent.execution.unrecorded_attempts import Exited, UnrecordedAttempts, read_own_exits
from monkey_agent.execution.workspace import (
    Workspace,
    Workspaces,
    make_job_variables,
    name_temporary_places,
    name_tracked_run,
)
from monkey_agent.local_files import explain_os_error
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.logs.masking import LogMask
from monkey_agent.machine import MachineClock
from monkey_agent.ports import Attempt, SlotGrant
from monkey_agent.supervisor.memory_watch import MEMORY_TOLD
from monkey_agent.supervisor.shared_state import TIMED_OUT
from monkey_agent.supervisor.supervisor_client import SupervisorClient
from monkey_agent.telemetry.abandoned_points import AbandonedPoints
from monkey_agent.telemetry.sampler import Sampler
from monkey_agent.telemetry.spooling import Telemetry
from monkey_agent.unexpected_errors import UnexpectedErrors
from monkey_agent.uploads.abandoned_attempts import LIMIT_FILE, SECRETS, AbandonedAttempts
from monkey_agent.uploads.attempt_history import load_history, open_history

_TICK_SECONDS = 1.0


class LocalRunner:
    """The real `Runner`: it does all that an agent does to its machine."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        state: Path,
        cache: Path,
        env: Mapping[str, str] | None = None,
        gpus: bool = False,
        cache_size: int | None = None,
        machine: str = "",
        images: ImageChoice = ANY_IMAGE,
        errors: UnexpectedErrors | None = None,
        on_os_error: Callable[[OSError], None] = keep_silent,
    ) -> None:
        """Run below the state directory `state`, whose lock is held and which holds no leftovers.

        `cache`: the user's, shared with other agents. `env`: the environment that jobs inherit, ours by default.
        `gpus`: the machine has some, so a job sees only its own. `cache_size`: bytes that the cache may keep of unused
        entries. `machine`: its name, for metrics. `images`: see `JobNeeds`. `errors`: the agent's log. `on_os_error`
        receives each error that keeps a job from being prepared. Raises OSError where `state` cannot be written.
        """
        given = os.environ if env is None else env
        withheld = set(given.get(WITHHELD, "").split(","))
        inherited = {k: v for k, v in given.items() if not k.startswith("MONKEY_") and k not in withheld}
        self.store, self._keys, self._gpus, self._on_os_error = store, keys, gpus, on_os_error
        self.clock, self.errors = MachineClock(), errors or UnexpectedErrors()
        #: Largest number of seconds that a job may take to end, whatever its sweep says.
        self.most_grace = float("inf")
        secrets, exits = SecretValues(env), read_own_exits(state)
        self.left, self._abandoned = UnrecordedAttempts(state, exits), AbandonedAttempts(state, exits, secrets.get)
        self.telemetry = Telemetry(state, machine, secrets)
        self.spaces, self.checkpoints = Workspaces(state), CheckpointSavers(store, keys, LocalCheckpoints(state))
        self._launcher, self._cache = SupervisorClient(state, self.clock), Cache(cache, cache_size)
        self._code = CodeCache(store, self._cache)
        self.needs = JobNeeds(self._cache, store, state, inherited, secrets, images, self.errors)
        preparer = RecipePreparer(self._launcher, inherited, lambda: str(install_client(cache)), store, keys)
        self._preparation = AttemptPreparation(self._code, keys, preparer, self.needs, self._ship_build_log)
        self._deadline, self._running, self._unmerged = 0.0, set[RunningAttempt](), set[RunningAttempt]()
        self.ship: Callable[[], Awaitable[None]] = ship_nothing
        self.sampler = Sampler(self._launcher, self._running, state)
        self._ticker: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._cleaner: asyncio.Future[None] | None = None
        self._chores: set[asyncio.Task[None]] = set()

    async def start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> RunningAttempt | None:
        """See `Runner.start`. Raises FleetError, too: without a supervisor, no job can be started."""
        try:
            exited = self._exited(attempt)
            if exited:
                return await self._go_on(attempt, exited)
            await self._abandoned.upload(self.store, self._keys, attempt.job)  # before its checkpoint is used
            prepared, hold = await self._preparation.prepare(attempt)
            try:
                rendered = prepared.command(attempt.parameters).render(attempt.parameters)
                space = self.spaces.take(attempt.job, attempt.k)
            except BaseException:
                if hold is not None:
                    hold.close()
                raise
            space.hold = hold
            try:
                await self._preparation.fill(prepared.code, space)
                checkpoint = await self.checkpoints.restore(attempt, space.checkpoint)
                await self._continue(attempt, checkpoint.history, space)
                ours, known = name_tracked_run(attempt), prepared.variables
                if prepared.inside is None and "TMPDIR" not in attempt.recipe.env:
                    ours |= name_temporary_places(space)
                    known -= {"TMPDIR"}  # inherited
                defaults = {name: value for name, value in ours.items() if name not in known}
                variables = (
                    defaults | rendered.env | make_job_variables(attempt, space) | (hold.secrets if hold else {})
                )
                given = await turn()
                if not self._launcher.up:
                    await self._launcher.start()
                    given = await turn()
                if given and attempt.recipe.datasets:
                    await self.needs.look(attempt)  # only now: who had the slot before may have altered them
                    given = await turn()
                running = self._launch(attempt, prepared, rendered.argv, variables, space, checkpoint, given)
            except BaseException:
                space.spoilt = True  # by a thread that nobody waits for any more
                self.give(space)
                raise
        except OSError as exc:
            self._on_os_error(exc)
            raise JobFailed(f"the job could not be prepared: {explain_os_error(exc)}") from exc
        except CommandError as exc:
            hint = f" (hint: {exc.hint})" if exc.hint else ""
            raise JobFailed(f"its command cannot be run: {exc.message}{hint}") from exc
        if running is None:
            self.give(space)
        return running

    async def _continue(self, attempt: Attempt, parts: tuple[HistoryPart, ...], space: Workspace) -> None:
        """Open the history that the attempt continues, and send InfluxDB what it abandons."""
        space.history = await open_history(self.store, self._keys, attempt, parts, space.root)
        space.spoilt = bool(attempt.earlier)  # its files are of no other attempt
        if attempt.earlier and (influx := attempt.settings.influx) is not None:
            send = partial(self.telemetry.add, influx)
            self.spawn(AbandonedPoints(send, self.store, self._keys, attempt, space.root).mark(space.history))

    def _exited(self, attempt: Attempt) -> Exited | None:
        """Return the exit of the job in an earlier life of the agent, unless another may have run it since."""
        k, exited = self.left.found.get(attempt.job, (0, None))
        if exited and not attempt.ours_since <= k < attempt.k:
            self.give(self.left.workspace(attempt.job))
            return None
        return exited

    async def _go_on(self, attempt: Attempt, exited: Exited) -> RunningAttempt:
        """Return an attempt that exited in an earlier life of the agent: only its record is missing."""
        recipe, prefix = attempt.recipe, self._keys.out(attempt.job, attempt.k)
        snapshot = await self._preparation.fetch_code(attempt)
        globs, space = select_outputs(recipe), self.left.workspace(attempt.job)
        space.hold = self.needs.secrets(attempt)
        log = self._open_log(attempt, space.log, space.mask)
        process = self._launcher.exited(space.name, exited)
        checkpoint = CheckpointSaver(self.checkpoints, attempt, space.checkpoint)
        space.history = load_history(attempt, space.root)
        await checkpoint.resume(space.history.parts if space.history else ())
        launched = LaunchedProcess(process, space, log, checkpoint, snapshot, globs, prefix)
        running = RunningAttempt(self, attempt, launched)
        if exited[0] == TIMED_OUT:
            running.timed_out()
        return running

    async def _ship_build_log(self, attempt: Attempt, failed: EnvironmentBuildFailed) -> None:
        """Send the log of the build that failed to the store. Raises StoreError, OSError."""
        space = self.spaces.take(attempt.job, attempt.k)
        try:
            await ship_build_log(failed, attempt, space, partial(self._open_log, attempt))
        finally:
            self.give(space)

    def _launch(
        self,
        attempt: Attempt,
        prepared: PreparedRecipe,
        argv: list[str],
        env: dict[str, str],
        space: Workspace,
        checkpoint: CheckpointSaver,
        turn: SlotGrant | None,
    ) -> RunningAttempt | None:
        if turn is None or self.clock.now() >= self._deadline:
            return None
        env["MONKEY_SLOT"] = str(turn.slot.number)
        if self._gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(turn.slot.gpus)
        if prepared.inside is not None:
            argv, env = make_container_command(attempt, space, argv, {**prepared.inside, **env})
        prefix = self._keys.out(attempt.job, attempt.k)
        log, memory = self._open_log(attempt, space.log, space.mask), attempt.settings.resources.memory
        for note in checkpoint.notes:
            log.note(note)
        after = turn.after.process if isinstance(turn.after, RunningAttempt) else None
        for name, value in ((SECRETS, attempt.settings.secrets), (LIMIT_FILE, attempt.settings.log_limit)):
            if value:
                write_atomically(Path(space.root, name), json.dumps(value))
                space.spoilt = True  # the file is of no other attempt
        self.telemetry.begin(attempt, space.name, space.metrics)
        held = memory, attempt.settings.grace
        process = self._launcher.launch(space.name, argv, prepared.base, env, space.work, space.log, after, *held)
        made = prepared.code, prepared.globs, prefix, argv[0], turn.slot.gpus, prepared.facts
        launched = LaunchedProcess(process, space, log, checkpoint, *made)
        running = RunningAttempt(self, attempt, launched)
        self._running.add(running)
        self._unmerged.add(running)
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._tick())
        return running

    def renew(self, deadline: float) -> None:
        """See `Runner.renew`. The first call starts the supervisor, so that the first job need not wait for it."""
        self._deadline = deadline
        self._launcher.renew(deadline)
        self._warming = self._warming or asyncio.get_running_loop().create_task(self._warm())

    async def _warm(self) -> None:
        self._launcher.on_memory = lambda how: self.errors.once(MEMORY_TOLD[how])
        self.spawn(self.checkpoints.tidy())
        self.spawn(self._abandoned.upload_all(self.store, self._keys))
        with contextlib.suppress(FleetError):
            await self._launcher.start()  # the first job meets the error again

    async def _tick(self) -> None:
        """Do the work of every second for the running jobs, until none runs."""
        while self._running:
            await asyncio.sleep(_TICK_SECONDS)
            for running in self._running:
                with self.errors.alone(f"job {running.job}"):
                    running.tick()

    def take_unshipped(self, most: int) -> Iterator[Piece]:
        """See `Runner.take_unshipped`."""
        files = [(running.job, running.unshipped) for running in self._unmerged]
        for job, take in (*((job, of.take_metrics) for job, of in files), *((job, of.take_log) for job, of in files)):
            with self.errors.alone(f"what job {job} wrote"):
                for piece in take(most):
                    most -= len(piece.data)
                    yield piece

    def merged(self, running: RunningAttempt) -> None:
        """Note that the files of the attempt are whole in the store."""
        self._unmerged.discard(running)

    def ended(self, running: RunningAttempt) -> None:
        """Note that the attempt's processes are gone."""
        self._running.discard(running)

    def give(self, space: Workspace) -> None:
        """Take a workspace back; remove its files in another thread, as that must delay no job."""
        self.left.forget(space)
        self.telemetry.end(space.name, space.metrics)
        self.spaces.give(space)
        if self.spaces.has_trash and (self._cleaner is None or self._cleaner.done()):
            self._cleaner = asyncio.get_running_loop().run_in_executor(None, self.spaces.empty_trash)

    def limit_grace(self, seconds: float) -> None:
        """Give jobs at most so many seconds to end, from now on: the cloud is about to take the machine back."""
        self.most_grace = seconds

    def spawn(self, chore: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background; it is finished before the runner closes."""
        task = asyncio.get_running_loop().create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _open_log(self, attempt: Attempt, path: str, mask: LogMask | None) -> AttemptLog:
        prefix = f"{self._keys.out(attempt.job, attempt.k)}log/"
        return AttemptLog(self.store, prefix, path, mask, attempt.settings.log_limit)

    async def close(self) -> None:
        """See `Runner.close`."""
        if self._ticker is not None:
            self._ticker.cancel()
        if self._warming is not None:
            await self._warming
        await asyncio.gather(*self._chores)
        self.sampler.close()
        await self.needs.close()
        await self._code.close()
        await self._cache.settle()
        await self._launcher.close()
        await asyncio.gather(*filter(None, [self._cleaner]))
        self.spaces.close_sockets()
        await asyncio.to_thread(self.spaces.close)
