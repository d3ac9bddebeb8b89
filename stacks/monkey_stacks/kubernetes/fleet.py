"""The fleet of pilots that are pods of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from monkey.errors import CorruptObject
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.engines import kubernetes_settings
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.kubernetes.kubernetes_engine import KubernetesEngine, spell_name
from monkey_stacks.pilots.engine_marker import spell_marker_key
from monkey_stacks.pilots.pilot_fleet import PilotFleet


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
    engine = KubernetesEngine(name, provider, project, store_url)
    return PilotFleet(name, provider, project, store_url, opened, signers, engine)


def make_marked_engine(name: str, marker: Mapping[str, str], project: str, store_url: str) -> KubernetesEngine:
    """Return the engine of a fleet that a marker in the store tells of: enough to find and remove its pilots.

    Others write to the store, too. Raises CorruptObject for a marker that no `apply` writes.
    """
    raw = {"image": "none", **{key: marker.get(key, "") for key in ("context", "namespace")}}
    label, key = marker.get("label", ""), spell_marker_key(project, name)
    if mistakes := list(kubernetes_settings.find_kubernetes_mistakes(raw)):
        raise CorruptObject(key, mistakes[0].message)
    parts = (re.escape(spell_name(each, 16)) for each in (project, name))
    if not re.fullmatch(f"monkey-{'-'.join(parts)}-[0-9a-f]{{8}}", label):
        raise CorruptObject(key, f"expected the pilots of {name}, found {label!r}")
    provider = Provider("kubernetes", kubernetes=kubernetes_settings.parse_kubernetes(raw))
    return KubernetesEngine(name, provider, project, store_url, marked=label)
