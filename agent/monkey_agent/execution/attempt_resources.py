"""The resources of an attempt on this machine, besides code: environment, datasets, secrets; held while it runs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from monkey.errors import FleetError, JobFailed, MachineFault
from monkey.fleet.secret_values import SecretValues
from monkey.processes.process_tree import BUILD, MARK
from monkey.protocol.sweeps.revision import Revision
from monkey.spec.job.image_reference import spell_pinned_image
from monkey.spec.sweep.datasets import format_dataset_variable
from monkey.store.store_port import Store
from monkey_agent.cache.cache import Cache, CacheUse
from monkey_agent.containers.container_environment import VENV, ContainerEnvironmentPool, describe_container_environment
from monkey_agent.containers.container_start import explain_missing_ids
from monkey_agent.containers.container_sweep import ContainerSweeper
from monkey_agent.containers.image_choice import ANY_IMAGE, ImageChoice
from monkey_agent.containers.image_pool import ImagePool
from monkey_agent.containers.job_container import JobContainer
from monkey_agent.containers.runtime_faults import RuntimeFaults, StartedKind
from monkey_agent.containers.runtime_search import RuntimeSearch
from monkey_agent.datasets.dataset_pool import DatasetPool
from monkey_agent.environments.environment_build import EnvironmentBuildFailed
from monkey_agent.environments.environment_pool import EnvironmentPool
from monkey_agent.logs.masking import LogMask
from monkey_agent.ports import Attempt
from monkey_agent.unexpected_errors import UnexpectedErrors


class AttemptResources:
    """The resources that one attempt holds; none is removed from the machine until it is given back."""

    __slots__ = ("_uses", "container", "datasets", "mask", "mounts", "secrets", "venv")

    def __init__(self) -> None:
        """Start without any."""
        self.venv: Path | None = None
        self.container: JobContainer | None = None
        #: Directories of datasets, for a container.
        self.mounts: list[Path] = []
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

    def __init__(
        self,
        cache: Cache,
        store: Store,
        state: Path,
        inherited: Mapping[str, str],
        secrets: SecretValues,
        images: ImageChoice = ANY_IMAGE,
        errors: UnexpectedErrors | None = None,
    ) -> None:
        """Keep resources in `cache`, with the variables `inherited` for builds, and mark builds as those of `state`.

        `images`: how jobs get theirs. `errors`: the agent's log.
        """
        building = {**inherited, MARK: f"{state}:{BUILD}"}  # so that our successor ends a build that outlives us
        self._environments, self._images = EnvironmentPool(cache, building), ImagePool(cache, building)
        self._sweeper = ContainerSweeper(state, inherited)
        self._inside = ContainerEnvironmentPool(cache, building, self._sweeper)
        self._datasets, self._secrets, self._choice = DatasetPool(store, cache), secrets, images
        self.runtimes = RuntimeSearch(inherited, images.runtime, self._sweeper, errors=errors)
        self._faults = RuntimeFaults()
        #: Sweep to the newest of its orders that an attempt here was claimed under.
        self._orders: dict[str, int] = {}

    def find_lack(self, revision: Revision) -> str | None:
        """Return why no job of a revision can run here now; "" if one can, None while that is being found out."""
        if revision.recipe.image in (None, self._choice.own):
            return ""
        lack = self.runtimes.find_lack(gpus=bool(revision.settings.resources.gpus))
        return self._faults.find_lack(_name_kind(revision)) if lack == "" else lack

    def find_rest(self, revision: Revision) -> str:
        """Return why the jobs of a revision that could run here rest for a moment; "" if they do not."""
        if revision.recipe.image in (None, self._choice.own):
            return ""
        return self._faults.find_rest(_name_kind(revision))

    async def hold(self, attempt: Attempt) -> AttemptResources | None:
        """Return the resources of an attempt, made or fetched if need be; None where it needs none.

        Raises JobFailed, MachineFault, CorruptObject, StoreError.
        """
        recipe = attempt.recipe
        if not (recipe.environment or recipe.datasets or attempt.settings.secrets or recipe.image):
            return None
        self._forget_failures(attempt)
        hold = AttemptResources()
        try:
            if attempt.settings.secrets:
                self._tell(hold, attempt.settings.secrets)
            if recipe.image and recipe.image != self._choice.own:
                hold.container = await self._hold_container(hold, attempt)
            if recipe.environment:
                await self._hold_environment(hold, attempt)
            for name, oid in recipe.datasets.items():
                path, use = await self._datasets.use(oid)
                hold.add(use)
                hold.mounts.append(path)
                hold.datasets[name] = self._datasets.named(path, attempt.settings.dataset_files.get(name, ""))
        except BaseException as exc:
            if isinstance(exc, EnvironmentBuildFailed):
                exc.mask = hold.mask
            hold.close()
            raise
        return hold

    def _forget_failures(self, attempt: Attempt) -> None:
        """Forget all failures if the attempt's sweep has a newer order: its author may have removed their cause."""
        before = self._orders.setdefault(attempt.sweep, attempt.ordered)
        if attempt.ordered <= before:
            return
        self._orders[attempt.sweep] = attempt.ordered
        for pool in (self._environments, self._inside, self._images, self._datasets):
            pool.failures.forget()

    async def _hold_environment(self, hold: AttemptResources, attempt: Attempt) -> None:
        recipe, settings = attempt.recipe, attempt.settings
        if hold.container is None and recipe.image:
            hint = "install them in the image by its Dockerfile"
            raise JobFailed(f"its requirements cannot be installed beside the image of a pod (hint: {hint})")
        if hold.container is None:
            use = self._environments.use(recipe.environment, attempt.withheld, settings.build_timeout)
        else:
            name = settings.image or ""
            wanted = describe_container_environment(hold.container, name, recipe.image or "", recipe.environment)
            use = self._inside.use(wanted, attempt.withheld, settings.build_timeout)
        try:
            path, held = await use
        except MachineFault as exc:
            raise self._note_fault(attempt, exc.message) from exc
        hold.venv = path if hold.container is None else path / VENV
        hold.add(held)

    async def _hold_container(self, hold: AttemptResources, attempt: Attempt) -> JobContainer:
        """Return the container of an attempt, whose image is pulled if need be. Raises JobFailed, MachineFault."""
        if not attempt.recipe.image or not attempt.settings.image:
            raise JobFailed("its sweep names no image for the digest of its recipe (hint: apply its spec again)")
        runtime, kind = await self.runtimes.find(), _name_kind(attempt)
        if why := self._faults.find_rest(kind) or self._faults.find_lack(kind):
            raise MachineFault(why)  # it was claimed before that was known
        image = spell_pinned_image(attempt.settings.image, attempt.recipe.image)
        count = self._faults.count
        try:
            pulled, use = await self._images.pull(runtime, image, attempt.withheld, attempt.settings.build_timeout)
        except JobFailed as exc:
            trouble = explain_missing_ids(runtime.kind, exc.log_tail) or await self.runtimes.probe(runtime)
            if not trouble:
                raise
            raise self._note_fault(attempt, f"{runtime.kind} could not pull it: {trouble}") from exc
        hold.add(use)
        name = f"monkey-{secrets.token_hex(8)}"
        return JobContainer(runtime, pulled, name, self._sweeper, self._faults, kind, count)

    def _note_fault(self, attempt: Attempt, why: str) -> MachineFault:
        self._faults.note(_name_kind(attempt), why)
        return MachineFault(f"its image cannot be run: {why}")

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
        await self.runtimes.close()
        await self._environments.close()
        await self._inside.close()
        self._sweeper.close()
        await self._images.close()
        await self._datasets.close()


def _name_kind(of: Attempt | Revision) -> StartedKind:
    return StartedKind(of.recipe.image or "", of.settings.resources)


def list_variables(datasets: Mapping[str, Path]) -> dict[str, str]:
    """Return the environment variables that have the paths of a job's datasets."""
    return {format_dataset_variable(name): str(path) for name, path in datasets.items()}
