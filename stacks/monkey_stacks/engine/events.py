"""Pulumi's stream of events, turned into our values while it comes."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from monkey_stacks.engine.engine_outcome import (
    ChangeStage,
    EngineOutcome,
    EngineProgress,
    ResourceChange,
    ResourceFailure,
    ResourceOp,
    Watch,
)
from monkey_stacks.state.state_judge import PROVIDER, parse_urn_name

if TYPE_CHECKING:
    from pulumi.automation import EngineEvent
    from pulumi.automation.events import DiagnosticEvent, StepEventMetadata

#: What the engine calls its steps. A replacement is told in three; the one that counts is told once.
OPS = {
    "same": ResourceOp.SAME,
    "create": ResourceOp.CREATE,
    "update": ResourceOp.UPDATE,
    "replace": ResourceOp.REPLACE,
    "delete": ResourceOp.DELETE,
}
#: Steps of a replacement: they are what takes time, and what fails.
PARTS = {"create-replacement": ResourceOp.REPLACE, "delete-replaced": ResourceOp.REPLACE}
_COLOR = re.compile(r"<\{%.*?%\}>")
#: Where a plugin is: who has it on the PATH knows.
_FOUND = re.compile(r"using pulumi-resource-\S+ from \$PATH")
#: What a provider's error is wrapped in.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_RAISED = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout|\w*): ?(.*)$")


class EventListener:
    """Takes in the events of one operation. They come in threads of Pulumi's library."""

    def __init__(self, watch: Watch, *, drift: bool = False) -> None:
        """Tell `watch` of each step, in the thread in which it comes.

        `drift`: what providers find is the operation; else a look at it only comes before.
        """
        self._watch, self._lock, self._drift = watch, threading.Lock(), drift
        #: URNs at which a provider is looking now: what follows tells of what it found.
        self._looking: set[str] = set()
        self._changes: dict[tuple[str, ResourceOp], ResourceChange] = {}
        self._failed: dict[str, StepEventMetadata] = {}
        self._said: dict[str, str] = {}
        self._warnings: list[str] = []
        #: What was said of nothing in particular: why the whole operation failed.
        self.errors: list[str] = []
        self._complete = False

    def __call__(self, event: EngineEvent) -> None:
        """Take in one event."""
        with self._lock:
            if event.diagnostic_event:
                self._diagnose(event.diagnostic_event)
            elif event.resource_pre_event:
                self._begin(event.resource_pre_event.metadata, planning=bool(event.resource_pre_event.planning))
            elif event.res_outputs_event:
                self._end(event.res_outputs_event.metadata)
            elif event.res_op_failed_event:
                self._fail(event.res_op_failed_event.metadata)
            elif event.summary_event:
                self._complete = True

    @property
    def partial(self) -> bool:
        """Did the operation come to its end, though single resources failed?"""
        with self._lock:
            return self._complete and bool(self._failed)

    def outcome(self) -> EngineOutcome:
        """Return what it came to."""
        with self._lock:
            failures = [
                ResourceFailure(step.type, parse_urn_name(urn), self._said.get(urn) or "it failed, and said nothing")
                for urn, step in self._failed.items()
            ]
            return EngineOutcome(tuple(self._changes.values()), tuple(failures), tuple(dict.fromkeys(self._warnings)))

    def _begin(self, step: StepEventMetadata, *, planning: bool) -> None:
        if step.op.value == "refresh":
            self._looking.add(step.urn)
        change = _change(step)
        if change is None:
            return
        if step.op.value in OPS:
            self._changes[step.urn, change.op] = change
        if not planning and change.op is not ResourceOp.SAME and step.op.value != "replace":
            self._watch(EngineProgress(change, ChangeStage.BEGAN))

    def _end(self, step: StepEventMetadata) -> None:
        looked, change = step.urn in self._looking, _change(step)
        self._looking.discard(step.urn)
        if change is None or (looked and not self._drift):
            return
        if looked:
            self._changes[step.urn, change.op] = change
        if change.op is not ResourceOp.SAME and step.op.value != "replace":
            self._watch(EngineProgress(change, ChangeStage.DONE))

    def _fail(self, step: StepEventMetadata) -> None:
        change = _change(step)
        if change is not None:
            self._failed[step.urn] = step
            self._watch(EngineProgress(change, ChangeStage.FAILED, self._said.get(step.urn, "")))

    def _diagnose(self, event: DiagnosticEvent) -> None:
        text = extract_reason(_COLOR.sub("", event.message or ""))
        if not text:
            return
        if event.severity == "warning":
            self._warnings += [] if _FOUND.match(text) else [text]
        elif event.severity == "error" and event.urn and not event.urn.endswith("::pulumi:pulumi:Stack"):
            self._said.setdefault(event.urn, text)
            if "pulumi:pulumi:Stack::" in event.urn:
                self.errors.append(text)
        elif event.severity == "error":
            self.errors.append(text)


def _change(step: StepEventMetadata) -> ResourceChange | None:
    """Return what a step is to us; None for Pulumi's own resources, and for steps that change nothing."""
    op = OPS.get(step.op.value) or PARTS.get(step.op.value)
    if op is None or step.type.startswith("pulumi:"):
        return None
    names = _forced(step) if op in (ResourceOp.UPDATE, ResourceOp.REPLACE) else ()
    found = {**((step.old.inputs or {}) if step.old else {}), **((step.old.outputs or {}) if step.old else {})}
    wanted = (step.new.inputs or {}) if step.new else {}
    return ResourceChange(
        op, step.type, parse_urn_name(step.urn), names, tuple(map(found.get, names)), tuple(map(wanted.get, names))
    )


def _forced(step: StepEventMetadata) -> tuple[str, ...]:
    """Return what forces a change: what the provider says, else the inputs that differ."""
    said = (step.keys if step.op.value == "replace" else None) or step.diffs or list(step.detailed_diff or {})
    if not said and step.old is not None and step.new is not None:
        if step.old.init_errors:
            return tuple(step.old.init_errors)
        # A refresh may have found something else than what was once asked for.
        wanted, found = step.new.inputs or {}, step.old.outputs or {}
        said = _differing(step.old.inputs or {}, wanted) or [
            name for name in wanted if name in found and found[name] != wanted[name]
        ]
    return tuple(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in said if name != PROVIDER))


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]


def extract_reason(text: str) -> str:
    """Return what a provider raised, without the way there: the last line of a traceback, without the exception's name.

    Other texts stay as they are.
    """
    text = text.strip()
    if not _TRACEBACK.search(text):
        return text
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _RAISED.match(line)]
    if not starts:
        return lines[-1].strip()
    raised = _RAISED.match(lines[starts[-1]])
    assert raised is not None
    return "\n".join([raised[1], *lines[starts[-1] + 1 :]]).strip() or lines[starts[-1]]
