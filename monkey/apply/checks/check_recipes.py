"""What a check runs: the recipe of the recorded job, in an environment of the recorded packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from monkey.spec.job.expires import Expiry
from monkey.spec.job.recipe import Recipe, SweepSettings

#: The variable that makes the jobs of a check jobs of their own.
_CHECK_VARIABLE = "_MONKEY_CHECK"
#: The priority of checks: below all that a spec may ask for (-1000 to 1000).
CHECK_PRIORITY = -10_000
#: Seconds after which a check on rented machines expires, where its sweep does not say how long after an apply.
_EXPIRES_SECONDS = 86_400.0
#: A line of a lock that can hold a version: anything else is left out, as machines wrote it.
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")


def make_check_recipe(recipe: Recipe, name: str, lock: Sequence[str] | None) -> Recipe:
    """Return the recipe for the check `name`: its jobs have ids of their own, so the record stays as it is.

    `lock`: the packages that the recorded environment had, as far as they are known. They become constraints, never
    requirements: a person who may only write to the store cannot have another package installed by them. None: resolve
    the requirements again, in an environment that no machine has yet.
    """
    environment = dict(recipe.environment)
    requirements = environment.get("requirements", "")
    lines = {line.strip() for line in requirements.splitlines()}
    # With hashes, each version is in the requirements already.
    pins = [] if "--hash" in requirements else [line for line in lock or () if _PIN.fullmatch(line)]
    if requirements and lock is None:
        environment["constraints"] = f"# {name}\n"
    elif requirements and set(pins) - lines:
        environment["constraints"] = "".join(f"{line}\n" for line in pins)
    return replace(recipe, environment=environment, env={**recipe.env, _CHECK_VARIABLE: name})


def make_check_settings(settings: SweepSettings, providers: Sequence[str], *, rented: bool) -> SweepSettings:
    """Return the settings of a check on these providers: no dashboard and no person hears of it.

    A condition that ended the sweep ends no check.
    """
    expires = settings.expires if settings.expires is not None and settings.expires.after else None
    if expires is None and rented:
        expires = Expiry(after=_EXPIRES_SECONDS)
    return replace(
        settings,
        priority=CHECK_PRIORITY,
        providers=list(providers),
        fail_fast=False,
        influx=None,
        notify=[],
        stop_when=[rule for rule in settings.stop_when if not rule.sweep],
        expires=expires,
    )
