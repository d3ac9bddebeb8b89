"""The fleet of pilots in a queue of Slurm."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from monkey.errors import CorruptObject
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.engines import slurm_settings
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.pilots.engine_marker import spell_marker_key
from monkey_stacks.pilots.pilot_fleet import PilotFleet
from monkey_stacks.slurm.slurm_engine import SlurmEngine


def make_fleet(
    name: str,
    provider: Provider,
    project: str,
    store_url: str,
    opened: Callable[[], Store | None],
    signers: Callable[[], EntrySigners],
) -> PilotFleet:
    """Return the fleet of a provider; `opened` returns the store at `store_url`, once there is one.

    `signers` returns those that agents are to obey.
    """
    engine = SlurmEngine(name, provider, project, store_url)
    return PilotFleet(name, provider, project, store_url, opened, signers, engine)


def make_marked_engine(name: str, marker: Mapping[str, str], project: str, store_url: str) -> SlurmEngine:
    """Return the engine of a fleet that a marker in the store tells of: enough to find and remove its pilots.

    Others write to the store, too. Raises CorruptObject for a marker that no `apply` writes.
    """
    raw = {"time": 3600, **{key: marker[key] for key in ("login", "workdir") if marker.get(key)}}
    label, key = marker.get("label", ""), spell_marker_key(project, name)
    if mistakes := list(slurm_settings.find_slurm_mistakes(raw)):
        raise CorruptObject(key, mistakes[0].message)
    if not re.fullmatch(rf"monkey-{re.escape(project[:40])}-{re.escape(name[:40])}-[0-9a-f]{{8}}", label):
        raise CorruptObject(key, f"expected the pilots of {name}, found {label!r}")
    provider = Provider("slurm", slurm=slurm_settings.parse_slurm(raw))
    return SlurmEngine(name, provider, project, store_url, marked=label)
