"""Pulumi's state, read and repaired without Pulumi: the resources, and the operations that were interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from monkey.errors import KeyMissing
from monkey_stacks.engine.engine_outcome import Identify, StateResource
from monkey_stacks.engine.state_bucket import STACKS, StateBucket
from monkey_stacks.state.state_judge import (
    LEFT,
    PROVIDER,
    PROVIDERS,
    PULUMI,
    StatePlace,
    judge_state,
    parse_urn_name,
    read_resource,
    strip_provider,
)
from monkey_stacks.state.state_rules import StateRules

#: The error that makes the engine update a resource that seems unchanged.
INTERRUPTED = "interrupted"


@dataclass
class RepairedState:
    """The result of a repair of interrupted operations."""

    changed: bool
    #: URNs of the resources to delete before any other step.
    leftovers: list[str] = field(default_factory=list)
    #: Names of resources that may exist, and whose id is unknown.
    forgotten: list[str] = field(default_factory=list)


class StackState:
    """The state of one stack, as it was judged."""

    def __init__(self, key: str, body: dict[str, Any]) -> None:
        """Take the judged state `body` that is under `key`."""
        self.key, self._body = key, body

    @property
    def _latest(self) -> dict[str, Any]:
        return self._body["checkpoint"].get("latest") or {}

    @property
    def resources(self) -> tuple[StateResource, ...]:
        """Return the resources that programs made, without Pulumi's own; one with a pending operation comes once."""
        pending = {op["resource"]["urn"]: op["resource"] for op in self._pending}
        known = {raw["urn"]: raw for raw in self._latest.get("resources") or []}
        return tuple(
            read_resource(raw, pending=urn in pending) for urn, raw in {**pending, **known}.items() if _is_ours(raw)
        )

    @property
    def entries(self) -> tuple[StateResource, ...]:
        """Return all that Pulumi could change: several entries may have the same URN, and one of them is to go."""
        raws = [*(self._latest.get("resources") or []), *(op["resource"] for op in self._pending)]
        return tuple(read_resource(raw) for raw in raws if _is_ours(raw))

    @property
    def _pending(self) -> list[dict[str, Any]]:
        return self._latest.get("pending_operations") or []

    def encode(self) -> bytes:
        """Return the bytes to store."""
        return json.dumps(self._body, indent=4).encode()

    def mend(self, identify: Identify) -> RepairedState:
        """Repair interrupted operations in the state, so that the next operation completes or removes each resource.

        A resource in creation is recorded, under the id that `identify` returns. A resource in update or deletion is
        updated again, even if the program did not change it since. A resource that a replacement left gets a name of
        its own, and must be deleted *first*. The engine would delete it last, when the same one may exist again.
        """
        pending, mended = self._pending, RepairedState(bool(self._pending))
        resources = self._latest.get("resources") or []
        for raw in resources:
            if LEFT.search(raw["urn"]):
                mended.leftovers.append(raw["urn"])
            elif raw.pop("delete", False):
                self._part(raw, mended)
        live = {raw["urn"]: raw for raw in resources}
        for op in pending:
            raw = op["resource"]
            if op["type"] == "creating":
                self._adopt(raw, live, identify, mended)
            elif raw["urn"] in live:
                live[raw["urn"]]["initErrors"] = [INTERRUPTED]
        if pending:
            self._latest["pending_operations"] = []
        return mended

    def give_own(self, pickles: Mapping[str, str], settle: Callable[[str, Mapping[str, Any]], dict[str, Any]]) -> None:
        """Put in what Pulumi runs by: our pickled providers, by types, and our settings of Pulumi's providers.

        `settle` returns the settings of a package's provider, given those that the state has.
        """
        for raw in [*(self._latest.get("resources") or []), *(op["resource"] for op in self._pending)]:
            for part in ("inputs", "outputs"):
                if raw["type"] in pickles and part in raw:
                    raw[part][PROVIDER] = pickles[raw["type"]]
                elif raw["type"].startswith(PROVIDERS) and part in raw:
                    raw[part] = settle(raw["type"].removeprefix(PROVIDERS), raw[part])

    def _adopt(self, raw: dict[str, Any], live: Mapping[str, Any], identify: Identify, mended: RepairedState) -> None:
        if not raw.get("custom"):
            return
        inputs, there = raw.get("inputs") or {}, live.get(raw["urn"])
        # It has an id where it was made, and only what became of it was not written down before another step was.
        found = raw.get("id") or identify(raw["type"], strip_provider(inputs))
        if found is None:
            mended.forgotten.append(parse_urn_name(raw["urn"]))
        elif found and (there is None or there.get("id") != found):
            made = {**raw, "id": found, "outputs": dict(inputs), "initErrors": [INTERRUPTED]}
            self._latest.setdefault("resources", []).append(made)
            if there is not None:  # it was to replace that one
                self._part(made, mended)

    def _part(self, raw: dict[str, Any], mended: RepairedState) -> None:
        """Give a resource that is to be deleted a name of its own, and note it in `mended`."""
        taken = {each["urn"] for each in self._latest["resources"]}
        raw["urn"] = next(urn for n in count(1) if (urn := f"{raw['urn']}~left{n}") not in taken)
        mended.changed = True
        mended.leftovers.append(raw["urn"])


def spell_state_key(project: str, stack: str) -> str:
    """Return the key of a stack's state in its bucket."""
    return f"{STACKS}{project}/{stack}.json"


async def read_state(space: StateBucket, project: str, stack: str, rules: StateRules) -> StackState | None:
    """Return the judged state of a stack; None where there is none yet.

    Raises CorruptObject where it cannot be read or is not ours, and FleetError for another type of provider's.
    """
    key = spell_state_key(project, stack)
    try:
        data = await space.load(key)
    except KeyMissing:
        return None
    place = StatePlace(project, stack, f"{space.prefix}{key}", space.prefix)
    return StackState(key, judge_state(data, place, rules))


def _is_ours(raw: Mapping[str, Any]) -> bool:
    return not raw["type"].startswith(PULUMI)
