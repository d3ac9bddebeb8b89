"""Which runtime runs the images of a sweep, provider by provider: a plan and `monkey doctor` say it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from monkey.apply.world.fleets import open_fleets
from monkey.errors import FleetError, MonkeyError
from monkey.fleet.container_runtime import find_runtime
from monkey.fleet.fleet_port import RuntimeCheckable
from monkey.plan.change import Plan, SweepPlan
from monkey.signing.entry_signers import load_user_signers
from monkey.spec.job.runtime_kind import RUNTIME_KINDS
from monkey.spec.project.provider import Provider

if TYPE_CHECKING:
    from monkey.spec.project.project import Project
    from monkey.spec.sweep.models import Spec

_RUNTIME_HINT = "see docs/images.md for what each runtime needs"


def add_image_notes(plan: Plan, providers: Mapping[str, Provider]) -> Plan:
    """Return the plan with a note for each sweep that has an image and jobs to run. Raises FleetError.

    Each provider is asked once. That may take half a minute per runtime that hangs: call it in a thread.
    """
    found: dict[str, str | FleetError] = {}
    return replace(plan, sweeps=tuple(_add_note(sweep, providers, found) for sweep in plan.sweeps))


def _add_note(sweep: SweepPlan, providers: Mapping[str, Provider], found: dict[str, str | FleetError]) -> SweepPlan:
    settings = sweep.desired.settings
    if settings.image is None or not sweep.jobs.unfinished or sweep.refusal is not None:
        return sweep
    notes = []
    _check_requirements(sweep, providers)
    for name in settings.providers:
        if name not in found:
            try:
                found[name] = describe_runtime(name, providers[name])
            except FleetError as exc:
                if providers[name].type != "local" or providers[name].runtime is not None:
                    raise
                found[name] = exc
        told = found[name]
        notes.append(f"warning: {told.message}" if isinstance(told, FleetError) else f"image: {told}")
    return replace(sweep, notes=(*sweep.notes, *notes))


def _check_requirements(sweep: SweepPlan, providers: Mapping[str, Provider]) -> None:
    """Raise FleetError where requirements would have to be installed beside an image, in a pod."""
    pods = [name for name in sweep.desired.settings.providers if providers[name].type == "kubernetes"]
    if pods and sweep.desired.recipe.environment:
        raise FleetError(
            f"provider {pods[0]!r} cannot install the requirements of sweep {sweep.name!r} beside its image: "
            "no runtime works in a pod",
            hint="install them in the image by its Dockerfile, and leave them out of the spec's `environment:`",
        )


def describe_runtime(name: str, provider: Provider) -> str:
    """Say which runtime runs images on the provider `name`.

    This machine alone is asked: hosts are asked as the plan looks at them, and nodes and rented machines by their
    agents. Raises FleetError.
    """
    if provider.type == "kubernetes":
        return f"{name} runs it as the image of pods; it needs a Python 3.11 to 3.14 and glibc"
    if provider.cloud is not None and provider.cloud.image is None:
        raise FleetError(
            f"provider {name!r} cannot run the image of a job: its machines are made from Debian's image, "
            "which has no container runtime",
            hint="set `image:` of the provider to one that has podman or docker",
        )
    if provider.type == "local":
        try:
            return f"{name} runs it by {find_runtime(os.environ, provider.runtime).kind}"
        except LookupError as exc:
            raise FleetError(f"provider {name!r}: its image cannot be run: {exc}") from exc
    where = "node" if provider.type == "slurm" else "machine"
    if provider.runtime is not None:
        return f"{name} runs it by {provider.runtime}, as `runtime:` says"
    return f"{name} runs it by the first of {', '.join(RUNTIME_KINDS)} that works on the {where}"


async def check_runtimes(specs: list[Spec], project: Project) -> AsyncIterator[tuple[str, str]]:
    """Check providers that run images, or name a runtime; yield what was found, and a hint where it is wrong.

    This machine and the SSH hosts are asked.
    """
    used = {name for spec in specs if spec.environment.image for name in spec.fleets}
    fleets = open_fleets(project, project.store, lambda: None, load_user_signers)
    for name in [*project.providers, *sorted(used - {*project.providers})]:
        provider = project.providers[name]
        if provider.type == "kubernetes" or (name not in used and provider.runtime is None):
            continue
        try:
            told = await asyncio.to_thread(describe_runtime, name, provider)
            yield told.replace("runs it", "runs images", 1), ""
            if isinstance(fleet := fleets[name], RuntimeCheckable):
                for text, hint in await fleet.check_runtimes():
                    yield text, hint or _RUNTIME_HINT
        except MonkeyError as exc:
            yield exc.message, exc.hint or _RUNTIME_HINT
